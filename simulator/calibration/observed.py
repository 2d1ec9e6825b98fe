"""Explanations of an observation of a job.

One observation cannot say which description is off. Each factor of [calibration] that can explain
it alone is solved for, and they are ranked by how far each would have to be from its description,
measured by how well that is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from scipy.optimize import brentq

from simulator.errors import NotModelled
from simulator.predict import predict
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.calibration import FACTORS, FactorKind
from simulator.schema.goal import Plain
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import Rate
from simulator.uncertainty.scenario import uncertainties_of

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
    """An observed figure (by dotted name), its prediction, and what would explain the difference.

    `explanations` are sorted, the least surprising first; none are there where the prediction
    agrees, or where no factor alone reaches the observation.
    """

    metric: str
    observed: float
    predicted: float
    explanations: tuple[Explanation, ...]

    @property
    def settings(self) -> Mapping[str, Plain]:
        """The likeliest explanation as a key of the scenario; none where there is none."""
        return {f"calibration.{one.kind.name}": one.factor for one in self.explanations[:1]}

    @property
    def agrees(self) -> bool:
        """Return whether the prediction as it stands is what was observed."""
        return abs(math.log(self.predicted / self.observed)) <= AGREEMENT


def explain_observation(
    read: Read,
    metric: str,
    observed: float,
    *,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Explained:
    """Find each factor that alone would explain an observation.

    Parameters
    ----------
    read : callable
        The scenario with some settings over its own.
    metric : str
        Dotted name of what was observed.
    observed : float
        Its value in the metric's unit, above 0.
    seed : int
        Of the simulations, the same for all of them.
    progress : callable, optional
        Called with the finished share, 0 to 1.

    Raises
    ------
    NotModelled
        If the job has no such figure.
    """

    def value(settings: Mapping[str, Plain]) -> float | None:
        return number_at(predict(read(settings), seed=seed, intervals=False), metric)

    def off(kind: FactorKind, logarithm: float) -> float:
        """Return the log error of the prediction with a factor, -inf without one."""
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
    return replace(found, explanations=tuple(explanations))


def known_within(kind: FactorKind, scenario: Scenario) -> float:
    """Return the log deviation of the rates that a factor makes faster, in a job."""
    variances = [d.log_sd**2 for d in uncertainties_of(scenario) if d.rate in _RATES[kind.name]]
    return max(math.sqrt(sum(variances)) if variances else DEFAULT_LOG_SD, FACTOR_TOLERANCE)


def _root(off: Callable[[float], float], low: float, high: float) -> float | None:
    """Return the factor at which the log error `off` vanishes; None if there is none.

    `low` and `high` are the logarithms between which it is looked for, on both sides of 0.
    """
    here = off(0.0)
    # Faster shows more, or less where the figure is a time: look to the side that helps.
    for end in (low, high):
        there = off(end)
        if math.isfinite(there) and (there < 0.0) != (here < 0.0):
            root = brentq(off, min(0.0, end), max(0.0, end), xtol=FACTOR_TOLERANCE, maxiter=40)
            return math.exp(float(root))
    return None
