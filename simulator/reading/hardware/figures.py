"""A figure of a profile: a value of some unit with source, date and how sure it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from simulator.reading.document import FileModel
from simulator.reading.quantity import (
    ByteField,
    BytePriceField,
    ByteRateField,
    Checked,
    Choice,
    ClockField,
    CountField,
    FlopRateField,
    FractionField,
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
class DateText(Checked):
    """Marks a text field as a date: day, month, year, a range such as ``>=2025-06``, undated."""

    def read(self, value: object) -> str:
        """The date as text; refused with an error pydantic reports."""
        if not isinstance(value, str) or not _DATE.fullmatch(value):
            hint = "write '2026-08-22', '2026-08', '2026', '>=2025-06' or 'undated'"
            refuse("is not a date", hint)
        return value

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        del core, handler
        return {"type": "string", "pattern": _DATE.pattern}


DateField = Annotated[str, DateText()]


class Figure(FileModel):
    """Where one number (or name) came from; each subclass adds the `value`."""

    # Reading descriptions off the source text takes milliseconds for each of these classes.
    source: TextField = Field(description="Key of a sources.toml, or the reference itself.")
    date: DateField = Field(description="When the source said so.")
    verified: bool = Field(
        default=True, description="False for what was guessed, derived or assumed."
    )
    note: TextField | None = Field(
        default=None, description="Conditions, or what other sources say."
    )

    @model_validator(mode="before")
    @classmethod
    def _is_sourced(cls, data: Any) -> Any:  # noqa: ANN401 - pydantic hands in whatever the file holds
        if not isinstance(data, dict):
            hint = "write { value = ..., source = 'who says so', date = '2026-08' }"
            refuse("has no source", hint)
        return data


class TextFigure(Figure):
    """A name or a text, with its source."""

    value: TextField


class CountFigure(Figure):
    """A whole number, with its source."""

    value: CountField


class FractionFigure(Figure):
    """A number from 0 to 1, with its source."""

    value: FractionField


class ByteFigure(Figure):
    """An amount of data, with its source."""

    value: ByteField


class ByteRateFigure(Figure):
    """A bandwidth, with its source."""

    value: ByteRateField


class FlopRateFigure(Figure):
    """An arithmetic rate, with its source."""

    value: FlopRateField


class RateFigure(Figure):
    """A rate of events, with its source."""

    value: RateField


class TimeFigure(Figure):
    """A time, with its source."""

    value: TimeField


class ClockFigure(Figure):
    """A clock, with its source."""

    value: ClockField


class PowerFigure(Figure):
    """A power, with its source."""

    value: PowerField


class PriceFigure(Figure):
    """A price by time, with its source."""

    value: PriceField


class MoneyFigure(Figure):
    """An amount of money, with its source."""

    value: MoneyField


class StoragePriceFigure(Figure):
    """A price for what is stored, with its source."""

    value: StoragePriceField


class RequestPriceFigure(Figure):
    """A price of a request, with its source."""

    value: RequestPriceField


class BytePriceFigure(Figure):
    """A price of bytes that are carried, with its source."""

    value: BytePriceField


class TierFigure(BytePriceFigure):
    """The same, up to an amount of a month."""

    to: ByteField | None = None
    """Up to which amount of a month, counted from nothing; all above where it is left out."""


class OperationPriceFigure(Figure):
    """A price of operations a second that are held ready, with its source."""

    value: OperationPriceField


class RatedBytePriceFigure(Figure):
    """A price of bytes a second that are held ready, with its source."""

    value: RatedBytePriceField


class TopologyFigure(Figure):
    """How accelerators reach each other, with the source."""

    value: Annotated[PeerTopology, Choice(PeerTopology)]
