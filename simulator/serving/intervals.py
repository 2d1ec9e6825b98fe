"""How far each figure of a service may be off: the doubt of the forward pass through the queue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Final

from simulator.results.serving import (
    Answered,
    Saturation,
    ServicePrediction,
    answered_metrics,
    is_told,
    saturation_metrics,
    work_cost_metrics,
)
from simulator.scenario.serving import Service
from simulator.serving.cost import cost_of
from simulator.serving.layout import Layout
from simulator.serving.run import ServiceRun, offered_rate, saturated

P90: Final = NormalDist().inv_cdf(0.9)


def intervals(found: ServicePrediction, layout: Layout) -> dict[str, Mapping[str, float | None]]:
    """Each figure with the forward pass at its P10, as it is, and at its P90."""
    if found.service.log_sd <= 0.0 or found.saturation is None:
        return {}
    runs = [
        _at(found, layout, -P90),
        _figures(found.service, found.answered, found.saturation),
        _at(found, layout, P90),
    ]
    names = [name for name in runs[0].keys() & runs[1].keys() if is_told(found.service, name)]
    return {name: _band([run.get(name) for run in runs]) for name in sorted(names)}


def _at(found: ServicePrediction, layout: Layout, deviations: float) -> dict[str, float]:
    """The figures of a run whose times are so many deviations longer than expected."""
    service, known = found.service, found.saturation
    if known is None:
        return {}
    factor = math.exp(deviations * service.log_sd)
    rate, tokens = known.request_rate / factor, known.output_rate / factor
    saturation = saturated(rate, tokens, offered_rate(service))
    slower = doubted(layout, service, deviations)
    told = ServiceRun(service, slower, found.seed).answered(saturation)
    return _figures(service, told, saturation)


def doubted(layout: Layout, service: Service, deviations: float) -> Layout:
    """With iterations so many deviations longer than expected, and so what is beside them."""
    factor = math.exp(deviations * service.log_sd)
    return layout.slower(factor, math.exp(deviations * service.overhead_log_sd))


def _figures(service: Service, told: Answered | None, saturation: Saturation) -> dict[str, float]:
    """What an interval is told of."""
    cost = cost_of(service, told, saturation)
    maybe = saturation_metrics(saturation) | work_cost_metrics(cost)
    found = {} if told is None else answered_metrics(told)
    found |= {name: value for name, value in maybe.items() if value is not None}
    return {name: value for name, value in found.items() if name not in _COUNTED}


_COUNTED: Final = frozenset({"requests", "iterations", "preemptions", "end_to_end_s.half_width"})
"""What says how a run was made, not what it shows."""


def _band(values: Sequence[float | None]) -> dict[str, float | None]:
    """The band of a figure; no upper end where the slower run is beyond saturation."""
    known = sorted(value for value in values if value is not None)
    low, high = known[0], known[-1] if len(known) == len(values) else None
    return {"p10": low, "p50": values[1], "p90": high}
