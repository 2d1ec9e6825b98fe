"""plan recommend: what it may take, spot capacity, stores of helpers, remedies against pins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Axes, Goal
from simulator.studies.baseline import baseline_of
from simulator.studies.levers.catalogue import RELIEF
from simulator.studies.recommend.ranking import EQUAL_FACTOR, MONEY, TIME, front, number
from simulator.studies.recommend.recommendation import recommend
from simulator.studies.recommend.search_problem import SearchBackend, define_problem
from simulator.studies.search.candidates import expand
from simulator.studies.search.explore import Request, explore
from simulator.studies.search.outcome import Candidate
from simulator.studies.search.workers import local_workers
from tests.cli.conftest import Plan

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]

SPOT = """\
schema = 1
extends = "choose-light-vision"
name = "spot"
[train]
epochs = 2
[goal]
clouds = ["aws"]
nodes = 1
[goal.search]
"hardware.machine" = "instance/aws/g4dn.xlarge"
"input.workers" = [2, 4]
[goal.spot]
interruptions = "{rate} /h"
restart = "5 min"
source = "made up for a test"
date = "2026-11"
"""
SMALL = """\
schema = 1
extends = "choose-light-vision"
name = "small"
[goal]
clouds = ["aws"]
nodes = 2
[goal.search]
"hardware.machine" = ["instance/aws/g4dn.2xlarge", "instance/aws/g4dn.12xlarge"]
"hardware.count" = [1, 2]
"hardware.storage" = "storage/s3"
"input.workers" = [1, 2, 4, 6, 8]
"train.batch_size" = [64, 128]
"""


def spot_goal(folder: Path, rate: float) -> tuple[CandidateReader, Goal]:
    """A scenario whose machines are taken away so often."""
    path = folder / "spot.toml"
    path.write_text(SPOT.format(rate=rate))
    reader = CandidateReader(str(path))
    assert reader.goal is not None
    return reader, reader.goal


def answer(plan: Plan, path: Path, folder: Path) -> dict[str, Any]:
    """What the command says, as JSON."""
    store = str(folder / "store.sqlite")
    done = plan("recommend", str(path), "--json", "--store", store, "--jobs", "1")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_spot_capacity_is_taken_with_its_losses(plan: Plan, tmp_path: Path) -> None:
    """Cheap machines that are rarely taken away win, and lost work is in time and cost."""
    spot_goal(tmp_path, 0.05)
    found = answer(plan, tmp_path / "spot.toml", tmp_path)
    winner, lost = found["winner"], found["spot"]
    assert winner["settings"]["cost.purchase"] == "spot"
    assert lost["losses"] > 0.0
    assert lost["stretch"] > 1.0
    settings = {key: str(value) for key, value in winner["settings"].items()}
    flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
    plain = json.loads(plan("simulate", "choose-light-vision", "--set", "train.epochs=2", *flags,
                            "--json").out)  # fmt: skip
    copied = sum(move["least"] for move in found["moves"])
    assert winner["figures"]["total_time_s"] == pytest.approx(
        plain["total_time_s"] * lost["stretch"] + copied
    )
    assert winner["figures"]["cost.usd_to_train"] > plain["cost"]["usd_to_train"]


def test_helpers_without_drives_are_given_a_store() -> None:
    """Where trainers read their own drives, machines beside without any read a store's copy."""
    reader = CandidateReader("resnet50-imagenet-p4d")
    baseline = baseline_of(reader, Catalogue.default())
    goal = CandidateReader("choose-light-vision").goal
    assert goal is not None
    problem = define_problem(baseline, goal)
    helped = [
        problem.settings[place]
        for place, name in problem.ideas.items()
        if name == RELIEF["helpers"]
    ]
    without = [s for s in helped if not baseline.machine(str(s["remote.machine"])).drives]
    assert without
    assert all("remote.storage" in settings for settings in without)
    for settings in without[:1]:
        assert reader.read(settings).scenario.job.remote is not None


def test_the_answer_is_that_of_an_exhaustive_search(tmp_path: Path) -> None:
    """All candidates predicted: none is better by more than counts as equal, no front by 1%."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    reader = CandidateReader(str(path))
    goal = reader.goal
    assert goal is not None
    seeds = [c.settings for c in expand(Axes(axes=goal.search), reader)]
    problem = define_problem(baseline_of(reader, Catalogue.default()), goal, seeds)
    with local_workers(1) as workers:
        found = recommend(problem, SearchBackend(workers, None), seeds=seeds)
        candidates = tuple(
            Candidate(index=i, settings=one) for i, one in enumerate(problem.settings)
        )
        asked = Request(reader=reader, candidates=candidates, exhaustive=True, intervals=True)
        whole = [problem.judged(one) for one in explore(asked, workers=workers)]
    sound = [one for one in whole if one.is_sound and problem.is_searched(one.settings)]
    values = [one.value for one in sound if one.value is not None]
    assert len(sound) > found.predicted
    assert found.winner is not None
    assert found.winner.value * EQUAL_FACTOR >= max(values)
    for point in front(sound):
        time, money = (number(point.figures, name) or 0.0 for name in (TIME, MONEY))
        assert any(
            (number(one.figures, TIME) or 0.0) <= 1.0101 * time
            and (number(one.figures, MONEY) or 0.0) <= 1.0101 * money
            for one in found.front
        )
