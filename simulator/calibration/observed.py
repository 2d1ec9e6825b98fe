"""Explanations of the difference between a prediction and one observed metric of a job.

One observation cannot show which input is wrong. Each factor of [calibration] is solved for alone,
and the factors that can explain the observation are ranked by their distance from 1, in standard
deviations of the uncertainty of the rates they scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from scipy.optimize import brentq

from simulator.errors import NotModelled, PlanError
from simulator.predict import predict
from simulator.records import dataclass
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.calibration import FACTORS, FactorKind
from simulator.schema.goal import Plain
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import Rate
from simulator.uncertainty.scenario import uncertainties_of

Read = Callable[[Mapping[str, Plain]], Scenario]

AGREEMENT: Final = 0.01
"""Absolute log error up to which a prediction agrees with the observation: 1%."""
FACTOR_TOLERANCE: Final = 0.003
"""Tolerance of the logarithm of a factor; predictions are not more precise than that."""
DEFAULT_LOG_SD: Final = 0.5
"""Standard deviation of the logarithm of a rate without a stated uncertainty."""
_RATES: Final[Mapping[str, tuple[Rate, ...]]] = {
    "compute": (Rate.DEVICE, Rate.STEP),
    "device_memory": (Rate.DEVICE, Rate.STEP),
    "cpu": (Rate.WORKERS, Rate.HANDOVER),
    "storage": (Rate.STORAGE,),
    "client": (Rate.CLIENT, Rate.CLIENT_CPU),
    "network": (Rate.NETWORK,),
    "collective": (Rate.COLLECTIVES, Rate.NVLINK),
    "straggling": (Rate.WAITING,),
    "checkpoint": (Rate.CHECKPOINT,),
}
"""Rates whose uncertainty limits how far each factor may be from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A factor that alone explains an observation.

    `factor` above 1 means that the rates are faster than described. `surprise` is its distance from
    1 in standard deviations of the uncertainty of these rates. `prediction` is that with the factor
    set.
    """

    kind: FactorKind
    factor: float
    surprise: float
    prediction: Prediction

    @property
    def setting(self) -> str:
        """Setting ``calibration.NAME=VALUE`` that applies the factor."""
        return f"calibration.{self.kind.name}={self.factor:.3g}"


SETTINGS: Final[tuple[tuple[str, Plain, str], ...]] = (
    ("train.sync_every_step", True, "the loop reads the loss of each step"),
    ("train.launch_time", "0 s", "the loop launches each step at once and loads meanwhile"),
    ("input.overlap_copies", True, "a prefetcher copies batches ahead"),
    ("input.overlap_copies", False, "copies are queued on the compute stream"),
    ("hardware.peer_link", "host", "GPUs exchange through host memory"),
)
"""Settings that files often leave out, with what each says of the program or the machine."""
NEAR: Final = 0.1
"""Absolute log error up to which a setting explains an observation: 10%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingExplanation:
    """A setting with which the prediction is near the observation: `predicted` instead."""

    key: str
    value: Plain
    what: str
    predicted: float

    @property
    def setting(self) -> str:
        """Setting ``KEY=VALUE`` that applies it."""
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.key}={value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An observed metric, its prediction, and the factors that explain the difference.

    `metric` is its dotted name. `explanations` are sorted by plausibility, the most plausible
    first; empty if the prediction agrees, or if no factor alone reaches the observation.
    `alternatives` are settings that bring the prediction near the observation, the nearest first.
    """

    metric: str
    observed: float
    predicted: float
    explanations: tuple[Explanation, ...]
    alternatives: tuple[SettingExplanation, ...] = ()

    @property
    def settings(self) -> Mapping[str, Plain]:
        """Most plausible factor as a setting {key: value} of the scenario; empty without any."""
        return {f"calibration.{one.kind.name}": one.factor for one in self.explanations[:1]}

    @property
    def agrees(self) -> bool:
        """True if the prediction without any factor is within `AGREEMENT` of the observation."""
        return abs(math.log(self.predicted / self.observed)) <= AGREEMENT


def explain_observation(
    read: Read,
    metric: str,
    observed: float,
    *,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Explained:
    """Find each factor of [calibration] that alone would explain an observed metric of a job.

    Parameters
    ----------
    read : callable
        Returns the scenario with the given settings applied.
    metric : str
        Dotted name of the observed metric.
    observed : float
        Observed value in the unit of the metric, above 0.
    seed : int
        Random seed of all simulations.
    progress : callable, optional
        Called with the finished share, 0 to 1.

    Raises
    ------
    NotModelled
        If the metric does not apply to the job.
    """

    def value(settings: Mapping[str, Plain]) -> float | None:
        return number_at(predict(read(settings), seed=seed, intervals=False), metric)

    def off(kind: FactorKind, logarithm: float) -> float:
        """Return the log error of the prediction with the factor `kind` set to exp(`logarithm`).

        It is -inf if the metric is zero or does not apply.
        """
        found = value({f"calibration.{kind.name}": math.exp(logarithm)})
        return math.log(found / observed) if found is not None and found > 0.0 else -math.inf

    predicted = value({})
    if predicted is None or predicted <= 0.0:
        msg = f"the job has no {metric} that could be compared"
        raise NotModelled(msg)
    found = Explained(metric=metric, observed=observed, predicted=predicted, explanations=())
    if found.agrees:
        return found
    explanations = []
    for number, kind in enumerate(FACTORS):
        factor = _root(partial(off, kind), math.log(kind.low), math.log(kind.high))
        if factor is not None:
            explanations.append(
                Explanation(
                    kind=kind,
                    factor=factor,
                    surprise=abs(math.log(factor)) / known_within(kind, read({})),
                    prediction=predict(read({f"calibration.{kind.name}": factor}), seed=seed),
                )
            )
        if progress is not None:
            progress((number + 1) / len(FACTORS))
    explanations.sort(key=lambda one: one.surprise)
    alternatives = _alternatives(value, observed, predicted)
    return replace(found, explanations=tuple(explanations), alternatives=alternatives)


def _alternatives(
    value: Callable[[Mapping[str, Plain]], float | None], observed: float, predicted: float
) -> tuple[SettingExplanation, ...]:
    """Return the settings that bring the prediction near the observation, and much nearer."""
    found = []
    for key, chosen, what in SETTINGS:
        try:
            other = value({key: chosen})
        except PlanError:
            continue
        if other is None or other <= 0.0:
            continue
        off = abs(math.log(other / observed))
        if off <= NEAR and 2.0 * off <= abs(math.log(predicted / observed)):
            found.append(SettingExplanation(key=key, value=chosen, what=what, predicted=other))
    return tuple(sorted(found, key=lambda one: abs(math.log(one.predicted / observed))))


def known_within(kind: FactorKind, scenario: Scenario) -> float:
    """Return the standard deviation of the logarithm of the rates that the factor `kind` scales."""
    variances = [d.log_sd**2 for d in uncertainties_of(scenario) if d.rate in _RATES[kind.name]]
    return max(math.sqrt(sum(variances)) if variances else DEFAULT_LOG_SD, FACTOR_TOLERANCE)


def _root(off: Callable[[float], float], low: float, high: float) -> float | None:
    """Return the factor at which the log error `off` vanishes; None if there is none.

    `off` maps the logarithm of a factor to the log error. The interval from `low` to `high`, in
    logarithms, is searched; it contains 0.
    """
    here = off(0.0)
    # Faster shows more, or less where the figure is a time: look to the side that helps.
    for end in (low, high):
        there = off(end)
        if math.isfinite(there) and (there < 0.0) != (here < 0.0):
            root = brentq(off, min(0.0, end), max(0.0, end), xtol=FACTOR_TOLERANCE, maxiter=40)
            return math.exp(float(root))
    return None
