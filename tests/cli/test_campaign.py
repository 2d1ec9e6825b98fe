"""``plan campaign``: jobs that share a pool."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
FILE = """schema = 1
[pool]
machines = 2
price = "$10/h"
[[job]]
name = "training"
scenario = "resnet18-imagenet-one-worker"
settings = ["data.samples=4096"]
[[job]]
name = "evaluation"
duration = "1 h"
machines = 2
"""


def written(folder: Path, text: str = FILE) -> str:
    """The file."""
    path = folder / "quarter.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_jobs_take_turns(plan: Run, tmp_path: Path) -> None:
    """The evaluation needs both machines and waits for the training."""
    told = json.loads(plan("campaign", written(tmp_path), "--json").out)
    first, second = told["jobs"]
    assert first["mean_wait_s"] == 0.0
    assert second["mean_wait_s"] > 0.0
    assert second["ends_s"]["p50"] == pytest.approx(first["ends_s"]["p50"] + 3600.0, rel=0.01)
    assert told["usd"]["p50"] == pytest.approx(told["ends_s"]["p50"] / 3600.0 * 20.0)
    text = plan("campaign", written(tmp_path)).out
    assert "evaluation" in text
    assert "The pool costs" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('duration = "1 h"', 'duration = "soon"', "duration"),
        ('duration = "1 h"', "", "exactly one of scenario and duration"),
        ("machines = 2\nprice", "machines = 1\nprice", "is more than there are"),
        ("[[job]]", "[[jobs]]", "jobs"),
    ],
)
def test_mistakes(plan: Run, tmp_path: Path, old: str, new: str, message: str) -> None:
    """One clear message, and exit code 2."""
    outcome = plan("campaign", written(tmp_path, FILE.replace(old, new)))
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("data.samples=4096", "data.sample=4096", "data.sample: is not a known key"),
        ("resnet18-imagenet-one-worker", "resnet18-imagenet-two", "there is no scenario"),
    ],
)
def test_a_wrong_scenario_names_the_campaign_and_the_job(
    plan: Run, tmp_path: Path, old: str, new: str, said: str
) -> None:
    """File, line, key and job come before what is wrong with its scenario."""
    outcome = plan("campaign", written(tmp_path, FILE.replace(old, new)))
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert line.startswith(
        f"plan: {tmp_path / 'quarter.toml'}:7: job[0].scenario: job 'training': "
    )
    assert said in line
