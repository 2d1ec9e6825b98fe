"""Provenance of numbers: a source for every figure, an assumption for every choice."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Final

from simulator.records import dataclass

_FIRST: Final = re.compile(r"(?:>=)?(?P<day>\d{4}(?:-\d{2}(?:-\d{2})?)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a figure, with its date.

    `date` is an ISO date, a month, a year, a range such as ``>=2025-06``, or ``undated``.
    `verified` is False for a figure that was guessed rather than read or measured. `note` states
    the conditions under which the figure holds.
    """

    reference: str
    date: str
    verified: bool = True
    note: str = ""

    @property
    def oldest(self) -> dt.date | None:
        """First day that `date` can mean; None if it can be any day.

        Examples
        --------
        >>> Source(reference="a list", date=">=2025-06").oldest
        datetime.date(2025, 6, 1)
        """
        found = _FIRST.match(self.date)
        if found is None:
            return None
        return dt.date.fromisoformat(found["day"] + "-01-01"[len(found["day"]) - 4 :])


class Part(StrEnum):
    """A part of a prediction that figures affect: time, memory or the bill."""

    INPUT = "input"
    COPY = "copy"
    DEVICE = "device"
    EXCHANGE = "exchange"
    CHECKPOINT = "checkpoint"
    START = "start"
    HOST_RAM = "host RAM"
    GPU_MEMORY = "GPU memory"
    BILL = "bill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A figure or choice that a prediction is based on, with its source.

    `bears_on` are the only parts of the prediction that depend on it; empty: it may be any part.
    """

    what: str
    value: str
    source: Source
    bears_on: frozenset[Part] = frozenset()


def bearing(found: Iterable[Assumption], *parts: Part) -> tuple[Assumption, ...]:
    """Return the assumptions, marked to affect only these parts of a prediction."""
    return tuple(replace(one, bears_on=frozenset(parts)) for one in found)
