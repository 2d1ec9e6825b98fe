"""What an expression can come to where figures lie within ranges: never less than it does."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.results.expression import parse_expression

TIME, MONEY, RENT = "total_time_s", "cost.usd_to_train", "cost.usd_per_h"
AMOUNT = st.integers(0, 6)
NUMBERS = st.recursive(
    st.one_of(AMOUNT.map(str), st.sampled_from([TIME, MONEY, RENT, "break_even_epochs"])),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from("+-*/"), part).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        part.map(lambda p: f"-{p}"),
    ),
    max_leaves=6,
)
COMPARED = st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS)
CONDITIONS = st.recursive(
    COMPARED.map(" ".join),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["and", "or"]), part).map(
            lambda p: f"({p[0]}) {p[1]} ({p[2]})"
        ),
        part.map(lambda p: f"not ({p})"),
    ),
    max_leaves=4,
)
SPANS = st.fixed_dictionaries(
    {name: st.tuples(AMOUNT, AMOUNT).map(sorted) for name in (TIME, MONEY, RENT)}
)
PLACES = st.fixed_dictionaries({name: st.floats(0.0, 1.0) for name in (TIME, MONEY, RENT)})


def within(spans: dict[str, list[int]], places: dict[str, float]) -> dict[str, float]:
    """Figures somewhere within their ranges; one more is not there at all."""
    return {name: low + (high - low) * places[name] for name, (low, high) in spans.items()}


def ranges(spans: dict[str, list[int]]) -> dict[str, tuple[float, float]]:
    """As expressions take them."""
    return {name: (float(low), float(high)) for name, (low, high) in spans.items()}


@given(NUMBERS, SPANS, PLACES)
def test_a_number_lies_within_its_range(
    text: str, spans: dict[str, list[int]], places: dict[str, float]
) -> None:
    """Wherever the figures lie."""
    expression = parse_expression(text)
    value = expression.value(within(spans, places))
    low, high = expression.range(ranges(spans))
    if isinstance(value, float):
        assert low <= value <= high


@given(CONDITIONS, SPANS, PLACES)
def test_what_holds_may_hold(
    text: str, spans: dict[str, list[int]], places: dict[str, float]
) -> None:
    """A condition that figures meet is one that their ranges may meet, and so is its opposite."""
    expression = parse_expression(text)
    holds = expression.holds(within(spans, places))
    assert expression.may_hold(ranges(spans)) or not holds
    assert parse_expression(f"not ({text})").may_hold(ranges(spans)) or holds


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("total_time_s <= 100", False),
        ("total_time_s <= 101", True),
        ("total_time_s < 101", False),
        ("100 >= total_time_s", False),
        ("not total_time_s > 100", False),
        ("total_time_s + 2 * cost.usd_to_train < 111", False),
        ("total_time_s / cost.usd_to_train == 0", True),
        ("throughput_samples_per_s > 50", False),
        ("fits.gpu == 'no'", True),
        ("total_time_s <= 100 and fits.gpu == 'yes'", False),
        ("total_time_s <= 100 or fits.gpu == 'yes'", True),
        ("epoch_time_s < 0", True),
    ],
)
def test_conditions_that_cannot_hold(text: str, may: bool) -> None:  # noqa: FBT001 - an outcome
    """A run of at least 101 s and $5 with at most 50 samples/s; of all else nothing is known."""
    known = {
        TIME: (101.0, math.inf),
        MONEY: (5.0, math.inf),
        "throughput_samples_per_s": (0.0, 50.0),
    }
    assert parse_expression(text).may_hold(known) is may
