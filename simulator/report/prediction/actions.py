"""Recommended actions as text and as JSON: changes with their gain, price and settings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from simulator.report.document import Columns, record
from simulator.report.numbers import bracketed, interval, joined, quantity, significant
from simulator.report.prediction.service import kept_share
from simulator.results.prediction import Prediction
from simulator.results.serving import ServicePrediction
from simulator.schema.goal import Plain
from simulator.studies.actions import (
    MIN_GAIN,
    SURE_FIT,
    Action,
    ServiceAction,
    bills,
    carried_rate,
    is_too_large,
    price_of_answers,
)
from simulator.studies.data_migration import waited
from simulator.units import BYTE, SECOND, USD, USD_PER_SECOND, show

NOTHING_HELPS: Final = f"No single change we tested saves more than {MIN_GAIN:.0%}."
NOTHING_FITS: Final = (
    "No tested change makes it fit, alone or combined; plan recommend searches for machines on "
    "which it does."
)
MIN_COPY: Final = 0.01
"""Share of the run's time or cost from which copying the data is mentioned."""
LAYOUT: Final = "data.layout"
SAME_TIME: Final = 0.005
"""Relative change of a run time below which it counts as the same."""


def action_texts(
    found: Sequence[Action] | Sequence[ServiceAction], base: Prediction | ServicePrediction
) -> list[str]:
    """Return one text per action, best first; if there are none, a sentence that says so."""
    if isinstance(base, Prediction):
        nothing = NOTHING_FITS if is_too_large(base) else NOTHING_HELPS
    else:
        nothing = CHEAPEST if base.keeps_limits else BEST_KEPT
    return [action_text(action, base) for action in found] or [nothing]


def action_text(action: Action | ServiceAction, base: Prediction | ServicePrediction) -> str:
    """Describe an action: change, gain, price, and the keys to set.

    Raises
    ------
    TypeError
        If one of action and prediction is of a job and the other of a service.
    """
    if isinstance(action, Action) and isinstance(base, Prediction):
        parts = [
            _gain(action, base),
            _price(action, base),
            action.change.note,
            _copied(action),
            *_space(action),
        ]
        settings = action.settings
    elif isinstance(action, ServiceAction) and isinstance(base, ServicePrediction):
        parts = [_served(action.prediction), _service_price(action, base), action.change.note]
        settings = action.change.settings
    else:
        msg = "an action and a prediction are both of a job or both of a service"
        raise TypeError(msg)
    said = "; ".join(part for part in parts if part)
    return f"{action.change.name}: {said}. Set {lines(settings)}"


def _copied(action: Action) -> str:
    """Describe time and cost of copying the data first; empty if negligible."""
    waits, costs = waited(action.copies), action.copying
    if waits < MIN_COPY * action.time and costs < MIN_COPY * (action.bill or math.inf):
        return ""
    size = show(sum(copy.size for copy in action.copies), BYTE, 2)
    took = f"{show(waits, SECOND, 2)} and " if waits else ""
    rewritten = all(copy.source == copy.target for copy in action.copies)
    what = "rewriting" if rewritten and LAYOUT in action.settings else "moving"
    return f"includes at least {took}{quantity(costs, USD, 2)} for {what} the data ({size})"


def _space(action: Action) -> Iterator[str]:
    """Yield the monthly cost of the copied data after the run."""
    for copy in action.copies:
        if copy.per_month:
            yield f"storage costs {quantity(copy.per_month, USD, 2)} per month"


def lines(settings: Mapping[str, Plain]) -> str:
    """Format settings as in a scenario file.

    Examples
    --------
    >>> lines({"input.workers": 8, "data.access": "sequential"})
    'input.workers = 8, data.access = "sequential"'
    """
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())


def _gain(action: Action, base: Prediction) -> str:
    takes, ends = f"run time {quantity(action.time, SECOND, 2)}", _ends(action.low, action.high)
    if action.fits:
        sure = action.fitting >= SURE_FIT
        takes = f"{'fits' if sure else f'would fit with {action.fitting:.0%} probability'}; {takes}"
    if is_too_large(base):
        return takes
    between = f" ({ends})" if ends else ""
    if abs(action.shorter) < SAME_TIME:
        side = "" if " more" in ends or not ends else " less" if action.high > 0.0 else " more"
        return f"{takes}, no faster{f' ({ends}{side})' if ends else ''}"
    return (
        f"{takes}, {abs(action.shorter):.0%} {'less' if action.shorter > 0.0 else 'more'}{between}"
    )


