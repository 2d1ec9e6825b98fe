"""Formatting of numbers, with as many digits as their interval justifies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final

from simulator.report.labels import SERVICE_FIGURES, is_share
from simulator.report.text import count, printable
from simulator.results.metrics import (
    TOKEN,
    TOKEN_PER_SECOND,
    USD_PER_HOUR,
    Value,
    is_utilization,
    number_at,
    select,
)
from simulator.results.prediction import Prediction
from simulator.units import (
    HOUR,
    MILLION,
    PER_SECOND,
    THOUSAND,
    USD,
    USD_PER_SECOND,
    PerSecond,
    Unit,
    Usd,
    scale,
    show,
)

WIDE: Final = 1.3
"""Ratio of the ends of an 80% interval from which two digits suffice."""
_COUNTED: Final = {PER_SECOND: "samples/s", TOKEN: "tokens", TOKEN_PER_SECOND: "tokens/s"}

INTERVAL: Final = "80% interval"
"""Name of the intervals in parentheses, stated with the first one in a report."""
UNBOUNDED: Final = "unbounded"
_SUREST: Final = 0.99
HALF_PERCENT: Final = 0.005
GUESSES: Final = "rests on unverified figures: "
"""Start of the warning that lists unverified assumptions."""


def significant(number: float, digits: int) -> str:
    """Format a number with `digits` significant digits, without exponent.

    Examples
    --------
    >>> significant(7574.2, 2), significant(0.0312, 2), significant(12.04, 3), significant(176, 2)
    ('7,600', '0.031', '12', '180')
    """
    if number == 0.0 or not math.isfinite(number):
        return f"{number:g}"
    places = digits - 1 - math.floor(math.log10(abs(number)))
    near = round(number, places)
    text = f"{near:,.{max(0, places)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, unit: Unit | None, digits: int) -> str:
    """Format a quantity with `digits` significant digits and its unit; ``/s`` means samples/s.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> quantity(0.2704, SECOND, 2), quantity(15278.4, SECOND, 2), quantity(7574.2, PER_SECOND, 2)
    ('270 ms', '4.2 h', '7,600 samples/s')
    >>> quantity(119.8, SECOND, 2)
    '2 min'
    """
    if unit is None or unit in _COUNTED:
        symbol = "" if unit is None else f" {_COUNTED[unit]}"
        return f"{significant(value, digits)}{symbol}"
    if not math.isfinite(value):
        return show(value, unit)
    # Rounded before the unit is chosen: 119.8 s to two digits are 2 min and not 120 s.
    factor, _ = scale(value, unit)
    value = float(f"{value / factor:.{digits}g}") * factor
    number, _, symbol = show(value, unit, 6).partition(" ")
    money = number.startswith("$")
    number, slash, per = number.removeprefix("$").partition("/")
    near = significant(float(number.replace(",", "")), digits)
    if money and re.fullmatch(r"[\d,]+\.\d", near):
        near += "0"
    return f"{'$' if money else ''}{near}{slash}{per}" + (f" {symbol}" if symbol else "")


def digits_of(prediction: Prediction, name: str) -> int:
    """Return the number of significant digits of a metric: 2 if its interval is wide, else 3."""
    ends = prediction.interval.get(name)
    return 3 if ends is None else digits_between(ends["p10"], ends["p90"])


def digits_between(low: float, high: float) -> int:
    """Return the number of significant digits of a value with this 80% interval."""
    return 2 if 0.0 < WIDE * low < high else 3


def rate_known(prediction: Prediction, rate: PerSecond | None = None) -> str:
    """Format the throughput, or another `rate`, with the digits that its interval justifies."""
    digits = digits_of(prediction, "throughput_samples_per_s")
    return significant(prediction.timing.throughput if rate is None else rate, digits)


def share_known(share: float) -> str:
    """Format a share of time in whole percent.

    Examples
    --------
    >>> share_known(0.482), share_known(0.003), share_known(0.0)
    ('48%', 'under 1%', '0%')
    """
    return "under 1%" if 0.0 < share < HALF_PERCENT else f"{share:.0%}"


def known(prediction: Prediction, name: str, *, named: bool = False) -> str:
    """Format a metric with its 80% interval in parentheses; empty if it has no value.

    Parameters
    ----------
    prediction : Prediction
        The prediction.
    name : str
        Dotted name of the metric.
    named : bool
        Name the interval ("80% interval"), as for the first one in a report.
    """
    value, unit = number_at(prediction, name), select(name)[0].unit
    if value is None:
        return ""
    text = quantity(value, unit, digits_of(prediction, name))
    ends = prediction.interval.get(name)
    between = "" if ends is None else interval(ends["p10"], ends["p90"], unit)
    if unit in _COUNTED:
        between = between.removesuffix(f" {_COUNTED[unit]}")
    return f"{text}{bracketed(between, named=named)}"


def bracketed(between: str, *, named: bool = False) -> str:
    """Return an interval in parentheses after a blank; an empty string if it is empty."""
    name = f"{INTERVAL} " if named else ""
    return f" ({name}{between})" if between else ""


def interval(low: float, high: float | None, unit: Unit | None, digits: int | None = None) -> str:
    """Format an interval with its unit once; empty if both ends read the same.

    Parameters
    ----------
    low, high : float
        Ends in SI units; None for an unbounded end.
    unit : Unit, optional
        Unit of both ends.
    digits : int, optional
        Significant digits; by default as many as the interval justifies.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> interval(0.23, 0.38, SECOND), interval(0.9, 1.2, SECOND), interval(79.0, 130.0, USD)
    ('230-380 ms', '900 ms to 1.2 s', '$79-$130')
    """
    shown = digits or (2 if high is None else digits_between(low, high))
    first = quantity(low, unit, shown)
    return joined(first, UNBOUNDED if high is None else quantity(high, unit, shown))


def joined(low: str, high: str) -> str:
    """Join two formatted quantities as a range; empty if they are the same."""
    if low == high:
        return ""
    (start, _, own), (_, _, other) = low.partition(" "), high.partition(" ")
    if high == UNBOUNDED or own != other or low.startswith("-"):
        return f"{low} to {high}"
    return f"{start}-{high}"


def chance(probability: float) -> str:
    """Format a probability as a percentage, between 1% and 99%.

    Examples
    --------
    >>> chance(0.934), chance(0.9996)
    ('93%', 'over 99%')
    """
    if probability > _SUREST:
        return f"over {_SUREST:.0%}"
    return f"under {1.0 - _SUREST:.0%}" if probability < 1.0 - _SUREST else f"{probability:.0%}"


def rough_usd(money: Usd) -> str:
    """Format an amount of money to three digits.

    Examples
    --------
    >>> rough_usd(4_697_549.0)
    '$4,700,000'
    """
    return "unknown" if math.isinf(money) else show(float(f"{money:.3g}"), USD, 3)


WIDE_AXIS: Final = 30.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


_UNPREFIXED: Final = (TOKEN_PER_SECOND,)
"""Units without prefixes."""
_COUNTS: Final = ((MILLION, " [millions]"), (THOUSAND, " [thousands]"), (1.0, ""))


def is_wide(values: Iterable[float]) -> bool:
    """Return True if values are shown on a logarithmic axis."""
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and min(known) > 0.0 and max(known) > WIDE_AXIS * min(known)


def scaled(values: Iterable[float], name: str, unit: Unit | None) -> tuple[float, str]:
    """Return the factor of a readable unit for the values, and an axis label with this unit.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> scaled([0.002, 0.004], "step", SECOND)
    (0.001, 'step [ms]')
    >>> scaled([4e4, 5e6], "tokens a second", TOKEN_PER_SECOND)
    (1000000.0, 'tokens a second [millions]')
    """
    if unit is None:
        return 1.0, printable(name)
    if unit is PER_SECOND:
        return 1.0, f"{printable(name)} [/s]"
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if unit in _UNPREFIXED:
        factor, many = next((f, m) for f, m in _COUNTS if largest >= f or f == 1.0)
        return factor, f"{printable(name)}{many}"
    factor, symbol = scale(largest, unit)
    return factor, f"{printable(name)} [{symbol}]"


def figure(value: Value, unit: Unit | None) -> str:
    """Format the value of a metric with its unit; ``/s`` means samples/s.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> figure(0.192, SECOND), figure(42667.0, PER_SECOND), figure(None, SECOND)
    ('192 ms', '42,667 samples/s', 'not available')
    """
    if value is None:
        return "not available"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(k)} {figure(v, unit)}" for k, v in value.items() if v)
    if unit in {TOKEN, TOKEN_PER_SECOND}:
        return f"{count(value)} {unit.symbol}"
    if unit is None:
        return count(value) if abs(value) >= 1.0 else f"{value:.4g}"
    if unit == USD_PER_HOUR:
        value, unit = value / HOUR, USD_PER_SECOND
    return f"{count(value)} samples/s" if unit is PER_SECOND else show(value, unit)


def metric_figure(name: str, value: Value) -> str:
    """Format the value of the metric `name`: shares as percentages, others with their unit.

    Examples
    --------
    >>> metric_figure("mfu", 0.3556), metric_figure("step_time_s.mean", 0.192)
    ('36%', '192 ms')
    """
    if is_share(name) and isinstance(value, float):
        return share_known(value)
    return figure(value, select(name)[0].unit)


def service_figure(name: str, value: float | None) -> str:
    """Format a metric of a service to three digits; empty if it has no value.

    Examples
    --------
    >>> service_figure("first_token_s.p99", 0.0234), service_figure("slo.attainment", 0.981)
    ('23.4 ms', '98%')
    """
    if value is None:
        return ""
    if name == "slo.attainment" or is_utilization(name):
        return f"over {_SUREST:.0%}" if 1.0 - HALF_PERCENT <= value < 1.0 else share_known(value)
    shown = SERVICE_FIGURES.get(name)
    return quantity(value, None if shown is None else shown.unit, 3)
