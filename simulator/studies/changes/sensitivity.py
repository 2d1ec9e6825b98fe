"""Which uncertain rate matters most: a tornado of predictions, and Sobol indices in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.engine.intervals import all_doubts, figures
from simulator.engine.run import Question
from simulator.pipeline.rate_scaling import Speeds
from simulator.predict import predict, question_of
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from simulator.studies.changes.whatif import Progress
from simulator.uncertainty.doubts import P90, Doubt, Rate, covariance, within_reason

BITS: Final = 12
"""Logarithm of the points that each index rests on: it is then known to about 0.02."""

Vector: TypeAlias = NDArray[np.float64]
Model: TypeAlias = Callable[[Mapping[Rate, Vector]], Vector]
"""Values of a metric at many speeds of each rate at once."""

_WHOLE: Final = frozenset({Rate.STEP, Rate.START})
"""Rates of no resource: they stretch the result, so that nothing need be simulated again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One rate of a tornado: the metric with the rate slow (P10) and fast (P90).

    `log_sd` is the standard deviation of the rate's logarithm.
    """

    rate: Rate
    log_sd: float
    slow: float
    fast: float

    @property
    def width(self) -> float:
        """How far apart the two lie, in the metric's unit."""
        return abs(self.fast - self.slow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Sobol indices of one rate: its part of the metric's variance.

    `first` by itself, `total` together with all it acts with.
    """

    rate: Rate
    log_sd: float
    first: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How a metric depends on the rates in doubt, the one that matters most first.

    `correlated`: some doubts go together, which one rate at a time leaves out.
    """

    metric: str
    base: float
    prediction: Prediction
    bars: tuple[Bar, ...] = ()
    shares: tuple[Share, ...] = ()
    correlated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    question: Question
    prediction: Prediction
    deviations: Mapping[Rate, float]
    correlated: bool


def _case(scenario: Scenario, seed: int) -> _Case:
    question = question_of(scenario)
    prediction = predict(scenario, seed=seed, doubts=False)
    doubts = all_doubts(question, prediction)
    return _Case(
        question=question,
        prediction=prediction,
        deviations=deviations(doubts),
        correlated=any(doubt.shared for doubt in doubts),
    )


def deviations(doubts: Sequence[Doubt]) -> dict[Rate, float]:
    """Standard deviation of each rate's logarithm; only rates in doubt."""
    rates = [rate for rate in Rate if any(d.rate is rate and d.log_sd > 0.0 for d in doubts)]
    if not rates:
        return {}
    known = [doubt for doubt in doubts if doubt.log_sd > 0.0]
    spread = np.sqrt(np.diag(within_reason(covariance(known, rates))))
    return {rate: float(sd) for rate, sd in zip(rates, spread, strict=True)}


def tornado(
    scenario: Scenario, metric: str, *, seed: int = 0, progress: Progress | None = None
) -> Sensitivity | None:
    """The metric with each rate at its P10 and its P90, all others as figured.

    Parameters
    ----------
    scenario : Scenario
        Its doubts are those of the prediction.
    metric : str
        Dotted name of a number.
    seed : int
        Of all draws; the same at every rate.
    progress : callable, optional
        Told the share that is done.

    Returns
    -------
    Sensitivity or None
        None where the metric has no value.
    """
    case = _case(scenario, seed)
    base = number_at(case.prediction, metric)
    if base is None:
        return None
    bars = []
    for number, (rate, log_sd) in enumerate(case.deviations.items(), start=1):
        ends = [_at(case, metric, {rate: math.exp(z * log_sd)}) for z in (-P90, P90)]
        slow, fast = (base if end is None else end for end in ends)
        bars.append(Bar(rate=rate, log_sd=log_sd, slow=slow, fast=fast))
        if progress is not None:
            progress(number / len(case.deviations))
    return Sensitivity(
        metric=metric,
        base=base,
        prediction=case.prediction,
        bars=tuple(sorted(bars, key=lambda bar: -bar.width)),
        correlated=case.correlated,
    )


def _at(case: _Case, metric: str, speeds: Mapping[Rate, float]) -> float | None:
    """The metric at other speeds: simulated, unless the rate stretches all there is."""
    if set(speeds) <= _WHOLE:
        arrays = {rate: np.array([speed]) for rate, speed in speeds.items()}
        found = figures(case.question, case.prediction, arrays).get(metric)
        return None if found is None else float(found[0])
    scenario, seed = case.question.scenario, case.prediction.seed or 0
    return number_at(predict(scenario, seed=seed, doubts=False, speeds=speeds), metric)


def sobol(scenario: Scenario, metric: str, *, seed: int = 0) -> Sensitivity | None:
    """Sobol indices of the metric over all rates in doubt, by the closed form of intervals.

    Parameters
    ----------
    scenario, metric, seed
        As for `tornado`.

    Returns
    -------
    Sensitivity or None
        None where the metric has no value; without shares where nothing in doubt moves it.
    """
    case = _case(scenario, seed)
    base = number_at(case.prediction, metric)
    if base is None:
        return None

    def values(speeds: Speeds) -> Vector:
        found = figures(case.question, case.prediction, speeds).get(metric)
        points = max(np.size(speed) for speed in speeds.values())
        return np.full(points, base) if found is None else np.asarray(found)

    return Sensitivity(
        metric=metric,
        base=base,
        prediction=case.prediction,
        shares=indices(values, case.deviations, seed),
        correlated=case.correlated,
    )


def indices(model: Model, spread: Mapping[Rate, float], seed: int = 0) -> tuple[Share, ...]:
    """First-order and total Sobol indices of a model whose rates are lognormal and independent.

    Parameters
    ----------
    model : callable
        Values at many speeds at once.
    spread : mapping of Rate to float
        Standard deviation of each rate's logarithm.
    seed : int
        Of the quasi-random points.

    Returns
    -------
    tuple of Share
        By falling total index; empty where the model does not vary.

    References
    ----------
    A. Saltelli et al., Variance based sensitivity analysis of model output, Computer Physics
    Communications 181 (2010) 259-270, as in scipy.stats.sobol_indices.
    """
    # Statistics of scipy take longer to load than a prediction; only this study needs them.
    from scipy.stats import norm, qmc, sobol_indices  # noqa: PLC0415 - see above

    rates = list(spread)
    if not rates:
        return ()
    sequence = qmc.Sobol(2 * len(rates), scramble=True, seed=seed)
    points = norm.ppf(sequence.random_base2(BITS)).T
    own, other = points[: len(rates)], points[len(rates) :]

    def at(drawn: Vector) -> Vector:
        return model({rate: np.exp(spread[rate] * drawn[i]) for i, rate in enumerate(rates)})

    mixed = np.repeat(own[np.newaxis], len(rates), axis=0)
    for i in range(len(rates)):
        mixed[i, i] = other[i]
    whole = {"f_A": at(own)[np.newaxis], "f_B": at(other)[np.newaxis]}
    if np.ptp(whole["f_A"]) <= 0.0:
        return ()
    whole["f_AB"] = np.stack([at(each) for each in mixed])[:, np.newaxis]
    found = sobol_indices(func=whole, n=2**BITS)
    shares = (
        Share(rate=rate, log_sd=spread[rate], first=float(first), total=float(total))
        for rate, first, total in zip(
            rates, np.ravel(found.first_order), np.ravel(found.total_order), strict=True
        )
    )
    return tuple(sorted(shares, key=lambda share: -share.total))
