"""``--max-price-age``: a warning for each price that is older."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simulator.cli.clock import today
from simulator.cli.import_output import quantity
from simulator.cli.output import complain

if TYPE_CHECKING:
    from simulator.results.price_age import Listed

Verb = TypeVar("Verb", bound=Callable[..., Any])


def price_age_option(verb: Verb) -> Verb:
    """Add ``--max-price-age``; the verb gets the parameter `price_age`."""
    return click.option(
        "--max-price-age",
        "price_age",
        callback=_checked,
        metavar="TIME",
        help="Warn of each price that is older than this, such as 180d.",
    )(verb)


def _checked(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse what is no time before anything is predicted."""
    del context, parameter
    if value is not None:
        _first_day(value)
    return value


def _first_day(age: str) -> date:
    """The day so long ago; an age beyond all calendars is the first day there is."""
    from simulator.units import SECOND

    seconds = quantity(age, SECOND, "--max-price-age")
    try:
        return today() - timedelta(seconds=seconds or 0.0)
    except OverflowError:
        return date.min


def warn_of_old(prices: Iterable[Listed], age: str | None) -> None:
    """Name each price past the age, with its date, on standard error."""
    if age is None:
        return
    from simulator.report.hardware import old_price_line
    from simulator.results.price_age import older

    complain(*(old_price_line(one, age) for one in older(prices, _first_day(age))))
