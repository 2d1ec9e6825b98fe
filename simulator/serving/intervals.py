"""How far each figure of a service may be off: the doubt of the forward pass through the queue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Final

from simulator.results.serving import (
    Answered,
    Saturation,
    ServicePrediction,
    answered_metrics,
    saturation_metrics,
    work_cost_metrics,
)
from simulator.scenario.serving import Service
from simulator.serving.cost import cost_of
from simulator.serving.forward import Pass, ScaledPass
from simulator.serving.kv_pool import Pool
from simulator.serving.run import ServiceRun, offered_rate, saturated

P90: Final = NormalDist().inv_cdf(0.9)


def intervals(
    found: ServicePrediction, work: Pass, pool: Pool
) -> dict[str, Mapping[str, float | None]]:
    """Each figure with the forward pass at its P10, as it is, and at its P90."""
    if found.service.log_sd <= 0.0 or found.saturation is None:
        return {}
    runs = [
        _at(found, work, pool, -P90),
        _figures(found.service, found.answered, found.saturation),
        _at(found, work, pool, P90),
    ]
    names = runs[0].keys() & runs[1].keys()
    return {name: _band([run.get(name) for run in runs]) for name in sorted(names)}


def _at(found: ServicePrediction, work: Pass, pool: Pool, deviations: float) -> dict[str, float]:
    """The figures of a run whose iterations are so many deviations longer than expected.

    So is what a request takes beside them.
    """
    service, known = slowed(found.service, deviations), found.saturation
    if known is None:
        return {}
    factor = math.exp(deviations * service.log_sd)
    rate, tokens = known.request_rate / factor, known.output_rate / factor
    saturation = saturated(rate, tokens, offered_rate(service))
    told = ServiceRun(service, ScaledPass(work, factor), pool, found.seed).answered(saturation)
    return _figures(service, told, saturation)


def slowed(service: Service, deviations: float) -> Service:
    """The service with requests that take so many deviations longer beside their iterations."""
    longer = math.exp(deviations * service.overhead_log_sd)
    serving = service.serving
    slower = replace(
        serving,
        request_overhead=longer * serving.request_overhead,
        prompt_overhead=longer * serving.prompt_overhead,
        reply_lag=longer * serving.reply_lag,
    )
    return replace(service, serving=slower)


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
