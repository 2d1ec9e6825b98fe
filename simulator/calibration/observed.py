"""Explanations of an observation of a job.

One observation cannot say which description is off. Each factor of [calibration] that can explain
it alone is solved for, and they are ranked by how far each would have to be from its description,
measured by how well that is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from scipy.optimize import brentq

from simulator.confidence.uncertainty import uncertainties_of
from simulator.errors import NotModelled
from simulator.predict import predict
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.goal import Plain
from simulator.schema.scenario import Scenario
from simulator.uncertainty.calibration import FACTORS, FactorKind
from simulator.uncertainty.components import Rate

Read = Callable[[Mapping[str, Plain]], Scenario]

AGREEMENT: Final = 0.01
"""Share by which a prediction may miss the observation and still agree with it."""
FACTOR_TOLERANCE: Final = 0.003
"""Of a factor's logarithm: a prediction is not known better."""
DEFAULT_LOG_SD: Final = 0.5
"""Standard deviation of the logarithm of a rate that no uncertainty is stated for."""
_RATES: Final[Mapping[str, tuple[Rate, ...]]] = {
    "compute": (Rate.DEVICE, Rate.STEP),
    "device_memory": (Rate.DEVICE, Rate.STEP),
    "cpu": (Rate.WORKERS, Rate.HANDOVER),
    "storage": (Rate.STORAGE,),
    "network": (Rate.NETWORK,),
    "collective": (Rate.COLLECTIVES, Rate.NVLINK),
    "straggling": (Rate.WAITING,),
}
"""Whose uncertainty says how far each factor may be from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A figure of the real job: the metric's dotted name, and its value in the metric's unit."""

    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A factor that explains an observation alone.

    Above 1 the rates are faster than described. `surprise` is how many standard deviations of what
    is known about them that is; `prediction` is the job with the factor.
    """

    kind: FactorKind
    factor: float
    surprise: float
    prediction: Prediction

    @property
    def setting(self) -> str:
        """The option that sets it."""
        return f"calibration.{self.kind.name}={self.factor:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An observed figure, its prediction, and what would explain the difference.

    `explanations` are sorted, the least surprising first; none are there where the prediction
    agrees, or where no factor alone reaches the observation.
    """

    observation: Observation
    predicted: float
    explanations: tuple[Explanation, ...]

    @property
    def settings(self) -> Mapping[str, Plain]:
        """The likeliest explanation as a key of the scenario; none where there is none."""
        return {f"calibration.{one.kind.name}": one.factor for one in self.explanations[:1]}

    @property
    def agrees(self) -> bool:
        """Return whether the prediction as it stands is what was observed."""
        return abs(math.log(self.predicted / self.observation.value)) <= AGREEMENT


def explain_observation(
    read: Read,
    observation: Observation,
    *,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Explained:
    """Find each factor that alone would explain an observation.

    Parameters
    ----------
    read : callable
        The scenario with some settings over its own.
    observation : Observation
        What was observed; its value is above 0.
    seed : int
        Of the simulations, the same for all of them.
    progress : callable, optional
        Called with the finished share, 0 to 1.

    Raises
    ------
    NotModelled
        If the job has no such figure.
    """
    job = _Job(read, observation, seed)
    predicted = job.value({})
    if predicted is None or predicted <= 0.0:
        msg = f"the job has no {observation.metric} that could be compared"
        raise NotModelled(msg)
    found = Explained(observation=observation, predicted=predicted, explanations=())
    if found.agrees:
        return found
    explanations = []
    for number, kind in enumerate(FACTORS):
        factor = job.factor_of(kind)
        if factor is not None:
            explanations.append(_explanation(job, kind, factor))
        if progress is not None:
            progress((number + 1) / len(FACTORS))
    explanations.sort(key=lambda one: one.surprise)
    return Explained(observation=observation, predicted=predicted, explanations=tuple(explanations))


def known_within(kind: FactorKind, scenario: Scenario) -> float:
    """Standard deviation of the logarithm of the rates that a factor makes faster, in a job."""
    variances = [d.log_sd**2 for d in uncertainties_of(scenario) if d.rate in _RATES[kind.name]]
    return max(math.sqrt(sum(variances)) if variances else DEFAULT_LOG_SD, FACTOR_TOLERANCE)


def _explanation(job: _Job, kind: FactorKind, factor: float) -> Explanation:
    return Explanation(
        kind=kind,
        factor=factor,
        surprise=abs(math.log(factor)) / known_within(kind, job.read({})),
        prediction=predict(job.read({f"calibration.{kind.name}": factor}), seed=job.seed),
    )


class _Job:
    """The job with one factor or another, and what it then shows."""

    def __init__(self, read: Read, observation: Observation, seed: int) -> None:
        self.read, self.seed = read, seed
        self._observation = observation

    def value(self, settings: Mapping[str, Plain]) -> float | None:
        """The observed figure as it is predicted with some settings."""
        prediction = predict(self.read(settings), seed=self.seed, intervals=False)
        return number_at(prediction, self._observation.metric)

    def factor_of(self, kind: FactorKind) -> float | None:
        """The factor with which the job shows what was observed; None if none does."""

        def off(logarithm: float) -> float:
            value = self.value({f"calibration.{kind.name}": math.exp(logarithm)})
            if value is None or value <= 0.0:
                return -math.inf
            return math.log(value / self._observation.value)

        low, high = math.log(kind.low), math.log(kind.high)
        here = off(0.0)
        # Faster shows more, or less where the figure is a time: look to the side that helps.
        for end in (low, high):
            there = off(end)
            if math.isfinite(there) and (there < 0.0) != (here < 0.0):
                root = brentq(off, min(0.0, end), max(0.0, end), xtol=FACTOR_TOLERANCE, maxiter=40)
                return math.exp(float(root))
        return None
