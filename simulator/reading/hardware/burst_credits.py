"""Stores that are fast for some time only, at the mean rate that a run gets of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from simulator.results.cost import uses
from simulator.schema.machines import Group, Hardware
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Burst, Storage
from simulator.units import BYTE_PER_SECOND, PER_SECOND, Bytes, show


def with_mean_rates(scenario: Scenario, stated: Hardware) -> Scenario:
    """Return the scenario with stores whose credits run out at their mean rate over the whole run.

    A file that states what its store reads at means that, credits or not.
    """
    bursting = {store.name: store for store in _stores(scenario) if _bursts(store)}
    if not bursting:
        return scenario
    slowed, notes = dict(bursting), list[Assumption]()
    for use in uses(scenario):
        if use.store.name in bursting:
            store = _slowed(use.store, use.held, (use.reads, use.carried), stated)
            slowed[store.name] = store
            notes += _notes(use.store, store)
    groups = tuple(_with(group, slowed) for group in scenario.cluster.groups)
    cluster = replace(scenario.cluster, groups=groups)
    return replace(scenario, cluster=cluster, notes=(*scenario.notes, *notes))


def _stores(scenario: Scenario) -> Iterable[Storage]:
    for group in scenario.cluster.groups:
        yield group.storage
        if group.origin is not None:
            yield group.origin


def _bursts(store: Storage) -> bool:
    return store.burst_operations is not None or store.burst_bandwidth is not None


def _with(group: Group, slowed: dict[str, Storage]) -> Group:
    origin = group.origin
    return replace(
        group,
        storage=slowed.get(group.storage.name, group.storage),
        origin=None if origin is None else slowed.get(origin.name, origin),
    )


def _slowed(store: Storage, held: Bytes, asked: tuple[float, Bytes], stated: Hardware) -> Storage:
    operations, carried = asked
    if stated.states("storage_operations"):
        store = replace(store, burst_operations=None)
    if stated.states("storage_bandwidth"):
        store = replace(store, burst_bandwidth=None)
    rate = _mean(store, store.burst_operations, held, operations)
    if rate is not None:
        known = store.read_operations
        store = replace(store, read_operations=rate if known is None else min(known, rate))
    rate = _mean(store, store.burst_bandwidth, held, carried)
    if rate is not None:
        store = replace(store, achievable_read_bandwidth=min(store.read_rate, rate))
    return store


def _mean(store: Storage, burst: Burst | None, held: Bytes, asked: float) -> float | None:
    size = None if burst is None else held if burst.metered else store.capacity
    return None if burst is None or size is None else burst.mean_rate(size, asked)


def _notes(before: Storage, after: Storage) -> Iterable[Assumption]:
    """Return the mean rates with credits counted, where they are below the store's best rates."""
    source = Source(
        reference="credits of its profile, for all that the run reads",
        date="undated",
        verified=False,
    )
    if after.read_operations is not None and after.read_operations != before.read_operations:
        value = show(after.read_operations, PER_SECOND)
        what = f"mean reads a second of {before.name}, credits counted"
        yield Assumption(what=what, value=value, source=source)
    if after.read_rate != before.read_rate:
        value = show(after.read_rate, BYTE_PER_SECOND)
        what = f"mean read rate of {before.name}, credits counted"
        yield Assumption(what=what, value=value, source=source)
