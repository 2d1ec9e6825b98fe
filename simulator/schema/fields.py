"""Types of the keys of files, which convert text with a unit to a float in SI units.

A table of a file is a frozen dataclass. The annotation of a field defines the values its key may
have; the text under the field documents it. Each quantity has two types: ``TimeField`` must be
above zero, ``TimeOrZeroField`` may be zero. A number without a unit is refused, and so is a value
beyond anything a machine or a job can have.

A figure of a hardware profile states its source and date: its key holds a small table ``{ value =
"80 GB", source = "vendor", date = "2026-08" }``, where `source` is a key of a `sources.toml` or the
reference itself; ``verified = false`` marks a guessed, derived or assumed figure. In the dataclass
of the profile the field is the value, and `sources` has the rest.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, NoReturn, Protocol

from simulator import units
from simulator.errors import UnitError
from simulator.records import dataclass
from simulator.schema.provenance import Source
from simulator.units import Unit

DERIVED: Final = {"derived": True}
"""Metadata of fields that are not keys: they follow from other fields, or from where keys are
stated."""
REQUIRED: Final = {"required": True}
"""Metadata of keys that files must state, though the dataclass has a default."""
DEPENDS: Final = {"depends": True}
"""Metadata of keys whose default depends on other keys. `resolve` sets it if the key is not stated;
the default of the dataclass is used where no other key determines it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table with the sources of the keys that the file states."""

    sources: Mapping[str, Source] = field(default_factory=dict, hash=False, metadata=DERIVED)
    """Sources by key: the file and line, or the option, that states it."""

    def states(self, key: str) -> bool:
        """Return whether a key is stated."""
        return key in self.sources

    def stated(self, **keys: str) -> dict[str, Source]:
        """Return the sources of those keys that are stated.

        `keys` maps names for the result to keys of this section.
        """
        return {name: self.sources[key] for name, key in keys.items() if key in self.sources}


class BadValueError(ValueError):
    """A value that a key cannot have.

    `message` is the rest of a sentence about the key ("is a bare number"), `hint` says what is
    allowed instead.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


_EXAMPLE: Final[dict[Unit, str]] = {
    units.BYTE: "114 kB",
    units.BYTE_PER_SECOND: "25 GB/s",
    units.SECOND: "2.1 ms",
    units.FLOP: "4.1 GFLOP",
    units.FLOP_PER_SECOND: "312 TFLOP/s",
    units.PER_SECOND: "10 /s",
    units.WATT: "400 W",
    units.HERTZ: "3.0 GHz",
    units.USD: "$250",
    units.USD_PER_SECOND: "$32.77/h",
    units.USD_PER_BYTE_SECOND: "$0.023/GB/month",
    units.USD_PER_BYTE: "$0.02/GB",
    units.USD_PER_REQUEST: "$0.005/1000 requests",
    units.USD_PER_OPERATION: "$0.005/IOPS/month",
    units.USD_PER_RATED_BYTE: "$0.04/(MiB/s)/month",
    units.USD_PER_JOULE: "$0.08/kWh",
    units.KILOGRAM_PER_JOULE: "400 g/kWh",
}
_LIKELY: Final[dict[Unit, tuple[str, ...]]] = {
    units.BYTE: ("kB", "GB"),
    units.SECOND: ("ms", "s"),
}
"""Likely units of a number without a unit: for a small and for a large one."""
_MANY: Final = 1000.0
"""From this value on a number without a unit is likely in bytes or seconds."""
# Wide enough for a petabyte-scale store or a picosecond, narrow enough that products and
# quotients of two of them stay finite.
_SMALLEST: Final[dict[Unit, str]] = {
    units.BYTE: "0.001 B",
    units.BYTE_PER_SECOND: "0.001 B/s",
    units.SECOND: "0.001 ns",
    units.FLOP: "0.001 FLOP",
    units.FLOP_PER_SECOND: "1 FLOP/s",
    units.PER_SECOND: "0.000000000001 /s",
}
_LARGEST: Final[dict[Unit, str]] = {
    units.BYTE: "1000 EB",
    units.BYTE_PER_SECOND: "1000 EB/s",
    units.SECOND: "40000 d",
    units.FLOP: "1e12 EFLOP",
    units.FLOP_PER_SECOND: "1e6 EFLOP/s",
    units.PER_SECOND: "1000 P/s",
    units.WATT: "100000 MW",
    units.HERTZ: "1000 GHz",
    units.USD: "$1e12",
    units.USD_PER_SECOND: "$1e9/h",
    units.USD_PER_BYTE_SECOND: "$1e6/GB/month",
    units.USD_PER_BYTE: "$1e6/GB",
    units.USD_PER_REQUEST: "$1000/request",
    units.USD_PER_OPERATION: "$1e6/IOPS/month",
    units.USD_PER_RATED_BYTE: "$1e6/(MiB/s)/month",
    units.USD_PER_JOULE: "$1000/kWh",
    units.KILOGRAM_PER_JOULE: "100000 g/kWh",
}
_MOST: Final = 1e15
_HUNDRED: Final = 100.0
_DECIMAL: Final = re.compile(r"\d{1,6}(?:\.\d{0,6})?", re.ASCII)
_LARGE: Final = re.compile(r"[,kKMB]|thousand|million|billion")
"""Pattern that distinguishes a large number as text from a number in quotes, which is a mistake."""
_PATTERN: Final = r"^\s*\$?\s*[0-9._]+([eE][+-]?[0-9]+)?\s*\S.*$"


