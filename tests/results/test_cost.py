"""What a dollar buys."""

from __future__ import annotations

import pytest

from simulator.files.scenario import load_scenario
from simulator.predict import predict


@pytest.mark.parametrize("samples", [20_000, 1_281_167])
def test_a_dollar_buys_what_whole_epochs_deliver(samples: int) -> None:
    """Ten steps an epoch are unlike steady ones; over many thousand the two agree."""
    settings = (f"data.samples={samples}", "train.epochs=3")
    found = predict(load_scenario("resnet50-imagenet-p4d", overrides=settings), doubts=False)
    cost, timing = found.cost, found.timing
    assert cost.per_second is not None
    assert cost.samples_per_usd == pytest.approx(
        samples / (timing.epoch_time * cost.per_second), rel=1e-3
    )
    steady = timing.throughput / cost.per_second
    assert (abs(cost.samples_per_usd / steady - 1.0) < 0.01) == (samples > 1_000_000)


def test_each_device_keeps_its_own_host_threads_busy() -> None:
    """A thread more for each of eight processes on eight devices is a vCPU more for each."""
    needs = [
        predict(
            load_scenario("resnet50-imagenet-p4d", overrides=(f"train.host_threads={threads}",)),
            doubts=False,
        ).cpu_need
        for threads in (1, 2)
    ]
    less, more = (0.0 if need is None else need.per_gpu for need in needs)
    assert more - less == pytest.approx(1.0)
