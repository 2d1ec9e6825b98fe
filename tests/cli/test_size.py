"""``plan size`` and ``plan simulate --observed``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from simulator.cli.size import _counts
from simulator.errors import InputError
from simulator.reading.search.axes import parse_axis

Run = Callable[..., Any]
JOB = "cpu-starved-p4d"


@pytest.mark.slow
def test_a_size_reads_as_it_should(plan: Run, golden: Callable[[str, str], None]) -> None:
    """The whole answer for a job on an object store."""
    outcome = plan("size", "storage", "imagenet-object-store-g5")
    assert outcome.code == 0
    golden("size-storage", outcome.out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--loss", "150%"), "--loss"),
        (("--loss", "0%"), "above 0"),
        (("--machines", "1,x"), "is not a list of whole numbers"),
        (("--machines", "8..x"), "is not a list of whole numbers"),
        (("--machines", "64..8"), "empty range"),
        (("--machines", "0..8"), "hardware.count"),
    ],
)
def test_mistakes(plan: Run, arguments: tuple[str, ...], said: str) -> None:
    """One clear message, and exit code 2."""
    outcome = plan("size", "cpu", JOB, *arguments)
    assert outcome.code == 2
    assert said in outcome.err


@pytest.mark.parametrize(
    ("typed", "machines"),
    [
        ("2..4", [2, 3, 4]),
        ("1,4..16 x2", [1, 4, 8, 16]),
        ("2..4 step 1", [2, 3, 4]),
        ("1..9 x3", [1, 3, 9]),
        ("4,4", [4]),
    ],
)
def test_numbers_of_machines_as_people_write_them(typed: str, machines: list[int]) -> None:
    """A range means what it means in a sweep: one by one, unless it says how it goes."""
    assert list(_counts(typed)) == machines
    over = parse_axis(f"hardware.count={typed}")
    assert [count for (count,) in over.values] == machines


def test_a_long_range_is_answered_with_how_it_doubles() -> None:
    """A thousand sizes one by one are hardly meant, and doublings are not what the range says."""
    with pytest.raises(InputError, match=r"1,017 numbers .* '8\.\.1024 x2' doubles"):
        _counts("8..1024")


@pytest.mark.slow
def test_what_was_observed_comes_first(plan: Run, golden: Callable[[str, str], None]) -> None:
    """What must be true for it, and the prediction from there."""
    outcome = plan("simulate", JOB, "--observed", "samples/s=4000")
    assert outcome.code == 0
    golden("observed-samples", outcome.out)


def test_an_observed_share_is_told_in_per_cent(plan: Run) -> None:
    """As it was typed, not as 0.38."""
    outcome = plan("simulate", "llama3-8b-fsdp", "--observed", "mfu=38%", "--no-actions")
    assert "Observed MFU: 38%; predicted: " in outcome.out
    assert " 0.3" not in outcome.out.split("ossible single cause")[0]


def test_observed_in_json(plan: Run) -> None:
    """The prediction meets the observation with the likeliest factor."""
    told = json.loads(plan("simulate", JOB, "--observed", "samples/s=4,000", "--json").out)
    assert told["throughput_samples_per_s"] == pytest.approx(4000.0, rel=0.02)
    assert told["observed"]["explanations"][0]["value"] < 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("utilisation=45%", "did you mean 'utilization'?"),
        ("utilization", "has no value"),
        ("step=fast", "is not a value of step"),
        ("utilization=0%", "is not a value"),
    ],
)
def test_observations_that_are_none(plan: Run, text: str, said: str) -> None:
    """One clear message, and exit code 2."""
    outcome = plan("simulate", JOB, "--observed", text)
    assert outcome.code == 2
    assert said in outcome.err