def refuse(message: str, hint: str = "") -> NoReturn:
    """Raise a `BadValueError` with a message and a hint."""
    raise BadValueError(message, hint)


def nearest(name: str, valid: Sequence[str]) -> str | None:
    """Return the valid name most similar to `name`; None if none is close."""
    folded = {candidate.lower(): candidate for candidate in valid}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.55)
    return folded[close[0]] if close else None


def slip_of(name: str, valid: Sequence[str]) -> str | None:
    """Return the valid name of which `name` is a misspelling; None if none is that close.

    Examples
    --------
    >>> slip_of("worker", ["workers", "prefetch"]), slip_of("decode", ["workers"])
    ('workers', None)
    """
    close = difflib.get_close_matches(name.lower(), valid, n=1, cutoff=0.8)
    return close[0] if close else None


def nearest_hint(name: str, valid: Sequence[str]) -> str:
    """Return a hint for a misspelt name: the nearest valid name, or a list of the valid ones."""
    close = nearest(name, valid)
    meant = f"did you mean '{close}'?" if close else ""
    few = 12
    if close and len(valid) > few:
        return meant
    allowed = f"allowed: {', '.join(valid)}" if valid else "nothing is allowed here"
    return f"{meant} {allowed}".strip()


class Marker(Protocol):
    """An annotation that parses the values of a key."""

    __slots__ = ()

    def read(self, value: Any) -> Any:  # noqa: ANN401 - each marker has values of its own
        """Return the parsed `value`, or raise a `BadValueError`."""

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""


