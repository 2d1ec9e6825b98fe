"""Limits as rules: what they read of a machine and of figures, and names that nobody has."""

from __future__ import annotations

import pytest

from simulator.errors import UnknownName
from simulator.results.expression import parse_expression
from simulator.schema.goal import Limits
from simulator.studies.recommend.limits import (
    RuledOffer,
    broken,
    check_regions,
    limits_as_text,
    rules_of,
)
from tests.studies.recommend.made import machine

NORTH = machine("m", gpu="x9-pcie", cloud="c", region="north", capabilities=frozenset({"bf16"}))
FIGURES = {
    "total_time_s": 7200.0,
    "cost.usd_to_train": 50.0,
    "host_ram_bytes.total": 92.0,
    "host_ram_bytes.capacity": 100.0,
}


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        (Limits(), ()),
        (Limits(deadline=7200.0, budget=50.0), ()),
        (Limits(deadline=7199.0), ("deadline",)),
        (Limits(budget=49.0), ("budget",)),
        (Limits(nodes=1), ("nodes",)),
        (Limits(clouds=("d",)), ("clouds",)),
        (Limits(regions=("north-1",)), ()),
        (Limits(regions=("south",)), ("regions",)),
        (Limits(gpus=("gpu/x9*",)), ()),
        (Limits(gpus=("x9",)), ()),
        (Limits(gpus=("x",)), ("gpus",)),
        (Limits(requires=("bf16",)), ()),
        (Limits(requires=("fp8",)), ("requires fp8",)),
        (Limits(ram_margin=0.08), ()),
        (Limits(ram_margin=0.09), ("ram_margin",)),
        (Limits(where="cost.usd_to_train < 40"), ("where",)),
    ],
)
def test_what_is_broken(limits: Limits, names: tuple[str, ...]) -> None:
    """Each limit is kept up to its value and broken beyond."""
    assert broken(rules_of(limits), RuledOffer(machine=NORTH, count=2, figures=FIGURES)) == names


def test_a_price_that_is_not_known_breaks_a_budget() -> None:
    """Nobody can say that such a machine stays within it."""
    subject = RuledOffer(machine=NORTH, count=1, figures={"total_time_s": 1.0})
    assert broken(rules_of(Limits(budget=1e9)), subject) == ("budget",)


def test_a_region_without_prices_is_refused() -> None:
    """The nearest one is named."""
    with pytest.raises(UnknownName, match=r"'nort'.*did you mean 'north'"):
        check_regions(Limits(regions=("nort",)), [NORTH])


@pytest.mark.parametrize(("verdict", "names"), [("uncertain", ("ram_margin",)), ("yes", ())])
def test_what_may_not_fit_is_no_recommendation(verdict: str, names: tuple[str, ...]) -> None:
    """Within a few percent of the capacity nobody knows, with or without a margin."""
    figures = {**FIGURES, "host_ram_bytes.total": 99.0, "fits.host": verdict}
    subject = RuledOffer(machine=NORTH, count=1, figures=figures)
    assert broken(rules_of(Limits()), subject) == names
    assert parse_expression(limits_as_text(Limits())).holds(figures) is (not names)
