"""What the program does while the device waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.scenarios import scenario, simulate

from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.compute import StepOverhead
from simulator.schema.scenario import Scenario


def busy(overhead: float, **changes: object) -> Scenario:
    """A job of 20 ms steps with so much bookkeeping in each."""
    job = scenario(compute=0.02, workers=2, **changes)  # type: ignore[arg-type] # arguments by name
    train = replace(job.job.train, step_overhead=overhead)
    return replace(job, jobs=(replace(job.job, train=train),))


def test_it_stands_in_every_step() -> None:
    """20 ms of compute and 5 ms of logging make 25 ms, and are told apart."""
    timing = simulate(busy(0.005))
    assert timing.step_time.mean == pytest.approx(0.025, rel=1e-9)
    assert timing.split.other == pytest.approx(0.005, rel=1e-9)
    assert timing.accelerator_utilization == pytest.approx(0.8, rel=1e-6)


def test_it_stands_once_in_a_step_of_several_batches() -> None:
    """A step of four accumulated batches has one end."""
    assert simulate(busy(0.008, accumulation=4)).step_time.mean == pytest.approx(0.088, rel=1e-9)


def test_nothing_is_asked_for_where_there_is_none() -> None:
    """No overhead, no demand."""
    assert StepOverhead().demands(busy(0.0), Phase.COLD) == ()