@dataclass(frozen=True, slots=True)
class Quantity(Marker):
    """Marks a float field as a quantity in `unit`, which may be zero with `zero`.

    `counted` is for rates that people give without a unit, such as the operations of a store:
    ``20k`` and ``20000`` are rates per second.

    Examples
    --------
    ``ram: Annotated[float, Quantity(units.BYTE)]`` takes ``"80 GiB"`` and gives 85899345920.0.
    """

    unit: Unit
    zero: bool = False
    counted: bool = False

    def read(self, value: object) -> float:
        """Return the quantity `value` as a float in `unit`; raises a `BadValueError`."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            refuse("is not a quantity", f"write text such as '{_EXAMPLE[self.unit]}'")
        many = units.parse_count(str(value)) if self.counted else None
        if many is not None:
            self._refuse_senseless(many)
            return many
        if not isinstance(value, str):
            refuse("is a bare number", f"write it with a unit, such as {self._with_units(value)}")
        try:
            number = units.parse(value, self.unit)
        except UnitError as error:
            _refuse_unit(str(error))
        except (OverflowError, ValueError):
            refuse("is too large to be meant")
        self._refuse_senseless(number)
        return number

    def _with_units(self, number: float) -> str:
        """Return a hint with the likely units of a number without a unit."""
        names = _LIKELY.get(self.unit, ())
        if names and number >= _MANY:
            names = (self.unit.symbol,)
        likely = [f"'{number} {name}'" for name in names]
        return " or ".join(likely) or f"'{_EXAMPLE[self.unit]}'"

    def _refuse_senseless(self, number: float) -> None:
        if number < 0.0:
            refuse("is negative", f"{self.unit.name} cannot be negative")
        if number == 0.0 and not self.zero:
            refuse("is zero", f"{self.unit.name} has to be above zero here")
        largest = _LARGEST[self.unit]
        if number > units.parse(largest, self.unit):
            refuse("is too large to be meant", f"at most {largest}")
        smallest = _SMALLEST.get(self.unit)
        if smallest and 0.0 < number < units.parse(smallest, self.unit):
            refuse("is too small to be meant", f"at least {smallest}")

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        return {"type": "string", "pattern": _PATTERN, "examples": [_EXAMPLE[self.unit]]}


def _refuse_unit(text: str) -> NoReturn:
    message, found, hint = text.partition("; ")
    if not found:
        message, _, examples = text.partition(", such as ")
        hint = f"write it like {examples}" if examples else ""
    refuse(message, hint)


@dataclass(frozen=True, slots=True)
class Number(Marker):
    """Marks a plain number: `low` <= number <= `high`, an integer with `whole`.

    An integer may not be written as a float, nor are true and false accepted as 1 and 0. Text is
    accepted where it is a large number such as ``1.28M`` or ``1,281,167``. `above` excludes `low`
    itself.
    """

    low: float = 0.0
    high: float = _MOST
    whole: bool = False
    above: bool = False

    def read(self, value: object) -> float:
        """Return the number `value`; raises a `BadValueError`."""
        value = _spelt(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            kind = "whole number" if self.whole else "number"
            worded = isinstance(value, str) and not value.isdigit()
            like = "such as 45000 or '1.28M'" if worded else "without quotes"
            hint = f"write a {kind} {like}, {self._allowed()}"
            refuse(f"is not a {kind}", hint)
        if self.whole and not isinstance(value, int):
            meant = f"write {value:.0f}" if _whole(value) else "write it without a point"
            refuse("is not a whole number", f"{meant}, {self._allowed()}")
        if isinstance(value, float) and not math.isfinite(value):
            refuse("is not a finite number", self._allowed())
        if value < self.low or value > self.high or (self.above and value <= self.low):
            refuse("is out of range", self._allowed())
        return value

    def _allowed(self) -> str:
        low = f"above {self.low:,g}" if self.above else f"at least {self.low:,g}"
        return low if self.high >= _MOST else f"{low} and at most {self.high:,.0f}"

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        kind = "integer" if self.whole else "number"
        low = "exclusiveMinimum" if self.above else "minimum"
        high = {} if self.high >= _MOST else {"maximum": self.high}
        return {"type": kind, low: self.low, **high}


def _whole(value: float) -> bool:
    """Return True if a float is an integer short enough to be written in full."""
    return value.is_integer() and abs(value) <= _MOST


def _spelt(value: object) -> object:
    """Return the number in a text such as ``1.28M``; any other value unchanged."""
    if not isinstance(value, str) or not _LARGE.search(value):
        return value
    number = units.parse_count(value)
    if number is None or not math.isfinite(number):
        return value
    return int(number) if number.is_integer() else number


@dataclass(frozen=True, slots=True)
class Percent(Marker):
    """Marks a fraction given as text in per cent: ``"10%"`` gives 0.1; at most `high`."""

    high: float = 1.0

    def read(self, value: object) -> float:
        """Return the share `value` as a fraction; raises a `BadValueError`."""
        hint = f"write text such as '10%', at least 0% and at most {self.high:.0%}"
        if not isinstance(value, str):
            refuse("is not a percentage", hint)
        number = value.strip().removesuffix("%").strip()
        if not value.strip().endswith("%") or not _DECIMAL.fullmatch(number):
            refuse("is not a percentage", hint)
        share = float(number) / _HUNDRED
        if not 0.0 <= share <= self.high:
            refuse("is out of range", hint)
        return share

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        return {"type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$", "examples": ["10%"]}


@dataclass(frozen=True, slots=True)
class Choice(Marker):
    """Marks a field as one of the values of a `StrEnum`.

    Examples
    --------
    ``precision: Annotated[Precision, Choice(Precision)]`` takes ``"bf16"`` and ``"BF16"``. `also`
    maps other words that people write to the value they mean.
    """

    kind: type[StrEnum]
    also: tuple[tuple[str, str], ...] = ()

    def read(self, value: object) -> StrEnum:
        """Return the enum's member; raises a `BadValueError`."""
        names = tuple(member.value for member in self.kind)
        if isinstance(value, str) and value in names:
            return self.kind(value)
        if isinstance(value, str):
            plain = value.strip().lower().replace("_", "-")
            plain = dict(self.also).get(plain, plain)
            if plain in names:
                return self.kind(plain)
        hint = nearest_hint(value if isinstance(value, str) else "", names)
        refuse("is not a valid choice", hint)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        return {"type": "string", "enum": [member.value for member in self.kind]}


