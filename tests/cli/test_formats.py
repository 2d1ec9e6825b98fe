"""``--format`` of every verb that prints an answer: the same answer in four forms."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.stages import sampled

from simulator.cli.output import Exit
from tests.support.answers import GPU, OTHER, SCENARIO, VERBS, write_evidence

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""
LONG = {"advise", "whatif", "recommend", "size", "calibrate", "hardware mixed"}
"""Verbs that take long, each of which is run several times here."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with evidence of one's own, in which ``plan`` runs and keeps its results."""
    write_evidence(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAN_STORE", str(tmp_path / "store"))
    return tmp_path


FROM_STORE = "plan: all predictions were in the store; --no-resume makes them again\n"
"""A remark of searches that were answered before, which is no part of an answer."""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    sampled(
        [
            pytest.param(arguments, id=name, marks=[pytest.mark.slow] * (name in LONG))
            for name, arguments in VERBS.items()
        ],
        12,
    ),
)
def test_every_answer_has_four_forms(plan: Run, arguments: tuple[str, ...]) -> None:
    """Each form is what its name says, on standard output alone, and ends with the same code."""
    shown = plan(*arguments, "--format", "table")
    told = {form: plan(*arguments, "--format", form) for form in ("json", "csv", "markdown")}
    codes = {shown.code, *(outcome.code for outcome in told.values())}
    assert codes in ({Exit.FINE}, {Exit.DOES_NOT_FIT}), [shown.err, told["csv"].err]
    said = shown.err + "".join(outcome.err for outcome in told.values())
    assert said.replace(FROM_STORE, "") == ""
    assert json.loads(told["json"].out)
    head, *rows = csv.reader(io.StringIO(told["csv"].out))
    assert rows
    assert len(set(head)) == len(head)
    assert {len(row) for row in rows} == {len(head)}
    tables = [
        block.splitlines() for block in told["markdown"].out.split("\n\n") if block.startswith("|")
    ]
    assert all(len(lines) > 2 and set(lines[1]) <= set("|:- ") for lines in tables)
    assert tables


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", sampled([name for name in VERBS if name != "schema"], 2))
def test_json_is_the_short_form(plan: Run, name: str) -> None:
    """``--json`` prints what ``--format json`` prints, and excludes the others."""
    arguments = VERBS[name]
    plan(*arguments, "--json")  # what is stored then answers all that follow alike
    assert plan(*arguments, "--json").out == plan(*arguments, "--format", "json").out
    outcome = plan(*arguments, "--json", "--format", "csv")
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert "--json and --format csv exclude each other" in outcome.err


def test_numbers_of_a_table_read_back_exactly(plan: Run) -> None:
    """CSV and JSON hold the same floats; Markdown rounds them, with their unit."""
    tree = json.loads(plan("simulate", SCENARIO, "--json").out)
    rows = csv.DictReader(io.StringIO(plan("simulate", SCENARIO, "--format", "csv").out))
    values = {row["metric"]: (row["value"], row["unit"]) for row in rows}
    mean = tree["step_time_s"]["mean"]
    assert (float(values["step_time_s.mean"][0]), values["step_time_s.mean"][1]) == (mean, "s")
    page = plan("simulate", SCENARIO, "--format", "markdown").out
    assert "| Step | 380 ms" in page
    assert repr(mean) not in page


def test_differences_of_profiles_in_si_units(plan: Run) -> None:
    """The ratio is that of the two values beside it."""
    rows = csv.DictReader(io.StringIO(plan("hardware", "diff", GPU, OTHER, "--format", "csv").out))
    row = next(row for row in rows if row["figure"] == "memory_bandwidth")
    assert float(row["ratio"]) == pytest.approx(float(row[OTHER]) / float(row[GPU]))
    assert row["unit"] == "B/s"


@pytest.mark.slow
def test_a_table_without_a_winner_says_why(plan: Run, folder: Path) -> None:
    """Where nothing keeps the limits, the reason stands on standard error beside the table."""
    goal = 'minimize = "cost.usd_to_train"\nbudget = "$0.01"\nnodes = 1\ngpus = ["v100*"]\n'
    (folder / "goal.toml").write_text(f"schema = 1\n[goal]\n{goal}", encoding="utf-8")
    outcome = plan(*VERBS["recommend"], "--format", "csv")
    assert outcome.code == Exit.DOES_NOT_FIT
    assert outcome.out.startswith("scenario,place,")
    assert "budget" in outcome.err
