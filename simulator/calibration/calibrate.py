"""Calibrate: values of named parameters that fit measured rows, and how well rows know them.

Robust least squares on log errors between physical bounds (`robust`), from the parameters' starts;
one that does nothing there begins where it first does something that is needed (`secant`).
Cross-validation predicts every configuration by a fit that has not seen it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from simulator.calibration.fitting import (
    Answer,
    Errors,
    Observation,
    Predictor,
    Task,
    Vector,
    answer,
    box,
    knob,
    predicted,
)
from simulator.calibration.identifiability import Identifiability, identifiability
from simulator.calibration.intervals import Estimate, estimates
from simulator.calibration.robust import robust_fit
from simulator.calibration.secant import prior_weights, within_reach
from simulator.studies.search.workers import Workers, local_workers
from simulator.uncertainty.measurement import MeasurementSet, Parameter
from simulator.validation.anchors import anchored
from simulator.validation.samples import Samples, samples_of

__all__ = ["Calibrated", "Estimate", "Residual", "anchored", "calibrate"]

FOLDS: Final = 5
PASSES: Final = 10.0
"""Predictions of all rows that one fit takes, roughly; for the progress line only."""

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """One figure of one row: measured, predicted at the start values, as fitted, and held out.

    `held_out` is predicted by a fit that has not seen the row's configuration; None where there
    were too few configurations to hold one out.
    """

    row: str
    configuration: str
    metric: str
    measured: float
    before: float
    fitted: float
    held_out: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What the rows say about the parameters.

    `covariance` is that of the logarithms, zero for what has no interval. `folds` is how often
    the fit was repeated with a part of the configurations held out; 0: there were too few.
    `all_rows`: rows held out for testing were used too.
    """

    samples: Samples
    estimates: tuple[Estimate, ...]
    covariance: tuple[tuple[float, ...], ...]
    identifiability: Identifiability
    residuals: tuple[Residual, ...]
    folds: int
    predictions: int
    all_rows: bool = False


def calibrate(  # noqa: PLR0913 - what is fitted to what, and how
    sets: Sequence[MeasurementSet],
    fit: Sequence[Parameter],
    *,
    use_all: bool = False,
    folds: int = FOLDS,
    predictor: Predictor = predicted,
    profiles: tuple[Path, ...] = (),
    processes: int = 1,
    progress: Progress | None = None,
) -> Calibrated:
    """Fit parameters to the rows of measurement sets.

    Parameters
    ----------
    sets : sequence of MeasurementSet
        Whose rows of split ``fit`` are used.
    fit : sequence of Parameter
        What is fitted, from where, between which bounds.
    use_all : bool
        Use rows held out for testing too; nothing is left to test on then.
    folds : int
        Parts for cross-validation; a configuration is never in two of them.
    predictor : callable, optional
        What predicts a row; the model by default.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles that come before the usual ones.
    processes : int
        How many processes predict rows at once.
    progress : callable, optional
        Told how far the fit is, 0 to 1.

    Raises
    ------
    InputError
        If a parameter cannot be fitted, no row may be used, or a row not be predicted.
    """
    knobs = tuple(knob(parameter) for parameter in fit)
    if profiles:
        predictor = partial(predicted, profiles=profiles)
    samples = samples_of(sets, fit, predictor, use_all=use_all, profiles=profiles)
    parts = min(folds, len(samples.distinct))
    parts = parts if parts > 1 else 0
    with local_workers(processes) as workers:
        watch = _Watch(workers, progress, expected=PASSES * len(samples.rows), parts=1 + parts)
        errors = Errors(
            rows=samples.rows, knobs=knobs, seen=samples.seen, predictor=predictor, ask=watch
        )
        return _fitted(errors, samples, parts, watch, use_all=use_all)


def _fitted(
    errors: Errors, samples: Samples, parts: int, watch: _Watch, *, use_all: bool
) -> Calibrated:
    start, low, high = box(errors.knobs)
    best = robust_fit(errors, within_reach(errors, start, low, high))
    held: dict[int, float] = {}
    for part in folds_of(samples.configurations, parts):
        watch.next_part()
        held |= held_out_errors(errors, samples.configurations, part, best)
    jacobian = errors.jacobian(best, both_sides=True)
    found, covariance = estimates(errors.knobs, best, errors(best), jacobian, len(samples.distinct))
    names = [one.key.name for one in errors.knobs]
    return Calibrated(
        samples=samples,
        estimates=found,
        covariance=tuple(tuple(float(c) for c in row) for row in covariance),
        identifiability=identifiability(names, jacobian, prior_weights(low, high)),
        residuals=_residuals(samples, errors(start), errors(best), held),
        folds=parts,
        predictions=errors.evaluations,
        all_rows=use_all,
    )


def _residuals(
    samples: Samples, before: Vector, fitted: Vector, held: Mapping[int, float]
) -> tuple[Residual, ...]:
    def at(one: Observation, error: float) -> float:
        return one.measured * math.exp(error)

    return tuple(
        Residual(
            row=samples.rows[one.row].id,
            configuration=samples.configurations[one.row],
            metric=one.metric,
            measured=one.measured,
            before=at(one, float(before[i])),
            fitted=at(one, float(fitted[i])),
            held_out=at(one, held[i]) if i in held else None,
        )
        for i, one in enumerate(samples.seen)
    )


@dataclass(slots=True)
class _Watch:
    """Has rows predicted, and tells how far the fits are."""

    workers: Workers
    progress: Progress | None
    expected: float = field(kw_only=True)
    parts: int = field(kw_only=True)
    done: int = 0
    calls: int = 0

    def __call__(self, tasks: Sequence[Task]) -> list[Answer]:
        self.calls += len(tasks)
        if self.progress is not None:
            share = 1.0 - math.exp(-self.calls / self.expected)
            self.progress((self.done + share) / self.parts)
        # A fit asks often: processes are worth their start even if this call is a short one.
        return self.workers.map(answer, tasks, weights=[PASSES] * len(tasks))

    def next_part(self) -> None:
        """One fit is done."""
        self.done, self.calls = self.done + 1, 0


def folds_of(configurations: Sequence[str], count: int) -> tuple[frozenset[str], ...]:
    """The configurations in `count` parts of nearly equal size, the same ones every time.

    Dealt in the order of their SHA-256, so that neighbours in a table fall into different parts.
    """
    order = sorted(set(configurations), key=lambda name: hashlib.sha256(name.encode()).digest())
    return tuple(frozenset(order[i::count]) for i in range(count))


def held_out_errors(
    errors: Errors, configurations: Sequence[str], held: frozenset[str], begin: Vector
) -> dict[int, float]:
    """Log errors of the configurations in `held` after a fit to all others.

    Parameters
    ----------
    errors : Errors
        Of all observations; what it knows is used and added to.
    configurations : sequence of str
        Of each row.
    held : frozenset of str
        Configurations that the fit must not see.
    begin : numpy.ndarray
        Where the fit begins.

    Returns
    -------
    dict
        Log error by the observation's number.
    """
    out = [i for i, one in enumerate(errors.seen) if configurations[one.row] in held]
    rest = [i for i in range(len(errors.seen)) if i not in set(out)]
    point = robust_fit(errors.subset(rest), begin)
    return dict(zip(out, np.asarray(errors.subset(out)(point)).tolist(), strict=True))
