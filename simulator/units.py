"""Units: SI floats inside, human text at the boundary; the only module that knows a prefix.

A quantity is a plain float in SI units whose annotation carries its `Unit`. Files and options
write quantities as text ("400 Gb/s", "114 kB", "2.1 ms"); `parse` turns text into the float and
refuses bare numbers and other dimensions, `show` turns the float back into text.

GB is 10**9 bytes, GiB is 2**30 bytes, Gb is 10**9 bits (an eighth of a GB).
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from simulator.errors import UnitError
from simulator.records import dataclass

Real: TypeAlias = float | NDArray[np.float64]
"""A float, or one float for each candidate of a batch: what equations take and return."""


@overload
def at_least(least: int, value: int) -> int: ...
@overload
def at_least(least: float, value: float) -> float: ...
@overload
def at_least(least: Real, value: Real) -> Real: ...
def at_least(least: Any, value: Any) -> Any:
    """Return the larger of two numbers, elementwise for arrays; plain numbers stay plain."""
    if isinstance(least, np.ndarray) or isinstance(value, np.ndarray):
        return np.maximum(least, value)
    return max(least, value)


@overload
def at_most(most: int, value: int) -> int: ...
@overload
def at_most(most: float, value: float) -> float: ...
@overload
def at_most(most: Real, value: Real) -> Real: ...
def at_most(most: Any, value: Any) -> Any:
    """Return the smaller of two numbers, elementwise for arrays; plain numbers stay plain."""
    if isinstance(most, np.ndarray) or isinstance(value, np.ndarray):
        return np.minimum(most, value)
    return min(most, value)


def where(condition: Any, one: Real, other: Real) -> Real:  # noqa: ANN401 - a truth, or an array
    """Return `one` where the condition holds, else `other`, elementwise for arrays.

    For a plain condition the chosen value is returned unchanged: the array without dimensions that
    `numpy.where` returns is tens of times slower to calculate with than a float.
    """
    if condition is True:
        return one
    if isinstance(condition, np.ndarray):
        return np.where(condition, one, other)
    return one if condition else other


def anywhere(condition: Any) -> bool:  # noqa: ANN401 - a number or a truth, or an array
    """Return whether a value is true, or not zero, for any candidate."""
    return bool(condition.any() if isinstance(condition, np.ndarray) else condition)


def plain(value: Any) -> Real:  # noqa: ANN401 - what a function of numpy made of a number
    """Return a numpy scalar as a float, which calculates twice as fast; return arrays unchanged."""
    return value if isinstance(value, np.ndarray) else float(value)


def rounded_up(value: Real) -> Real:
    """Return the smallest integer that is not below a number, elementwise for arrays."""
    return plain(np.ceil(value))


def in_common(count: Any) -> int:  # noqa: ANN401 - a number, or an array of it
    """Return the integer that all candidates of a batch have in common."""
    return int(count.flat[0]) if isinstance(count, np.ndarray) else int(count)


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a float: `symbol` as printed, `name` for messages."""

    symbol: str
    name: str


BYTE: Final = Unit("B", "bytes")
BYTE_PER_SECOND: Final = Unit("B/s", "bytes per second")
SECOND: Final = Unit("s", "time")
FLOP: Final = Unit("FLOP", "floating-point operations")
FLOP_PER_SECOND: Final = Unit("FLOP/s", "floating-point operations per second")
PER_SECOND: Final = Unit("/s", "events per second")
WATT: Final = Unit("W", "power")
HERTZ: Final = Unit("Hz", "frequency")
USD: Final = Unit("$", "dollars")
USD_PER_SECOND: Final = Unit("$/s", "dollars per hour")
USD_PER_BYTE_SECOND: Final = Unit("$/B/s", "dollars per byte and month")
USD_PER_BYTE: Final = Unit("$/B", "dollars per byte")
USD_PER_REQUEST: Final = Unit("$/request", "dollars per request")
USD_PER_OPERATION: Final = Unit("$/operation", "dollars per operation a second and month")
USD_PER_RATED_BYTE: Final = Unit("$/(B/s)/s", "dollars per byte a second and month")
JOULE: Final = Unit("J", "energy")
KILOWATT_HOURS: Final = Unit("kWh", "electricity")
KILOGRAM: Final = Unit("kg", "mass")
USD_PER_JOULE: Final = Unit("$/J", "dollars per kilowatt-hour")
KILOGRAM_PER_JOULE: Final = Unit("kg/J", "emissions per kilowatt-hour")

