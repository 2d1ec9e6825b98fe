"""Where a job's data and checkpoints lie, and what a run asks of each store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from simulator.equations.cost import upload_requests
from simulator.equations.storage import operations_per_sample
from simulator.physics.footprint import checkpoint_shares, sample_bytes
from simulator.pipeline.run_length import (
    checkpoints,
    lengths,
    preparation,
    samples_of_an_epoch,
)
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.input import bytes_per_file, read_from_store, write_operations
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.scenario import Scenario
from simulator.schema.store_plan import Location
from simulator.schema.workload.dataset import CachePolicy, Placement
from simulator.schema.workload.loader import Preparation
from simulator.schema.workload.train import Mode
from simulator.units import Bytes, Real, UsdPerSecond

UNLIMITED = math.inf
_CARRIED = frozenset({Scope.OBJECT, Scope.NETWORK})
"""Stores that are reached over a network; drives and volumes are where their machines are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a run does with a store.

    `held` are the bytes that lie there, `reads` and `writes` requests over the whole run, `carried`
    the bytes that are read and `written` those that are written.
    """

    store: Storage
    held: Bytes = 0.0
    reads: float = 0.0
    writes: float = 0.0
    carried: Bytes = 0.0
    written: Bytes = 0.0


def location_of(scenario: Scenario, store: Storage) -> Location:
    """Where a store is for its machines: as the file says, else by the clouds of both."""
    if scenario.store.location is not None:
        return scenario.store.location
    far = store.scope in _CARRIED and bool(foreign_cloud(scenario, store))
    return Location.OTHER_CLOUD if far else Location.SAME_REGION


def foreign_cloud(scenario: Scenario, store: Storage) -> str:
    """The cloud of machines that use a store which belongs to another one; empty if none do."""
    if not store.clouds:
        return ""
    using = (
        group.host.cloud
        for group in scenario.cluster.groups
        if store.name in {one.name for one in (group.storage, group.origin) if one is not None}
    )
    return next((cloud for cloud in using if cloud and cloud not in store.clouds), "")


def belongs_elsewhere(scenario: Scenario, store: Storage) -> str:
    """That a store belongs to another cloud than machines that use it; empty if it does not."""
    cloud = foreign_cloud(scenario, store)
    if not cloud:
        return ""
    return f"{short_name(store.name)} belongs to {store.clouds[0]}, the machines to {cloud}"


def data_stores(scenario: Scenario) -> tuple[Storage, ...]:
    """The stores that hold the data when a run begins: of trainers that read, or of helpers."""
    job, trainers = scenario.job, scenario.cluster.trainers
    staged = job.dataset.placement is Placement.STAGE
    preloaded = job.dataset.cache is CachePolicy.PRELOADED
    if job.remote is None or staged or preloaded:
        return (trainers.origin or trainers.storage,)
    helpers = (g for g in scenario.cluster.groups if g.name == job.remote.group)
    return tuple(group.origin or group.storage for group in helpers)


def data_rent(scenario: Scenario) -> UsdPerSecond:
    """What stores that hold the data cost [$/s]; one whose price is not known counts nothing.

    Rates held ready are in it; drives of a machine are paid with the machine.
    """
    size = scenario.job.stored_total
    rented = (store for store in data_stores(scenario) if store.scope is not Scope.LOCAL)
    return sum((store.standing(size) or 0.0 for store in rented), 0.0)


def rent_of_data(scenario: Scenario) -> Real:
    """What the data as given costs by time where it lies, for one candidate or many [$/s]."""
    dataset = scenario.job.dataset
    rented = (store for store in data_stores(scenario) if store.scope is not Scope.LOCAL)
    prices: list[Real] = [store.price for store in rented if store.price is not None]
    return dataset.total_bytes * sum(prices, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What interruptions make of a run: `checkpoints` written, `loads` of one, work done `again`.

    `again` is all work over the work that counts.
    """

    checkpoints: float
    loads: float = 0.0
    again: float = 1.0


def uses(scenario: Scenario, life: Life | None = None) -> tuple[Use, ...]:
    """What a run does with every store that is not part of a machine; undisturbed by default."""
    lived = Life(checkpoints=float(checkpoints(scenario))) if life is None else life
    parts = (
        *_data(scenario),
        *_epochs(scenario, lived.again),
        *_placement(scenario),
        *_results(scenario, lived),
    )
    outside = [one for one in parts if one.store.scope is not Scope.LOCAL]
    names = dict.fromkeys(one.store.name for one in outside)
    return tuple(_together([one for one in outside if one.store.name == name]) for name in names)


