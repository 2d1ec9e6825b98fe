"""``--max-price-age``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from simulator.cli import options
from simulator.cli.output import Exit

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""

JOB = "resnet50-imagenet-p4d"
GOAL = """\
schema = 1
[goal]
maximize = "cost.samples_per_usd"
clouds = ["aws"]
gpus = ["gpu/t4"]
nodes = 1
[goal.search]
"hardware.machine" = ["instance/aws/g4dn.xlarge"]
"hardware.storage" = "storage/ebs-gp3-max"
"train.batch_size" = 64
"""
LATE = (
    "plan: warning: the on-demand price of p4d.24xlarge in us-east-1 is older "
    "than 180d: of 2026-07-20\n"
)


@pytest.fixture(autouse=True)
def _day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask on a day that is always the same."""
    monkeypatch.setattr(options, "today", lambda: date(2027, 6, 1))


@pytest.mark.parametrize(
    "asked",
    [
        ("simulate", JOB, "--no-actions"),
        ("compare", JOB, f"{JOB}:input.workers=8"),
    ],
    ids=["simulate", "compare"],
)
def test_an_old_price_is_named(plan: Run, asked: tuple[str, ...]) -> None:
    """Once, on standard error, with its date, beside an answer that stays the same."""
    outcome = plan(*asked, "--max-price-age", "180d")
    assert outcome.err == LATE
    assert outcome.code == Exit.FINE
    assert outcome.out == plan(*asked).out


def test_a_price_without_a_day_may_be_old(plan: Run) -> None:
    """Of a list that says no more than "after June 2025" it is not known."""
    spot = ("--set", "cost.purchase=spot", "--no-actions", "--max-price-age", "180d")
    told = plan("simulate", JOB, *spot).err
    assert "the spot price of p4d.24xlarge in us-east-1 may be older" in told
    assert "than 180d: of 2025-06 or later" in told


def test_a_recommendation_names_old_prices(plan: Run, tmp_path: Path) -> None:
    """Those of the machines that the answer weighs against each other."""
    goal = tmp_path / "goal.toml"
    goal.write_text(GOAL)
    asked = ("recommend", "choose-light-vision", "--goal", str(goal), "--jobs", "1")
    outcome = plan(*asked, "--max-price-age", "180d")
    assert outcome.code == Exit.FINE
    told = outcome.err.splitlines()
    old = "price of g4dn.xlarge in us-east-1 is older than 180d: of 2026-07-20"
    assert [line for line in told if old in line] == [f"plan: warning: the on-demand {old}"]


def test_a_price_of_ones_own_has_no_age(plan: Run) -> None:
    """What the file states is as young as the file."""
    own = ("--set", "cost.price=$20/h", "--max-price-age", "180d")
    assert plan("simulate", JOB, "--no-actions", *own).err == ""


def test_a_service_has_prices_too(plan: Run) -> None:
    """Its machines are named in the same way."""
    outcome = plan("simulate", "llama3-8b-chat-h100", "--max-price-age", "180d")
    assert "price of gpu_1x_h100_sxm5 in all may be older" in outcome.err


@pytest.mark.parametrize("age", ["180", "0d", "-3d", "soon", "5 GB"])
def test_an_age_is_a_time(plan: Run, age: str) -> None:
    """Anything else is refused before the job is read."""
    outcome = plan("simulate", "nothing", f"--max-price-age={age}")
    assert outcome.code == Exit.BAD_INPUT
    assert "--max-price-age" in outcome.err


def test_an_age_beyond_all_calendars_is_kept_by_every_date(plan: Run) -> None:
    """Only prices without any first day may be older."""
    asked = ("simulate", JOB, "--no-actions", "--max-price-age", "9999999d")
    assert plan(*asked).err == ""
