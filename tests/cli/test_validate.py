"""``plan validate`` on sets of one's own: output, exit codes, files, bad evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.output import Exit
from simulator.predict import predict
from simulator.reading.scenario import load_scenario

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""

BASE = "resnet18-imagenet-one-worker"
TOML = f"""
schema = 1
name = "mine"
title = "A test"
data = "mine.csv"
base = "{BASE}"
source = "measured by hand"
date = "2026-11"
metrics = ["step_time_s.mean"]
split = "test"

[[tolerance]]
metric = "step_time_s.mean"
mean = 0.1
"""
HEAD = "id,input.workers,measured.step_time_s.mean\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a set and return its TOML file's path."""

    def put(rows: str, toml: str = TOML) -> str:
        (tmp_path / "mine.csv").write_text(HEAD + rows, encoding="utf-8")
        (tmp_path / "mine.toml").write_text(toml, encoding="utf-8")
        return str(tmp_path / "mine.toml")

    return put


def step(workers: int) -> float:
    """What is predicted."""
    given = (f"input.workers={workers}",)
    return predict(load_scenario(BASE, overrides=given)).timing.step_time.mean


def test_within_tolerance(plan: Run, write: Run) -> None:
    """A set that is predicted well enough ends with 0, and the table is on standard output."""
    outcome = plan("validate", write(f"a,1,{step(1)!r}\nb,2,{1.05 * step(2)!r}\n"))
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    assert "mine: A test" in outcome.out
    assert "2.4%" in outcome.out


def test_over_tolerance(plan: Run, write: Run) -> None:
    """A family over its tolerance ends with 1 and is named."""
    outcome = plan("validate", write(f"a,1,{1.5 * step(1)!r}\n"), "--worst", "1")
    assert outcome.code == Exit.DOES_NOT_FIT
    assert "mine, mine, step_time_s.mean: mean error 33.3%, tolerance 10%" in outcome.out
    assert "Worst 1 rows" in outcome.out


def test_json(plan: Run, write: Run) -> None:
    """One object with families and rows; errors are fractions."""
    outcome = plan("validate", write(f"a,1,{1.25 * step(1)!r}\n"), "--json")
    tree = json.loads(outcome.out)
    assert outcome.code == Exit.DOES_NOT_FIT
    [family] = tree["families"]
    assert (family["name"], family["split"], family["rows"]) == ("mine", "test", 1)
    assert family["mean_abs_error"] == pytest.approx(0.2)
    [row] = tree["rows"]
    assert row["predicted"] == pytest.approx(step(1))
    assert row["p10"] <= row["predicted"] <= row["p90"]


def test_files_are_written(plan: Run, write: Run, tmp_path: Path) -> None:
    """HTML and Markdown reports appear beside the table on standard output."""
    html, markdown = tmp_path / "r.html", tmp_path / "r.md"
    arguments = ("--html", str(html), "--markdown", str(markdown))
    outcome = plan("validate", write(f"a,1,{step(1)!r}\n"), *arguments)
    assert outcome.code == Exit.FINE
    assert "</svg>" in html.read_text(encoding="utf-8")
    assert markdown.read_text(encoding="utf-8").startswith("# Accuracy\n")


def test_a_figure_is_drawn(plan: Run, write: Run, tmp_path: Path) -> None:
    """Test rows only, in the format of the name; another format is refused before any work."""
    drawn = tmp_path / "seen.svg"
    assert plan("validate", write("a,1,1\n"), "--plot", str(drawn)).code != Exit.BAD_INPUT
    assert "measured " in drawn.read_text(encoding="utf-8")
    outcome = plan("validate", write("a,1,1\n"), "--plot", str(tmp_path / "seen.bmp"))
    assert outcome.code == Exit.BAD_INPUT
    assert "allowed: png, svg, pdf" in outcome.err


def test_near(plan: Run, write: Run) -> None:
    """The rows most like a scenario, how far they are, and the error there."""
    name = write(f"one,1,{1.25 * step(1)!r}\ntwo,2,{step(2)!r}\n")
    outcome = plan("validate", name, "--near", BASE)
    assert outcome.code == Exit.FINE
    rows = [line.strip() for line in outcome.out.splitlines() if ": mine: " in line]
    assert rows[0].startswith("distance 0.0, error -20.0%: mine: one (test)")
    assert not rows[1].startswith("distance 0.0,")
    tree = json.loads(plan("validate", name, "--near", BASE, "--json").out)
    assert [near["id"] for near in tree["nearest"]] == ["one", "two"]


def test_a_slip_of_units_is_doubted(plan: Run, write: Run) -> None:
    """180 ms written as 180 is a factor of a thousand off, and said so."""
    outcome = plan("validate", write(f"a,1,{1000 * step(1)!r}\n"))
    assert "a factor of 1,000. Is it in s?" in " ".join(outcome.out.split())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,1,-0.2\n", "mine.csv:2: measured.step_time_s.mean: is negative, found '-0.2'"),
        ("a,1,180 ms\n", "is not a bare number, found '180 ms'; write 0.18, in s"),
        ("a,1,0.2\nb,1\n", "mine.csv:3: has 2 cells; the heading has 3; is the file cut off?"),
        ("a,x,0.2\n", "mine.csv:2: input.workers: is not a whole number, found 'x'"),
        ("", "mine.csv: has columns but no rows"),
    ],
)
def test_broken_evidence(plan: Run, write: Run, tmp_path: Path, rows: str, message: str) -> None:
    """One clear message for each problem, exit code 2, nothing printed and nothing written."""
    html = tmp_path / "r.html"
    outcome = plan("validate", write(rows), "--html", str(html))
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not html.exists()


def test_mistakes_of_all_sets_are_told_together(plan: Run, write: Run, tmp_path: Path) -> None:
    """Two broken sets are two messages; a set that doesn't exist is named with the nearest."""
    write("a,1,-1\n")
    (tmp_path / "other.toml").write_text("schema = 1\n", encoding="utf-8")
    outcome = plan("validate", str(tmp_path / "mine.toml"), str(tmp_path / "other.toml"))
    assert outcome.code == Exit.BAD_INPUT
    assert "mine.csv:2" in outcome.err
    assert "other.toml: name: is missing" in outcome.err
    assert "did you mean" in plan("validate", "published_case").err


def test_two_sets_of_one_name_are_refused(plan: Run, write: Run, tmp_path: Path) -> None:
    """Rows are told apart by the set's name."""
    first = write("a,1,1\n")
    second = tmp_path / "again.toml"
    second.write_text(TOML, encoding="utf-8")
    outcome = plan("validate", first, str(second))
    assert outcome.code == Exit.BAD_INPUT
    assert "two of the sets are called 'mine'" in outcome.err


def test_a_file_that_cannot_be_written_is_told_first(plan: Run, write: Run) -> None:
    """A missing folder is refused before anything is predicted."""
    outcome = plan("validate", write("a,1,1\n"), "--html", "/no/such/folder/r.html")
    assert outcome.code == Exit.BAD_INPUT
    assert "--html: lies in a folder that does not exist" in outcome.err
