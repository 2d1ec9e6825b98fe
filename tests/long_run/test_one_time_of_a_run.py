"""Two commands never give two values for the time of one run of one file."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from click.testing import CliRunner

from simulator.cli.main import plan
from simulator.errors import PlanError
from simulator.long_run.forecast import outlook
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.reading.shipped import scenario_names
from simulator.schema.long_run import Interruptions

STEPS = 30
"""Simulated steps of an epoch: what is compared does not depend on their number."""
DESCRIPTIONS = (
    (),
    ("train.checkpoint_every_steps=7",),
    ("train.checkpoint_every_steps=7", "checkpoint.asynchronous=true"),
    ("checkpoint.interval=90 s",),
    ("train.checkpoint_every_steps=3", "checkpoint.blocking=5 s"),
)
"""Settings of checkpoints: none, at steps, in the background, by time, with a stated time."""


@pytest.mark.parametrize("number", range(len(DESCRIPTIONS)))
@pytest.mark.parametrize("name", scenario_names())
def test_a_run_takes_as_long_in_a_forecast(name: str, number: int) -> None:
    """Where nothing fails and nothing is uncertain, simulated runs take the predicted time."""
    try:
        scenario = load_scenario(name, overrides=DESCRIPTIONS[number])
    except PlanError:
        pytest.skip("the job writes no checkpoints")
    prediction = predict(scenario, intervals=False, max_steps=STEPS)
    total = prediction.timing.total_time
    found = outlook(prediction, Interruptions(), draws=100)
    assert found.plain == total
    if math.isfinite(total):
        assert found.finish[0.5] == pytest.approx(total, rel=1e-9)


def answer(*arguments: str) -> dict[str, Any]:
    """Return the JSON of a command."""
    result = CliRunner().invoke(plan, [*arguments, "--json"])
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("number", [1, 2])
def test_commands_agree_on_the_time_of_a_run(number: int) -> None:
    """`simulate`, `goodput` and `compare` print one time for one file."""
    settings = [part for one in DESCRIPTIONS[number] for part in ("--set", one)]
    job = ("llama3-8b-fsdp", *settings)
    simulated = answer("simulate", *job, "--no-actions")["total_time_s"]
    forecast = answer("goodput", *job, "--draws", "100")
    compared = answer("compare", "llama3-8b-fsdp", "llama3-8b-fsdp", *settings)["scenarios"]
    assert forecast["work_s"] == simulated
    assert {one["figures"]["total_time_s"] for one in compared} == {simulated}
    assert forecast["finish_s"]["p10"] < simulated < forecast["finish_s"]["p90"]
