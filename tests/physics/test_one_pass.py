"""Batches of models that answer in one pass, by the device model of training."""

from __future__ import annotations

import math

import pytest

from simulator.physics.device_time import device_time
from simulator.physics.forward_pass import Iteration
from simulator.physics.one_pass import batch_pass, seconds, with_batch
from simulator.physics.rates import core_rates
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.schema.serving import OnePass, Service
from simulator.schema.workload.models import forward_flops


def service(name: str, *overrides: str) -> Service:
    """A shipped service with some settings changed."""
    return ServiceReader(chain_of(name), name, overrides=overrides).read({})


def one_pass(name: str, *overrides: str) -> OnePass:
    """How its model answers."""
    found = service(name, *overrides).one_pass
    assert found is not None
    return found


@pytest.mark.parametrize("samples", [1.0, 7.0, 32.0])
def test_a_batch_takes_the_forward_pass_of_training_and_its_copy(samples: float) -> None:
    """The same device model: its forward pass, and pictures over the link to the device."""
    asked = one_pass("image-classifier-t4")
    found = device_time(with_batch(asked.job, samples))
    host, model = asked.job.cluster.trainers.host, asked.job.job.model
    assert found is not None
    assert model is not None
    assert host.device_rate is not None
    sent = samples * model.input_bytes / host.device_rate
    assert seconds(asked, samples) == pytest.approx(float(found.forward) + sent)


def test_the_grid_is_close_to_every_batch() -> None:
    """Small batches are worked out; between points of the grid a line is within 3% of others."""
    asked = one_pass("embeddings-bert")
    work = batch_pass(asked, 256)
    for samples in (1, 5, 27, 64, 70, 100, 150, 200, 256):
        near = 1e-9 if samples <= 64 else 0.03
        exact = seconds(asked, float(samples))
        assert work.seconds(Iteration(prefill_tokens=samples)) == pytest.approx(exact, rel=near)
    assert work.decode_seconds(1, 1.0, 1) == 0.0


def test_cores_compute_at_their_share_of_the_peak() -> None:
    """Sixteen cores of 2.9 GHz with 64 FLOP a cycle at half: a picture takes that at least."""
    asked = one_pass("image-classifier-cpu")
    model = asked.job.job.model
    rates = core_rates(asked.job.cluster.trainers.host)
    assert rates is not None
    assert model is not None
    assert rates.matrix == pytest.approx(0.5 * 16 * 2.9e9 * 64)
    flops = float(forward_flops(model, 1.0, asked.job.job.train.precision))
    least = flops / rates.matrix
    assert least < seconds(asked, 1.0) < 3.0 * least


def test_measured_batches_win() -> None:
    """What somebody timed on the machine is what a batch takes, on cores too."""
    timed = 'model.step_times=[{batch_size=1, time="9 ms"}, {batch_size=4, time="30 ms"}]'
    asked = one_pass("image-classifier-cpu", timed)
    assert seconds(asked, 1.0) == pytest.approx(0.009)
    assert seconds(asked, 4.0) == pytest.approx(0.030)
    assert service("image-classifier-cpu", timed).log_sd < service("image-classifier-cpu").log_sd


def test_larger_batches_take_longer_and_less_each() -> None:
    """A batch grows with its samples, and never faster than they do."""
    asked = one_pass("cameras-32")
    times = [seconds(asked, float(samples)) for samples in (1, 2, 4, 8, 16)]
    assert times == sorted(times)
    each = [time / samples for time, samples in zip(times, (1, 2, 4, 8, 16), strict=True)]
    assert each == sorted(each, reverse=True)
    assert math.isfinite(times[-1])
