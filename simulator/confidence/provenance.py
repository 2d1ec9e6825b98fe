"""Where numbers come from: a source for every figure, an assumption for every choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who says so, and when.

    `date` is an ISO date, a month, a year, a range such as ``>=2025-06``, or ``undated``.
    `verified` is False for a figure that was recalled or guessed rather than read or measured.
    `note` says under which conditions the figure holds.
    """

    reference: str
    date: str
    verified: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A figure or choice that a prediction rests on, with its source."""

    what: str
    value: str
    source: Source
