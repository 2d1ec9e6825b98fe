"""``plan goodput``: a long run with its interruptions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.report.text import percent

Run = Callable[..., Any]
JOB = ("llama3-405b-megatron", "--set", "train.epochs=1", "--set", "cost.price=$80/h")
FAILING = ("--set", "failures.like=rsc-1", "--draws", "200")


def test_it_reads_as_it_should(plan: Run, golden: Callable[[str, str], None]) -> None:
    """The whole report of a run of weeks."""
    asked = ("--deadline", "40 d", "--budget", "$9000000")
    outcome = plan("goodput", *JOB, *FAILING, "--set", "checkpoint.asynchronous=true", *asked)
    assert outcome.code == 0
    golden("goodput-language-model", outcome.out)


def test_json_holds_the_same(plan: Run) -> None:
    """Parts add up to one; the deadline of the middle quantile is kept half of the time."""
    told = json.loads(plan("goodput", *JOB, *FAILING, "--json").out)
    assert sum(told["parts"].values()) == pytest.approx(1.0)
    middle = f"{told['finish_s']['p50']} s"
    again = json.loads(plan("goodput", *JOB, *FAILING, "--json", "--deadline", middle).out)
    assert again["deadline_chance"] == pytest.approx(0.5, abs=0.01)


def test_spot_capacity_is_paid_while_it_is_held(plan: Run, tmp_path: Path) -> None:
    """Machines that are away half of the time double the time, and hardly the bill."""
    (tmp_path / "trace.csv").write_text("hours,available\n5,1\n5,0\n", encoding="utf-8")
    (tmp_path / "job.toml").write_text(
        'schema = 1\nextends = "imagenet-object-store-g5"\n[train]\nepochs = 90\n'
        '[cost]\npurchase = "spot"\n[spot]\ntrace = "trace.csv"\nsource = "made up"\n',
        encoding="utf-8",
    )
    told = json.loads(plan("goodput", str(tmp_path / "job.toml"), "--json").out)
    assert told["parts"]["waiting for capacity"] == pytest.approx(0.5, abs=0.05)
    held = told["finish_s"]["p50"] * (1.0 - told["parts"]["waiting for capacity"])
    assert held == pytest.approx(told["work_s"], rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--deadline", "soon"), "--deadline"),
        (("--set", "failures.like=rsc"), "did you mean 'rsc-1'"),
        (("--set", "cost.purchase=spot"), "spot: is missing"),
    ],
)
def test_mistakes(plan: Run, arguments: tuple[str, ...], message: str) -> None:
    """One clear message, and exit code 2."""
    outcome = plan("goodput", JOB[0], *arguments)
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize(
    "verb",
    [
        ("simulate", "--no-actions"),
        pytest.param(("compare", "resnet50-imagenet-p4d"), marks=pytest.mark.slow),
    ],
)
def test_the_cheapest_way_to_buy_stands_beside_other_answers(
    plan: Run, verb: tuple[str, ...]
) -> None:
    """`plan simulate` and `plan compare` name it with the chance that `plan goodput` gives it."""
    sets = [
        *("--set", "spot.mean_up=2 h", "--set", "spot.mean_down=1 h", "--set", "spot.source=ours"),
        *("--set", "cost.purchase=spot"),
    ]
    job = "resnet50-imagenet-p4d"
    told = plan("goodput", job, *sets, "--json")
    chances = {
        way["purchase"]: way["cheapest_chance"]
        for way in json.loads(told.out)["ways_to_buy"]
        if not way["on_demand_in_gaps"]
    }
    ran = plan(verb[0], job, *verb[1:], *sets)
    assert ran.code == 0
    assert f"spot ({percent(chances['spot'])})" in ran.out
