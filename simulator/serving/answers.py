"""Prediction of a service, with the intervals of its metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from simulator.equations.serving import blocks_of
from simulator.results.cost import service_cost
from simulator.results.energy import LOG_SD as POWER_LOG_SD
from simulator.results.energy import service_energy
from simulator.results.metrics import applies, is_share, part_figures
from simulator.results.serving import (
    TOGETHER,
    Answered,
    AtSaturation,
    DeviceMemory,
    Saturation,
    ServicePrediction,
)
from simulator.schema.serving import OpenLoop, RateCurve, Service, Trace
from simulator.schema.uncertainty import P90
from simulator.serving.layout import Layout
from simulator.serving.load import usual_count
from simulator.serving.replica import Pool
from simulator.serving.run import ServiceRun, let_through, offered_rate, saturated, saturation_rates
from simulator.units import BYTE, PerSecond, show

MAX_REQUESTS: Final = 20_000
"""Requests of a run that is repeated at other speeds, at most."""
MAX_REQUESTS_AT_ONCE: Final = 1000
"""The same if all arrive at once: times scale with those of iterations."""


def latency_intervals(
    found: ServicePrediction, layout: Layout
) -> dict[str, Mapping[str, float | None]]:
    """Return the intervals of metrics, from runs with the forward pass at P10, P50 and P90."""
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
    """Return the service with fewer requests, for the runs of the intervals."""
    load, count = service.load, usual_count(service.load)
    if isinstance(load.arrivals, RateCurve):
        return service
    together = isinstance(load.arrivals, OpenLoop) and math.isinf(load.arrivals.rate)
    most = MAX_REQUESTS_AT_ONCE if together else MAX_REQUESTS
    if count is None or count <= most:
        return service
    return replace(service, load=replace(load, requests=most))


def _longer(
    run: Mapping[str, float], base: Mapping[str, float], middle: Mapping[str, float]
) -> dict[str, float]:
    """Return the metrics of the full run, scaled by the ratios between two short runs.

    `run` and `base` are those with and without longer times, `middle` is the full run.
    """
    return {
        name: _of_whole(name, value * run[name] / base[name] if base[name] else value)
        for name, value in middle.items()
        if name in run and name in base
    }


def _of_whole(name: str, value: float) -> float:
    return min(1.0, value) if is_share(name) else value


def _at(
    found: ServicePrediction, layout: Layout, service: Service, deviations: float
) -> dict[str, float]:
    """Return the metrics of a run with times that are `deviations` standard deviations longer."""
    slower, saturation = uncertain(layout, service, deviations), None
    if found.saturation is not None:
        rate, tokens = _rates_at(found, found.saturation, (layout, slower), deviations)
        saturation = saturated(rate, tokens, offered_rate(service))
    told = ServiceRun(service, slower, found.seed).answered(saturation)
    return _figures(service, told, saturation)


def _rates_at(
    found: ServicePrediction, known: Saturation, layouts: tuple[Layout, Layout], deviations: float
) -> tuple[PerSecond, PerSecond]:
    """Return requests and output tokens per second at saturation with longer times.

    Times are `deviations` standard deviations longer. `layouts` are the nominal layout and the
    slower one, `known` is the saturation of the nominal one.
    """
    service, (layout, slower) = found.service, layouts
    factor = math.exp(deviations * service.log_sd)
    scaled = known.request_rate / factor, known.output_rate / factor
    if known.request_rate >= let_through(service, layout):
        # The nominal rate is limited by arrivals, so the rate of the engine is not known.
        return saturation_rates(service, slower, found.seed)
    share = min(1.0, let_through(service, slower) / scaled[0])
    return share * scaled[0], share * scaled[1]


def uncertain(layout: Layout, service: Service, deviations: float) -> Layout:
    """Return the layout with times that are `deviations` standard deviations longer.

    They are the times of iterations and overheads, and of reading inputs.
    """
    factor = math.exp(deviations * service.log_sd)
    slower = layout.slower(factor, math.exp(deviations * service.overhead_log_sd))
    reading = layout.reading
    return slower if reading is None else replace(slower, reading=reading.slower(deviations))


def _figures(
    service: Service, told: Answered | None, saturation: Saturation | None
) -> dict[str, float]:
    """Return the metrics that have intervals, by name."""
    cost = service_cost(service, told, saturation)
    energy = service_energy(service, told, saturation)
    found = part_figures(answered=told, saturation=saturation, cost=cost, energy=energy)
    return {n: value for n, value in found.items() if value is not None and n not in _CERTAIN}


_CERTAIN: Final = frozenset(
    {"requests", "iterations", "preemptions", "end_to_end_s.half_width", "cost.usd_per_hour"}
)
"""Figures without an interval: how a run was made, and what machines cost."""


def _band(values: Sequence[float | None]) -> dict[str, float | None]:
    """Return P10, P50 and P90 of a metric from its values at fast, nominal and slow times.

    P90 is None if the slow run is beyond saturation.
    """
    known = sorted(value for value in values if value is not None)
    low, high = known[0], known[-1] if len(known) == len(values) else None
    return {"p10": low, "p50": values[1], "p90": high}


def _uncertain(name: str, band: dict[str, float | None]) -> dict[str, float | None]:
    """Return the interval of a metric; of an energy with the uncertainty of power draw added."""
    low, middle, high = band.values()
    if not name.startswith("energy.") or not low or not middle or not high:
        return band
    power = P90 * POWER_LOG_SD
    below, above = (math.hypot(math.log(end / middle), power) for end in (low, high))
    return {"p10": middle * math.exp(-below), "p50": middle, "p90": middle * math.exp(above)}


NEAR_SATURATION: Final = 0.95
"""Share of saturation from which on a run of this length may not have become steady."""


def answer(  # noqa: PLR0913 - what a caller may want beside the figures
    service: Service,
    layout: Layout,
    *,
    seed: int = 0,
    intervals: bool = True,
    wanted: AtSaturation = AtSaturation.WHOLE,
    known: Answered | None = None,
) -> ServicePrediction:
    """Predict latency, throughput and cost of a service under its load.

    Parameters
    ----------
    service : Service
        Engine, load, SLO, and the uncertainty of the forward pass.
    layout : Layout
        Its replicas, with their forward passes.
    seed : int
        Seed of lengths and arrivals.
    intervals : bool
        Compute intervals from repeated runs with iterations at P10 and P90.
    wanted : AtSaturation
        Part of the results at saturation to compute.
    known : Answered, optional
        Results of requests from an earlier prediction of the same service, to be reused.
    """
    pool = layout.main.pool
    tokens = 0 if service.one_pass is not None else pool.tokens
    memory = DeviceMemory(items=pool.items, capacity=pool.capacity, cache_tokens=tokens)
    found = ServicePrediction(
        service=service,
        seed=seed,
        memory=memory,
        answered=None,
        saturation=None,
        cost=service_cost(service, None, None),
        assumptions=service.notes,
    )
    lacking = lack(service, layout)
    if lacking:
        return replace(found, warnings=(*service.cautions, lacking))
    run = ServiceRun(service, layout, seed)
    saturation = _saturation(run, wanted)
    endless = usual_count(service.load) is None
    overloaded = endless and saturation is not None and saturation.is_passed
    told = None if overloaded else known or run.answered(saturation)
    if saturation is not None and intervals and wanted is AtSaturation.WHOLE:
        saturation = replace(saturation, within_slo=highest_rate(run, saturation, told))
    found = replace(
        found,
        saturation=saturation,
        answered=told,
        cost=service_cost(service, told, saturation),
        energy=service_energy(service, told, saturation),
        meets=meets(service, told),
        warnings=(*service.cautions, *_all_warnings(service, layout, told, saturation)),
    )
    return replace(found, interval=latency_intervals(found, layout)) if intervals else found


MAX_HALVINGS: Final = 5
"""Number of bisections of the range of the highest rate within all limits."""


def highest_rate(run: ServiceRun, saturation: Saturation, own: Answered | None) -> PerSecond | None:
    """Return the highest rate of arrivals at which the service meets its SLO [requests/s].

    None without a rate of arrivals or limits; 0 if even a nearly idle service misses them.

    Parameters
    ----------
    run : ServiceRun
        Runs of the service with its layout and seed.
    saturation : Saturation
        Its rates at saturation.
    own : Answered or None
        Its results at the rate of its own load.
    """
    service, ways = run.service, run.service.load.arrivals
    if not isinstance(ways, OpenLoop) or math.isinf(ways.rate) or not service.slo.limits:
        return None
    most = saturation.request_rate
    met = all(meets(service, own).values())
    kept, missed = (min(ways.rate, most), most) if met else (0.0, min(ways.rate, most))
    for _ in range(MAX_HALVINGS):
        middle = 0.5 * (kept + missed)
        load = replace(service.load, arrivals=replace(ways, rate=middle))
        other = ServiceRun(replace(service, load=load), run.layout, run.seed)
        answered = other.answered(saturated(most, saturation.output_rate, middle))
        met = all(meets(service, answered).values())
        kept, missed = (middle, missed) if met else (kept, middle)
    return kept


def _saturation(run: ServiceRun, wanted: AtSaturation) -> Saturation | None:
    if wanted is not AtSaturation.WHOLE and usual_count(run.service.load) is not None:
        return None
    return run.saturation(rough=wanted is AtSaturation.ROUGHLY)


def meets(service: Service, told: Answered | None) -> dict[str, bool]:
    """Return for each limit of the SLO if enough requests meet it; key `TOGETHER`: all limits."""
    limits = service.slo.limits
    if not limits:
        return {}
    if told is None:
        return dict.fromkeys((*limits, TOGETHER), False)
    shares = {**told.within, TOGETHER: told.attainment}
    return {name: share >= service.slo.share for name, share in shares.items()}


def lack(service: Service, layout: Layout) -> str:
    """Return the reason that a request of the load does not fit in the KV cache, or ""."""
    short = [side.pool for side in layout.sides if not holds(service, side.pool)]
    return too_small(service, short[0]) if short else ""


def holds(service: Service, pool: Pool) -> bool:
    """Return whether the KV cache can hold a request of the load (of a trace: the longest)."""
    load = service.load
    longest = math.ceil(load.prompt.tokens + load.output.tokens)
    if isinstance(load.arrivals, Trace):
        both = zip(load.arrivals.prompts, load.arrivals.outputs, strict=True)
        longest = max(map(sum, both))
    return blocks_of(longest, pool.block) <= pool.blocks


def too_small(service: Service, pool: Pool) -> str:
    """Return the message that the KV cache is too small, with the memory that other items use."""
    held = sum(size for name, size in pool.items.items() if name != "cache")
    taken, there = show(held, BYTE), show(pool.capacity, BYTE)
    return (
        f"does not fit: weights, activations and graphs take {taken} of the {there} of each "
        f"device, which leaves a cache of {pool.tokens:,} tokens at a memory fraction of "
        f"{service.serving.memory_fraction:g}, less than a request of the load needs"
    )


def _all_warnings(
    service: Service, layout: Layout, told: Answered | None, saturation: Saturation | None
) -> Iterator[str]:
    """Yield the warnings of a prediction; none without results at saturation."""
    if saturation is not None:
        yield from _warnings(told, saturation)
        yield from _reads(layout, saturation)
        yield from _sent(service, layout, saturation)


def _reads(layout: Layout, saturation: Saturation) -> Iterator[str]:
    """Yield warnings if reading inputs limits the service, or if parts of it are not modeled."""
    reading = layout.reading
    if reading is not None and saturation.request_rate >= reading.rate:
        rate = _two_digits(reading.rate)
        yield f"reading requests limits the rate to {rate} a second: {reading.limited_by}"
    if reading is not None and reading.caution:
        yield reading.caution


def _sent(service: Service, layout: Layout, saturation: Saturation) -> Iterator[str]:
    """Yield a warning if the network between clients and machines limits the service."""
    wire = layout.wire
    most = math.inf if wire is None else service.group.count * wire.most(service.load)
    if saturation.request_rate >= most:
        yield (
            "the machines' network limits the rate: it carries what clients send and get for "
            f"{_two_digits(most)} requests a second"
        )


def _two_digits(rate: PerSecond) -> str:
    """Format a rate with at least two digits."""
    digits = max(0, 1 - math.floor(math.log10(rate)))
    return f"{round(rate, digits):,.{digits}f}"


def _warnings(told: Answered | None, saturation: Saturation) -> list[str]:
    if told is None:
        return ["the load is beyond saturation: the queue grows without end, no latency holds"]
    found = []
    if saturation.drift:
        found.append("the load is beyond saturation: latencies hold for a run of this length only")
    elif saturation.headroom is not None and saturation.headroom * NEAR_SATURATION < 1.0:
        found.append("the load is within 5% of saturation: small errors move latencies far")
    if told.preemptions:
        found.append(
            f"{told.preemptions:,} times a request had to give up its cache and start over"
        )
    return found
