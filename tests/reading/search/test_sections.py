"""[sweep] and [goal]: what they mean, and what they say about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.search.goal_section import read_goal
from simulator.schema.goal import Axis, Objective, Sampling, Sense

DATA = Path(__file__).parents[2] / "data"
SOUND = DATA / "broken" / "base" / "sound.toml"

SEARCH = f"""\
schema = 1
extends = "{SOUND.as_posix()}"

[sweep]
where = "fits.gpu != 'no' and input.workers <= 8"
[sweep.over]
input.workers = "1..3"
"train.batch_size,train.accumulation" = [[32, 4], [64, 2]]

[goal]
maximize = "cost.samples_per_usd"
deadline = "12 h"
budget = "$500"
clouds = ["aws"]
gpus = ["gpu/v100*", "a100-sxm4-40gb"]
nodes = 4
requires = ["cuda", "bf16"]
ram_margin = "10%"
gpu_memory_margin = "5 %"
where = "utilization.gpu.mean > 0.5"
[goal.pins]
"hardware.storage" = "storage/ebs-gp3"
[goal.search]
"train.batch_size" = "32..128 x2"
[goal.spot]
interruptions = "0.05 /h"
restart = "5 min"
source = "a page"
date = "2026-11"
"""


@pytest.fixture
def search(tmp_path: Path) -> Path:
    """A scenario with both sections."""
    file = tmp_path / "search.toml"
    file.write_text(SEARCH, encoding="utf-8")
    return file


def test_a_sweep_is_read_with_its_axes_in_order(search: Path) -> None:
    """Keys may be quoted or not; a grid is the default."""
    axes = CandidateReader(str(search)).axes
    assert axes is not None
    assert axes.axes == (
        Axis(keys=("input.workers",), values=((1,), (2,), (3,))),
        Axis(keys=("train.batch_size", "train.accumulation"), values=((32, 4), (64, 2))),
    )
    assert axes.sample is Sampling.GRID
    assert axes.where == "fits.gpu != 'no' and input.workers <= 8"


def test_a_goal_is_read_in_si_units(search: Path) -> None:
    """Times in seconds, money in dollars, margins as fractions, rates per second."""
    goal = CandidateReader(str(search)).goal
    assert goal is not None
    assert goal.objective == Objective(metric="cost.samples_per_usd", sense=Sense.MAXIMIZE)
    limits = goal.limits
    assert (limits.deadline, limits.budget, limits.nodes) == (43200.0, 500.0, 4)
    assert (limits.ram_margin, limits.gpu_memory_margin) == (0.1, 0.05)
    assert limits.gpus == ("gpu/v100*", "a100-sxm4-40gb")
    assert goal.pins == {"hardware.storage": "storage/ebs-gp3"}
    assert goal.search == (Axis(keys=("train.batch_size",), values=((32,), (64,), (128,))),)
    assert goal.spot is not None
    assert goal.spot.interruptions == pytest.approx(0.05 / 3600.0)
    assert goal.spot.source == "a page"


def test_a_prediction_ignores_both(search: Path) -> None:
    """A scenario with a search is predicted like the one it extends."""
    plain, searched = load_scenario(str(SOUND)), load_scenario(str(search))
    assert (searched.cluster, searched.jobs) == (plain.cluster, plain.jobs)


@pytest.mark.usefixtures("search")
def test_options_and_extends_change_them(tmp_path: Path) -> None:
    """--set wins over the file, and a file over what it extends."""
    child = tmp_path / "child.toml"
    child.write_text('schema = 1\nextends = "search.toml"\n[goal]\nbudget = "$9"\n', "utf-8")
    reader = CandidateReader(
        str(child), overrides=("goal.deadline=1 h", 'sweep.over."input.workers"=4..5')
    )
    assert reader.goal is not None
    assert reader.goal.limits.budget == 9.0
    assert reader.goal.limits.deadline == 3600.0
    with pytest.raises(InputError, match=r"varies input\.workers, which another axis varies too"):
        _ = reader.axes


def test_a_goal_stands_in_a_file_of_its_own(tmp_path: Path, search: Path) -> None:
    """Or in another scenario, of which only the goal counts."""
    file = tmp_path / "goal.toml"
    file.write_text('schema = 1\n[goal]\nminimize = "total_time_s"\n', encoding="utf-8")
    assert read_goal(file).objective.sense is Sense.MINIMIZE
    assert read_goal(search) == CandidateReader(str(search)).goal
    assert read_goal(file, overrides=("goal.nodes=2",)).limits.nodes == 2
    with pytest.raises(InputError, match="goal: is missing"):
        read_goal(SOUND)
    file.write_text('[goal]\nminimize = "total_time_s"\n', encoding="utf-8")
    with pytest.raises(InputError, match="begin with schema = 1"):
        read_goal(file)


def test_scenarios_without_the_sections_have_none() -> None:
    """Neither axes nor a goal."""
    reader = CandidateReader(str(SOUND))
    assert reader.axes is None
    assert reader.goal is None
