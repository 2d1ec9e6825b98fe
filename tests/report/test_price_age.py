"""Prices past the age that a user allows."""

from __future__ import annotations

from datetime import date

import pytest

from simulator.report.hardware import old_price_line
from simulator.results.cost import Listed, older
from simulator.schema.cost import Price, Purchase
from simulator.schema.provenance import Source

DAY = date(2026, 3, 1)


def listed(day: str) -> Listed:
    """A price of a date."""
    source = Source(reference="a list", date=day)
    price = Price(purchase=Purchase.SPOT, region="here", low=1.0, high=1.0, source=source)
    return Listed("instance/a/b", price)


@pytest.mark.parametrize(
    ("day", "told"),
    [
        ("2026-02-28", "is older than 90d: of 2026-02-28"),
        ("2026-02", "may be older than 90d: of 2026-02"),
        ("2026", "may be older than 90d: of 2026"),
        (">=2025-06", "may be older than 90d: of 2025-06 or later"),
        ("<=2030", "may be older than 90d: <=2030"),
        ("2025-01..2026-06", "may be older than 90d: of 2025-01..2026-06"),
        ("undated", "may be older than 90d: undated"),
    ],
)
def test_a_price_that_may_be_older_is_named_with_its_date(day: str, told: str) -> None:
    """The first day that a date can mean counts; each price is named once."""
    (found,) = older([listed(day), listed(day)], DAY)
    line = old_price_line(found, "90d")
    assert line == f"warning: the spot price of instance/a/b in here {told}"


@pytest.mark.parametrize("day", ["2026-03-01", "2026-03", ">=2026-03", "2026-04-02", "2027"])
def test_a_younger_price_is_not(day: str) -> None:
    """What is of the day itself or later is young enough."""
    assert older([listed(day)], DAY) == ()
