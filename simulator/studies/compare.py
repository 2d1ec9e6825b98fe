"""Comparison of jobs or services: differing keys, ratios, price-performance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Generic, TypeVar

from simulator.equations.cost import cost_ratio, saving
from simulator.reading.effective_settings import Input
from simulator.records import dataclass
from simulator.results.cost import service_cost
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.results.serving import ServicePrediction
from simulator.schema.measurement import Row
from simulator.units import PerSecond, UsdPerSecond

Predicted = TypeVar("Predicted", Prediction, ServicePrediction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(Generic[Predicted]):
    """One job or service of a comparison: name, prediction, keys, and published measurements."""

    label: str
    prediction: Predicted
    inputs: Mapping[str, Input] = field(default_factory=dict)
    published: tuple[Row, ...] = ()

    @property
    def measured(self) -> dict[str, float]:
        """Published values by metric; of several rows with a metric the first one counts."""
        found: dict[str, float] = {}
        for row in reversed(self.published):
            found |= row.measured
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePerformance:
    """Price and time per sample relative to the first scenario of a comparison.

    `cost` is their product: below 1, this scenario is cheaper per sample.
    """

    price: float
    time: float

    @property
    def cost(self) -> float:
        """Cost per sample relative to that of the first scenario."""
        return float(cost_ratio(self.price, self.time))

    @property
    def saved(self) -> float:
        """Share of the first scenario's cost per sample that is saved; negative if it is higher."""
        return float(saving(1.0, self.cost))


def differing(sides: Sequence[Side[Any]]) -> tuple[str, ...]:
    """Return keys whose values differ between the sides, in the order of their sections."""
    names = dict.fromkeys(name for side in sides for name in side.inputs)
    return tuple(name for name in names if _differs(name, sides))


def _differs(name: str, sides: Sequence[Side[Any]]) -> bool:
    """Return whether a stated value differs between the sides; derived values do not count."""
    found = [side.inputs.get(name) for side in sides]
    if not any(one is not None and one.given for one in found):
        return False
    first = found[0]
    return any((one and one.value) != (first and first.value) for one in found)


def price_performance(first: Side[Prediction], other: Side[Prediction]) -> PricePerformance | None:
    """Return the price-performance of two predictions; None if a price is unknown."""
    return rule_of(_paid(first.prediction), _paid(other.prediction))


def _paid(prediction: Prediction) -> tuple[UsdPerSecond | None, PerSecond]:
    timing, price = prediction.timing, prediction.cost.per_second
    electricity = (prediction.cost.electricity or 0.0) / timing.total_time
    return (None if price is None else price + electricity), timing.throughput


def rule_of(
    first: tuple[UsdPerSecond | None, PerSecond], other: tuple[UsdPerSecond | None, PerSecond]
) -> PricePerformance | None:
    """Return the price-performance of prices [$/s] and rates [samples/s], or None."""
    (was, slow), (now, fast) = first, other
    if not was or not now or not slow or not fast:
        return None
    return PricePerformance(price=now / was, time=slow / fast)


def published_price_performance(
    first: Side[Prediction], other: Side[Prediction]
) -> PricePerformance | None:
    """Return the price-performance from published hourly prices and step times.

    None if a value is missing, or if the steps have different numbers of samples.
    """
    price, step = "cost.usd_per_h", "step_time_s.mean"
    here, there = first.measured, other.measured
    equal = _samples(first) == _samples(other)
    if not equal or not all(name in one for name in (price, step) for one in (here, there)):
        return None
    return PricePerformance(price=there[price] / here[price], time=there[step] / here[step])


def _samples(side: Side[Prediction]) -> float:
    scenario = side.prediction.scenario
    train = scenario.job.train
    return float(train.batch_size * train.accumulation * scenario.ranks * scenario.job.copies)


def error(side: Side[Prediction], metric: str) -> float | None:
    """Return the relative error of the prediction against the published value; None if unknown."""
    known, ours = side.measured.get(metric), number_at(side.prediction, metric)
    return None if not known or ours is None else ours / known - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRatio:
    """Price of the machines and capacity of a service relative to the first one of a comparison.

    `price` is None if one of the prices is unknown.
    """

    price: float | None
    requests: float

    @property
    def cost(self) -> float | None:
        """Cost per request relative to that of the first service, both at saturation."""
        return None if self.price is None else float(cost_ratio(self.price, 1.0 / self.requests))

    @property
    def saved(self) -> float | None:
        """Share of the first service's cost per request that is saved; negative if it is higher."""
        return None if self.cost is None else float(saving(1.0, self.cost))


def service_ratio(
    first: Side[ServicePrediction], other: Side[ServicePrediction]
) -> ServiceRatio | None:
    """Compare a service with the first one; None if one of them does not fit its devices."""
    was, now = first.prediction, other.prediction
    if was.saturation is None or now.saturation is None or not was.saturation.request_rate:
        return None
    paid, pays = _full(was), _full(now)
    return ServiceRatio(
        price=None if not paid or not pays else pays / paid,
        requests=now.saturation.request_rate / was.saturation.request_rate,
    )


def _full(prediction: ServicePrediction) -> UsdPerSecond | None:
    return service_cost(prediction.service, None, prediction.saturation).per_second