@dataclass(frozen=True, slots=True)
class Text(Marker):
    """Marks a text field: not empty, no control characters, at most `longest` characters."""

    longest: int = 10_000

    def read(self, value: object) -> str:
        """Return the text; raises a `BadValueError`."""
        if not isinstance(value, str):
            refuse("is not text", "write it in quotes")
        if not value.strip():
            refuse("is empty", "leave the key out or give it a value")
        if len(value) > self.longest:
            refuse("is too long", f"at most {self.longest} characters")
        if any(not (c.isprintable() or c in "\n\t") for c in value):
            refuse("holds a control character", "write printable text")
        return value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Length:
    """Marks a list with `low` to `high` items."""

    low: int = 0
    high: int | None = None


ByteField = Annotated[float, Quantity(units.BYTE)]
ByteOrZeroField = Annotated[float, Quantity(units.BYTE, zero=True)]
ByteRateField = Annotated[float, Quantity(units.BYTE_PER_SECOND)]
TimeField = Annotated[float, Quantity(units.SECOND)]
TimeOrZeroField = Annotated[float, Quantity(units.SECOND, zero=True)]
FlopField = Annotated[float, Quantity(units.FLOP)]
FlopOrZeroField = Annotated[float, Quantity(units.FLOP, zero=True)]
FlopRateField = Annotated[float, Quantity(units.FLOP_PER_SECOND)]
RateField = Annotated[float, Quantity(units.PER_SECOND)]
OperationsField = Annotated[float, Quantity(units.PER_SECOND, counted=True)]
RateOrZeroField = Annotated[float, Quantity(units.PER_SECOND, zero=True)]
PowerField = Annotated[float, Quantity(units.WATT)]
ClockField = Annotated[float, Quantity(units.HERTZ)]
MoneyField = Annotated[float, Quantity(units.USD)]
PriceField = Annotated[float, Quantity(units.USD_PER_SECOND)]
PriceOrZeroField = Annotated[float, Quantity(units.USD_PER_SECOND, zero=True)]
StoragePriceField = Annotated[float, Quantity(units.USD_PER_BYTE_SECOND)]
RequestPriceField = Annotated[float, Quantity(units.USD_PER_REQUEST)]
BytePriceField = Annotated[float, Quantity(units.USD_PER_BYTE)]
OperationPriceField = Annotated[float, Quantity(units.USD_PER_OPERATION)]
RatedBytePriceField = Annotated[float, Quantity(units.USD_PER_RATED_BYTE)]

CountField = Annotated[int, Number(low=1.0, whole=True)]
CountOrZeroField = Annotated[int, Number(whole=True)]
NumberField = Annotated[float, Number(above=True)]
NumberOrZeroField = Annotated[float, Number()]
FractionField = Annotated[float, Number(high=1.0)]
PositiveShareField = Annotated[float, Number(low=1e-6, high=1.0)]
TextField = Annotated[str, Text()]


