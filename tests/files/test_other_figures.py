"""Predictions by another set of kernel figures."""

from __future__ import annotations

from simulator.files.kernel_figures import kernel_files, with_values
from simulator.files.other_figures import with_kernel_files
from simulator.files.scenario import load_scenario
from simulator.predict import predict

BASE = "gpt2-tokens-h100"


def test_the_set_that_ships_changes_nothing() -> None:
    """A scenario given the shipped figures once more is the same."""
    scenario = load_scenario(BASE)
    assert with_kernel_files(scenario, kernel_files()) == scenario


def test_another_set_predicts_otherwise_and_leaves_the_shipped_one() -> None:
    """A lower share of Hopper's peak makes a longer step, for that scenario only."""
    scenario = load_scenario(BASE)
    slower = with_kernel_files(scenario, with_values({"hopper.share16": 0.4}))
    steps = [predict(one, max_steps=20).timing.step_time.mean for one in (scenario, slower)]
    assert steps[0] < steps[1]
    assert load_scenario(BASE) == scenario
