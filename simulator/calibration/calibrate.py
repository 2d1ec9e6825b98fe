"""Calibration: fit parameters to measured rows, with intervals and identifiability.

Robust least squares on log errors between physical bounds (`solvers`), from the parameters' starts;
a parameter without effect there starts where it first has one. Intervals come from the Jacobian at
the solution: metrics of one configuration have correlated errors, so they count as one observation,
and the degrees of freedom of Student's t are the configurations minus the parameters.
Cross-validation predicts every configuration by a fit that has not seen it. Without named
parameters each factor of [calibration] is fitted alone, and the most likely one is taken.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
from scipy.special import stdtrit

from simulator.calibration.fitting import (
    Answer,
    Errors,
    Knob,
    Observation,
    Predictor,
    Residual,
    Task,
    Vector,
    answer,
    box,
    knob,
    parameters_of,
    predicted,
)
from simulator.calibration.observed import known_within
from simulator.calibration.samples import Samples, samples_of
from simulator.calibration.solvers import prior_weights, robust_fit, within_reach
from simulator.errors import InputError, Problem
from simulator.reading.keys import numeric_key
from simulator.reading.scenario import load_scenario
from simulator.records import dataclass
from simulator.schema.calibration import FACTORS, FactorKind, Fitted, Overlay
from simulator.schema.measurement import MeasurementSet, Parameter, Split
from simulator.schema.scenario import Scenario
from simulator.studies.search.workers import local_workers

MAX_CORRELATION: Final = 0.95
"""Absolute correlation of two estimates above which the rows cannot separate the parameters."""
MIN_EFFECT: Final = 0.02
"""RMS change of the log errors per unit along a direction below which it counts as undetermined."""
MIN_WEIGHT: Final = 0.3
"""Weight of a parameter in a direction above which the parameter is reported as part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiability:
    """Identifiability of the parameters, from a singular value decomposition of the Jacobian.

    `effects` are the singular values divided by the root of the number of observations.
    `correlated` are pairs that cannot be separated, with the correlation of their estimates.
    `faint` are directions with almost no effect on the rows: combinations of parameters (weights
    of the logarithms by key), and the root mean square change of the log errors per unit along
    them.
    """

    effects: tuple[float, ...]
    correlations: tuple[tuple[float, ...], ...]
    correlated: tuple[tuple[str, str, float], ...]
    faint: tuple[tuple[dict[str, float], float], ...]


def identifiability(names: Sequence[str], jacobian: Vector, prior: Vector) -> Identifiability:
    """Analyze how well the rows determine the parameters.

    Parameters
    ----------
    names : sequence of str
        Keys of the parameters, n of them.
    jacobian : numpy.ndarray
        Change of each log error per log parameter, shape (m, n).
    prior : numpy.ndarray
        Weight of the prior on each parameter, shape (n,); keeps the covariance of undetermined
        parameters finite.
    """
    _, singular, directions = np.linalg.svd(jacobian, full_matrices=True)
    effects = np.zeros(len(names))
    effects[: len(singular)] = singular / np.sqrt(len(jacobian))
    information = jacobian.T @ jacobian + np.diag(prior**2)
    covariance = np.linalg.inv(information)
    deviation = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(deviation, deviation)
    return Identifiability(
        effects=tuple(float(effect) for effect in effects),
        correlations=tuple(tuple(float(c) for c in row) for row in correlations),
        correlated=tuple(
            (names[i], names[j], float(correlations[i, j]))
            for i in range(len(names))
            for j in range(i)
            if abs(correlations[i, j]) > MAX_CORRELATION
        ),
        faint=tuple(
            (_weights(names, directions[k]), float(effects[k]))
            for k in range(len(names))
            if effects[k] < MIN_EFFECT
        ),
    )


def _weights(names: Sequence[str], direction: Vector) -> dict[str, float]:
    """Return the weights of a direction above `MIN_WEIGHT` by key; the largest is positive."""
    largest = direction[int(np.argmax(np.abs(direction)))]
    turned = direction * np.sign(largest)
    pairs = zip(names, turned, strict=True)
    return {name: float(weight) for name, weight in pairs if abs(weight) > MIN_WEIGHT}


