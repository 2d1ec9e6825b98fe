"""Utilization, throughput and first step as the storage benchmark counts them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction

BASES = Path(__file__).parents[2] / "simulator" / "data" / "measured" / "bases"
QUIET = ("train.straggling=0", "train.step_overhead=0 s", "data.samples=7000")
"""Nothing is random, nobody is late: 1,000 batches of 7 for one accelerator."""


@cache
def answer(base: str, *overrides: str) -> Prediction:
    """What is predicted for a workload."""
    return predict(load_scenario(str(BASES / f"{base}.toml"), overrides=overrides))


def one(*overrides: str) -> Prediction:
    """One accelerator that reads seven equal files a step of 323 ms from 10 GB/s."""
    spread = "data.size_spread.relative_deviation=0"
    store = ("hardware.storage_bandwidth=10 GB/s", "hardware.storage_request_rate=100 GB/s")
    loader = ("input.decode=0 s", "input.output_bytes_per_sample=0 B", "input.workers=4")
    alone = ("hardware.emulated=1", *QUIET, *loader, *store, spread)
    return answer("unet3d-h100", *alone, *overrides)


def figure(prediction: Prediction, name: str) -> float | None:
    """A figure as the benchmark counts it."""
    return number_at(prediction, f"mlperf_storage.{name}")


def test_a_first_step_counts_apart() -> None:
    """Four workers read four batches at once: 28 files in 0.41 s, then every step is 323 ms."""
    first = 28 * 146600628 / 10e9 + 0.323
    assert figure(one(), "first_step_s") == pytest.approx(first, rel=1e-6)
    assert figure(one(), "accelerator_utilization") == pytest.approx(1.0, rel=1e-9)


def test_throughput_by_version() -> None:
    """v1.0: all samples over the whole epoch; v2.0: 998 of 999 batches over what is left."""
    first = 28 * 146600628 / 10e9 + 0.323
    whole = first + 999 * 0.323
    assert figure(one(), "throughput_v1_samples_per_s") == pytest.approx(7000 / whole, rel=1e-6)
    later = 998 * 7 / (999 * 0.323)
    assert figure(one(), "throughput_v2_samples_per_s") == pytest.approx(later, rel=1e-6)


def test_overheads_lower_the_utilization() -> None:
    """27 ms in each step of 323 ms: 92.3%, first step's included in what is left."""
    busy = one("train.step_overhead=27 ms")
    expected = 0.323 * 999 / (0.350 * 999 + 0.027)
    assert figure(busy, "accelerator_utilization") == pytest.approx(expected, rel=1e-6)


def test_the_wait_for_the_slowest_first_batch_counts() -> None:
    """Files of different sizes: the average rank's first step is left out, the latest one's not."""
    spread = "data.size_spread.relative_deviation=0.5"
    apart = answer("unet3d-h100", *QUIET, "hardware.emulated=4", "data.samples=28000", spread)
    first = figure(apart, "first_step_s")
    assert first is not None
    assert first < apart.timing.first_step
    assert apart.timing.first_step - first < 0.5 * first


def test_a_start_of_each_epoch_comes_before_its_first_batch() -> None:
    """A second to set the files in order is a second of the first step, every epoch."""
    late = one("input.epoch_start=1 s")
    now, then = (figure(p, "first_step_s") or 0.0 for p in (one(), late))
    assert then - now == pytest.approx(1.0, rel=1e-6)
    epochs = late.timing.total_time - one().timing.total_time
    assert epochs == pytest.approx(5.0, rel=1e-6)


def test_only_emulated_accelerators_have_it() -> None:
    """Real ones are not counted by the benchmark's rules."""
    real = predict(load_scenario("resnet50-imagenet-p4d"))
    assert figure(real, "accelerator_utilization") is None
    assert figure(real, "first_step_s") is None


def test_two_thousand_ranks() -> None:
    """2,100 equal ranks on 21 hosts that share one store: 499 steps of an epoch."""
    overrides = ("hardware.count=21", "hardware.emulated=100", "data.samples=419160000")
    scenario = load_scenario(str(BASES / "resnet50-a100.toml"), overrides=overrides)
    found = predict(scenario, intervals=False)
    assert found.scenario.ranks == 2100
    assert found.steps_per_epoch == 499


def test_a_full_store_shares_itself_among_all_hosts() -> None:
    """Ten hosts that need 1.5 times what the store has wait for it: utilization near 2/3."""
    wanted = 10 * 10 * 400 * 114660.07 / 0.224
    store = f"hardware.storage_bandwidth={wanted / 1.5:.0f} B/s"
    short = answer(
        "resnet50-h100",
        *("hardware.count=10", "hardware.emulated=10", "data.samples=20000000", store),
        *("train.straggling=0", "train.step_overhead=0 s"),
    )
    assert figure(short, "accelerator_utilization") == pytest.approx(2 / 3, rel=0.01)


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (("model.step_times=[]",), "needs to know how long a step takes"),
        (("hardware.gpus=1",), "is given together with hardware.emulated"),
        (
            ("hardware.machine=node/apple-m1-max", "hardware.network_bandwidth=10 Gb/s"),
            "changes an attachment that the machine doesn't have",
        ),
    ],
)
def test_contradictions_are_told(overrides: tuple[str, ...], told: str) -> None:
    """Emulated accelerators need a step time and stand alone; a card must be there to change."""
    with pytest.raises(InputError) as caught:
        load_scenario(str(BASES / "unet3d-h100.toml"), overrides=overrides)
    assert told in str(caught.value)
