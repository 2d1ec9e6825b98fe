"""Accumulated batches taken together: as if each were simulated, where the device decides alone."""

from __future__ import annotations

import pytest
from support.scenarios import demand_table, scenario, simulate

from simulator.engine import run
from simulator.engine.symmetry import merged_together
from simulator.pipeline.topology import build
from simulator.results.prediction import Timing
from simulator.schema.fields import Shape, Spread
from simulator.schema.scenario import Scenario


def accumulating(count: int = 64, **changes: object) -> Scenario:
    """A job that accumulates `count` batches of 10 ms each, made in 2 ms, in a step."""
    common: dict[str, object] = {
        "batches": 10 * count,
        "accumulation": count,
        "compute": 0.01,
        "batch_cpu": 0.002,
        "workers": 2,
        "sync": False,
    }
    return scenario(**(common | changes))  # type: ignore[arg-type] # arguments by name


def together(job: Scenario) -> int:
    """How many batches of a job are taken for one."""
    return merged_together(job, build(job), demand_table(job))


def one_by_one(job: Scenario, monkeypatch: pytest.MonkeyPatch) -> Timing:
    """The same run with every batch simulated."""
    with monkeypatch.context() as patch:
        patch.setattr(run, "merged_together", lambda *_: 1)
        return simulate(job)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"output_bytes": 1e6},
        {"epochs": 3.0, "last_share": 0.5},
        {"batches": 645},
        {"cost_spread": Spread(shape=Shape.EXPONENTIAL, relative_deviation=1.0)},
    ],
    ids=["plain", "copies", "epochs", "incomplete step", "random"],
)
def test_merged_batches_take_what_each_of_them_takes(
    changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step, epoch, throughput and the device's utilization agree with the run in full."""
    job = accumulating(**changes)
    assert together(job) > 1
    merged, full = simulate(job), one_by_one(job, monkeypatch)
    assert merged.step_time.mean == pytest.approx(full.step_time.mean, rel=1e-3)
    assert merged.throughput == pytest.approx(full.throughput, rel=1e-3)
    assert merged.epoch_time == pytest.approx(full.epoch_time, rel=5e-3)
    assert merged.usage["gpu"].mean == pytest.approx(full.usage["gpu"].mean, rel=2e-3)
    assert merged.simulated_steps <= full.simulated_steps


@pytest.mark.parametrize(
    "changes",
    [{"batch_cpu": 0.012}, {"sync": True}, {"workers": 0}, {"count": 3}, {"count": 61}],
    ids=["slow producers", "waits each step", "no workers", "few", "prime"],
)
def test_batches_stay_apart_where_each_of_them_matters(changes: dict[str, object]) -> None:
    """Workers near the device's pace, a program that waits, few batches: all are simulated."""
    assert together(accumulating(**changes)) == 1  # type: ignore[arg-type] # arguments by name


@pytest.mark.parametrize("batch_cpu", [1e-5, 0.002, 0.008])
def test_the_first_step_is_hardly_later(batch_cpu: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a larger first batch takes to be made is a sixteenth of the step at most."""
    job = accumulating(batch_cpu=batch_cpu)
    merged, full = simulate(job), one_by_one(job, monkeypatch)
    assert full.first_step <= merged.first_step <= full.first_step + full.step_time.mean / 16.0


def test_merging_divides_the_step_evenly() -> None:
    """Whatever the number of batches, a step stays a whole number of merged ones."""
    for count in (4, 16, 24, 100, 128, 1024):
        assert count % together(accumulating(count)) == 0
