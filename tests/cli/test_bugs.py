"""A prediction that contradicts itself: never a number with exit code 0, and studies go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import predict as door
from simulator.cli.output import Exit
from simulator.engine.run import SimulationInput
from simulator.invariants import Invariant
from simulator.results.prediction import Prediction
from tests.support.answers import SCENARIO, write_evidence

Plan = Callable[..., Any]
"""A fixture that runs ``plan``."""


def _two_workers(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    if prediction.scenario.job.input.workers == 2:
        yield "there are 2"


@pytest.fixture(autouse=True)
def no_two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invariant that two workers break."""
    monkeypatch.setattr(door, "INVARIANTS", (Invariant("never two workers", _two_workers),))


@pytest.mark.parametrize("verb", [("simulate",), ("explain",), ("compare", SCENARIO)])
def test_no_number_leaves(plan: Plan, verb: tuple[str, ...]) -> None:
    """One prediction that is a bug is the end: no output, the invariant, what to report."""
    ended = plan(*verb, SCENARIO, "--set", "input.workers=2")
    assert ended.code == Exit.OUR_BUG
    assert ended.out == ""
    assert "never two workers: there are 2" in ended.err
    assert "with the command, the scenario file" in ended.err


def test_a_sweep_marks_the_row_and_goes_on(plan: Plan, tmp_path: Path) -> None:
    """The others are predicted, and the end is exit 70; the bug is not stored."""
    line = ("sweep", SCENARIO, "--over", "input.workers=1,2,3", "--store", str(tmp_path / "s"))
    for predicted in ("2 simulated, 1 hit a bug in plan", "2 simulated, 1 hit a bug in plan"):
        ended = plan(*line)
        assert ended.code == Exit.OUR_BUG
        assert predicted in ended.out
        assert "a bug of ours: the prediction of" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("verb", [("advise", "input"), ("whatif",)], ids=["advise", "whatif"])
def test_a_study_goes_on(plan: Plan, verb: tuple[str, ...]) -> None:
    """Its answer is printed, what it met is told, and the end is exit 70."""
    ended = plan(*verb, SCENARIO)
    assert ended.code == Exit.OUR_BUG
    assert "workers" in ended.out
    assert "met a bug in plan, not in your input" in ended.err
    assert "never two workers" in ended.err


def test_validation_leaves_the_row_out(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that meets a bug is not predicted, the others are."""
    monkeypatch.chdir(tmp_path)
    write_evidence(tmp_path)
    ended = plan("validate", "mine.toml", "--jobs", "1")
    assert ended.code == Exit.OUR_BUG
    assert "a bug of ours: the prediction of" in ended.out
    assert "never two workers" in ended.err
