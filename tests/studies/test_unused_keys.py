"""Keys without effect are named, and no others."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest
from support.catalogue import each
from support.stages import sampled

from simulator.errors import PlanError
from simulator.predict import predict
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.shipped import scenario_names
from simulator.studies.unused_keys import unused_keys

MEASURED = """
schema = 1
[hardware]
machine = "instance/aws/g4dn.xlarge"
storage = "storage/s3"
[data]
samples = 10_000
bytes_per_sample = "110 kB"
cache = "preloaded"
[input]
workers = 2
decode = "4 ms"
[model]
step_time = "50 ms"
[train]
batch_size = 32
precision = "fp32"
"""


def idle(tmp_path: Path, text: str, *overrides: str) -> tuple[str, ...]:
    """Keys of a scenario that are without effect."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return unused_keys(CandidateReader(str(path), overrides=overrides))


def test_keys_that_matter_are_not_named(tmp_path: Path) -> None:
    """Nor is one that has to be given: a job with an accelerator needs a precision."""
    assert idle(tmp_path, MEASURED) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hardware.storage_operations", "900 IOPS"),
        ("data.readers", "4"),
        ("train.overlap_communication", "false"),
        ("train.exchange_contention", "0.3"),
    ],
)
def test_keys_that_nothing_reads_are_named(tmp_path: Path, key: str, value: str) -> None:
    """No store is read, and no gradients are exchanged."""
    assert idle(tmp_path, MEASURED, f"{key}={value}") == (key,)


SETTINGS = ("data.cache=preloaded", "train.batch_size=64")
"""Options that leave others without effect in some scenarios."""


def test_the_same_key_matters_elsewhere(tmp_path: Path) -> None:
    """Where the store is read, nothing is said."""
    text = MEASURED.replace('cache = "preloaded"\n', 'cache = "none"\n')
    assert idle(tmp_path, text, "data.readers=4") == ()


def test_a_dominated_figure_is_read_all_the_same(tmp_path: Path) -> None:
    """Traffic that hides behind compute counts from some amount on: it is not idle."""
    figures = 'parameters = 1e6\nforward_flops_per_sample = "50 GFLOP"\n'
    text = MEASURED.replace('step_time = "50 ms"\n', figures)
    assert idle(tmp_path, text, "model.memory_traffic_per_sample=1 MB") == ()


def test_keys_of_what_a_file_extends_are_not_the_users(tmp_path: Path) -> None:
    """Only the user's own file, and options, are spoken of."""
    (tmp_path / "base.toml").write_text(MEASURED.replace("[data]", "[data]\nreaders = 4"))
    assert unused_keys(CandidateReader(str(tmp_path / "base.toml"))) == ("data.readers",)
    assert idle(tmp_path, 'schema = 1\nextends = "base.toml"\n') == ()


@each("name", sampled(scenario_names(), 10))
def test_no_shipped_scenario_gives_a_key_without_effect(name: str) -> None:
    """Who starts from one is not warned of what somebody else wrote."""
    assert unused_keys(CandidateReader(name)) == ()


@each(("name", "setting"), sampled(zip(scenario_names(), cycle(SETTINGS), strict=False), 5))
def test_what_is_said_to_be_idle_is(name: str, setting: str) -> None:
    """Left out, the whole prediction stays as it is."""
    try:
        reader = CandidateReader(name, overrides=(setting,))
        reader.without_uncertainty({})
    except PlanError:
        pytest.skip("the scenario cannot be changed so")
    before = predict(reader.without_uncertainty({}), intervals=False)
    for key in unused_keys(reader):
        after = predict(reader.without(key), intervals=False)
        assert after.timing == before.timing, key
        assert after.cost == before.cost, key
        assert (after.host_ram, after.memory) == (before.host_ram, before.memory), key
