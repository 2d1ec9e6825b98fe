"""``plan simulate``."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from simulator import predict as door
from simulator.cli.output import Exit
from simulator.physics.footprint import Verdict
from simulator.studies import actions as loaded

Run = Callable[..., Any]
"""A fixture that runs ``plan``, or arranges how it runs."""

SCENARIO = "resnet50-imagenet-p4d"
LOADED = loaded
"""What to do next predicts too: loaded before any test here puts something in predict's place."""


def test_a_shipped_scenario_is_answered(plan: Run) -> None:
    """A name is enough; the report is on standard output and nothing is on standard error."""
    outcome = plan("simulate", SCENARIO)
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    assert outcome.out.startswith(SCENARIO)


def test_json_is_one_object(plan: Run) -> None:
    """With --json standard output is exactly one JSON object."""
    tree = json.loads(plan("simulate", SCENARIO, "--json").out)
    assert (tree["schema"], tree["scenario"], tree["seed"]) == (1, SCENARIO, 0)
    assert sum(tree["step_split_s"].values()) == pytest.approx(tree["step_time_s"]["mean"])


def test_intervals_hold_what_a_run_of_the_very_configuration_measured(plan: Run) -> None:
    """FFCV's run of the scenario it was written down from lies inside, and is told if it did not.

    It does by itself, and would not on cores that hardly slowed one another.
    """
    plain = json.loads(plan("simulate", SCENARIO, "--json").out)
    assert plain["interval"]["throughput_samples_per_s"]["p10"] < 5546.0
    tree = json.loads(plan("simulate", SCENARIO, "--json", "--set", "hardware.contention=0.2").out)
    band = tree["interval"]["throughput_samples_per_s"]
    assert band["p10"] <= 5546.0 * (1.0 + 1e-3) < band["p50"]
    told = [line for line in tree["warnings"] if "run of this configuration" in line]
    assert len(told) == 1
    assert "measured 5,546 samples/s" in told[0]
    other = json.loads(plan("simulate", SCENARIO, "--json", "--set", "input.workers=7").out)
    for silent in (plain, other):
        assert not any("run of this configuration" in line for line in silent["warnings"])


