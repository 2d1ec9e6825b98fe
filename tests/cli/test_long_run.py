"""The long run, failures and all, inside the verbs that answer about a scenario."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
JOB = """schema = 1
name = "long"
extends = "resnet18-imagenet-one-worker"
[data]
samples = 4096
[train]
epochs = 20000
[failures]
per_machine = "0.5 /d"
per_job = "0.1 /d"
start = "10 min"
doubt = 0
[run]
deadline = "90 d"
budget = "$9000"
draws = 200
"""


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A job of weeks on one machine that fails every other day."""
    path = tmp_path / "long.toml"
    path.write_text(JOB, encoding="utf-8")
    return str(path)


def test_simulate_tells_of_the_long_run(plan: Run, job: str) -> None:
    """Goodput, quantiles of the end and the bill and chances stand beside the undisturbed run."""
    told = json.loads(plan("simulate", job, "--json").out)
    assert 0.5 < told["run"]["goodput"] < 1.0
    ends, bills = told["run"]["finish_s"], told["run"]["usd"]
    assert told["total_time_s"] < ends["p50"] < ends["p90"] <= ends["p99"]
    assert bills["p50"] == pytest.approx(ends["p50"] / 3600.0 * told["cost"]["usd_per_h"], rel=0.01)
    assert sum(told["run"]["parts"].values()) == pytest.approx(1.0)
    assert 0.0 <= told["run"]["deadline_chance"] <= 1.0
    text = plan("simulate", job, "--no-actions").out
    assert "Goodput" in text
    assert "Deadline met" in text
    assert "Long run, with interruptions" in plan("simulate", job, "--full").out


def test_without_the_sections_nothing_changes(plan: Run, job: str, tmp_path: Path) -> None:
    """Every other figure is the same to the last bit, and those of the long run are null."""
    bare = tmp_path / "bare.toml"
    bare.write_text(JOB.partition("[failures]")[0], encoding="utf-8")
    one, other = (json.loads(plan("simulate", path, "--json").out) for path in (job, str(bare)))
    assert other["run"]["goodput"] is None
    one.pop("run")
    other.pop("run")
    assert one == other


def test_sweep_over_the_run(plan: Run, job: str, tmp_path: Path) -> None:
    """Keys of the long run can be varied, its figures wanted: a shorter restart is cheaper."""
    outcome = plan(
        *("sweep", job, "--over", "failures.start=1 min,2 h", "--by", "run.usd.p50"),
        *("--store", str(tmp_path / "store.sqlite"), "--jobs", "1", "--json"),
    )
    assert outcome.code == 0
    told = json.loads(outcome.out)
    best = told["candidates"][told["front"][0]["candidate"]]
    assert best["settings"]["failures.start"] == "1 min"


@pytest.mark.slow
def test_what_a_change_is_worth_to_the_whole_run(plan: Run, job: str) -> None:
    """`plan whatif` ranks changes by the bill with its failures."""
    outcome = plan("whatif", job, "run.usd.p90")
    assert outcome.code == 0
    assert "by bill with failures (90%)" in outcome.out


@pytest.mark.slow
def test_the_page_shows_it(plan: Run, job: str, tmp_path: Path) -> None:
    """The HTML report has a section of its own."""
    page = tmp_path / "report.html"
    assert plan("report", job, "-o", str(page)).code == 0
    assert "Run with failures" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("failures.like=rsc", "did you mean 'rsc-1'"),
        ("run.draws=5", "run.draws: is out of range"),
        ("run.deadline=soon", "run.deadline"),
        ("checkpoint.interval=5", "checkpoint.interval"),
    ],
)
def test_mistakes(plan: Run, job: str, setting: str, message: str) -> None:
    """One clear message, and exit code 2."""
    outcome = plan("simulate", job, "--set", setting)
    assert outcome.code == 2
    assert message in outcome.err
