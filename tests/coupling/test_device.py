"""Work that takes the device's time, and inference with nothing or everything overlapped."""

from __future__ import annotations

import pytest
from coupling.build import batches_of, with_job, with_work
from coupling.on_device import bulk, decoding_on_the_device, one_at_a_time
from support.scenarios import host, scenario

from simulator.predict import predict
from simulator.schema.data_loading import Preparation
from simulator.schema.training import Mode


def test_decoding_on_the_device_spares_the_cpu() -> None:
    """What the device decodes costs no core, and counts as its own busy time."""
    timing = predict(decoding_on_the_device().job).timing
    assert timing.usage["cpu"].mean == 0.0
    assert timing.split.compute == pytest.approx(0.132, rel=1e-9)
    assert timing.accelerator_utilization == pytest.approx(1.0, rel=1e-6)


def test_decoding_pays_on_the_device_where_the_cpu_is_the_limit() -> None:
    """Two cores decode a batch in 160 ms: 132 ms on the device are better, 100 ms with 4 cores."""
    on_two = scenario(batch_cpu=0.32, compute=0.1, workers=4, machine=host(cores=2))
    on_four = scenario(batch_cpu=0.32, compute=0.1, workers=4, machine=host(cores=4))
    moved = with_work(on_two, decode=0.0, where=Preparation.DEVICE, device_time=0.001)
    steps = [predict(job).timing.step_time.mean for job in (on_two, moved, on_four)]
    assert steps == pytest.approx([0.16, 0.132, 0.1], rel=1e-6)


def test_the_split_of_one_sample_says_where_its_latency_comes_from() -> None:
    """1.2 ms of input, 0.1 ms of copy, 4 ms of compute."""
    split = predict(one_at_a_time()).timing.split
    assert split.data_stall == pytest.approx(0.0012, rel=1e-6)
    assert split.h2d == pytest.approx(0.0001, rel=1e-6)
    assert split.compute == pytest.approx(0.004, rel=1e-6)


@pytest.mark.parametrize(("batch", "compute", "latency"), [(1, 0.004, 0.0053), (4, 0.005, 0.0102)])
def test_latency_of_small_batches(batch: int, compute: float, latency: float) -> None:
    """Four samples wait for four reads, decodes and copies: 4 x 1.3 ms + 5 ms."""
    job = with_job(batches_of(one_at_a_time(), batch, 400, compute), mode=Mode.INFER)
    timing = predict(job).timing
    assert timing.step_time.mean == pytest.approx(latency, rel=1e-6)
    assert timing.throughput == pytest.approx(batch / latency, rel=1e-6)


def test_bulk_inference_has_no_barrier_and_no_gradients() -> None:
    """Nothing but the forward pass and its results takes the device's time."""
    timing = predict(bulk()).timing
    assert timing.split.communication == 0.0
    assert timing.split.compute == pytest.approx(0.02, rel=1e-6)
    assert timing.throughput == pytest.approx(32 / 0.025, rel=1e-3)