def _together(parts: Sequence[Use]) -> Use:
    return Use(
        store=parts[0].store,
        held=sum(one.held for one in parts),
        reads=sum(one.reads for one in parts),
        writes=sum(one.writes for one in parts),
        carried=sum(one.carried for one in parts),
        written=sum(one.written for one in parts),
    )


def _data(scenario: Scenario) -> Iterator[Use]:
    """The data as given, and prepared copies of it; preparing them reads and writes all of it."""
    job = scenario.job
    given = job.dataset.total_bytes
    prepared = job.preprocessing.where is Preparation.BEFOREHAND and job.mode is not Mode.PREPARE
    for store in data_stores(scenario):
        yield Use(store=store, held=given)
        if prepared:
            yield Use(store=store, held=job.stored_total)
    if prepared:
        raw = read_from_store(preparation(scenario), Phase.COLD)
        share = job.dataset.samples / job.train.batch_size
        store = scenario.cluster.trainers.storage
        written = write_operations(job.dataset, job.stored_bytes, store)
        yield Use(
            store=store,
            reads=float(raw.operations * share),
            carried=float(raw.amount * share),
            writes=float(written * job.dataset.samples),
            written=float(job.stored_total),
        )


def _epochs(scenario: Scenario, again: float) -> Iterator[Use]:
    """What epochs and evaluation passes read past all caches, so many times over.

    Where the machines that train make batches beside helpers, those of helpers stand for all.
    """
    job = scenario.job
    view = scenario if job.remote is None else replace(scenario, at=job.remote.group)
    epochs, once = lengths(scenario).epochs, float(samples_of_an_epoch(scenario))
    evaluated = 0.0
    if job.train.evaluation is not None:
        passes = job.train.epochs // job.train.evaluation.every_epochs
        evaluated = passes * job.train.evaluation.samples
    read = {
        Phase.COLD: once * min(1.0, epochs),
        Phase.WARM: once * max(0.0, epochs - 1.0) + evaluated,
    }
    for phase, samples in read.items():
        demand, batches = read_from_store(view, phase), again * samples / job.train.batch_size
        yield Use(
            store=view.site.storage,
            reads=float(demand.operations * batches),
            carried=float(demand.amount * batches),
        )


def _placement(scenario: Scenario) -> Iterator[Use]:
    """What is read to copy the data to all machines that train."""
    job, group = scenario.job, scenario.cluster.trainers
    if job.dataset.placement is Placement.STREAM:
        return
    store = group.origin or group.storage
    each = operations_per_sample(
        job.stored_bytes,
        bytes_per_file(job.dataset, job.stored_bytes),
        store.operation_size or UNLIMITED,
        sequential=True,
    )
    yield Use(
        store=store,
        reads=float(each * job.dataset.samples * group.count),
        carried=float(job.stored_total * group.count),
    )


def _results(scenario: Scenario, life: Life) -> Iterator[Use]:
    """What a run writes: checkpoints, or the samples that it is there to prepare."""
    job, store = scenario.job, scenario.cluster.trainers.storage
    if job.mode is Mode.PREPARE:
        samples = float(samples_of_an_epoch(scenario) * lengths(scenario).epochs)
        size = float(sample_bytes(scenario)) * samples
        each = write_operations(job.dataset, sample_bytes(scenario), store)
        yield Use(store=store, held=size, writes=float(each * samples), written=size)
        return
    if job.model is not None and life.checkpoints > 0.0:
        yield _of_checkpoints(scenario, life)


def _of_checkpoints(scenario: Scenario, life: Life) -> Use:
    """What checkpoints ask of the store, some of which are kept and some read again."""
    shares, group = checkpoint_shares(scenario), scenario.cluster.trainers
    store, share, whole = group.storage, float(shares.device.value), float(shares.whole)
    number, part = life.checkpoints, store.operation_size or UNLIMITED
    # All machines read at once, each what its own processes hold.
    readers, read = float(shares.processes) * group.count, float(shares.machine.value) * group.count
    return Use(
        store=store,
        held=min(number, scenario.store.checkpoints) * whole,
        writes=float(number * upload_requests(share, part)) * whole / share,
        written=number * whole,
        reads=life.loads * readers * max(1.0, math.ceil(share / part)),
        carried=life.loads * read,
    )
