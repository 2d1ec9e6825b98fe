"""What to do next, in words: each change with its gain, its price and the line to change."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from simulator.report.numbers import quantity
from simulator.results.prediction import Prediction
from simulator.schema.goal import Plain
from simulator.studies.actions import MIN_GAIN, SURE_FIT, Action, bills, is_too_large
from simulator.studies.data_migration import waited
from simulator.units import BYTE, SECOND, USD, USD_PER_SECOND, show

NOTHING: Final = (
    f"Nothing that was tried is likely to help: no change makes the run shorter or cheaper by more "
    f"than {MIN_GAIN:.0%}."
)
TOO_LARGE: Final = (
    "Nothing that was tried makes it fit, alone or together: plan recommend looks for machines on "
    "which it does."
)
COUNTS: Final = 0.01
"""Share of a run's time or bill from which on a copy before it is told."""
LAYOUT: Final = "data.layout"
AS_NOW: Final = 0.005
"""Change of a run's time that is none."""


def action_texts(found: Sequence[Action], base: Prediction) -> list[str]:
    """One text an action, best first; a single one that says so where nothing helps."""
    nothing = TOO_LARGE if is_too_large(base) else NOTHING
    return [action_text(one, base) for one in found] or [nothing]


def action_text(one: Action, base: Prediction) -> str:
    """What to change, what that gains, what it costs, and the keys to set."""
    notes = [one.change.note, _copied(one), *_space(one)]
    told = "".join(f"; {note}" for note in notes if note)
    gain, price = _gain(one, base), _price(one, base)
    return f"{one.change.name}: {gain}; {price}{told}. Set {lines(one.settings)}"


def _copied(one: Action) -> str:
    """The copy of the data that a change needs first; none is told that hardly counts."""
    waits, costs = waited(one.copies), one.copying
    if waits < COUNTS * one.time and costs < COUNTS * (one.bill or math.inf):
        return ""
    size = show(sum(copy.size for copy in one.copies), BYTE, 2)
    took = f" {show(waits, SECOND, 2)} and" if waits else ""
    if all(copy.source == copy.target for copy in one.copies) and LAYOUT in one.settings:
        return f"that ({size}) takes{took} {quantity(costs, USD, 2)} or more of it"
    return f"the data ({size}) move first, for{took} {quantity(costs, USD, 2)} or more of that"


def _space(one: Action) -> Iterator[str]:
    """What the data cost where they then lie, beyond the run."""
    for copy in one.copies:
        if copy.per_month:
            yield f"the space costs {quantity(copy.per_month, USD, 2)} a month"


def lines(settings: Mapping[str, Plain]) -> str:
    """Settings as they stand in a scenario.

    Examples
    --------
    >>> lines({"input.workers": 8, "data.access": "sequential"})
    'input.workers = 8, data.access = "sequential"'
    """
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())


def _gain(one: Action, base: Prediction) -> str:
    takes = f"the run takes {quantity(one.time, SECOND, 2)}"
    ends = _ends(one.low, one.high)
    if one.fits:
        takes = f"{_fits(one)}, and {takes}"
    if is_too_large(base):
        return takes
    if abs(one.shorter) < AS_NOW:
        sides = "" if " more" in ends or not ends else " less" if one.high > 0.0 else " more"
        return f"{takes}, as long as now{ends and f' ({ends}{sides})'}"
    if one.shorter >= 0.0:
        return f"{takes}, {one.shorter:.0%} less{ends and f' ({ends})'}"
    return f"{takes}, {-one.shorter:.0%} more{ends and f' ({ends})'}"


def _ends(low: float, high: float) -> str:
    """The ends of an interval of shares saved; which are more and which less where it is both.

    Empty where they are the same in whole per cent.

    Examples
    --------
    >>> _ends(0.08, 0.37), _ends(-0.37, -0.08), _ends(-0.08, 0.37), _ends(0.08, 0.0801)
    ('8 to 37%', '8 to 37%', '8% more to 37% less', '')
    """
    first, last = (round(100.0 * end) for end in (low, high))
    if first == last:
        return ""
    if first < 0 < last:
        return f"{-first}% more to {last}% less"
    least, most = sorted((abs(first), abs(last)))
    return f"{least} to {most}%"


def _fits(one: Action) -> str:
    if one.fitting >= SURE_FIT:
        return "then it fits"
    return f"then it probably fits ({one.fitting:.0%})"


def _price(one: Action, base: Prediction) -> str:
    """What the change costs an hour and what the run then costs."""
    before, after = bills(base, one)
    if before is None or after is None:
        return "free" if not one.rent else "its price is not known"
    then, now = quantity(after, USD, 2), quantity(before, USD, 2)
    bill = f"{then} a run, as now" if then == now else f"{then} a run in place of {now}"
    if not one.rent:
        return f"free, {bill}"
    rent = quantity(abs(one.rent), USD_PER_SECOND, 3)
    return f"{rent} {'more' if one.rent > 0.0 else 'less'}, {bill}"


def action_objects(found: Sequence[Action]) -> list[dict[str, Any]]:
    """The same as plain values, in SI units; shares from 0 to 1."""
    return [
        {
            "what": one.change.name,
            "kind": one.change.kind.value,
            "settings": dict(one.settings),
            "total_time_s": float(one.time),
            "shorter": {"mean": float(one.shorter), "p10": one.low, "p90": one.high},
            "rent_usd_per_s": one.rent,
            "usd_to_train": one.bill,
            "fits": one.prediction.fits,
            "note": one.change.note,
            "copies": {"s": waited(one.copies), "usd": one.copying},
        }
        for one in found
    ]
