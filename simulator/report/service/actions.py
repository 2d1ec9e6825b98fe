"""What to do next about a service, in words: each change with its gain and the line to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from simulator.report.numbers import quantity, significant
from simulator.report.prediction.actions import lines
from simulator.report.service.text import kept_share
from simulator.results.serving import ServicePrediction
from simulator.studies.actions import MIN_GAIN, ServiceAction, carried_rate, price_of_answers
from simulator.units import USD, USD_PER_SECOND

CHEAPER: Final = (
    f"Nothing cheap helps: no change that was tried makes its answers cheaper by more than "
    f"{MIN_GAIN:.0%} within its limits."
)
KEPT: Final = (
    "Nothing cheap helps: no change that was tried keeps more requests within the limits. plan "
    "recommend looks among all machines."
)


def service_action_texts(found: Sequence[ServiceAction], base: ServicePrediction) -> list[str]:
    """One text an action, best first; a single one that says so where nothing helps."""
    nothing = CHEAPER if base.keeps_limits else KEPT
    return [_text(one, base) for one in found] or [nothing]


def _text(one: ServiceAction, base: ServicePrediction) -> str:
    note = f"; {one.change.note}" if one.change.note else ""
    gain = f"{_served(one.prediction)}; {_price(one, base)}"
    return f"{one.change.name}: {gain}{note}. Set {lines(one.change.settings)}"


def _served(after: ServicePrediction) -> str:
    """How much of the load is served then, with its 80% interval."""
    told, wanted = after.answered, after.service.slo.share
    if told is None:
        return f"carries {significant(carried_rate(after), 2)} requests/s{_ends(after, _CARRIED)}"
    if not after.service.slo.limits:
        return "keeps up"
    kept = kept_share(told.attainment, wanted)
    ends = after.interval.get("slo.attainment")
    if ends is None:
        return f"{kept} within all limits"
    low, high = (
        kept_share(end, wanted) for end in sorted((ends["p10"] or 0.0, ends["p90"] or 0.0))
    )
    band = "" if low == high else f" ({low} to {high})"
    return f"{kept} within all limits{band}"


_CARRIED: Final = "saturation.requests_per_s"


def _ends(after: ServicePrediction, name: str) -> str:
    ends = after.interval.get(name)
    if ends is None or ends["p10"] is None or ends["p90"] is None:
        return ""
    return f" ({significant(ends['p10'], 2)} to {significant(ends['p90'], 2)})"


def _price(one: ServiceAction, base: ServicePrediction) -> str:
    """What the change costs an hour, and what answers then cost."""
    before, now = price_of_answers(base), price_of_answers(one.prediction)
    if one.rent is None or now is None:
        return "its price is not known"
    rent = "free"
    if one.rent:
        more = "more" if one.rent > 0.0 else "less"
        rent = f"{quantity(abs(one.rent), USD_PER_SECOND, 3)} {more}"
    of = "1,000 requests" if base.service.one_pass is not None else "a million output tokens"
    then = "" if before is None else f" in place of {quantity(before, USD, 2)}"
    return f"{rent}, {quantity(now, USD, 2)} {of}{then}"


def service_action_objects(found: Sequence[ServiceAction]) -> list[dict[str, Any]]:
    """The same as plain values, in SI units; shares from 0 to 1."""
    return [
        {
            "what": one.change.name,
            "kind": one.change.kind.value,
            "settings": dict(one.change.settings),
            "keeps_limits": one.prediction.keeps_limits,
            "attainment": None
            if one.prediction.answered is None
            else one.prediction.answered.attainment,
            "carried_per_s": carried_rate(one.prediction),
            "usd": price_of_answers(one.prediction),
            "rent_usd_per_s": one.rent,
            "note": one.change.note,
        }
        for one in found
    ]