Bytes = Annotated[float, BYTE]
BytesPerSecond = Annotated[float, BYTE_PER_SECOND]
Seconds = Annotated[float, SECOND]
Flops = Annotated[float, FLOP]
FlopsPerSecond = Annotated[float, FLOP_PER_SECOND]
PerSecond = Annotated[float, PER_SECOND]
Watts = Annotated[float, WATT]
Hertz = Annotated[float, HERTZ]
Usd = Annotated[float, USD]
UsdPerSecond = Annotated[float, USD_PER_SECOND]
UsdPerByteSecond = Annotated[float, USD_PER_BYTE_SECOND]
UsdPerByte = Annotated[float, USD_PER_BYTE]
UsdPerRequest = Annotated[float, USD_PER_REQUEST]
UsdPerOperation = Annotated[float, USD_PER_OPERATION]
"""Price of a rate of operations that is held ready: by operation a second, and by second."""
UsdPerRatedByte = Annotated[float, USD_PER_RATED_BYTE]
"""Price of a rate of bytes that is held ready: by byte a second, and by second."""
Joules = Annotated[float, JOULE]
UsdPerJoule = Annotated[float, USD_PER_JOULE]
Kilograms = Annotated[float, KILOGRAM]
KilogramsPerJoule = Annotated[float, KILOGRAM_PER_JOULE]

_SI: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_WRITTEN: Final = _SI | {"K": 1e3}
"""Prefixes as people write them: many write KB, though the k of a thousand is a small letter."""
_BINARY: Final = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_SMALL: Final = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "": 1.0}
MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0
WEEK: Final = 7.0 * DAY
YEAR: Final = 365.0 * DAY
MONTH: Final = YEAR / 12.0
"""The month of bills: a twelfth of a year, 730 h. Infracost has a gateway of AWS of $0.045/h as
$32.85 a month (2024-07), and Cyclenerd's calculator Google's months as 730 h (2025-03)."""
BITS_PER_BYTE: Final = 8.0
PERCENT: Final = 100.0
THOUSAND: Final = 1e3
"""Inference is priced by the thousand samples."""
MILLION: Final = THOUSAND**2
"""Tokens are priced by the million."""
KILOWATT_HOUR: Final = 1e3 * HOUR
"""Electricity is metered and paid by the kilowatt-hour [J]."""
TRILLION: Final = 1e12
"""Large language models are trained on trillions of tokens."""


def _byte_symbols() -> dict[str, float]:
    prefixes = _WRITTEN | _BINARY
    in_bytes = {f"{prefix}B": factor for prefix, factor in prefixes.items()}
    in_bits = {
        f"{prefix}{bit}": factor / BITS_PER_BYTE
        for prefix, factor in prefixes.items()
        for bit in ("b", "bit")
    }
    return in_bytes | in_bits


def _byte_rates() -> dict[str, float]:
    sizes = _byte_symbols()
    rates = {f"{symbol}/s": factor for symbol, factor in sizes.items()}
    spoken = {f"{p}bps": factor / BITS_PER_BYTE for p, factor in _WRITTEN.items() if p}
    return rates | spoken


def _operations(suffix: str) -> dict[str, float]:
    names = ("FLOP", "FLOPs") if not suffix else ("FLOP",)
    return {f"{p}{name}{suffix}": f for p, f in _SI.items() for name in names}


_PERIODS: Final[dict[str, float]] = {
    "s": 1.0,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
    "week": WEEK,
    "month": MONTH,
    "year": YEAR,
}
_SPOKEN: Final[dict[str, float]] = {
    f"{word}{plural}": length
    for word, length in {
        "sec": 1.0,
        "second": 1.0,
        "minute": MINUTE,
        "hr": HOUR,
        "hour": HOUR,
        "day": DAY,
        "week": WEEK,
        "month": MONTH,
        "year": YEAR,
    }.items()
    for plural in ("", "s")
}
"""Lengths of time as people say them."""
_THOUSANDS: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
"""What follows a number of things or dollars, as people write them."""
_MANY: Final = _THOUSANDS | {"thousand": 1e3, "million": 1e6, "billion": 1e9}