UPPER_QUANTILE: Final = 0.9
"""Quantile of the upper end of the 80% interval."""
EDGE_SHARE: Final = 1e-3
"""Distance from a bound, as a share of the range, below which a value counts as at the bound."""
MIN_SENSITIVITY: Final = 1e-3
"""RMS change of the log errors per log parameter below which a parameter is not identified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One fitted parameter; values are texts in the unit of its start value.

    `p10` and `p90` are None without an interval: with too few configurations, no effect, or a value
    at a bound (`at_bound` is ``low`` or ``high``). A parameter that is not `identified` has no
    effect on the rows and keeps its start value.
    """

    parameter: Parameter
    value: str
    log_sd: float | None = None
    p10: str | None = None
    p90: str | None = None
    at_bound: Literal["low", "high"] | None = None
    identified: bool = True


def estimates(
    knobs: tuple[Knob, ...], x: Vector, errors: Vector, jacobian: Vector, configurations: int
) -> tuple[tuple[Estimate, ...], Vector]:
    """Return the estimate and interval of each parameter at a solution, and their covariance.

    Parameters
    ----------
    knobs : tuple of Knob
        Fitted parameters, n of them.
    x : numpy.ndarray
        Log parameters of the solution, shape (n,).
    errors, jacobian : numpy.ndarray
        Log errors at the solution, shape (m,), and their change per log parameter, shape (m, n).
    configurations : int
        Number of distinct configurations among the rows.

    Returns
    -------
    tuple of Estimate
        One for each parameter.
    numpy.ndarray
        Covariance of the log parameters, shape (n, n); zero for those without an interval.
    """
    edges = [_edge(knob, float(value)) for knob, value in zip(knobs, x, strict=True)]
    effects = np.sqrt(np.mean(jacobian**2, axis=0))
    free = [j for j in range(len(knobs)) if edges[j] is None and effects[j] >= MIN_SENSITIVITY]
    covariance = _covariance(knobs, errors, jacobian, free, configurations)
    freedom = configurations - len(free)
    reach = float(stdtrit(freedom, UPPER_QUANTILE)) if freedom > 0 else 0.0
    found = []
    for j, parameter in enumerate(knobs):
        known = j in free and freedom > 0
        deviation = float(np.sqrt(covariance[j, j]))
        found.append(
            Estimate(
                parameter=parameter.parameter,
                value=parameter.text(float(x[j])),
                log_sd=deviation if known else None,
                p10=parameter.text(float(x[j]) - reach * deviation) if known else None,
                p90=parameter.text(float(x[j]) + reach * deviation) if known else None,
                at_bound=edges[j],
                identified=bool(effects[j] >= MIN_SENSITIVITY),
            )
        )
    return tuple(found), covariance


def _edge(knob: Knob, x: float) -> Literal["low", "high"] | None:
    near = EDGE_SHARE * (knob.high - knob.low)
    if x - knob.low < near:
        return "low"
    return "high" if knob.high - x < near else None


def _covariance(
    knobs: tuple[Knob, ...], errors: Vector, jacobian: Vector, free: list[int], configurations: int
) -> Vector:
    """Return the covariance of the log parameters `free`, shape (n, n); zero for all others.

    The prior is included to avoid a singular matrix.
    """
    size, freedom = len(knobs), configurations - len(free)
    whole = np.zeros((size, size))
    if not free or freedom <= 0:
        return whole
    _, low, high = box(knobs)
    # One observation a configuration: their mean square error, with its degrees of freedom.
    variance = float(np.mean(errors**2)) * configurations / freedom
    slopes, prior = jacobian[:, free], prior_weights(low, high)[free]
    per_observation = configurations / len(errors)
    information = per_observation * slopes.T @ slopes + np.diag(prior**2)
    whole[np.ix_(free, free)] = variance * np.linalg.inv(information)
    return whole


