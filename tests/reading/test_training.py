"""Accumulation that follows from the global batch."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.reading.scenario import load_scenario


@pytest.mark.parametrize(
    ("asked", "passes"),
    [
        ((), 280),
        (("train.batch_size=2",), 140),
        (("parallelism.pipeline=70", "parallelism.interleave=1"), 560),
        (("train.global_batch_size=16",), 2),
    ],
)
def test_accumulation_is_what_the_global_batch_asks_for(
    asked: tuple[str, ...], passes: int
) -> None:
    """Whatever else changes the ranks or the batch of one pass."""
    scenario = load_scenario("turing-nlg-530b", overrides=asked)
    train = scenario.job.train
    assert train.accumulation == passes
    whole = train.batch_size * train.accumulation * scenario.ranks
    assert whole == (16.0 if "train.global_batch_size=16" in asked else 2240.0)


def test_a_global_batch_that_no_accumulation_makes_is_refused() -> None:
    """With what it must be a multiple of."""
    with pytest.raises(InputError, match="is not a multiple of batch_size x ranks"):
        load_scenario("turing-nlg-530b", overrides=["train.batch_size=3"])


def test_accumulation_that_contradicts_the_global_batch_is_refused() -> None:
    """Both given must agree."""
    with pytest.raises(InputError, match="contradicts batch_size x accumulation x ranks"):
        load_scenario("turing-nlg-530b", overrides=["train.accumulation=4"])
