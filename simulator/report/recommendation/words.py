"""One choice of a recommendation in words: what is bought, how it is set, what it comes to."""

from __future__ import annotations

from typing import Final

from simulator.report.numbers import digits_between, figure, quantity
from simulator.results.expression import parse_expression
from simulator.results.metrics import USD_PER_HOUR
from simulator.schema.goal import Objective
from simulator.schema.hardware.naming import short_name
from simulator.studies.recommend.ranking import MONEY, TIME, Choice, number
from simulator.units import SECOND, USD, Unit

DIGITS: Final = 3
WHOLE: Final = 10.0
"""Amount from which on cents don't count [$]."""
_HIDDEN: Final = frozenset(
    {"hardware.machine", "hardware.count", "input.measured_on", "remote.machine", "remote.count"}
)
"""Settings that are said with the machine, or that change nothing."""


def hardware(choice: Choice) -> str:
    """What is bought, in words."""
    return _hardware(choice, f"{choice.count} x ")


def machine(choice: Choice) -> str:
    """The machines it is about, in whatever number."""
    return _hardware(choice, "")


def _hardware(choice: Choice, many: str) -> str:
    kind = choice.machine
    what = [kind.cloud] if kind.cloud else []
    what += [f"{kind.gpus} x {kind.gpu}"] if kind.gpu else []
    devices = f" ({', '.join(what)})" if what else ""
    helpers = short_name(str(choice.settings.get("remote.machine", "")))
    number_of = f"{choice.settings.get('remote.count', 1)} x " if many else ""
    beside = f" + {number_of}{helpers}" if helpers else ""
    spot = " as spot capacity" if choice.settings.get("cost.purchase") == "spot" else ""
    return f"{many}{short_name(kind.name)}{devices}{beside}{spot}"


def settings(choice: Choice) -> str:
    """What else sets it apart from the scenario."""
    return ", ".join(
        f"{key} = {value}" for key, value in choice.settings.items() if key not in _HIDDEN
    )


def worth(choice: Choice, objective: Objective) -> str:
    """What a choice is worth by the goal, with its unit."""
    if choice.value is None:
        return "no value"
    return told(choice, objective.metric, unit_of(objective), choice.value)


def unit_of(objective: Objective) -> Unit | None:
    """The unit of the goal; None for a bare number."""
    return parse_expression(objective.metric).unit


def told(choice: Choice, metric: str, unit: Unit | None, value: float | None = None) -> str:
    """A figure of a choice, or another value of it, with the digits that its interval leaves."""
    ends = ends_of(choice, metric)
    number_of = number(choice.figures, metric) if value is None else value
    if number_of is None:
        return figure(None, unit)
    if unit == USD_PER_HOUR:
        return figure(number_of, unit)
    return quantity(number_of, unit, DIGITS if ends is None else digits_between(*ends))


def ends_of(choice: Choice, metric: str) -> tuple[float, float] | None:
    """The 80% interval of a figure, as far off as the choice's own figure is."""
    band, predicted = choice.outcome.intervals.get(metric), number(choice.outcome.figures, metric)
    own = number(choice.figures, metric)
    if band is None or not predicted or own is None:
        return None
    return own / predicted * band["p10"], own / predicted * band["p90"]


def measures(objective: Objective, choice: Choice) -> tuple[str, str, str]:
    """What it comes to: by the goal, in time, in money."""
    return (
        worth(choice, objective),
        told(choice, TIME, SECOND),
        told(choice, MONEY, USD),
    )


def dollars(amount: float) -> str:
    """An amount with cents only where they count.

    Examples
    --------
    >>> dollars(23.4), dollars(1234.5), dollars(0.734)
    ('$23', '$1,234', '$0.73')
    """
    return f"${amount:,.0f}" if abs(amount) >= WHOLE else f"${amount:.2f}"
