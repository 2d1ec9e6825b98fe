"""Spot capacity: what interruptions add, on a scenario and in its figures."""

from __future__ import annotations

import pytest

from simulator.equations.reliability import best_checkpoint_interval, time_with_interruptions
from simulator.reading.scenario import load_scenario
from simulator.schema.goal import Spot
from simulator.studies.recommend.search_problem import checkpoint_time, interrupted, with_losses
from simulator.units import HOUR

HOURLY = Spot(interruptions=1.0 / HOUR, restart=300.0, source="made up", date="2026")


def test_on_demand_machines_are_not_taken_away() -> None:
    """Nothing changes without cost.purchase = spot."""
    assert interrupted(load_scenario("resnet50-imagenet-p4d"), HOURLY, 7200.0, 0.2) is None


def test_a_run_stops_when_any_of_its_machines_is_taken() -> None:
    """Four machines are interrupted four times as often as one, at their best interval."""
    options = ("cost.purchase=spot", "hardware.count=4")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=options)
    lost = interrupted(scenario, HOURLY, 7200.0, 0.2)
    rate, write = 4.0 / HOUR, checkpoint_time(scenario)
    interval = max(0.2, float(best_checkpoint_interval(rate, write)))
    told = time_with_interruptions(7200.0, rate, interval, write, 300.0)
    assert lost is not None
    assert write > 0.0
    assert lost.interval == pytest.approx(interval)
    assert lost.stretch == pytest.approx(float(told) / 7200.0)
    assert lost.losses == pytest.approx(rate * float(told))


def test_checkpoints_of_the_scenario_stay() -> None:
    """A scenario that writes every 1,000 steps keeps that interval."""
    options = ("cost.purchase=spot", "train.checkpoint_every_steps=1000")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=options)
    lost = interrupted(scenario, HOURLY, 7200.0, 0.2)
    assert lost is not None
    assert lost.interval == pytest.approx(200.0)


def test_lost_work_is_paid() -> None:
    """A run twice as long: twice the time, the rent of the hours more, half the samples for $1."""
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=("cost.purchase=spot",))
    lost = interrupted(scenario, HOURLY, 7200.0, 0.2)
    assert lost is not None
    figures = {"total_time_s": 7200.0, "cost.usd_to_train": 21.0, "cost.usd_per_h": 10.0,
               "cost.samples_per_usd": 100.0, "step_time_s.mean": 0.2}  # fmt: skip
    changed = with_losses(figures, lost)
    assert changed["total_time_s"] == pytest.approx(7200.0 * lost.stretch)
    assert changed["cost.usd_to_train"] == pytest.approx(21.0 + 20.0 * (lost.stretch - 1.0))
    assert changed["cost.samples_per_usd"] == pytest.approx(100.0 / lost.stretch)
    assert changed["step_time_s.mean"] == 0.2
