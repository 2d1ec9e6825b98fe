"""A step time that a file states is of the file's batch size, whatever options make of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.physics.device_time import device_time
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.scenario import Scenario

STATED = """
schema = 1
extends = "resnet50-imagenet-p4d"
[model]
step_time = "100 ms"
[train]
batch_size = 200
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A job with a measured step."""
    path = tmp_path / "stated.toml"
    path.write_text(STATED)
    return str(path)


def seconds(scenario: Scenario) -> float:
    """Its device time of a batch."""
    found = device_time(scenario)
    assert found is not None
    return float(found.total)


def test_another_batch_takes_another_time(file: str) -> None:
    """As an option and as a setting; at its own batch it takes what was measured."""
    assert seconds(load_scenario(file)) == pytest.approx(0.1)
    twice = seconds(load_scenario(file, overrides=("train.batch_size=400",)))
    assert 0.17 < twice < 0.2
    read = CandidateReader(file).read({"train.batch_size": 400}).scenario
    assert seconds(read) == twice
    assert seconds(CandidateReader(file).without_uncertainty({"train.batch_size": 400})) == twice
    fixed = CandidateReader(file, overrides=("train.batch_size=400",))
    assert seconds(fixed.without_uncertainty({"input.workers": 3})) == twice


def test_an_option_is_of_the_jobs_own_batch(file: str) -> None:
    """Who states a step beside another batch means that one."""
    options = ("train.batch_size=400", "model.step_time=150 ms")
    assert seconds(load_scenario(file, overrides=options)) == pytest.approx(0.15)
    settings = {"train.batch_size": 400, "model.step_time": "150 ms"}
    assert seconds(CandidateReader(file).read(settings).scenario) == pytest.approx(0.15)
    assert seconds(CandidateReader(file).without_uncertainty(settings)) == pytest.approx(0.15)


def test_a_stated_batch_of_the_step_holds(file: str) -> None:
    """The key for it wins over both."""
    options = ("train.batch_size=400", "model.step_time_batch=400")
    assert seconds(load_scenario(file, overrides=options)) == pytest.approx(0.1)
