"""Fits the figures of ``simulator/data/kernels``: to steps of language models, and to their memory.

``figures.toml`` has the expectation of each figure. A fit begins there, so that it ends at the same
place regardless of what ships. Rows of split ``fit`` of the set of language models are fitted to;
the others are read only to print the errors there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fitting.figures import Free, Part, at_bound, changed_texts, free, rounded, shipped
from fitting.language_models import SET, Runs, runs
from fitting.part import DATA, Outcome, Say
from fitting.posterior import DEVIATIONS, MOST, Posterior, fit, weights
from simulator.reading.fitted.kernel_files import with_values

Vector = NDArray[np.float64]
FOLDER: Final = "kernels"
ALONE: Final = 0.95
"""Share of what rows say of a figure from which on it rests on one series."""
SAID: Final = 0.6
"""Correlation from which on two figures are reported together."""
_PARTS: Final[tuple[Part, ...]] = ("step", "memory")


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Figures of one part with what they were fitted to."""

    free: Free
    posterior: Posterior
    series: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """The figures as they are shipped, by name."""
        return self.free.by_name(self.posterior.x)


def expected() -> dict[str, float]:
    """Figures that are not fitted, where they are expected."""
    tables = free("expected").tables
    return {name: rounded(table.prior) for table in tables for name in table.names}


def fit_part(
    part: Part,
    found: Runs,
    held: Mapping[str, float],
    start: Vector | None = None,
    most: int = MOST,
) -> Fitted:
    """Fit one part to runs, with other figures as `held`; begin where figures are expected.

    The search ends after `most` steps at the latest.
    """
    figures = free(part)

    def errors(x: Vector) -> Vector:
        tried = dict(zip(figures.names, figures.values(x), strict=True))
        same = {n: tried[t.names[0]] for t in figures.tables for n in t.names}
        files = with_values({**held, **same})
        if part == "memory":
            return np.asarray(np.log(found.memory_sizes(files) / found.memory))
        return np.asarray(np.log(found.step_times(files) / found.seconds))

    start = np.zeros(len(figures.tables)) if start is None else start
    bounds = figures.bounds()
    best = fit(errors, weights(found.families), start, bounds, DEVIATIONS[part], most)
    return Fitted(free=figures, posterior=best, series=tuple(found.series))


def measured(found: Runs, part: Part) -> NDArray[np.bool_]:
    """Runs that have what a part is fitted to."""
    values = found.memory if part == "memory" else found.seconds
    return np.isfinite(values)


def fit_all(found: Runs, say: Say) -> dict[Part, Fitted]:
    """Fit all parts to the rows that may be fitted to."""
    held, fitted = expected(), {}
    for part in _PARTS:
        own = found.chosen(found.fitted & measured(found, part))
        fitted[part] = fit_part(part, own, held)
        held |= fitted[part].values
        tried = fitted[part].posterior.evaluations
        say(
            f"kernels: {part}, {len(own.rows)} rows, {len(fitted[part].free.tables)} figures, "
            f"{tried} steps of the search"
        )
    return fitted


def outcome(name: str, say: Say) -> Outcome:
    """Fit, with the texts of the files that hold what was fitted."""
    found = runs(name)
    fitted = fit_all(found, say)
    values = expected()
    for one in fitted.values():
        values |= one.values
    tables = [t for part in (*_PARTS, "expected") for t in free(part).tables]
    texts = changed_texts(values, tables, DATA / FOLDER)
    names = sorted(values)
    lines = [line for one in fitted.values() for line in determined(one)]
    return Outcome(
        figures=values,
        shipped=dict(zip(names, shipped(names), strict=True)),
        files={f"{FOLDER}/{file}": text for file, text in texts.items()},
        lines=(*lines, *table_of_errors(found, values)),
    )


def determined(found: Fitted) -> Iterator[str]:
    """How well the rows determine each figure: a line a figure."""
    best, correlation = found.posterior, found.posterior.correlation
    head = f"{'figure':36} {'value':>10} {'expected':>10}"
    yield f"{head} {'error':>6} {'of range':>8}  with, rests on"
    values = found.free.values(best.x)
    alone = _rests_on(found)
    for i, (table, value) in enumerate(zip(found.free.tables, values, strict=True)):
        error = float(best.errors[i])
        width = error * table.spread * (1.0 if table.linear else value)
        others = np.abs(correlation[i])
        others[i] = 0.0
        j = int(np.argmax(others))
        partner = found.free.names[j] if others[j] >= SAID else ""
        told = f"{partner} {correlation[i][j]:+.2f}" if partner else ""
        bound = at_bound(table, value)
        notes = [told, alone[i], f"at its {bound} bound" if bound else ""]
        yield (
            f"{table.names[0]:36} {value:10.4g} {table.prior:10.4g} {error:6.0%} "
            f"{width / (table.high - table.low):8.1%}  {', '.join(filter(None, notes))}"
        )


def _rests_on(found: Fitted) -> list[str]:
    """The series that says almost all of what rows say of each figure; empty where several do."""
    told = found.posterior.slopes**2
    series = np.array(found.series)
    names = list(dict.fromkeys(found.series))
    by_series = np.array([told[series == name].sum(axis=0) for name in names])
    whole = np.maximum(by_series.sum(axis=0), 1e-12)
    most = by_series.argmax(axis=0)
    share = by_series.max(axis=0) / whole
    return [f"only {names[most[i]]}" if share[i] >= ALONE else "" for i in range(len(whole))]


def table_of_errors(found: Runs, values: Mapping[str, float]) -> Iterator[str]:
    """Median and 90th percentile of the relative errors of steps by series, both splits."""
    known = measured(found, "step")
    errors = np.abs(found.step_times(with_values(values)) / found.seconds - 1.0)
    yield f"{'series':20} {'split':5} {'rows':>5} {'median':>7} {'p90':>7}"
    for family in (*dict.fromkeys(map(str, found.families)), "all"):
        for split, fitted in (("fit", found.fitted), ("test", ~found.fitted)):
            own = known & fitted & ((found.families == family) | (family == "all"))
            if own.any():
                yield _line(family, split, errors[own])


def _line(family: str, split: str, errors: Vector) -> str:
    median, p90 = np.quantile(errors, (0.5, 0.9))
    return f"{family:20} {split:5} {len(errors):5d} {median:7.1%} {p90:7.1%}"


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``."""
    return outcome(SET if tables is None else str(tables / f"{SET}.toml"), say)


__all__: Sequence[str] = ("outcome", "part")
