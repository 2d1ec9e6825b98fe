"""Figures fitted without each series and its siblings, and how wrong that series is predicted then.

A user's job is of no series: this says how far a prediction of it may be off. Figures of kernels
and of memory are fitted once without each group of ``siblings.toml`` that has rows of split
``fit``; then all rows of the group, in either split, are predicted with them. A group that
nothing was fitted to ships without figures: the shipped ones have not seen it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fitting.figures import Part, free, shipped
from fitting.kernels import expected, fit_part, measured
from fitting.language_models import SET, Runs, runs
from fitting.part import Outcome, Say
from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernel_files import with_values
from simulator.schema.fields import TextField
from simulator.uncertainty.scenario import unseen_groups

Vector = NDArray[np.float64]
FILE: Final = "unseen.toml"
PARTS: Final[tuple[Part, ...]] = ("step", "memory")
STEPS: Final = 4
"""Steps of each search, which begins at the figures of all rows: its end is near."""
_SIBLINGS: Final = Path(__file__).resolve().parent / "siblings.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTable:
    """Series that are left out together."""

    series: list[TextField]
    """Their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingsFile:
    """All groups."""

    group: list[GroupTable]
    """One by one."""


def groups() -> list[list[str]]:
    """Series that are left out together."""
    return [one.series for one in check(SiblingsFile, read_document(_SIBLINGS)).group]


def without(found: Runs, series: list[str]) -> dict[str, float]:
    """Figures fitted to all rows but those of some series, by name; none where nothing changes."""
    values: dict[str, float] = {}
    others = ~np.isin(found.series, series)
    for one in PARTS:
        rows = found.fitted & measured(found, one)
        if np.any(rows & ~others):
            start = free(one).scaled(shipped(free(one).names))
            held = expected() | values
            values |= fit_part(one, found.chosen(rows & others), held, start, STEPS).values
    return values


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``."""
    found = runs(SET if tables is None else str(tables / f"{SET}.toml"))
    figures: dict[str, float] = {}
    lines = [f"{'series':20} {'rows':>5} {'median':>7} {'p90':>7}  in series"]
    for series in groups():
        some = np.isin(found.series, series)
        values = without(found, series)
        say(f"without {', '.join(series)}: {len(values)} figures")
        key = "+".join(series)
        figures |= {f"{key}: {name}": value for name, value in values.items()}
        lines += _errors(found.chosen(some), values)
    text = _text(figures)
    return Outcome(
        figures=figures, shipped=_shipped(figures), files={FILE: text}, lines=tuple(lines)
    )


def _errors(found: Runs, values: Mapping[str, float]) -> Iterator[str]:
    known = np.isfinite(found.seconds)
    pairs = [
        np.abs(found.step_times(with_values(one)) / found.seconds - 1.0) for one in (values, {})
    ]
    for family in dict.fromkeys(map(str, found.families)):
        own = known & (found.families == family)
        unseen, seen = (np.quantile(errors[own], (0.5, 0.9)) for errors in pairs)
        yield (
            f"{family:20} {own.sum():5d} {unseen[0]:7.1%} {unseen[1]:7.1%}  "
            f"{seen[0]:.1%} {seen[1]:.1%}"
        )


def _text(figures: Mapping[str, float]) -> str:
    """The file: a table for each group, with the figures that nothing of it was fitted to."""
    lines = [
        "# Kernel figures fitted without each series of language-model runs and its siblings, made",
        "# by evidence/fit.py unseen. A group without figures is one that nothing was fitted to.",
        "schema = 1",
    ]
    for group in groups():
        head = f"{'+'.join(group)}: "
        own = {key: value for key, value in figures.items() if key.startswith(head)}
        series = ", ".join(f'"{one}"' for one in group)
        lines += ["", "[[without]]", f"series = [{series}]"]
        if own:
            lines += ["[without.figures]"]
            lines += [f'"{key.removeprefix(head)}" = {v:.8g}' for key, v in own.items()]
    return "\n".join([*lines, ""])


def _shipped(figures: Mapping[str, float]) -> dict[str, float]:
    """What ships of them; nan where nothing does."""
    known = {
        f"{'+'.join(one.series)}: {name}": value
        for one in unseen_groups()
        for name, value in one.figures.items()
    }
    return {key: known.get(key, float("nan")) for key in figures}
