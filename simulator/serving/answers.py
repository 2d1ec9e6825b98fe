"""The door: a service and its forward pass in, latencies, rates, memory and cost out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from simulator.equations.serving import blocks_of
from simulator.results.serving import (
    TOGETHER,
    Answered,
    AtSaturation,
    DeviceMemory,
    Saturation,
    ServicePrediction,
)
from simulator.schema.serving import Service, Trace
from simulator.serving.cost import cost_of
from simulator.serving.energy import energy_of
from simulator.serving.intervals import latency_intervals
from simulator.serving.kv_pool import Pool
from simulator.serving.layout import Layout
from simulator.serving.load import usual_count
from simulator.serving.run import ServiceRun
from simulator.units import BYTE, PerSecond, show

NEAR: Final = 0.95
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
    """Predict what a service does under its load.

    Parameters
    ----------
    service : Service
        Engine, load and limits, and how far the forward pass may be off: the interval repeats the
        run with all iterations at their P10 and at their P90.
    layout : Layout
        Its replicas, and what their iterations take.
    seed : int
        Of lengths and arrivals.
    intervals : bool
        Whether to work out intervals.
    wanted : AtSaturation
        What of the replicas at saturation is worked out.
    known : Answered, optional
        What requests see, where a prediction of this very service has found it.
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
        cost=cost_of(service, None, None),
        assumptions=service.notes,
    )
    lacking = lack(service, layout)
    if lacking:
        return replace(found, warnings=(*service.cautions, lacking))
    run = ServiceRun(service, layout, seed)
    saturation = _saturation(run, wanted)
    told = known or run.answered(saturation)
    found = replace(
        found,
        saturation=saturation,
        answered=told,
        cost=cost_of(service, told, saturation),
        energy=energy_of(service, told, saturation),
        meets=meets(service, told),
        warnings=(*service.cautions, *_all_warnings(service, layout, told, saturation)),
    )
    return replace(found, interval=latency_intervals(found, layout)) if intervals else found


def _saturation(run: ServiceRun, wanted: AtSaturation) -> Saturation | None:
    if wanted is not AtSaturation.WHOLE and usual_count(run.service.load) is not None:
        return None
    return run.saturation(rough=wanted is AtSaturation.ROUGHLY)


def meets(service: Service, told: Answered | None) -> dict[str, bool]:
    """Whether each limit is kept by enough requests; all of them as `TOGETHER`."""
    limits = service.slo.limits
    if not limits:
        return {}
    if told is None:
        return dict.fromkeys((*limits, TOGETHER), False)
    shares = {**told.within, TOGETHER: told.attainment}
    return {name: share >= service.slo.share for name, share in shares.items()}


def lack(service: Service, layout: Layout) -> str:
    """What takes the room that a request of the load needs; empty where it has it."""
    short = [side.pool for side in layout.sides if not holds(service, side.pool)]
    return too_small(service, short[0]) if short else ""


def holds(service: Service, pool: Pool) -> bool:
    """Whether the cache holds a request as the load describes it: of a trace, the longest."""
    load = service.load
    longest = math.ceil(load.prompt.tokens + load.output.tokens)
    if isinstance(load.arrivals, Trace):
        both = zip(load.arrivals.prompts, load.arrivals.outputs, strict=True)
        longest = max(map(sum, both))
    return blocks_of(longest, pool.block) <= pool.blocks


def too_small(service: Service, pool: Pool) -> str:
    """What takes the room that the cache lacks."""
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
    """What a reader must not miss; nothing of saturation where nobody asked for it."""
    if saturation is not None:
        yield from _warnings(told, saturation)
        yield from _reads(layout, saturation)
        yield from _sent(service, layout, saturation)


def _reads(layout: Layout, saturation: Saturation) -> Iterator[str]:
    """That requests are read no faster than they could be answered, and what is not counted."""
    reading = layout.reading
    if reading is not None and saturation.request_rate >= reading.rate:
        rate = _two_digits(reading.rate)
        yield f"reading requests limits the rate to {rate} a second: {reading.limited_by}"
    if reading is not None and reading.caution:
        yield reading.caution


def _sent(service: Service, layout: Layout, saturation: Saturation) -> Iterator[str]:
    """That clients can send or get no more than the machines' networks carry."""
    wire = layout.wire
    most = math.inf if wire is None else service.group.count * wire.most(service.load)
    if saturation.request_rate >= most:
        yield (
            "the machines' network limits the rate: it carries what clients send and get for "
            f"{_two_digits(most)} requests a second"
        )


def _two_digits(rate: PerSecond) -> str:
    """A rate, at least its first two digits."""
    digits = max(0, 1 - math.floor(math.log10(rate)))
    return f"{round(rate, digits):,.{digits}f}"


def _warnings(told: Answered | None, saturation: Saturation) -> list[str]:
    if told is None:
        return ["the load is beyond saturation: the queue grows without end, no latency holds"]
    found = []
    if saturation.drift:
        found.append("the load is beyond saturation: latencies hold for a run of this length only")
    elif saturation.headroom is not None and saturation.headroom * NEAR < 1.0:
        found.append("the load is within 5% of saturation: small doubts move latencies far")
    if told.preemptions:
        found.append(
            f"{told.preemptions:,} times a request had to give up its cache and start over"
        )
    return found
