"""``plan recommend`` is stopped and started again: it goes on, and a part is no answer."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.output import Exit
from simulator.studies.search import explore as exploring
from simulator.studies.search.evaluate import Chunk, evaluate
from simulator.studies.search.outcome import Outcome as Predicted
from tests.cli.conftest import Plan

pytestmark = pytest.mark.no_cover

JOB = "choose-light-vision"
GOAL = """\
schema = 1
[goal]
maximize = "cost.samples_per_usd"
clouds = ["aws"]
gpus = ["gpu/t4"]
nodes = 1
[goal.search]
"hardware.machine" = ["instance/aws/g4dn.xlarge", "instance/aws/g4dn.4xlarge"]
"hardware.storage" = "storage/ebs-gp3-max"
"train.batch_size" = [64, 128]
"""
Spawn = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def goal(tmp_path: Path) -> Path:
    """A goal in a file of its own."""
    path = tmp_path / "goal.toml"
    path.write_text(GOAL)
    return path


def arguments(goal: Path, store: Path, *more: str) -> list[str]:
    """README's own line, with a store to look into."""
    return ["recommend", JOB, "--goal", str(goal), "--store", str(store), *more]


def answer_of(text: str) -> dict[str, Any]:
    """An answer as JSON."""
    tree: dict[str, Any] = json.loads(text)
    return tree


class Stopped:
    """Predicts a few chunks and is then interrupted, as by Ctrl-C."""

    def __init__(self, chunks: int) -> None:
        self.left = chunks

    def __call__(self, chunk: Chunk) -> tuple[Predicted, ...]:
        """Predict, or stop."""
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return evaluate(chunk)


@pytest.mark.slow
def test_an_interrupted_search_goes_on(
    plan: Plan, goal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command gives the answer of a search that nobody stopped, whenever it was."""
    serial = ("--json", "--jobs", "1")
    calm = plan(*arguments(goal, tmp_path / "calm.sqlite", *serial))
    for chunks in (0, 2):
        store = tmp_path / f"{chunks}.sqlite"
        with monkeypatch.context() as patch:
            patch.setattr(exploring, "evaluate", Stopped(chunks))
            stopped = plan(*arguments(goal, store, *serial))
        assert stopped.code == Exit.INTERRUPTED
        assert f"stored in {store}; the same command continues from there" in stopped.err
        again = plan(*arguments(goal, store, *serial))
        assert answer_of(again.out) == answer_of(calm.out)
        assert again.code == Exit.FINE


@pytest.mark.slow
def test_a_part_of_a_search_has_no_best(
    plan: Plan, goal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranking only what is stored after an interruption says that the search is incomplete."""
    store = tmp_path / "s.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(exploring, "evaluate", Stopped(2))
        plan(*arguments(goal, store, "--jobs", "1"))
    text = plan(*arguments(goal, store, "--jobs", "1", "--no-search"))
    assert text.code == Exit.DOES_NOT_FIT
    assert "The search is incomplete: " in text.out
    assert "\nBest\n" not in text.out
    assert "torchrun" not in text.out
    tree = json.loads(plan(*arguments(goal, store, "--jobs", "1", "--no-search", "--json")).out)
    assert tree["winner"] is None
    assert tree["missing"] > 0
    assert tree["front"]


@pytest.mark.slow
def test_all_that_is_stored_is_an_answer(plan: Plan, goal: Path, tmp_path: Path) -> None:
    """After a whole search nothing is missing, and ranking what is stored gives the same."""
    store = tmp_path / "s.sqlite"
    whole = plan(*arguments(goal, store, "--jobs", "1", "--json"))
    again = plan(*arguments(goal, store, "--jobs", "1", "--json", "--no-search"))
    assert "all predictions were in the store" in again.err
    assert "store" not in whole.err
    assert again.out == whole.out


@pytest.mark.slow
def test_a_killed_search_goes_on(goal: Path, tmp_path: Path, spawn: Spawn) -> None:
    """Killed at random moments, with its processes or before them: the end is always the same."""
    draw = random.Random(4)  # noqa: S311 - moments, not secrets
    started = time.monotonic()
    calm, _ = spawn(*arguments(goal, tmp_path / "calm.sqlite", "--json")).communicate(timeout=300.0)
    usual = time.monotonic() - started
    for number in range(3):
        store = tmp_path / f"{number}.sqlite"
        for _ in range(draw.randint(1, 4)):
            jobs = str(draw.randint(1, 2))
            run = spawn(*arguments(goal, store, "--jobs", jobs), start_new_session=True)
            time.sleep(draw.uniform(0.3, 1.0) * usual)
            if draw.random() < 0.3:
                run.send_signal(signal.SIGKILL)
            elif run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
        out, err = spawn(*arguments(goal, store, "--json")).communicate(timeout=300.0)
        assert answer_of(out) == answer_of(calm), err
