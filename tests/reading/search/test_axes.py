"""Axes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import units
from simulator.errors import InputError
from simulator.reading.search.axes import parse_axis, with_axes
from simulator.reading.settings import setting_names, setting_units
from simulator.schema.goal import Axes, Axis, Sampling, Span


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("input.workers=1..4", [1, 2, 3, 4]),
        ("input.workers=0..64 step 16", [0, 16, 32, 48, 64]),
        ("input.workers=1..7 step 4", [1, 5]),
        ("input.workers=3..3", [3]),
        ("train.batch_size=16..100 x2", [16, 32, 64]),
        ("train.batch_size=1..10 x1.5", [1, 2, 3, 5, 8]),
        ("train.batch_size = 32 , 64", [32, 64]),
        ("train.batch_size=32,64,32", [32, 64]),
        ("input.workers=1..3,8,16..18", [1, 2, 3, 8, 16, 17, 18]),
        ("train.epochs=1..3", [1, 2, 3]),
        ("train.epochs=0.1..0.3 step 0.1", [0.1, 0.2, 0.3]),
        ("input.pin_memory=true,false", [True, False]),
        ("train.precision=*16", ["fp16", "bf16"]),
        ("train.precision=fp[38]2,fp8", ["fp32", "fp8"]),
        ("model.name=resnet50,vit-b16", ["resnet50", "vit-b16"]),
        ("hardware.machine=instance/aws/*", ["instance/aws/*"]),
        ("hardware.ram=64 GB,128GB", ["64 GB", "128GB"]),
        (
            "hardware.storage_bandwidth=500 MB/s..2 GB/s step 500 MB/s",
            ["0.5 GB/s", "1 GB/s", "1.5 GB/s", "2 GB/s"],
        ),
        ("cost.price=$1/h..$4/h x2", ["$1/h", "$2/h", "$4/h"]),
        ("calibration.overlay=../fit.toml", ["../fit.toml"]),
        ("model.shape.layers=12,24", [12, 24]),
    ],
)
def test_values_along_an_axis(text: str, values: list[object]) -> None:
    """Both ends of a range are in it, and each value has the type that its key takes."""
    axis = parse_axis(text)
    assert axis.span is None
    assert [value for (value,) in axis.values] == values
    assert [type(value) for (value,) in axis.values] == [type(value) for value in values]


def test_keys_that_vary_together() -> None:
    """One value for each key at every point."""
    assert parse_axis("train.batch_size,train.accumulation=32:4,64:2") == Axis(
        keys=("train.batch_size", "train.accumulation"), values=((32, 4), (64, 2))
    )


def test_continuous_ranges() -> None:
    """A quantity or a plain number between two ends, in the unit of the upper one."""
    assert parse_axis("hardware.storage_bandwidth=500 MB/s..2 GB/s").span == Span(
        low=0.5, high=2.0, unit="GB/s"
    )
    assert parse_axis("hardware.ram=1 GB..1 TB log").span == Span(
        low=0.001, high=1.0, unit="TB", logarithmic=True
    )
    assert parse_axis("train.epochs=0.5..3.0").span == Span(low=0.5, high=3.0)
    assert parse_axis("cost.price=$1/h..$30/h").span == Span(low=1.0, high=30.0, unit="$/h")
    assert parse_axis("train.batch_size=1..64 log").span == Span(
        low=1.0, high=64.0, whole=True, logarithmic=True
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("input.workers", "has no values; write key=values"),
        ("input.workers=", "has no values"),
        ("input.worker=1", "found 'input.worker'; did you mean 'input.workers'?"),
        ("hardware.decode=1", "found 'hardware.decode'; did you mean 'input.decode'?"),
        ("hardware=1", "is not a key that can be varied"),
        ("input.straggler=1", "is not a key that can be varied"),
        ("schema=1", "is not a key that can be varied"),
        ("goal.nodes=1", "is not a key that can be varied"),
        ("input.workers=9..1", "is an empty range, found '9..1'; write the smaller end first"),
        ("input.workers=1..4 step 0", "the step of input.workers is not above zero"),
        ("input.workers=1..4 step x", "the step of input.workers is not a number"),
        ("input.workers=1..4 step 0.5", "leaves the whole numbers"),
        ("input.workers=1..4 x1", "is not a number above 1"),
        ("input.workers=0..4 x2", "is multiplied from zero"),
        ("input.workers=1.5..4", "is not a whole number"),
        ("input.workers=1..5000", "is out of range"),
        ("input.workers=..4", "is not a range"),
        ("data.samples=1..100000000", "has too many values"),
        ("hardware.ram=0 B..1 GB log", "is zero"),
        ("hardware.ram=1 h..1 GB", "measures time where bytes is needed"),
        ("hardware.ram=1 GB..2 GB step 1 h", "measures time where bytes is needed"),
        ("hardware.ram=1 GB..2 GB,3 GB", "is a continuous range among single values"),
        ("hardware.ram=1 GB..1 GB", "is a range of a single value"),
        ("input.pin_memory=1", "is not true or false"),
        ("train.precision=bf15", "did you mean 'bf16'?"),
        ("train.precision=z*", "train.precision matches nothing"),
        ("train.batch_size,train.accumulation=32", "has 1 values for 2 keys"),
        ("train.batch_size,train.batch_size=32:32", "is varied twice"),
        ("model.name,train.batch_size=res*:32", "matches several values"),
    ],
)
def test_mistakes_are_told(text: str, told: str) -> None:
    """One problem, with the option, what was found and what is allowed."""
    with pytest.raises(InputError) as caught:
        parse_axis(text)
    (problem,) = caught.value.problems
    assert problem.origin.startswith("--over ")
    assert told in str(problem)


@pytest.mark.slow
@given(st.text(max_size=40), st.sampled_from(["", "input.workers=", "hardware.ram=", "a,b="]))
def test_any_text_is_an_axis_or_a_mistake(text: str, before: str) -> None:
    """Nothing but InputError escapes."""
    try:
        axis = parse_axis(before + text)
    except InputError:
        return
    assert axis.values or axis.span


@given(st.integers(0, 200), st.integers(0, 100), st.integers(1, 50))
def test_steps_are_those_of_a_range(low: int, length: int, step: int) -> None:
    """As Python's range with the upper end included."""
    axis = parse_axis(f"input.workers={low}..{low + length} step {step}")
    assert [value for (value,) in axis.values] == list(range(low, low + length + 1, step))


def test_options_win_over_axes_of_the_file() -> None:
    """An axis that shares a key with one of the command line makes way; all else stays."""
    own = Axes(
        axes=(
            parse_axis("input.workers=1..4"),
            parse_axis("train.batch_size,train.accumulation=32:4"),
        ),
        sample=Sampling.SOBOL,
        points=8,
        where="fits.gpu != 'no'",
    )
    both = with_axes(own, [parse_axis("train.batch_size=64,128")])
    assert [axis.keys for axis in both.axes] == [("input.workers",), ("train.batch_size",)]
    assert (both.sample, both.points, both.where) == (own.sample, own.points, own.where)
    assert with_axes(None, []).axes == ()
    with pytest.raises(InputError, match="is varied twice"):
        with_axes(None, [parse_axis("input.workers=1"), parse_axis("input.workers=2")])


def test_units_of_settings_are_those_of_the_sections() -> None:
    """What an expression over settings is told."""
    known = setting_units()
    assert tuple(known) == setting_names()
    assert known["hardware.storage_bandwidth"] is units.BYTE_PER_SECOND
    assert known["input.workers"] is None
    assert {"train.evaluation.samples", "data.size_spread.shape"} < set(known)
