"""What a dollar buys."""

from __future__ import annotations

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import unstarved_rate


@pytest.mark.parametrize("samples", [20_000, 1_281_167])
def test_a_dollar_buys_what_whole_epochs_deliver(samples: int) -> None:
    """Ten steps an epoch are unlike steady ones; over many thousand the two agree."""
    settings = (f"data.samples={samples}", "train.epochs=3")
    found = predict(load_scenario("resnet50-imagenet-p4d", overrides=settings), intervals=False)
    cost, timing = found.cost, found.timing
    assert cost.per_second is not None
    assert cost.samples_per_usd == pytest.approx(
        samples / (timing.epoch_time * cost.per_second), rel=1e-3
    )
    steady = timing.throughput / cost.per_second
    assert (abs(cost.samples_per_usd / steady - 1.0) < 0.01) == (samples > 1_000_000)


def test_a_capacity_block_is_paid_by_the_day() -> None:
    """A run of less than a day pays one, within its interval as well."""
    settings = ("cost.purchase=capacity-block", "cost.price=$10/h", "train.epochs=1")
    found = predict(load_scenario("resnet50-imagenet-p4d", overrides=settings))
    assert found.timing.total_time < 3600.0
    assert found.cost.for_machines == pytest.approx(240.0)
    assert found.interval["cost.usd_for_machines"]["p90"] == pytest.approx(240.0)


def test_each_device_keeps_its_own_host_threads_busy() -> None:
    """A thread more for each of eight processes on eight devices is a vCPU more for each."""
    needs = [
        predict(
            load_scenario("resnet50-imagenet-p4d", overrides=(f"train.host_threads={threads}",)),
            intervals=False,
        ).cpu_need
        for threads in (1, 2)
    ]
    less, more = (0.0 if need is None else need.per_gpu for need in needs)
    assert more - less == pytest.approx(1.0)


def test_what_devices_could_take_is_what_they_take_when_fed() -> None:
    """Copies beside compute are exposed for a batch that comes late, and hidden for others."""
    name, fed = "resnet50-imagenet-p4d", ("hardware.vcpus=400", "input.workers=60")
    starved = predict(load_scenario(name), intervals=False)
    plenty = predict(load_scenario(name, overrides=fed), intervals=False)
    assert starved.timing.split.h2d > 0.1 * plenty.timing.step_time.mean
    assert unstarved_rate(starved) == pytest.approx(plenty.timing.throughput, rel=0.03)


def test_vcpus_over_what_a_sample_takes_is_what_they_make() -> None:
    """96 of them are all busy, up to eight with the threads that train."""
    found = predict(load_scenario("resnet50-imagenet-p4d"), intervals=False)
    assert found.cpu_need is not None
    least, most = (vcpus / found.cpu_need.per_sample for vcpus in (96 - 8, 96))
    assert least < found.timing.throughput < most