FOLDS: Final = 5
PREDICTIONS_PER_ROW: Final = 10.0
"""Rough number of predictions of each row in one fit; for the progress line only."""

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Result of a calibration: estimates, their identifiability, and residuals of the rows.

    `covariance` is that of the log parameters, zero for those without an interval. `folds` is the
    number of folds of cross-validation; 0 if there were too few configurations. `predictions` is
    the number of predictions made. `all_rows`: rows held out for testing were used too.
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
        Measurement sets; their rows of split ``fit`` are used.
    fit : sequence of Parameter
        Parameters to fit, with start values and bounds.
    use_all : bool
        Use rows held out for testing too, which leaves no rows to test on.
    folds : int
        Number of folds of cross-validation; all rows of a configuration are in the same fold.
    predictor : callable, optional
        Predicts a row; the model by default.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles, searched before the usual ones.
    processes : int
        Number of worker processes.
    progress : callable, optional
        Called with the finished share, 0 to 1.

    Raises
    ------
    InputError
        If a parameter cannot be fitted, no row may be used, or a row cannot be predicted.
    """
    knobs = tuple(map(knob, fit))
    if profiles:
        predictor = partial(predicted, profiles=profiles)
    samples = samples_of(sets, fit, predictor, use_all=use_all, profiles=profiles)
    parts = min(folds, len(samples.distinct))
    parts = parts if parts > 1 else 0
    calls, finished = 0, 0

    def ask(tasks: Sequence[Task]) -> list[Answer]:
        """Predict the rows of `tasks` in the worker processes and report the progress."""
        nonlocal calls
        calls += len(tasks)
        if progress is not None:
            share = 1.0 - math.exp(-calls / (PREDICTIONS_PER_ROW * len(samples.rows)))
            progress((finished + share) / (1 + parts))
        # A fit asks often: processes are worth their start even if this call is a short one.
        return workers.map(answer, tasks, weights=[PREDICTIONS_PER_ROW] * len(tasks))

    with local_workers(processes) as workers:
        errors = Errors(
            rows=samples.rows, knobs=knobs, seen=samples.seen, predictor=predictor, ask=ask
        )
        start, low, high = box(knobs)
        best = robust_fit(errors, within_reach(errors, start, low, high))
        held: dict[int, float] = {}
        for part in folds_of(samples.configurations, parts):
            calls, finished = 0, finished + 1
            held |= held_out_errors(errors, samples.configurations, part, best)
        jacobian = errors.jacobian(best, both_sides=True)
        found, covariance = estimates(knobs, best, errors(best), jacobian, len(samples.distinct))
        residuals = _residuals(samples, errors(start), errors(best), held)
    return Calibrated(
        samples=samples,
        estimates=found,
        covariance=tuple(tuple(float(c) for c in row) for row in covariance),
        identifiability=identifiability(
            [one.key.name for one in knobs], jacobian, prior_weights(low, high)
        ),
        residuals=residuals,
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


def folds_of(configurations: Sequence[str], count: int) -> tuple[frozenset[str], ...]:
    """Split the configurations into `count` folds of nearly equal size, deterministically.

    They are dealt in the order of their SHA-256, so that neighbors in a table are in different
    folds.
    """
    order = sorted(set(configurations), key=lambda name: hashlib.sha256(name.encode()).digest())
    return tuple(frozenset(order[i::count]) for i in range(count))


def held_out_errors(
    errors: Errors, configurations: Sequence[str], held: frozenset[str], begin: Vector
) -> dict[int, float]:
    """Return the log errors of the configurations in `held` after a fit to all others.

    Parameters
    ----------
    errors : Errors
        Log errors of all observations; its cache of predictions is used and extended.
    configurations : sequence of str
        Name of the configuration of each row.
    held : frozenset of str
        Configurations that the fit must not see.
    begin : numpy.ndarray
        Initial log parameters of the fit, shape (n,).

    Returns
    -------
    dict
        Log errors by index of the observation.
    """
    out = [i for i, one in enumerate(errors.seen) if configurations[one.row] in held]
    rest = [i for i in range(len(errors.seen)) if i not in set(out)]
    point = robust_fit(errors.subset(rest), begin)
    return dict(zip(out, np.asarray(errors.subset(out)(point)).tolist(), strict=True))


REPEAT_SPREAD: Final = 0.05
"""Relative spread of repeated runs of one configuration, which no factor has to explain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A factor fitted alone: its value, the mean relative error it leaves, and its cost.

    `cost` is twice the negative log-likelihood up to a constant: the squared log errors in units of
    `REPEAT_SPREAD`, plus the squared log of the factor in units of the uncertainty of its rates.
    """

    kind: FactorKind
    factor: float
    error: float
    cost: float
    fit: Calibrated


def likeliest(
    sets: Sequence[MeasurementSet],
    *,
    use_all: bool = False,
    profiles: tuple[Path, ...] = (),
    processes: int = 1,
    progress: Callable[[float], None] | None = None,
) -> tuple[Tried, ...]:
    """Fit every factor alone and return those with an effect on the rows, most likely first.

    Parameters
    ----------
    sets : sequence of MeasurementSet
        Measurement sets; their rows of split ``fit`` are used.
    use_all : bool
        Use rows held out for testing too.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles, searched before the usual ones.
    processes : int
        Number of worker processes.
    progress : callable, optional
        Called with the finished share, 0 to 1.

    Raises
    ------
    InputError
        If no factor has an effect on any row, or the rows cannot be used.
    """
    job = _first_job(sets, profiles, use_all=use_all)
    found = []
    for number, kind in enumerate(FACTORS):
        fit = parameters_of([kind.name], sets, {})
        done = calibrate(
            sets, fit, use_all=use_all, folds=1, profiles=profiles, processes=processes
        )
        if done.estimates[0].identified:
            found.append(_tried(kind, done, job))
        if progress is not None:
            progress((number + 1) / len(FACTORS))
    if not found:
        message = "no factor of [calibration] has an effect on any row"
        raise InputError((Problem(origin="the sets", message=message),))
    return tuple(sorted(found, key=lambda one: one.cost))


def _first_job(
    sets: Sequence[MeasurementSet], profiles: tuple[Path, ...], *, use_all: bool
) -> Scenario:
    """Read the scenario of the first row that may be used, for the uncertainty of its rates."""
    splits = (Split.FIT, Split.TEST) if use_all else (Split.FIT,)
    rows = [row for one in sets for row in one.rows if row.split in splits and not row.excluded]
    if not rows:
        message, hint = "hold no row that may be fitted to", "--all takes those held out too"
        raise InputError((Problem(origin="the sets", message=message, hint=hint),))
    return load_scenario(rows[0].base, overrides=rows[0].overrides, profiles=profiles)


def _tried(kind: FactorKind, fit: Calibrated, job: Scenario) -> Tried:
    one = fit.estimates[0]
    factor = numeric_key(one.parameter.key).value(one.value)
    logs = [math.log(residual.fitted / residual.measured) for residual in fit.residuals]
    surprise = math.log(factor) / known_within(kind, job)
    return Tried(
        kind=kind,
        factor=factor,
        error=sum(abs(math.expm1(log)) for log in logs) / len(logs),
        cost=sum((log / REPEAT_SPREAD) ** 2 for log in logs) + surprise**2,
        fit=fit,
    )


def error_statistics(residuals: Sequence[Residual], which: str) -> dict[str, float]:
    """Return mean, median, p90 and largest of the relative errors, abs(predicted / measured - 1).

    `which`: predictions to use, ``before``, ``fitted`` or ``held_out``. Empty if there are none.
    """
    ratios = [
        value / one.measured for one in residuals if (value := getattr(one, which)) is not None
    ]
    if not ratios:
        return {}
    errors = np.abs(np.array(ratios) - 1.0)
    return {
        "mean": float(np.mean(errors)),
        "median": float(np.median(errors)),
        "p90": float(np.quantile(errors, 0.9)),
        "largest": float(np.max(errors)),
    }


def overlay_of(calibrated: Calibrated, date: str) -> Overlay:
    """Return an overlay of the identified parameters with source; `date`: ISO date of the fit."""
    kept = [i for i, one in enumerate(calibrated.estimates) if one.identified]
    return Overlay(
        parameter=tuple(
            Fitted(
                key=one.parameter.key,
                value=one.value,
                p10=one.p10,
                p90=one.p90,
                log_sd=one.log_sd,
                at_bound=one.at_bound,
            )
            for one in calibrated.estimates
            if one.identified
        ),
        covariance=tuple(tuple(calibrated.covariance[i][j] for j in kept) for i in kept),
        envelope=calibrated.samples.envelope,
        source=source_text(calibrated),
        date=date,
    )


def source_text(calibrated: Calibrated) -> str:
    """Describe in one line the data that the parameters were fitted to, and the errors."""
    samples = calibrated.samples
    rows, configurations = len(samples.rows), len(samples.distinct)
    text = f"fitted to {', '.join(samples.sets)}: {rows} rows of {configurations} configurations"
    if calibrated.all_rows:
        text += ", those held out for testing among them"
    fitted = error_statistics(calibrated.residuals, "fitted")
    held = error_statistics(calibrated.residuals, "held_out")
    if fitted:
        text += f"; mean error {100.0 * fitted['mean']:.1f}%"
    if held:
        text += f", {100.0 * held['mean']:.1f}% on configurations held out"
    return text
