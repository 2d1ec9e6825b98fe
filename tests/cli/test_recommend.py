"""plan recommend, as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from simulator.studies.search import explore as exploring
from simulator.studies.search.evaluate import Chunk, evaluate
from simulator.studies.search.outcome import Outcome as Predicted
from tests.cli.conftest import Outcome, Plan

TWO = """\
schema = 1
extends = "choose-starved-gpus"
name = "two"
[goal]
{goal}
clouds = ["aws-managed"]
"""


@pytest.fixture
def ask(plan: Plan, tmp_path: Path) -> Plan:
    """Recommend with a store of its own, in this process."""

    def run(*arguments: str) -> object:
        store = str(tmp_path / "store.sqlite")
        return plan("recommend", *arguments, "--store", store, "--jobs", "1")

    return run  # type: ignore[return-value] # as plan


OWNED = """\
schema = 1
extends = "resnet50-imagenet-p4d"
name = "owned"
[hardware]
machine = "node/dgx-a100-80gb"
[cost]
purchase = "owned"
[goal]
maximize = "cost.samples_per_usd"
nodes = 1
[goal.search]
"hardware.machine" = ["node/dgx-a100-80gb"]
"train.batch_size" = 256
"input.workers" = 12
"""


def test_what_an_owned_machine_costs_is_asked_for(ask: Plan, tmp_path: Path) -> None:
    """Where nothing can be compared for want of a figure, the key that states it is named."""
    job = tmp_path / "owned.toml"
    job.write_text(OWNED)
    outcome = ask(str(job))
    told = "what dgx-a100-80gb costs to buy: state owned.capex"
    assert told in outcome.out.splitlines()


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[Outcome, Path]]:
    """What has been searched: the answer and the store it is kept in."""
    return {}


@pytest.fixture
def searched(
    ask: Plan, tmp_path: Path, answers: dict[str, tuple[Outcome, Path]]
) -> Callable[[str], tuple[Outcome, Path]]:
    """Search a shipped scenario, once for all tests: these are the longest searches here."""

    def run(name: str) -> tuple[Outcome, Path]:
        if name not in answers:
            answers[name] = ask(name), tmp_path / "store.sqlite"
        return answers[name]

    return run


@pytest.mark.parametrize(
    "name",
    [
        "choose-starved-gpus",
        pytest.param("choose-light-vision", marks=pytest.mark.slow),
        pytest.param("choose-large-language", marks=pytest.mark.slow),
    ],
)
def test_shipped_goals(
    name: str,
    searched: Callable[[str], tuple[Outcome, Path]],
    golden: Callable[[str, str], None],
) -> None:
    """The answer of each shipped scenario with a goal, to the letter."""
    done, _ = searched(name)
    assert done.code == 0
    assert all(line.startswith("searching: ") for line in done.err.splitlines())
    golden(f"recommend-{name}", done.out)


@pytest.mark.slow
def test_a_changed_goal_takes_what_is_stored(
    ask: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another goal gives another winner, the best there is, and predicts none of it twice."""
    first = json.loads(ask("choose-starved-gpus", "--json").out)
    goal = tmp_path / "fast.toml"
    goal.write_text(
        'schema = 1\n[goal]\nminimize = "total_time_s"\nclouds = ["aws-managed"]\nnodes = 2\n'
    )
    asked: list[int] = []

    def counted(chunk: Chunk) -> tuple[Predicted, ...]:
        asked.extend(one.index for one in chunk.candidates)
        return evaluate(chunk)

    monkeypatch.setattr(exploring, "evaluate", counted)
    done = ask("choose-starved-gpus", "--goal", str(goal), "--json")
    again = json.loads(done.out)
    assert done.code == 0
    assert len(asked) + first["predicted"] <= first["candidates"]
    assert again["winner"]["value"] < first["winner"]["figures"]["total_time_s"]
    times = [choice["figures"]["total_time_s"] for choice in first["front"]]
    assert again["winner"]["value"] == min(times)