class Shape(StrEnum):
    """The family of a distribution of positive amounts."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    GAMMA = "gamma"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Variation of a sample, a device or a step around the mean."""

    shape: Annotated[Shape, Choice(Shape)] = field(default=Shape.CONSTANT, metadata=REQUIRED)
    """Family of the distribution."""
    relative_deviation: NumberOrZeroField | None = None
    """Standard deviation as a fraction of the mean; constant and exponential imply it."""

    @property
    def deviation(self) -> float:
        """Standard deviation as a fraction of the mean."""
        if self.relative_deviation is None:
            return 1.0 if self.shape is Shape.EXPONENTIAL else 0.0
        return self.relative_deviation

    @property
    def varies(self) -> bool:
        """True if two draws can differ."""
        return self.shape is not Shape.CONSTANT and self.deviation > 0.0


CONSTANT = Spread()


_DAY: Final = r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?"
_DATE: Final = re.compile(rf"undated|(?:[<>]=)?{_DAY}|{_DAY}\.\.{_DAY}")


@dataclass(frozen=True, slots=True)
class DateText(Marker):
    """Marks a date as text: day, month, year, a range such as ``>=2025-06``, or undated."""

    def read(self, value: object) -> str:
        """Return the date as text; raises a `BadValueError`."""
        if not isinstance(value, str) or not _DATE.fullmatch(value):
            hint = "write '2026-08-22', '2026-08', '2026', '>=2025-06' or 'undated'"
            refuse("is not a date", hint)
        return value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        return {"type": "string", "pattern": _DATE.pattern}


DateField = Annotated[str, DateText()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A table that states its source."""

    NOT_A_TABLE: ClassVar = (
        "has no source",
        "write { value = ..., source = 'who says so', date = '2026-08' }",
    )
    source: TextField
    """Key of a sources.toml, or the reference itself."""
    date: DateField
    """Date of the source."""
    verified: bool = True
    """False for a guessed, derived or assumed figure."""
    note: TextField | None = None
    """Conditions, or values of other sources."""

    @property
    def cited(self) -> Source:
        """Source of the table, with the key of a sources.toml as the reference."""
        return Source(
            reference=self.source, date=self.date, verified=self.verified, note=self.note or ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Citation):
    """The table of one figure."""

    value: object
    """The figure: a quantity with its unit, a number or a name."""


@dataclass(frozen=True, slots=True)
class Sourced:
    """Marks a key whose value is the table of a figure."""


SOURCED: Final = Sourced()

NameFigure = Annotated[TextField, SOURCED]
CountFigure = Annotated[CountField, SOURCED]
FractionFigure = Annotated[FractionField, SOURCED]
NumberFigure = Annotated[NumberOrZeroField, SOURCED]
ByteFigure = Annotated[ByteField, SOURCED]
ByteRateFigure = Annotated[ByteRateField, SOURCED]
FlopRateFigure = Annotated[FlopRateField, SOURCED]
RateFigure = Annotated[RateField, SOURCED]
TimeFigure = Annotated[TimeField, SOURCED]
ClockFigure = Annotated[ClockField, SOURCED]
PowerFigure = Annotated[PowerField, SOURCED]
PriceFigure = Annotated[PriceField, SOURCED]
MoneyFigure = Annotated[MoneyField, SOURCED]
StoragePriceFigure = Annotated[StoragePriceField, SOURCED]
RequestPriceFigure = Annotated[RequestPriceField, SOURCED]
BytePriceFigure = Annotated[BytePriceField, SOURCED]
OperationPriceFigure = Annotated[OperationPriceField, SOURCED]
RatedBytePriceFigure = Annotated[RatedBytePriceField, SOURCED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourceable:
    """A table whose figures have sources.

    `sources` are by dotted key, with list positions from 1: ``memory``, ``peak.bf16``,
    ``charges.reads``.
    """

    sources: Mapping[str, Source] = field(default_factory=dict, metadata=DERIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Sourceable):
    """Keys of the profiles of all kinds of hardware."""

    name: str = field(default="", metadata=DERIVED)
    """Name in the catalogue, such as gpu/l4."""
    overlay: bool = False
    """Whether all other keys are those of the next profile of the same name in the search path."""
    note: TextField = ""
    """Remarks on these figures."""