def test_a_path_and_standard_input(
    plan: Run,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file anywhere and standard input give the numbers the name gives."""
    content = (root / "scenarios" / f"{SCENARIO}.toml").read_bytes()
    copy = tmp_path / "mine.toml"
    copy.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    trees = [json.loads(plan("simulate", x, "--json").out) for x in (SCENARIO, str(copy), "-")]
    assert trees[0]["step_time_s"] == trees[1]["step_time_s"] == trees[2]["step_time_s"]


def test_the_same_seed_gives_the_same_bytes(plan: Run) -> None:
    """A prediction can be repeated."""
    first = plan("simulate", SCENARIO, "--json", "--seed", "3").out
    assert first == plan("simulate", SCENARIO, "--json", "--seed", "3").out
    assert json.loads(first)["seed"] == 3


def test_an_override_changes_the_answer(plan: Run) -> None:
    """--set reaches the model."""
    few = plan("simulate", SCENARIO, "--json", "--set", "input.workers=1").out
    many = plan("simulate", SCENARIO, "--json", "--set", "input.workers=8").out
    assert json.loads(few)["step_time_s"]["mean"] > json.loads(many)["step_time_s"]["mean"]


@pytest.mark.parametrize(
    "override", ["input.workers", "input.wrokers=3", "input.workers=-3", "=", "a=b=c"]
)
def test_a_bad_override_names_the_option(plan: Run, override: str) -> None:
    """A mistake in --set is reported as one of --set."""
    outcome = plan("simulate", SCENARIO, "--set", override)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert "--set" in outcome.err


def test_an_unknown_scenario(plan: Run) -> None:
    """A misspelt name is answered with the nearest one."""
    outcome = plan("simulate", "resnet50-imagenet-p4")
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert SCENARIO in outcome.err


@pytest.mark.parametrize("what", ["memory", "host_ram"])
def test_what_does_not_fit_exits_with_1(
    plan: Run,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    """The answer is printed, the code says that it does not fit."""
    honest = door.predict

    def full(*arguments: object, **options: object) -> object:
        prediction = honest(*arguments, **options)  # type: ignore[arg-type] # passed on
        misfit = replace(getattr(prediction, what), verdict=Verdict.NO)
        return replace(prediction, **{what: misfit})

    monkeypatch.setattr(door, "predict", full)
    outcome = plan("simulate", SCENARIO, "--no-actions")
    assert outcome.code == Exit.DOES_NOT_FIT
    assert "Does not fit" in outcome.out


@pytest.mark.slow
def test_a_timeline_is_written(plan: Run, tmp_path: Path) -> None:
    """--trace leaves a Chrome trace with bars and counters, beside the report."""
    path = tmp_path / "timeline.json"
    outcome = plan("simulate", SCENARIO, "--trace", str(path))
    assert outcome.code == Exit.FINE
    assert outcome.out.startswith(SCENARIO)
    kinds = {event["ph"] for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]}
    assert kinds == {"M", "X", "C", "i"}


@pytest.mark.parametrize("target", ["none/t.json", ".", "-"])
def test_an_unwritable_timeline_is_refused_first(
    plan: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
) -> None:
    """The path is checked before anything is simulated; a dash is no file of that name."""
    monkeypatch.setattr(door, "predict", pytest.fail)
    monkeypatch.chdir(tmp_path)
    outcome = plan("simulate", SCENARIO, "--trace", target)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert "--trace" in outcome.err


@pytest.mark.slow
def test_the_log_comes_before_the_report(plan: Run) -> None:
    """--log prints a line for every N steps, and the report after it."""
    lines = plan("simulate", SCENARIO, "--log", "10").out.splitlines()
    assert lines[0].startswith("step 10 ")
    assert "samples/s" in lines[0]
    assert any(line.startswith(SCENARIO) for line in lines)


def test_fewer_steps_can_be_asked_for(plan: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """--steps reaches the simulation."""
    asked = []
    honest = door.predict

    def spy(*arguments: object, **options: object) -> object:
        asked.append(options.get("max_steps"))
        return honest(*arguments, **options)  # type: ignore[arg-type] # passed on

    monkeypatch.setattr(door, "predict", spy)
    assert plan("simulate", SCENARIO, "--steps", "40", "--no-actions").code == Exit.FINE
    assert asked[0] == 40


def test_less_than_a_hardware_thread(plan: Run) -> None:
    """A container's quota may be a part of one vCPU: a CPU-bound job goes at that pace."""

    def rate(vcpus: str) -> float:
        outcome = plan("simulate", SCENARIO, "--set", f"hardware.vcpus={vcpus}", "--json")
        assert outcome.code == Exit.FINE
        return float(json.loads(outcome.out)["throughput_samples_per_s"])

    assert rate("0.5") == pytest.approx(rate("1.5") / 3.0, rel=0.01)


@pytest.mark.slow
def test_what_to_do_next_is_told_or_left_out(plan: Run) -> None:
    """The short report has actions unless told not to; the full one and JSON only if asked."""
    name = "resnet18-imagenet-serial"
    assert "Do next" in plan("simulate", name).out
    assert "Do next" not in plan("simulate", name, "--no-actions").out
    assert "Do next" not in plan("simulate", name, "--full").out
    assert "Do next" in plan("simulate", name, "--full", "--actions").out
    assert "actions" not in json.loads(plan("simulate", name, "--json").out)
    (first, *_) = json.loads(plan("simulate", name, "--json", "--actions").out)["actions"]
    assert first["settings"] == {"input.workers": 8}
    refused = plan("simulate", name, "--format", "csv", "--actions")
    assert refused.code == Exit.BAD_INPUT
    assert "--actions" in refused.err


def test_the_full_report_holds_sources(plan: Run) -> None:
    """--full prints every figure with its source; the short report says how many are guesses."""
    full, short = plan("simulate", SCENARIO, "--full").out, plan("simulate", SCENARIO).out
    assert "Assumptions" in full
    assert "UNVERIFIED" in full
    assert "UNVERIFIED" not in short
    assert "inputs are unverified" in short


@pytest.mark.slow
def test_all_verbs_advise_the_same(plan: Run, tmp_path: Path) -> None:
    """What to do next is one answer, whichever verb is asked; advise has workers in its table."""
    name = "choose-light-vision"
    page = tmp_path / "report.html"
    assert plan("report", name, "--no-evidence", "-o", str(page)).code == Exit.FINE
    shown = " ".join(unescape(page.read_text(encoding="utf-8")).split())

    def keys(outcome: Any) -> list[str]:
        told = " ".join(outcome.out.partition("Do next")[2].split())
        return re.findall(r"Set (\S+ = \S+)", told)

    told = keys(plan("simulate", name))
    assert told
    others = [one for one in told if not one.startswith(("input.workers", "input.prefetch"))]
    assert keys(plan("advise", "input", name)) == others
    assert all(one.rstrip(",") in shown for one in told)
