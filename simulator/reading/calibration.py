"""The ``[calibration]`` section: factors of the scenario, and those applied to hardware.

Stores and networks are scaled here, in their descriptions, so that all code sees the same figures.
The other factors are applied where the demand is computed; see
`simulator.schema.calibration.FACTORS`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Final

from simulator.memo import cached
from simulator.reading.fitted.overlay import read_overlay
from simulator.reading.sections import CalibrationSection
from simulator.reading.shipped import without_folder
from simulator.reading.unresolved import UnresolvedScenario
from simulator.schema.calibration import FACTORS, Calibration, Factor, Overlay
from simulator.schema.fields import Section
from simulator.schema.machines import Group, Network
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Storage, StoreClient

_STORE_RATES: Final = (
    "read_bandwidth",
    "write_bandwidth",
    "achievable_read_bandwidth",
    "read_operations",
    "write_operations",
    "request_rate",
    "request_limit",
)
_STORE_LATENCIES: Final = ("read_latency", "write_latency", "open_latency")
_NETWORK_RATES: Final = (
    "bandwidth",
    "baseline",
    "storage_cap",
    "storage_operations_cap",
    "per_flow",
)


@cached()
def calibration_of(section: CalibrationSection) -> Calibration:
    """Return the factors of the file or its overlay, and the overlay itself.

    Raises
    ------
    InputError
        If there is an overlay that cannot be read.
    """
    overlay = None if section.overlay is None else read_overlay(Path(section.overlay))
    factors = tuple(
        Factor(name=kind.name, value=value, source=_source(section, overlay, kind.name))
        for kind in FACTORS
        if (value := getattr(section, kind.name)) != 1.0
    )
    return Calibration(factors=factors, overlay=overlay)


def _source(section: CalibrationSection, overlay: Overlay | None, name: str) -> Source:
    source = section.sources[name]
    return overlay.cited if overlay is not None and _of_overlay(section, source) else source


def _of_overlay(section: CalibrationSection, source: Source | None) -> bool:
    """Return whether a value is from the overlay rather than from an option that replaces it."""
    place = without_folder(str(Path(str(section.overlay))))
    return source is not None and source.reference == f"given: {place}"


def calibration_notes(file: UnresolvedScenario, calibration: Calibration) -> tuple[Assumption, ...]:
    """Return the parameters taken from the overlay and the factors stated in the file."""
    overlay = calibration.overlay
    taken = [
        Assumption(
            what=f"{fitted.key}, calibrated",
            value=fitted.value
            if fitted.p10 is None
            else f"{fitted.value} (80%: {fitted.p10} to {fitted.p90})",
            source=overlay.cited,
        )
        for fitted in (() if overlay is None else overlay.parameter)
        if overlay is not None and _of_overlay(file.calibration, _stated(file, fitted.key))
    ]
    given = [
        Assumption(what=f"calibration.{f.name}", value=f"{f.value:g}", source=f.source)
        for f in calibration.factors
        if overlay is None or f.source != overlay.cited
    ]
    return (*taken, *given)


def _stated(file: UnresolvedScenario, key: str) -> Source | None:
    """Return the source of a key; None if it is not stated."""
    section, _, name = key.partition(".")
    table: Section | None = getattr(file, section)
    return None if table is None else table.sources.get(name)


def with_factors(scenario: Scenario) -> Scenario:
    """Return the scenario with its stores and networks scaled by their factors."""
    calibration = scenario.calibration
    named = {factor.name: factor for factor in calibration.factors}
    if not {"storage", "network", "client"} & set(named):
        return scenario
    storage, network = named.get("storage"), named.get("network")
    groups = tuple(_group(group, storage, network) for group in scenario.cluster.groups)
    jobs = scenario.jobs
    if "client" in named:
        client = named["client"].value
        jobs = tuple(replace(job, client=_client(job.client, client)) for job in jobs)
    if storage is not None:
        jobs = tuple(
            replace(
                job, dataset=replace(job.dataset, read_time=job.dataset.read_time / storage.value)
            )
            if job.dataset.read_time is not None
            else job
            for job in jobs
        )
    return replace(scenario, cluster=replace(scenario.cluster, groups=groups), jobs=jobs)


def _client(client: StoreClient | None, factor: float) -> StoreClient | None:
    """Return the client with its time of a request and its rate of a reader at another speed."""
    if client is None:
        return None
    rate = client.stream_rate
    return replace(
        client,
        request_time=client.request_time / factor,
        stream_rate=None if rate is None else rate * factor,
    )


def _group(group: Group, storage: Factor | None, network: Factor | None) -> Group:
    if storage is not None:
        group = replace(
            group,
            storage=_store(group.storage, storage),
            origin=None if group.origin is None else _store(group.origin, storage),
            cache=None if group.cache is None else _store(group.cache, storage),
        )
    card = group.host.network
    if network is not None and card is not None:
        faster = _scaled(card, _NETWORK_RATES, network.value)
        group = replace(group, host=replace(group.host, network=replace(card, **faster)))  # type: ignore[arg-type] # floats by field name
    return group


def _store(store: Storage, factor: Factor) -> Storage:
    """Return the store scaled by the factor, which its sources mention."""
    changes = {
        **_scaled(store, _STORE_RATES, factor.value),
        **_scaled(store, _STORE_LATENCIES, 1.0 / factor.value),
    }
    sources = {
        key: replace(
            source, reference=f"{source.reference}; calibration.storage = {factor.value:g}"
        )
        if key in changes
        else source
        for key, source in store.sources.items()
    }
    return replace(store, sources=sources, **changes)  # type: ignore[arg-type] # floats by field name


def _scaled(thing: Storage | Network, names: tuple[str, ...], factor: float) -> dict[str, float]:
    """Return the fields `names` that have a value, multiplied by `factor`."""
    own = {field.name for field in fields(thing)} & set(names)
    values = {name: getattr(thing, name) for name in sorted(own)}
    return {name: value * factor for name, value in values.items() if value is not None}
