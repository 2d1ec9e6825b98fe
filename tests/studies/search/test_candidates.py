"""Candidates of a search: which points the axes stand for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import NotModelled, UnknownName
from simulator.reading.search.axes import parse_axis
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Axes, Axis, Sampling
from simulator.studies.search.candidates import expand
from simulator.units import BYTE_PER_SECOND, parse

SOUND = Path(__file__).parents[2] / "data" / "broken" / "base" / "sound.toml"
READER = CandidateReader(str(SOUND))


def axes(*texts: str, sample: Sampling = Sampling.GRID, points: int | None = None) -> Axes:
    """Axes as the command line has them."""
    return Axes(axes=tuple(map(parse_axis, texts)), sample=sample, points=points)


def test_a_grid_has_every_combination_in_order() -> None:
    """The last axis changes fastest; keys that vary together stay together."""
    found = expand(
        axes("train.batch_size,train.accumulation=32:4,64:2", "input.workers=1,2"), READER
    )
    assert [tuple(candidate.settings.values()) for candidate in found] == [
        (32, 4, 1),
        (32, 4, 2),
        (64, 2, 1),
        (64, 2, 2),
    ]
    assert [candidate.index for candidate in found] == [0, 1, 2, 3]
    assert list(found[0].settings) == ["train.batch_size", "train.accumulation", "input.workers"]


def test_no_axes_leave_the_scenario_itself() -> None:
    """One candidate without settings."""
    assert [dict(candidate.settings) for candidate in expand(axes(), READER)] == [{}]


def test_patterns_stand_for_names_in_their_order() -> None:
    """Each name once, beside names written out."""
    found = expand(axes("model.name=resnet1*,vit-b16,resnet101"), READER)
    names = [candidate.settings["model.name"] for candidate in found]
    assert names == ["resnet101", "resnet152", "resnet18", "vit-b16"]
    machines = expand(axes("hardware.machine=instance/aws/p4d.*"), READER)
    assert [m.settings["hardware.machine"] for m in machines] == ["instance/aws/p4d.24xlarge"]


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    """With the folder that may be meant."""
    with pytest.raises(UnknownName, match="did you mean 'instance/aws/"):
        expand(axes("hardware.machine=instance/awz/*"), READER)


def test_what_a_grid_cannot_take_is_refused() -> None:
    """A continuous range, and more candidates than anybody waits for."""
    with pytest.raises(NotModelled, match="a grid needs points; give a step"):
        expand(axes("hardware.ram=1 GB..2 GB"), READER)
    many = "input.workers=1..1000", "train.batch_size=1..1000", "train.accumulation=1..11"
    with pytest.raises(NotModelled, match="11,000,000 candidates"):
        expand(axes(*many), READER)
    with pytest.raises(NotModelled, match="how many points to draw"):
        expand(axes("input.workers=1..4", sample=Sampling.SOBOL), READER)


@pytest.mark.parametrize("sample", [Sampling.LATIN_HYPERCUBE, Sampling.SOBOL])
def test_drawn_points_cover_every_axis_evenly(sample: Sampling) -> None:
    """Of 16 points over 16 values each is drawn once; continuous ones fill each sixteenth."""
    drawn = axes(
        "input.workers=1..16",
        "hardware.storage_bandwidth=1 GB/s..17 GB/s",
        sample=sample,
        points=16,
    )
    found = expand(drawn, READER)
    assert sorted(int(c.settings["input.workers"]) for c in found) == list(range(1, 17))
    texts = [str(c.settings["hardware.storage_bandwidth"]) for c in found]
    rates = [parse(text, BYTE_PER_SECOND) / parse("1 GB/s", BYTE_PER_SECOND) for text in texts]
    assert sorted(int(rate) for rate in rates) == list(range(1, 17))


def test_draws_depend_on_the_seed_alone() -> None:
    """The same seed gives the same points, another one others."""
    drawn = Axes(axes=(parse_axis("hardware.ram=1 GB..1 TB log"),), sample=Sampling.SOBOL, points=5)
    assert expand(drawn, READER) == expand(drawn, READER)
    other = Axes(axes=drawn.axes, sample=drawn.sample, points=5, seed=1)
    assert expand(drawn, READER) != expand(other, READER)


def test_points_that_fall_together_are_taken_once() -> None:
    """True is not 1, but two draws of the same value are one candidate."""
    drawn = axes("input.pin_memory=true,false", sample=Sampling.SOBOL, points=64)
    found = expand(drawn, READER)
    assert sorted(str(c.settings["input.pin_memory"]) for c in found) == ["False", "True"]
    assert [candidate.index for candidate in found] == [0, 1]


@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=5, unique=True), max_size=4),
)
def test_a_grid_has_the_product_of_its_axes(lengths: list[list[int]]) -> None:
    """As many different candidates as the lengths multiply to."""
    keys = ("input.workers", "train.batch_size", "train.accumulation", "hardware.count")
    grid = Axes(
        axes=tuple(
            Axis(keys=(key,), values=tuple((value,) for value in values))
            for key, values in zip(keys, lengths, strict=False)
        )
    )
    found = expand(grid, READER)
    size = 1
    for values in lengths:
        size *= len(values)
    assert len({tuple(candidate.settings.items()) for candidate in found}) == len(found) == size
