"""``plan explain``, ``models`` and ``schema``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from simulator.cli.output import Exit

Run = Callable[..., Any]
"""A fixture that runs ``plan``, or arranges how it runs."""

SCENARIO = "resnet50-imagenet-p4d"


@pytest.mark.parametrize("metric", ["", "step_time_s.mean", "cost", "gpu_memory_bytes.total"])
def test_explain(plan: Run, metric: str) -> None:
    """A metric, a group of them, or the step time is explained with sources."""
    outcome = plan("explain", SCENARIO, *([metric] if metric else []))
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    assert (metric or "step_time_s.mean") in outcome.out


def test_explain_refuses_an_unknown_metric(plan: Run) -> None:
    """A metric that does not exist is answered with the nearest."""
    outcome = plan("explain", "resnet18-imagenet-hidden", "cost.usd")
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert "cost.usd_" in outcome.err


def test_models_are_listed(plan: Run) -> None:
    """The library names at least twelve models."""
    outcome = plan("models")
    assert outcome.code == Exit.FINE
    assert len(outcome.out.splitlines()) > 12
    assert "resnet50" in outcome.out


def test_schema_is_json(plan: Run) -> None:
    """Editors get a JSON Schema that knows the sections of a scenario."""
    schema = json.loads(plan("schema").out)
    assert "$schema" in schema
    assert {"hardware", "input", "train"} <= set(schema["properties"])
