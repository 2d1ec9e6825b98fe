"""How many batches, steps and samples a run has, by hand."""

from __future__ import annotations

import pytest

from simulator.pipeline.run_length import lengths, samples_of_an_epoch, worker_start
from simulator.reading.scenario import load_scenario


def test_the_last_batch_of_an_epoch_is_what_is_left() -> None:
    """1,000 samples on 8 ranks are 125 each: batches of 50, 50 and 25."""
    settings = ("data.samples=1000", "train.batch_size=50")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=settings)
    found = lengths(scenario)
    assert (scenario.ranks, found.batches) == (8, 3)
    assert found.last_share == pytest.approx(0.5)
    assert float(samples_of_an_epoch(scenario)) == pytest.approx(1000.0)


def test_workers_of_a_rank_start_one_after_another() -> None:
    """Four workers of 40 ms take 160 ms; a rank without workers starts none."""
    keys = ("input.worker_start=40 ms", "input.workers=4")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=keys)
    assert worker_start(scenario) == pytest.approx(0.160)
    alone = load_scenario("resnet50-imagenet-p4d", overrides=(keys[0], "input.workers=0"))
    assert worker_start(alone) == 0.0
