"""What a prediction rests on, and what its reader should be warned of."""

from __future__ import annotations

from simulator import footprint
from simulator.device_time import device_time
from simulator.footprint import HostRam, MemoryFit, Verdict
from simulator.provenance import Assumption, Source
from simulator.results import Timing
from simulator.scenario import Scenario
from simulator.units import (
    BYTE,
    BYTE_PER_SECOND,
    SECOND,
    USD_PER_SECOND,
    Unit,
    show,
)

NO_SOURCES: dict[str, Source] = {}
SHAKY_WIDTH = 0.01
"""Relative half-width of the mean step above which the run says it is not known well."""


def assumptions(scenario: Scenario) -> tuple[Assumption, ...]:
    """Every figure of the profiles that this scenario uses, and every default."""
    return (
        *scenario.notes,
        *_machine(scenario),
        *_compute(scenario),
        *_software(scenario),
        *footprint.assumptions(scenario),
    )


def _figure(
    what: str, value: float | None, unit: Unit, sources: object, key: str
) -> tuple[Assumption, ...]:
    source = sources.get(key) if isinstance(sources, dict) else None
    if value is None or source is None:
        return ()
    return (Assumption(what=what, value=show(value, unit), source=source),)


def _machine(scenario: Scenario) -> tuple[Assumption, ...]:
    group = scenario.cluster.trainers
    host, store, gpu = group.host, group.storage, group.host.gpu
    found = [
        *_figure(f"RAM of {host.name}", host.ram, BYTE, host.sources, "ram"),
        *_figure(
            f"read rate of {store.name}",
            store.read_rate,
            BYTE_PER_SECOND,
            store.sources,
            "achievable_read_bandwidth"
            if store.achievable_read_bandwidth is not None
            else "read_bandwidth",
        ),
        *_figure(
            f"read latency of {store.name}",
            store.read_latency or None,
            SECOND,
            store.sources,
            "read_latency",
        ),
    ]
    if host.host_link is not None and gpu is not None and not gpu.unified_memory:
        link = host.host_link
        key = "peak" if link.achievable is None else "achievable"
        found += _figure(f"rate of {link.name}", link.rate, BYTE_PER_SECOND, link.sources, key)
    if host.peer_link is not None and group.gpus_per_host > 1:
        link = host.peer_link
        key = "peak" if link.achievable is None else "achievable"
        found += _figure(f"rate of {link.name}", link.rate, BYTE_PER_SECOND, link.sources, key)
    if gpu is not None:
        found += _figure(f"memory of {gpu.name}", gpu.memory, BYTE, gpu.sources, "memory")
    if host.price is not None and scenario.cost.price is None:
        price = show(host.price.on_demand, USD_PER_SECOND)
        found.append(
            Assumption(what=f"price of {host.name}", value=price, source=host.price.source)
        )
    return tuple(found)


def _compute(scenario: Scenario) -> tuple[Assumption, ...]:
    time = device_time(scenario)
    if time is None:
        return ()
    return (
        Assumption(
            what=f"device time of a batch, by {time.equation}",
            value=show(float(time.total), SECOND),
            source=time.source,
        ),
    )


def _software(scenario: Scenario) -> tuple[Assumption, ...]:
    software = scenario.job.software
    return tuple(
        Assumption(what=f"speed factor: {f.name}", value=f"{f.value:g}", source=f.source)
        for f in software.factors
    )


def warnings(
    scenario: Scenario, timing: Timing, ram: HostRam, memory: MemoryFit | None
) -> tuple[str, ...]:
    """What may make the prediction wrong or the job fail."""
    found: list[str] = []
    if memory is not None and memory.verdict is not Verdict.YES:
        total, capacity = show(memory.total, BYTE), show(memory.capacity, BYTE)
        word = "does not fit" if memory.verdict is Verdict.NO else "may not fit"
        found.append(f"GPU memory: the job {word}: {total} of {capacity}")
    found += [text for text in (footprint.paging_warning(ram),) if text]
    if timing.half_width > SHAKY_WIDTH * timing.step_time.mean:
        found.append(
            f"the mean step is known to {show(timing.half_width, SECOND)} only (95%) after "
            f"{timing.simulated_steps} simulated steps"
        )
    unverified = [a.what for a in assumptions(scenario) if not a.source.verified]
    if unverified:
        found.append(f"rests on unverified figures: {', '.join(unverified)}")
    price = scenario.cluster.trainers.host.price
    if price is not None and price.source.date == "undated" and scenario.cost.price is None:
        found.append("the price is undated")
    return tuple(found)
