"""Keys and axes without effect are said to be so, once, by name."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Plan = Callable[..., Any]
"""A fixture that runs ``plan``."""
PRELOADED = ("simulate", "svm-cpu-only", "--set", "data.cache=preloaded")


@pytest.mark.slow
def test_a_prediction_warns_of_it(plan: Plan) -> None:
    """In the report and in JSON; nothing is said of keys that matter."""
    told = plan(*PRELOADED, "--set", "data.readers=7").out
    named = "data.access, data.readers (nothing in this job depends on them)"
    assert f"without effect here: {named}" in told
    tree = json.loads(plan(*PRELOADED, "--set", "data.readers=7", "--json").out)
    assert sum("without effect here" in warning for warning in tree["warnings"]) == 1
    assert "data.access (nothing in this job depends on it)" in plan(*PRELOADED).out
    assert "without effect" not in plan(*PRELOADED[:2]).out


def test_a_sweep_warns_of_an_axis(plan: Plan, tmp_path: Path) -> None:
    """All its values give the same figures."""
    line = ("sweep", *PRELOADED[1:], "--over", "data.readers=1,2", "--store", str(tmp_path / "s"))
    assert "No effect data.readers" in plan(*line).out
    assert json.loads(plan(*line, "--json").out)["without_effect"] == ["data.readers"]


def test_standard_input_is_read_once(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked about its keys comes from the same text."""
    text = b'schema = 1\nextends = "svm-cpu-only"\n[data]\ncache = "preloaded"\nreaders = 7\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert "without effect here: data.readers" in plan("simulate", "-").out
