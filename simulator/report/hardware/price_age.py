"""When prices were stated, in words: those past an age, and those that others take the place of."""

from __future__ import annotations

from simulator.importers.prices import Moved
from simulator.results.price_age import Listed
from simulator.units import USD_PER_SECOND, show


def old_price_line(one: Listed, age: str) -> str:
    """Which price is old, and of when it is.

    Parameters
    ----------
    one : Listed
        The price.
    age : str
        The age that was allowed, as the user wrote it.
    """
    price, stated = one.price, one.price.source.date
    what = f"warning: the {price.purchase} price of {one.machine} in {price.region}"
    if price.source.oldest is None:
        return f"{what} may be older than {age}: {stated}"
    if price.source.oldest.isoformat() == stated:
        return f"{what} is older than {age}: of {stated}"
    return f"{what} may be older than {age}: of {_day(stated)}"


def moved_price_line(one: Moved) -> str:
    """The price that a machine has now where a job names no region, and of when the old one is."""
    before, after = one.before, one.after
    price = show(after.usual, USD_PER_SECOND)
    now = f"{one.machine} {after.purchase} costs {price} by the price of {after.region} now"
    old = f"{before.region} is of {_day(before.source.date)}"
    return f"{now}, where a job names no cost.region ({old})"


def _day(stated: str) -> str:
    later = " or later" if stated.startswith(">=") else ""
    return f"{stated.removeprefix('>=')}{later}"
