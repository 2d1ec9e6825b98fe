"""Several services side by side: their figures, what tells them apart, what their answers cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.equations.cost import cost_ratio, saving
from simulator.reading.effective_settings import Input
from simulator.results.serving import ServicePrediction
from simulator.serving.cost import cost_of
from simulator.units import UsdPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSide:
    """One service: how it is called, its prediction, its keys."""

    label: str
    prediction: ServicePrediction
    inputs: Mapping[str, Input] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One service beside the first: ratios of the machines' price, and of requests at saturation.

    `price` is None where one of the prices is not known.
    """

    price: float | None
    requests: float

    @property
    def cost(self) -> float | None:
        """Cost of a request over that of the first, both at saturation."""
        return None if self.price is None else float(cost_ratio(self.price, 1.0 / self.requests))

    @property
    def saved(self) -> float | None:
        """Part of that cost that is saved; negative where it costs more."""
        return None if self.cost is None else float(saving(1.0, self.cost))


def beside(first: ServiceSide, other: ServiceSide) -> Beside | None:
    """One service beside the first; None where one of them does not fit its devices."""
    was, now = first.prediction, other.prediction
    if was.saturation is None or now.saturation is None or not was.saturation.request_rate:
        return None
    paid, pays = _full(was), _full(now)
    return Beside(
        price=None if not paid or not pays else pays / paid,
        requests=now.saturation.request_rate / was.saturation.request_rate,
    )


def _full(prediction: ServicePrediction) -> UsdPerSecond | None:
    """What all machines of a service cost while they are full [$/s]."""
    return cost_of(prediction.service, None, prediction.saturation).per_second
