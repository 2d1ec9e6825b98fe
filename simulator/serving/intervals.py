"""Intervals of a service's figures: uncertainty of the forward pass through the queue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from simulator.results.metrics import (
    answered_figures,
    applies,
    is_share,
    saturation_figures,
    work_figures,
)
from simulator.results.power import LOG_SD as POWER_LOG_SD
from simulator.results.serving import Answered, Saturation, ServicePrediction
from simulator.schema.serving import OpenLoop, RateCurve, Service
from simulator.serving.cost import cost_of
from simulator.serving.energy import energy_of
from simulator.serving.layout import Layout
from simulator.serving.load import usual_count
from simulator.serving.run import ServiceRun, offered_rate, saturated
from simulator.serving.saturation import let_through, saturation_rates
from simulator.uncertainty.components import P90
from simulator.units import PerSecond

MANY: Final = 20_000
"""Requests of a run that is repeated at other speeds, at most."""
TOGETHER: Final = 1000
"""The same where all are there from the start: times scale with those of iterations, however many
they are."""


def latency_intervals(
    found: ServicePrediction, layout: Layout
) -> dict[str, Mapping[str, float | None]]:
    """Each figure with the forward pass at its P10, as it is, and at its P90."""
    if found.service.log_sd <= 0.0 or not found.fits:
        return {}
    middle = _figures(found.service, found.answered, found.saturation)
    few = _fewer(found.service)
    runs = [_at(found, layout, few, -P90), middle, _at(found, layout, few, P90)]
    if few is not found.service:
        base = _at(found, layout, few, 0.0)
        runs = [_longer(run, base, middle) for run in (runs[0], base, runs[2])]
    names = [name for name in runs[0].keys() & runs[1].keys() if applies(found.service, name)]
    return {
        name: _uncertain(name, _band([run.get(name) for run in runs])) for name in sorted(names)
    }


def _fewer(service: Service) -> Service:
    """The service with as many requests as tell how an uncertainty goes through the queue."""
    load, count = service.load, usual_count(service.load)
    if isinstance(load.arrivals, RateCurve):
        return service
    together = isinstance(load.arrivals, OpenLoop) and math.isinf(load.arrivals.rate)
    most = TOGETHER if together else MANY
    if count is None or count <= most:
        return service
    return replace(service, load=replace(load, requests=most))


def _longer(
    run: Mapping[str, float], base: Mapping[str, float], middle: Mapping[str, float]
) -> dict[str, float]:
    """What a run of few requests says of all: figures differ by the factor that they differ by."""
    return {
        name: _of_whole(name, value * run[name] / base[name] if base[name] else value)
        for name, value in middle.items()
        if name in run and name in base
    }


def _of_whole(name: str, value: float) -> float:
    """The value of a figure; a share is no more than the whole."""
    return min(1.0, value) if is_share(name) else value


def _at(
    found: ServicePrediction, layout: Layout, service: Service, deviations: float
) -> dict[str, float]:
    """The figures of a run whose times are so many deviations longer than expected."""
    slower, saturation = uncertain(layout, service, deviations), None
    if found.saturation is not None:
        rate, tokens = _rates_at(found, found.saturation, (layout, slower), deviations)
        saturation = saturated(rate, tokens, offered_rate(service))
    told = ServiceRun(service, slower, found.seed).answered(saturation)
    return _figures(service, told, saturation)


def _rates_at(
    found: ServicePrediction, known: Saturation, layouts: tuple[Layout, Layout], deviations: float
) -> tuple[PerSecond, PerSecond]:
    """Requests and output tokens a second at saturation, with times so many deviations longer.

    `layouts` are those of the service as it is, and with these times.
    """
    service, (layout, slower) = found.service, layouts
    factor = math.exp(deviations * service.log_sd)
    scaled = known.request_rate / factor, known.output_rate / factor
    if known.request_rate >= let_through(service, layout):
        # Requests come no faster than they are answered: how fast that is, no run has shown.
        return saturation_rates(service, slower, found.seed)
    share = min(1.0, let_through(service, slower) / scaled[0])
    return share * scaled[0], share * scaled[1]


def uncertain(layout: Layout, service: Service, deviations: float) -> Layout:
    """With iterations so many deviations longer than expected, and so what is beside them."""
    factor = math.exp(deviations * service.log_sd)
    slower = layout.slower(factor, math.exp(deviations * service.overhead_log_sd))
    reading = layout.reading
    return slower if reading is None else replace(slower, reading=reading.slower(deviations))


def _figures(
    service: Service, told: Answered | None, saturation: Saturation | None
) -> dict[str, float]:
    """What an interval is told of."""
    cost, energy = cost_of(service, told, saturation), energy_of(service, told, saturation)
    maybe = work_figures(cost, energy)
    maybe |= {} if saturation is None else saturation_figures(saturation)
    found = {} if told is None else answered_figures(told)
    found |= {name: value for name, value in maybe.items() if value is not None}
    return {name: value for name, value in found.items() if name not in _COUNTED}


_COUNTED: Final = frozenset({"requests", "iterations", "preemptions", "end_to_end_s.half_width"})
"""What says how a run was made, not what it shows."""


def _band(values: Sequence[float | None]) -> dict[str, float | None]:
    """The band of a figure; no upper end where the slower run is beyond saturation."""
    known = sorted(value for value in values if value is not None)
    low, high = known[0], known[-1] if len(known) == len(values) else None
    return {"p10": low, "p50": values[1], "p90": high}


def _uncertain(name: str, band: dict[str, float | None]) -> dict[str, float | None]:
    """Return the band of a figure; for energies including the uncertainty of the power."""
    low, middle, high = band.values()
    if not name.startswith("energy.") or not low or not middle or not high:
        return band
    power = P90 * POWER_LOG_SD
    below, above = (math.hypot(math.log(end / middle), power) for end in (low, high))
    return {"p10": middle * math.exp(-below), "p50": middle, "p90": middle * math.exp(above)}
