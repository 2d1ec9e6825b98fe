"""A figure of a profile: a value of some unit with source, date and how sure it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from simulator.schema.fields import (
    ByteField,
    BytePriceField,
    ByteRateField,
    Choice,
    ClockField,
    CountField,
    FlopRateField,
    FractionField,
    Marker,
    MoneyField,
    OperationPriceField,
    PowerField,
    PriceField,
    RatedBytePriceField,
    RateField,
    RequestPriceField,
    StoragePriceField,
    TextField,
    TimeField,
    refuse,
)
from simulator.schema.hardware.host import PeerTopology

_DAY: Final = r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?"
_DATE: Final = re.compile(rf"undated|(?:[<>]=)?{_DAY}|{_DAY}\.\.{_DAY}")


@dataclass(frozen=True, slots=True)
class DateText(Marker):
    """Marks a text field as a date: day, month, year, a range such as ``>=2025-06``, undated."""

    def read(self, value: object) -> str:
        """The date as text; raises a `BadValueError`."""
        if not isinstance(value, str) or not _DATE.fullmatch(value):
            hint = "write '2026-08-22', '2026-08', '2026', '>=2025-06' or 'undated'"
            refuse("is not a date", hint)
        return value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the values."""
        return {"type": "string", "pattern": _DATE.pattern}


DateField = Annotated[str, DateText()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Where one number (or name) came from; each subclass adds the `value`."""

    NOT_A_TABLE: ClassVar = (
        "has no source",
        "write { value = ..., source = 'who says so', date = '2026-08' }",
    )
    source: TextField
    """Key of a sources.toml, or the reference itself."""
    date: DateField
    """When the source said so."""
    verified: bool = True
    """False for what was guessed, derived or assumed."""
    note: TextField | None = None
    """Conditions, or what other sources say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFigure(Figure):
    """A name or a text, with its source."""

    value: TextField


@dataclass(frozen=True, slots=True, kw_only=True)
class CountFigure(Figure):
    """A whole number, with its source."""

    value: CountField


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionFigure(Figure):
    """A number from 0 to 1, with its source."""

    value: FractionField


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteFigure(Figure):
    """An amount of data, with its source."""

    value: ByteField


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRateFigure(Figure):
    """A bandwidth, with its source."""

    value: ByteRateField


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopRateFigure(Figure):
    """An arithmetic rate, with its source."""

    value: FlopRateField


@dataclass(frozen=True, slots=True, kw_only=True)
class RateFigure(Figure):
    """A rate of events, with its source."""

    value: RateField


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeFigure(Figure):
    """A time, with its source."""

    value: TimeField


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockFigure(Figure):
    """A clock, with its source."""

    value: ClockField


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerFigure(Figure):
    """A power, with its source."""

    value: PowerField


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFigure(Figure):
    """A price by time, with its source."""

    value: PriceField


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyFigure(Figure):
    """An amount of money, with its source."""

    value: MoneyField


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePriceFigure(Figure):
    """A price for what is stored, with its source."""

    value: StoragePriceField


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPriceFigure(Figure):
    """A price of a request, with its source."""

    value: RequestPriceField


@dataclass(frozen=True, slots=True, kw_only=True)
class BytePriceFigure(Figure):
    """A price of bytes that are carried, with its source."""

    value: BytePriceField


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFigure(BytePriceFigure):
    """The same, up to an amount of a month."""

    to: ByteField | None = None
    """Up to which amount of a month, counted from nothing; all above where it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationPriceFigure(Figure):
    """A price of operations a second that are held ready, with its source."""

    value: OperationPriceField


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedBytePriceFigure(Figure):
    """A price of bytes a second that are held ready, with its source."""

    value: RatedBytePriceField


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyFigure(Figure):
    """How accelerators reach each other, with the source."""

    value: Annotated[PeerTopology, Choice(PeerTopology)]
