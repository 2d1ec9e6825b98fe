"""Prices past the age that a user allows, as warnings."""

from __future__ import annotations

from simulator.results.price_age import Listed


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
    later = " or later" if stated.startswith(">=") else ""
    return f"{what} may be older than {age}: of {stated.removeprefix('>=')}{later}"