_SYMBOLS: Final[dict[Unit, dict[str, float]]] = {
    BYTE: {f"{prefix}B": factor for prefix, factor in (_WRITTEN | _BINARY).items()},
    BYTE_PER_SECOND: _byte_rates(),
    SECOND: {f"{p}s": f for p, f in _SMALL.items()} | _PERIODS | _SPOKEN,
    FLOP: _operations(""),
    FLOP_PER_SECOND: _operations("/s") | {f"{p}FLOPS": f for p, f in _SI.items() if p},
    PER_SECOND: {f"{p}/s": f for p, f in _SI.items()}
    | {f"{p}IOPS": f for p, f in _SI.items()}
    | {f"{p} {noun}/s": f for p, f in _SI.items() for noun in ("requests", "samples")}
    | {f"{noun}/s": 1.0 for noun in ("requests", "samples")}
    | {f"/{period}": 1.0 / length for period, length in (_SPOKEN | _PERIODS).items()},
    WATT: {"mW": 1e-3, "W": 1.0, "kW": 1e3, "MW": 1e6},
    HERTZ: {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    USD: {f"${letter}": factor for letter, factor in _THOUSANDS.items()}
    | {f"{letter}{money}": f for money in ("$", "USD") for letter, f in _THOUSANDS.items()},
    USD_PER_SECOND: {
        f"{money}/{period}": 1.0 / length
        for money in ("$", "USD")
        for period, length in (_SPOKEN | _PERIODS).items()
    },
    USD_PER_BYTE_SECOND: {
        f"$/{prefix}B/month": 1.0 / (factor * MONTH) for prefix, factor in (_SI | _BINARY).items()
    },
    USD_PER_BYTE: {f"$/{prefix}B": 1.0 / factor for prefix, factor in (_SI | _BINARY).items()},
    USD_PER_REQUEST: {"$/request": 1.0}
    | {
        f"$/{said} requests": 1.0 / number
        for number in (1e3, 1e4, 1e5, 1e6)
        for said in (f"{number:.0f}", f"{number:,.0f}")
    }
    | {"$/million requests": 1e-6},
    USD_PER_OPERATION: {"$/IOPS/month": 1.0 / MONTH},
    USD_PER_RATED_BYTE: {
        f"$/({prefix}B/s)/month": 1.0 / (factor * MONTH)
        for prefix, factor in (_SI | _BINARY).items()
    },
    JOULE: {f"{p}J": f for p, f in _SI.items()},
    KILOWATT_HOURS: {f"{p}Wh": f / THOUSAND for p, f in _SI.items()},
    KILOGRAM: {"g": 1e-3, "kg": 1.0, "t": 1e3},
    USD_PER_JOULE: {
        f"{money}/{prefix}Wh": 1.0 / (_SI[prefix] * HOUR)
        for money in ("$", "USD")
        for prefix in ("k", "M")
    },
    KILOGRAM_PER_JOULE: {
        f"{mass}{gas}/{prefix}Wh": kilograms / (_SI[prefix] * HOUR)
        for mass, kilograms in (("g", 1e-3), ("kg", 1.0), ("t", 1e3))
        for gas in ("", "CO2", "CO2e", "CO2eq")
        for prefix in ("k", "M")
    },
}
_NUMBER: Final = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_GROUPED: Final = r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?"
"""With commas between thousands."""
_QUANTITY: Final = re.compile(rf" *(\$)? *({_GROUPED}|{_NUMBER}) *(.*?) *", re.ASCII)
_COUNT: Final = re.compile(
    rf" *({_GROUPED}|{_NUMBER}) *([kKMB]|thousand|million|billion)? *", re.ASCII
)
_EXAMPLES: Final = {
    BYTE: "114 kB, 80 GiB",
    BYTE_PER_SECOND: "25 GB/s, 400 Gb/s",
    SECOND: "2.1 ms, 3 d",
    FLOP: "4.1 GFLOP",
    FLOP_PER_SECOND: "312 TFLOP/s",
    PER_SECOND: "10 /s, 3000 IOPS",
    WATT: "400 W, 10.2 kW",
    HERTZ: "3.0 GHz",
    USD: "$250",
    USD_PER_SECOND: "$32.77/h",
    USD_PER_BYTE_SECOND: "$0.023/GB/month",
    USD_PER_BYTE: "$0.02/GB",
    USD_PER_REQUEST: "$0.005/1000 requests",
    USD_PER_OPERATION: "$0.005/IOPS/month",
    USD_PER_RATED_BYTE: "$0.04/(MiB/s)/month",
    JOULE: "36 MJ",
    KILOWATT_HOURS: "10 kWh",
    KILOGRAM: "400 kg, 2 t",
    USD_PER_JOULE: "$0.08/kWh",
    KILOGRAM_PER_JOULE: "400 g/kWh",
}


def parse(text: str, unit: Unit) -> float:
    """Parse a quantity such as ``"25 GB/s"`` as a float in the SI unit `unit`.

    Parameters
    ----------
    text : str
        Number and symbol; money may lead with ``$``. ``GB`` is not ``Gb``; a symbol all in small or
        all in large letters is read if it can mean one thing only, such as ``gb`` of a file.
    unit : Unit
        The unit the quantity has to be convertible to.

    Returns
    -------
    float
        The quantity in `unit`; finite.

    Raises
    ------
    UnitError
        If there is no number, no unit, an unknown symbol, a symbol of another dimension,
        or a value that is not finite.

    Examples
    --------
    >>> parse("400 Gb/s", BYTE_PER_SECOND)
    50000000000.0
    >>> parse("80 GiB", BYTE)
    85899345920.0
    >>> round(parse("$36/h", USD_PER_SECOND), 6)
    0.01
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        msg = f"is not a quantity; write a number and a unit, such as {_EXAMPLES[unit]}"
        raise UnitError(msg)
    dollar, number, rest = match.groups()
    symbol = f"{dollar or ''}{rest}"
    value = float(number.replace(",", "")) * _factor(symbol, unit)
    if not math.isfinite(value):
        msg = "is too large to be meant"
        raise UnitError(msg)
    return value


def parse_count(text: str) -> float | None:
    """Parse a count with commas or a suffix for thousands, millions or billions.

    None if it is not a number.

    Examples
    --------
    >>> parse_count("1.28M"), parse_count("1,281,167"), parse_count("10k"), parse_count("many")
    (1280000.0, 1281167.0, 10000.0, None)
    >>> parse_count("1.2 million")
    1200000.0
    """
    match = _COUNT.fullmatch(text)
    if match is None:
        return None
    number, many = match.groups()
    # Rounded: 1.281167 million is a whole number, though not in binary.
    return round(float(number.replace(",", "")) * _MANY[many or ""], 6)


def show_count(number: float) -> str:
    """Format a count for display, with suffixes for millions and billions.

    Examples
    --------
    >>> show_count(86_570_000.0), show_count(8.03e9), show_count(128.0), show_count(45_000.0)
    ('86.6M', '8.03B', '128', '45,000')
    """
    for size, letter in ((TRILLION, "T"), (1e9, "B"), (1e6, "M")):
        if abs(number) >= size:
            return f"{_plain(number / size, 3)}{letter}"
    return f"{number:,.0f}" if abs(number) >= THOUSAND else f"{number:.4g}"


def _factor(symbol: str, unit: Unit) -> float:
    known = _SYMBOLS[unit].get(symbol)
    if known is not None:
        return known
    alike = {s: f for s, f in _SYMBOLS[unit].items() if s.lower() == symbol.lower()}
    if symbol in {symbol.lower(), symbol.upper()} and len(set(alike.values())) == 1:
        return next(iter(alike.values()))
    if not symbol:
        msg = f"has no unit; write {unit.name} like {_EXAMPLES[unit]}"
        raise UnitError(msg)
    other = next((u for u, symbols in _SYMBOLS.items() if symbol in symbols), None)
    if other is not None:
        msg = f"measures {other.name} where {unit.name} is needed, such as {_EXAMPLES[unit]}"
        raise UnitError(msg)
    meant = f"; did you mean {' or '.join(alike)}? (case matters)" if alike else ""
    msg = f"has the unknown unit '{symbol}'; write {unit.name} like {_EXAMPLES[unit]}{meant}"
    raise UnitError(msg)


_SCALES: Final[dict[Unit, tuple[tuple[float, str], ...]]] = {
    SECOND: (
        (DAY, "d"),
        (HOUR, "h"),
        (MINUTE, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
        (1e-6, "µs"),
        (1e-9, "ns"),
    ),
    USD_PER_SECOND: ((1.0 / HOUR, "$/h"),),
    USD: ((1.0, "$"),),
    WATT: ((1e6, "MW"), (1e3, "kW"), (1.0, "W")),
    USD_PER_BYTE_SECOND: ((1.0 / (1e9 * MONTH), "$/GB/month"),),
    USD_PER_BYTE: ((1e-9, "$/GB"),),
    USD_PER_REQUEST: ((1e-3, "$/1000 requests"),),
    USD_PER_OPERATION: ((1.0 / MONTH, "$/IOPS/month"),),
    USD_PER_RATED_BYTE: ((1.0 / (2.0**20 * MONTH), "$/(MiB/s)/month"),),
    KILOWATT_HOURS: ((1e3, "MWh"), (1.0, "kWh"), (1e-3, "Wh")),
    KILOGRAM: ((1e3, "t"), (1.0, "kg"), (1e-3, "g")),
    USD_PER_JOULE: ((1.0 / KILOWATT_HOUR, "$/kWh"),),
    KILOGRAM_PER_JOULE: ((1e-3 / KILOWATT_HOUR, "g/kWh"),),
}
_LONG_TIME: Final = {"d": 2.0, "h": 2.0, "min": 2.0}


def parse_share(text: str) -> float:
    """Parse a share of a whole: ``1%``, or the bare number 0.01.

    Raises
    ------
    UnitError
        If it is neither, or not between 0 and 1.

    Examples
    --------
    >>> parse_share("2.5 %"), parse_share("0.025")
    (0.025, 0.025)
    """
    plain = text.strip()
    number = plain.removesuffix("%").strip()
    if re.fullmatch(_NUMBER, number, re.ASCII) is None:
        msg = "is not a share; write it like 1% or 0.01"
        raise UnitError(msg)
    value = float(number) / (PERCENT if plain.endswith("%") else 1.0)
    if not 0.0 <= value <= 1.0:
        msg = "is not between 0 and 1; write 1% or 0.01 for a hundredth"
        raise UnitError(msg)
    return value


def show(value: float, unit: Unit, digits: int = 4) -> str:
    """Format a quantity with the largest prefix that keeps the number above one.

    Dollars have cents or none: a single decimal gets a zero.

    Parameters
    ----------
    value : float
        The quantity in `unit`.
    unit : Unit
        What it is measured in.
    digits : int
        Significant digits.

    Examples
    --------
    >>> show(5e10, BYTE_PER_SECOND)
    '50 GB/s'
    >>> show(0.0021, SECOND)
    '2.1 ms'
    >>> show(0.01, USD_PER_SECOND), show(12345.0, USD, 5)
    ('$36/h', '$12,345')
    >>> show(12.9, USD), show(1.348, USD)
    ('$12.90', '$1.348')
    """
    if not math.isfinite(value):
        return f"{value} {unit.symbol}"
    factor, symbol = scale(value, unit)
    number = _plain(value / factor, digits)
    if symbol.startswith("$"):
        tens = re.fullmatch(r"-?\d+\.\d", number) is not None and symbol in _CENTS
        return f"${_grouped(number)}{'0' if tens else ''}{symbol[1:]}"
    return f"{number} {symbol}"


_CENTS: Final = frozenset({"$", "$/h"})
"""Amounts that people pay, of which a decimal alone looks cut off."""


def scale(value: float, unit: Unit) -> tuple[float, str]:
    """Return the size and the symbol of the prefixed unit in which `value` is displayed.

    Examples
    --------
    >>> scale(0.0021, SECOND)
    (0.001, 'ms')
    """
    scales = _SCALES.get(unit)
    if scales is None:
        scales = tuple((f, f"{p}{unit.symbol}") for p, f in reversed(_SI.items()))
    size = abs(value)
    if size == 0.0 and unit is SECOND:
        return 1.0, "s"
    for factor, symbol in scales:
        if size >= factor * _LONG_TIME.get(symbol, 1.0) * (1 - 1e-9):
            return factor, symbol
    return scales[-1]


def _grouped(number: str) -> str:
    """Insert thousands separators into a formatted number."""
    whole, point, rest = number.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.isdigit() else number


def _plain(number: float, digits: int) -> str:
    text = f"{number:.{digits}g}"
    if "e" not in text:
        return text
    return f"{number:,.0f}" if 1.0 <= abs(number) < 1e15 else text  # noqa: PLR2004 - printed width