def _ends(low: float, high: float) -> str:
    """Format an interval of shares saved; empty if both ends read the same.

    Examples
    --------
    >>> _ends(0.08, 0.37), _ends(-0.37, -0.08), _ends(-0.08, 0.37), _ends(0.08, 0.0801)
    ('8-37%', '8-37%', '8% more to 37% less', '')
    """
    first, last = (round(100.0 * end) for end in (low, high))
    if first == last:
        return ""
    if first < 0 < last:
        return f"{-first}% more to {last}% less"
    least, most = sorted((abs(first), abs(last)))
    return f"{least}-{most}%"


def _price(action: Action, base: Prediction) -> str:
    """Describe the hourly cost of a change, and the total cost of the run."""
    before, after = bills(base, action)
    if before is None or after is None:
        return "no added price" if not action.rent else "price unknown"
    then, now = quantity(after, USD, 2), quantity(before, USD, 2)
    total = f"same total: {then}" if then == now else f"total {then} instead of {now}"
    return f"{hourly(action.rent)}, {total}"


def hourly(rent: float | None) -> str:
    """Format a change of the hourly cost; `rent` is in $/s."""
    if not rent:
        return "no added price"
    return f"{quantity(abs(rent), USD_PER_SECOND, 3)} {'more' if rent > 0.0 else 'less'}"


def action_objects(found: Sequence[Action] | Sequence[ServiceAction]) -> list[dict[str, Any]]:
    """Return the actions as JSON-serializable dicts, in SI units; shares from 0 to 1."""
    return [
        record(_ACTION, action) if isinstance(action, Action) else record(_SERVICE_ACTION, action)
        for action in found
    ]


_ACTION: Final[Columns[Action]] = {
    "what": lambda action: action.change.name,
    "kind": lambda action: action.change.kind,
    "settings": lambda action: dict(action.settings),
    "total_time_s": lambda action: float(action.time),
    "shorter": lambda action: {
        "mean": float(action.shorter),
        "p10": action.low,
        "p90": action.high,
    },
    "rent_usd_per_s": lambda action: action.rent,
    "usd_to_train": lambda action: action.bill,
    "fits": lambda action: action.prediction.fits,
    "note": lambda action: action.change.note,
    "copies": lambda action: {"s": waited(action.copies), "usd": action.copying},
}
_SERVICE_ACTION: Final[Columns[ServiceAction]] = {
    "what": lambda action: action.change.name,
    "kind": lambda action: action.change.kind,
    "settings": lambda action: dict(action.change.settings),
    "keeps_limits": lambda action: action.prediction.keeps_limits,
    "attainment": lambda action: (
        action.prediction.answered and action.prediction.answered.attainment
    ),
    "carried_per_s": lambda action: carried_rate(action.prediction),
    "usd": lambda action: price_of_answers(action.prediction),
    "rent_usd_per_s": lambda action: action.rent,
    "note": lambda action: action.change.note,
}


CHEAPEST: Final = f"No tested setting cuts cost by more than {MIN_GAIN:.0%} within the SLO."
BEST_KEPT: Final = (
    "No tested setting brings more requests within the SLO; plan recommend searches all machines."
)


def _served(after: ServicePrediction) -> str:
    """Describe the share of requests within the SLO after a change, with its 80% interval."""
    answered, wanted = after.answered, after.service.slo.share
    if answered is None:
        ends = after.interval.get("saturation.requests_per_s")
        between = ""
        if ends is not None and ends["p10"] is not None:
            between = bracketed(interval(ends["p10"], ends["p90"], None, 2))
        return f"serves {significant(carried_rate(after), 2)} requests/s{between}"
    if not after.service.slo.limits:
        return "keeps up"
    kept = kept_share(answered.attainment, wanted)
    ends = after.interval.get("slo.attainment")
    if ends is None:
        return f"{kept} within the SLO"
    low, high = (
        kept_share(end, wanted) for end in sorted((ends["p10"] or 0.0, ends["p90"] or 0.0))
    )
    return f"{kept} within the SLO{bracketed(joined(low, high))}"


def _service_price(action: ServiceAction, base: ServicePrediction) -> str:
    before, now = price_of_answers(base), price_of_answers(action.prediction)
    if action.rent is None or now is None:
        return "price unknown"
    of = "per 1,000 requests" if base.service.one_pass is not None else "per 1M output tokens"
    instead = "" if before is None else f" instead of {quantity(before, USD, 2)}"
    added = f"{hourly(action.rent)}, " if action.rent else ""
    return f"{added}{quantity(now, USD, 2)} {of}{instead}"
