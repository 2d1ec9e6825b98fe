"""Figures of hardware profiles: values that state who says so and when.

A key of a profile holds a small table ``{ value = "80 GB", source = "vendor", date = "2026-08" }``,
where `source` is a key of a `sources.toml` or the reference itself; ``verified = false`` marks what
was guessed, derived or assumed. In the dataclass of the profile the key is its value, and `sources`
has the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

from simulator.schema.fields import (
    DERIVED,
    ByteField,
    BytePriceField,
    ByteRateField,
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
from simulator.uncertainty.provenance import Source

_DAY: Final = r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?"
_DATE: Final = re.compile(rf"undated|(?:[<>]=)?{_DAY}|{_DAY}\.\.{_DAY}")


@dataclass(frozen=True, slots=True)
class DateText(Marker):
    """Marks a text field as a date: day, month, year, a range such as ``>=2025-06``, undated."""

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
    """When the source said so."""
    verified: bool = True
    """False for what was guessed, derived or assumed."""
    note: TextField | None = None
    """Conditions, or what other sources say."""

    @property
    def cited(self) -> Source:
        """Its source, with the key of a sources.toml as the reference."""
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

    `sources` are by dotted key, from 1 in lists: ``memory``, ``peak.bf16``, ``charges.reads``.
    """

    sources: Mapping[str, Source] = field(default_factory=dict, metadata=DERIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Sourceable):
    """Keys that the profiles of all kinds of hardware share."""

    name: str = field(default="", metadata=DERIVED)
    """Name in the catalogue, such as gpu/l4."""
    overlay: bool = False
    """Keep what the profile of the same name further down the search path says, but for this."""
    note: TextField = ""
    """What to know before trusting these figures."""
