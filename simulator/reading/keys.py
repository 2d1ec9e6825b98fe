"""Numeric keys of a scenario: conversion between text with a unit and floats.

A study that varies ``hardware.storage_bandwidth`` between ``10 MB/s`` and ``1 TB/s`` needs the
values as floats, and a text to set as an override. The unit of the text stays the same: a value
that was ``2 GB/s`` is written in GB/s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.reading.sections import ScenarioFile
from simulator.reading.tables import TableKey, key_at, table_keys
from simulator.records import dataclass
from simulator.schema.calibration import FACTORS
from simulator.schema.fields import BadValueError, Number, Quantity, nearest
from simulator.units import Unit

DIGITS: Final = 6
"""Significant digits of a written value: far below any error of the model, short enough to read."""
OF_A_SEARCH: Final = frozenset({"sweep", "goal"})
"""Sections that describe a search, not a job: `plan sweep` and `plan recommend` read them."""
OF_THE_RUN: Final = frozenset({"run", "failures", "checkpoint", "spot", "energy", "owned", "store"})
"""Sections that do not affect a step: no measured step can be fitted with their keys."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Key:
    """A numeric key of a scenario: its dotted `name` and the type of its values."""

    name: str
    kind: Quantity | Number

    @property
    def unit(self) -> Unit | None:
        """Unit of its values; None for plain numbers."""
        return self.kind.unit if isinstance(self.kind, Quantity) else None

    def value(self, text: str) -> float:
        """Return the SI value of a text such as ``2 GB/s``, or of a bare number for a plain one.

        Raises
        ------
        InputError
            If the text is not a value that the key may have.
        """
        try:
            given: object = text if isinstance(self.kind, Quantity) else float(text)
            return float(self.kind.read(given))
        except BadValueError as error:
            message, hint = error.message, error.hint
        except ValueError:
            message, hint = "is not a number", "write a number without a unit"
        raise InputError(
            (Problem(origin=self.name, message=message, found=repr(text), hint=hint or None),)
        )

    def plain(self, text: str) -> str | float:
        """Return the value as a TOML file holds it: a quantity as text, else a number."""
        return text if isinstance(self.kind, Quantity) else self.value(text)

    def show(self, text: str) -> str:
        """Format a value for display: four digits and the largest prefix that fits."""
        if isinstance(self.kind, Number):
            return f"{self.value(text):.4g}"
        return units.show(self.value(text), self.kind.unit)

    def text(self, value: float, like: str) -> str:
        """Return `value` [SI] as text in the unit of the text `like`."""
        if isinstance(self.kind, Number):
            return f"{value:.{DIGITS}g}"
        one = units.parse(_NUMBER.sub("1", like, count=1), self.kind.unit)
        return _NUMBER.sub(f"{value / one:.{DIGITS}g}", like.strip(), count=1)


def numeric_key(name: str, origin: str = "--fit") -> Key:
    """Return the key of a scenario called `name`, if its values are numbers on a continuous scale.

    Parameters
    ----------
    name : str
        Dotted, such as ``input.decode``.
    origin : str
        Where the name was given, for messages.

    Raises
    ------
    InputError
        If there is no such key, or its values are names, switches or counts.
    """
    path = tuple(name.split("."))
    info = None if path[0] in OF_A_SEARCH | OF_THE_RUN else key_at(ScenarioFile, path)
    if info is None:
        message, hint = "is not a key of a scenario", _meant(name)
        raise InputError((Problem(origin=origin, message=message, found=repr(name), hint=hint),))
    kind = _kind(info)
    if kind is None:
        message = "is not a key with a continuous value"
        hint = "quantities and plain numbers can be fitted, counts, names and switches cannot"
        raise InputError((Problem(origin=origin, message=message, found=repr(name), hint=hint),))
    return Key(name, kind)


def _meant(name: str) -> str:
    """Return a hint for a key that does not exist: a similar key or last part."""
    keys = tuple(numeric_keys())
    lasts = {key.rpartition(".")[2]: key for key in keys}
    own = name.rpartition(".")[2]
    close = lasts.get(own) or nearest(name, keys) or lasts.get(nearest(own, tuple(lasts)) or "")
    if close:
        return f"did you mean '{close}'?"
    factors = ", ".join(f"calibration.{kind.name}" for kind in FACTORS)
    return f"keys are those of plan schema, and factors: {factors}"


def numeric_keys() -> Iterator[str]:
    """Yield all keys of a scenario with continuous values."""
    left_out = OF_A_SEARCH | OF_THE_RUN
    for section, each in table_keys(ScenarioFile).items():
        if each.table is not None and section not in left_out:
            keys = table_keys(each.table).items()
            yield from (f"{section}.{name}" for name, key in keys if _kind(key) is not None)


def _kind(key: TableKey) -> Quantity | Number | None:
    """Return the marker of a key with a continuous value; None for all other keys."""
    marker = key.marker
    if isinstance(marker, Number) and marker.whole:
        return None
    return marker if isinstance(marker, Quantity | Number) else None
