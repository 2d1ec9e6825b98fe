"""Figures fitted without some series of measured runs: ``data/unseen.toml``.

Predicted by them, a series tells how wrong predictions are of a job that nothing was fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernel_figures import with_values
from simulator.reading.fitted.kernels import with_kernel_files
from simulator.reading.fitted.uncertainty import as_unseen
from simulator.reading.shipped import DATA
from simulator.schema.fields import NumberOrZeroField, TextField
from simulator.schema.scenario import Scenario

_FILE: Final = DATA / "unseen.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutTable:
    """Figures that a group of series had no part in."""

    series: list[TextField]
    """Those measured by the same people on the same machines."""
    figures: dict[str, NumberOrZeroField] = field(default_factory=dict)
    """By name; none where nothing was fitted to the group, so that the shipped ones do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenFile:
    """All of them."""

    without: list[WithoutTable] = field(default_factory=list)
    """By group."""


@cache
def unseen_groups() -> tuple[WithoutTable, ...]:
    """All groups of series with the figures fitted without them."""
    return tuple(check(UnseenFile, read_document(_FILE)).without)


def siblings(series: str) -> tuple[str, ...]:
    """The series that are left out with one, itself among them; empty if nobody leaves it out."""
    found = (tuple(group.series) for group in unseen_groups() if series in group.series)
    return next(found, ())


def before(scenario: Scenario, series: str) -> Scenario:
    """The scenario as it was predicted before a series and its siblings were measured.

    Kernel figures are those fitted without them, and they are no evidence of how sure it is.

    Raises
    ------
    StopIteration
        If the series stands in no group, which is a bug.
    """
    group = next(group for group in unseen_groups() if series in group.series)
    if group.figures:
        scenario = with_kernel_files(scenario, with_values(group.figures))
    return as_unseen(scenario, group.series)