def test_contradictory_limits_are_named(ask: Plan, tmp_path: Path) -> None:
    """A capability that the wanted accelerators lack: both are named, exit code 1."""
    path = tmp_path / "two.toml"
    goal = 'minimize = "cost.usd_to_train"\nrequires = ["bf16"]\ngpus = ["gpu/v100*"]'
    path.write_text(TWO.format(goal=goal))
    done = ask(str(path))
    assert done.code == 1
    assert "No machine meets all limits" in done.out
    assert "requires bf16" in done.out
    assert "gpus = gpu/v100*" in done.out


@pytest.mark.slow
def test_a_deadline_that_needs_more_machines(ask: Plan, tmp_path: Path) -> None:
    """Too short for one machine without help: the limits, and how many machines would do."""
    path = tmp_path / "two.toml"
    goal = 'minimize = "cost.usd_to_train"\nnodes = 1\ndeadline = "16 min"'
    path.write_text(TWO.format(goal=goal))
    done = ask(str(path))
    assert done.code == 1
    assert "No machine meets all limits: nodes = 1; deadline = 16 min" in done.out
    assert "nodes = 2 would do" in done.out


def test_an_unknown_metric_is_refused_by_name(ask: Plan, tmp_path: Path) -> None:
    """Nothing is searched for a figure that does not exist."""
    path = tmp_path / "two.toml"
    path.write_text(TWO.format(goal='minimize = "cost.dollars_to_train"'))
    done = ask(str(path))
    assert done.code == 2
    assert "cost.dollars_to_train" in done.err


@pytest.mark.slow
def test_the_launch_hint_is_valid_yaml(
    plan: Plan, searched: Callable[[str], tuple[Outcome, Path]]
) -> None:
    """The block of resources is a SkyPilot task for on-demand machines."""
    _, store = searched("choose-large-language")
    again = plan("recommend", "choose-large-language", "--json", "--store", str(store))
    answer = json.loads(again.out)
    task = yaml.safe_load(answer["launch"]["resources"])
    assert task["num_nodes"] == 1
    assert task["resources"]["cloud"] == "aws"
    assert "use_spot" not in task["resources"]
    assert "torchrun" in task["run"]
    assert "num_workers=4" in answer["launch"]["loader"]


@pytest.mark.slow
def test_the_price_of_a_pin_is_shown(ask: Plan, tmp_path: Path) -> None:
    """Two machines, whatever they cost: beside the best of any number, in the goal's units."""
    path = tmp_path / "two.toml"
    goal = 'minimize = "cost.usd_to_train"\nnodes = 2\npins = { "hardware.count" = 2 }'
    path.write_text(TWO.format(goal=goal))
    (pin,) = json.loads(ask(str(path), "--json").out)["pins"]
    assert pin["kept"]["count"] == 2
    assert pin["freed"]["count"] == 1
    assert pin["kept"]["value"] > pin["freed"]["value"]
    assert "input.where" not in pin["freed"]["settings"]


def test_why_nothing_will_do_is_in_the_text(plan: Plan, tmp_path: Path) -> None:
    """Measured step times hold for one device: all machines with another are refused, by name.

    The scenario as it is runs on the measured device and has a cost.
    """
    path = tmp_path / "job.toml"
    path.write_text(
        'schema = 1\nextends = "resnet18-imagenet-one-worker"\n[goal]\n'
        'minimize = "cost.usd_to_train"\n[goal.search]\n'
        '"hardware.machine" = ["instance/aws/g5.*xlarge"]\n'
    )
    store = ("--store", str(tmp_path / "s.sqlite"), "--jobs", "1")
    outcome = plan("recommend", str(path), *store)
    assert outcome.code == 1
    text = " ".join(outcome.out.split())
    assert "No candidate will do." in text
    assert "Your scenario unchanged meets all limits: $" in text
    assert "g5.2xlarge, g5.4xlarge" in text
    assert "model.step_times holds for v100-sxm2-16gb" in text
    again = plan("recommend", str(path), *store)
    assert again.out == outcome.out
