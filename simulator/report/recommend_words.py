"""One choice of a recommendation in words: what is bought, how it is set, what it comes to."""

from __future__ import annotations

from typing import Final

from simulator.report.figures import figure
from simulator.results.expression import parse_expression
from simulator.scenario.goal import Objective
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number
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
    devices = f" ({kind.gpus} x {kind.gpu})" if kind.gpu else ""
    helpers = choice.settings.get("remote.machine")
    number_of = f"{choice.settings.get('remote.count', 1)} x " if many else ""
    beside = f" + {number_of}{helpers}" if helpers else ""
    spot = " as spot capacity" if choice.settings.get("cost.purchase") == "spot" else ""
    return f"{many}{kind.name}{devices}{beside}{spot}"


def settings(choice: Choice) -> str:
    """What else sets it apart from the scenario."""
    return ", ".join(
        f"{key} = {value}" for key, value in choice.settings.items() if key not in _HIDDEN
    )


def worth(value: float | None, objective: Objective) -> str:
    """A value of the goal with its unit."""
    if value is None:
        return "no value"
    return figure(value, unit_of(objective))


def unit_of(objective: Objective) -> Unit | None:
    """The unit of the goal; None for a bare number."""
    return parse_expression(objective.metric).unit


def measures(objective: Objective, choice: Choice) -> tuple[str, str, str]:
    """What it comes to: by the goal, in time, in money."""
    return (
        worth(choice.value, objective),
        figure(number(choice.figures, TIME), SECOND),
        figure(number(choice.figures, MONEY), USD),
    )


def dollars(amount: float) -> str:
    """An amount with cents only where they count.

    Examples
    --------
    >>> dollars(23.4), dollars(1234.5), dollars(0.734)
    ('$23', '$1,234', '$0.73')
    """
    return f"${amount:,.0f}" if abs(amount) >= WHOLE else f"${amount:.2f}"
