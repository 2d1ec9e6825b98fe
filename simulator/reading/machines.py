"""The machines of a job: trainers, helpers, and the stores of the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from simulator.memo import cached
from simulator.pipeline.topology import drives_used
from simulator.reading import defaults
from simulator.reading.document import check, read_document
from simulator.reading.shipped import DATA
from simulator.reading.unresolved import UnresolvedScenario
from simulator.records import dataclass
from simulator.results.cost import uses
from simulator.schema.accelerators import Gpu
from simulator.schema.data_loading import (
    CachePolicy,
    CpuWork,
    Dataset,
    LoaderKind,
    Placement,
    Remote,
)
from simulator.schema.fields import Choice, Citation, FractionField, NumberOrZeroField
from simulator.schema.machines import (
    Cluster,
    CpuPool,
    Group,
    Hardware,
    Host,
    Link,
    Network,
    PcieSwitch,
    Role,
    short_name,
)
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import Scenario
from simulator.schema.storage import NO_STORE, Burst, Scope, Storage, StoreClient
from simulator.schema.training import Mode
from simulator.units import (
    BYTE_PER_SECOND,
    PER_SECOND,
    SECOND,
    Bytes,
    BytesPerSecond,
    PerSecond,
    show,
)

_ROLES = {
    Mode.TRAIN: Role.TRAIN,
    Mode.ROLLOUT: Role.TRAIN,
    Mode.INFER: Role.SERVE,
    Mode.PREPARE: Role.PREPROCESS,
}


@cached()
def group_of(  # noqa: PLR0913, PLR0917 - all that describes the machines
    stated: Hardware,
    machine: Host,
    named: Storage | None,
    mode: Mode,
    gpus: int,
    gpu: Gpu | None,
) -> Group:
    """Return the training machines: their profile with the changes of the file.

    Parameters
    ----------
    stated : Hardware
        The section of the file.
    machine : Host
        The machine of the profile.
    named : Storage, optional
        The store that the file names.
    mode : Mode
        Kind of the job.
    gpus : int
        Accelerators used on each machine.
    gpu : Gpu, optional
        The accelerator used.
    """
    host = _host(stated, machine, gpus, gpu)
    # A checked scenario that names none, on a machine without drives, reads from none.
    storage = named or host.local_storage or NO_STORE
    group = Group(
        name=_ROLES[mode].value,
        role=_ROLES[mode],
        host=host,
        storage=storage,
        count=stated.count,
        gpus_per_host=gpus,
    )
    return replace(group, storage=_storage(stated, group))


def _host(stated: Hardware, machine: Host, gpus: int, gpu: Gpu | None) -> Host:
    bandwidth = stated.memory_bandwidth
    sources = stated.stated(
        gpu="gpu",
        ram="ram",
        memory_bandwidth="memory_bandwidth",
        cpu="vcpus",
        **{"cpu.smt_worth": "smt_worth", "cpu.contention": "contention"},
    )
    path = stated.peer_link or machine.peers_by_default(gpus)
    machine = machine if stated.emulated else machine.with_peers(path)
    return replace(
        machine,
        cpu=_cpu(stated, machine.cpu),
        ram=machine.ram if stated.ram is None else stated.ram,
        memory_bandwidth=machine.memory_bandwidth if bandwidth is None else bandwidth,
        host_link=_host_link(stated, machine),
        switches=_switches(stated, machine),
        peer_link=None if stated.emulated else machine.peer_link,
        network=_network(stated, machine, gpus),
        # An accelerator that stands idle is paid for, but nothing else of it counts.
        gpu=gpu,
        gpu_count=max(machine.gpu_count, gpus) if gpus else 0,
        sources={**machine.sources, **sources},
    )


def _cpu(stated: Hardware, cpu: CpuPool) -> CpuPool:
    threads = cpu.threads if stated.vcpus is None else stated.vcpus
    more = threads / cpu.threads
    return replace(
        cpu,
        threads=threads,
        cores=cpu.cores * more if stated.cores is None else stated.cores,
        # The benchmark of the whole machine, so that one hardware thread keeps its speed.
        coremark=None if cpu.coremark is None else cpu.coremark * more,
        smt_worth=cpu.smt_worth if stated.smt_worth is None else stated.smt_worth,
        contention=cpu.contention if stated.contention is None else stated.contention,
        assumed=_still_assumed(cpu, stated.smt_worth, stated.contention),
    )


def _still_assumed(
    cpu: CpuPool, smt_worth: float | None, contention: float | None
) -> frozenset[str]:
    """Return which figures of a kind of work a file does not state."""
    given = {"smt_worth": smt_worth, "contention": contention}
    return cpu.assumed - {key for key, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuWorkTable(Citation):
    """Figures of processors that depend on the kind of work."""

    kind: Annotated[CpuWork, Choice(CpuWork)]
    """The kind."""
    smt_worth: FractionField
    """Extra speed of a busy core with a second hardware thread, as a fraction of a core."""
    contention: NumberOrZeroField
    """Extra time of work with all cores busy over that with one, as a fraction."""
    log_sd: NumberOrZeroField
    """Standard deviation of the logarithm of the speed of all threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuWorkFile:
    """Contents of ``cpu_work.toml``."""

    work: list[CpuWorkTable]
    """By kind of work."""


@cache
def _cpu_works() -> Mapping[CpuWork, CpuWorkTable]:
    tables = check(CpuWorkFile, read_document(DATA / "cpu_work.toml")).work
    return {table.kind: table for table in tables}


@cached()
def for_work(cluster: Cluster, kind: CpuWork) -> Cluster:
    """Return the machines with the figures of a kind of work, where their own were not measured."""
    table = _cpu_works()[kind]
    return replace(cluster, groups=tuple(_group_for_work(one, table) for one in cluster.groups))


def _group_for_work(group: Group, table: CpuWorkTable) -> Group:
    host = group.host
    if not host.cpu.assumed:
        return group
    figures: dict[str, Any] = {key: getattr(table, key) for key in host.cpu.assumed}
    cpu = replace(host.cpu, assumed_log_sd=table.log_sd, **figures)
    sources = {**host.sources, **{f"cpu.{key}": table.cited for key in figures}}
    return replace(group, host=replace(host, cpu=cpu, sources=sources))


def _host_link(stated: Hardware, machine: Host) -> Link | None:
    link, rate = machine.host_link, stated.pcie_bandwidth
    return link if link is None or rate is None else _carrying(stated, link, rate)


def _switches(stated: Hardware, machine: Host) -> tuple[PcieSwitch, ...]:
    """Return the PCIe switches, with uplinks at least as fast as the stated rate of a device."""
    rate = stated.pcie_bandwidth
    return tuple(
        switch
        if rate is None or not switch.gpus or switch.uplink.rate >= rate
        else replace(switch, uplink=_carrying(stated, switch.uplink, rate))
        for switch in machine.switches
    )


def _carrying(stated: Hardware, link: Link, rate: BytesPerSecond) -> Link:
    """Return a PCIe link with the rate that the file states."""
    sources = stated.stated(achievable="pcie_bandwidth")
    return replace(
        link, achievable=rate, peak=max(rate, link.peak), sources={**link.sources, **sources}
    )


def _network(stated: Hardware, machine: Host, gpus: int) -> Network | None:
    """Return the machine's network, at the rate that the file states.

    The accelerators in use reach all of a stated rate, through as many of the machine's cards as it
    takes and at most one card each.
    """
    network, rate = machine.network, stated.network_bandwidth
    if network is None or rate is None:
        return network
    link = None if network.link is None else _wider(network.link, rate / network.bandwidth)
    needed = math.ceil(rate * network.cards / network.bandwidth)
    cards = min(network.cards, needed, max(1, gpus))
    return replace(network, bandwidth=rate, link=link, cards=cards)


def _wider(link: Link, times: float) -> Link:
    """Return the network link, and the rates of collectives over it, scaled by `times`."""
    curves = tuple(
        replace(
            curve,
            regimes=tuple(
                replace(regime, bandwidth=regime.bandwidth * times) for regime in curve.regimes
            ),
        )
        for curve in link.collective
    )
    known = link.achievable
    return replace(
        link,
        peak=link.peak * times,
        achievable=None if known is None else known * times,
        collective=curves,
    )


def _storage(stated: Hardware, group: Group) -> Storage:
    store = group.storage
    # The file means the store as a whole; a machine's own drives are described one by one.
    drives = drives_used(group)
    bandwidth, operations = stated.storage_bandwidth, stated.storage_operations
    latency, was = stated.storage_latency, store.achievable_read_bandwidth
    single = stated.storage_request_rate
    sources = stated.stated(
        achievable_read_bandwidth="storage_bandwidth",
        capacity="storage_capacity",
        read_latency="storage_latency",
        read_operations="storage_operations",
        request_rate="storage_request_rate",
    )
    return replace(
        store,
        achievable_read_bandwidth=was if bandwidth is None else bandwidth / drives,
        read_operations=store.read_operations if operations is None else operations / drives,
        read_latency=store.read_latency if latency is None else latency,
        capacity=store.capacity if stated.storage_capacity is None else stated.storage_capacity,
        request_limit=_of_all(store.request_limit, stated.storage_prefixes),
        write_request_limit=_of_all(store.write_request_limit, stated.storage_prefixes),
        request_rate=store.request_rate if single is None else single,
        sources={**store.sources, **sources},
    )


@cached()
def client_of(client: StoreClient | None, data: Dataset, stated: Hardware) -> StoreClient | None:
    """Return the client of object stores with the figures that the file states.

    A stated latency or rate of single requests was measured through the client, which then adds
    nothing to it.
    """
    if client is None:
        return None
    sources = data.stated(request_cpu="request_cpu", core_rate="core_rate")
    waits = stated.states("storage_latency")
    limited = stated.states("storage_request_rate")
    return replace(
        client,
        request_time=0.0 if waits else client.request_time,
        stream_rate=None if limited else client.stream_rate,
        connections=None if limited else client.connections,
        request_cpu=client.request_cpu if data.request_cpu is None else data.request_cpu,
        core_rate=client.core_rate if data.core_rate is None else data.core_rate,
        sources={**client.sources, **sources},
    )


def _of_all(limit: PerSecond | None, prefixes: int) -> PerSecond | None:
    """Return the limit of requests per second over all prefixes."""
    return None if limit is None else limit * prefixes


@cached()
def cluster_of(  # noqa: PLR0913, PLR0917 - all that describes the machines
    trainers: Group,
    placement: Placement,
    cache: Storage | None,
    remote: Remote | None,
    helper: Host | None,
    helper_storage: Storage | None,
) -> Cluster:
    """Return the training machines with the data placed as stated, and the helpers.

    Parameters
    ----------
    trainers : Group
        The training machines.
    placement : Placement
        Location of the data while the job runs.
    cache : Storage, optional
        The drives that cache the store.
    remote : Remote, optional
        The section of the file about helpers.
    helper : Host, optional
        The helpers' machine of the profile.
    helper_storage : Storage, optional
        Their store, if the file names one.
    """
    placed = _placed(trainers, placement, cache)
    if remote is None or helper is None:
        return Cluster(groups=(placed,))
    # They read what the file names, what the trainers share, or their own drives.
    shared_store, own = trainers.storage, helper.local_storage
    if shared_store.scope is Scope.LOCAL and own is not None:
        shared_store = own
    helpers = Group(
        name=remote.name,
        role=Role.PREPROCESS,
        host=_changed(remote, helper, trainers.host),
        storage=helper_storage or shared_store,
        count=remote.count,
        price=remote.price,
    )
    return Cluster(groups=(placed, helpers))


def _changed(remote: Remote, helper: Host, trainer: Host) -> Host:
    """Return the helpers' machine, with the changes of the file to its processors."""
    cpu = helper.cpu
    changed = replace(
        cpu,
        # A speed is stated in multiples of a vCPU that trains: the reference of this machine.
        coremark=cpu.coremark
        if remote.speed is None
        else remote.speed * _reference(trainer) * cpu.threads,
        smt_worth=cpu.smt_worth if remote.smt_worth is None else remote.smt_worth,
        contention=cpu.contention if remote.contention is None else remote.contention,
        assumed=_still_assumed(cpu, remote.smt_worth, remote.contention),
    )
    keys = {"cpu.coremark": "speed", "cpu.smt_worth": "smt_worth", "cpu.contention": "contention"}
    return replace(helper, cpu=changed, sources={**helper.sources, **remote.stated(**keys)})


def _reference(trainer: Host) -> float:
    """Return the CoreMark of a vCPU of a training machine; 1 if unknown, as a relative unit."""
    pool = trainer.cpu
    return 1.0 if pool.coremark is None else pool.coremark / pool.threads


def _placed(group: Group, placement: Placement, cache: Storage | None) -> Group:
    store, own = group.storage, group.host.local_storage
    if placement is Placement.STAGE and own is not None:
        return replace(group, storage=own, origin=store)
    if placement is Placement.PRELOAD:
        return replace(group, origin=store)
    return replace(group, cache=cache)


@cached()
def remote_of(stated: Remote | None, helper: Host | None, loader: LoaderKind) -> Remote | None:
    """Return the workers on the helpers' machines, with defaults for keys that are left out."""
    if stated is None or helper is None:
        return None
    left_out: dict[str, Any] = {
        "workers": max(1, int(helper.cpu.threads)),
        "shares_batches": loader is LoaderKind.TF_DATA,
    }
    return replace(stated, **{key: left_out[key] for key in left_out if not stated.states(key)})


def reference_of(
    host: Host, measured_on: Host | None, remote: Remote | None, helper: Host | None
) -> float | None:
    """Return the CoreMark of a vCPU from which CPU times are scaled to other machines.

    It is that of the machine on which they were measured; else, with helpers of comparable
    CoreMark, that of a training machine; else None.
    """
    if measured_on is not None:
        known = measured_on.cpu.coremark
        return None if known is None else known / measured_on.cpu.threads
    return _reference(host) if _are_comparable(host, remote, helper) else None


def _are_comparable(host: Host, remote: Remote | None, helper: Host | None) -> bool:
    if remote is None or helper is None:
        return False
    return remote.speed is not None or None not in (host.cpu.coremark, helper.cpu.coremark)


def group_notes(file: UnresolvedScenario) -> Iterator[Assumption]:
    """Yield the defaults of [remote] and of placement that a prediction rests on."""
    given, helper, host = file.remote, file.helper, file.host
    if given is None or helper is None:
        return
    remote = remote_of(given, helper, file.loader) or given
    if not given.states("workers"):
        what = f"workers on each {short_name(helper.name)}, one a vCPU (remote.workers not given)"
        yield _note(what, str(remote.workers))
    if not given.states("queue"):
        what = "finished batches that wait for each process that trains (remote.queue not given)"
        yield _note(what, str(remote.queue))
    if not given.states("shares_batches"):
        what = "remote workers make a batch (remote.shares_batches not given)"
        yield _note(what, "together" if remote.shares_batches else "each alone")
    if given.storage is None:
        yield _note("store of the remote machines (remote.storage not given)", _whose(file))
    if file.measured_on is None and given.speed is None:
        yield _speed(host, given, helper)


def _whose(file: UnresolvedScenario) -> str:
    shared = file.storage is not None and file.storage.scope is not Scope.LOCAL
    if shared:
        return "that of the trainers"
    if file.data.cache is CachePolicy.PRELOADED:
        return "none is read: the data is in their memory"
    return "their own drives, where the data lies too"


def _speed(host: Host, remote: Remote, helper: Host) -> Assumption:
    what = (
        f"speed of a vCPU of {short_name(helper.name)} relative to one that trains "
        "(input.measured_on not given)"
    )
    if not _are_comparable(host, remote, helper):
        return _note(what, "the same, as a CoreMark is missing")
    return _note(what, f"as their CoreMark, {_ratio(host, helper):.3f}")


def _ratio(host: Host, helper: Host) -> float:
    here, there = host.cpu, helper.cpu
    if here.coremark is None or there.coremark is None:
        return 1.0
    return (there.coremark / there.threads) / (here.coremark / here.threads)


def _note(what: str, value: str) -> Assumption:
    return Assumption(what=what, value=value, source=defaults.OWN_CHOICE)


def with_mean_rates(scenario: Scenario, stated: Hardware) -> Scenario:
    """Return the scenario with the mean rates of stores whose burst credits run out.

    A read rate stated in the file is not changed.
    """
    bursting = {store.name: store for store in _stores(scenario) if _bursts(store)}
    if not bursting:
        return scenario
    slowed, notes = dict(bursting), list[Assumption]()
    for use in uses(scenario):
        if use.store.name in bursting:
            store = _slowed(use.store, use.held, (use.reads, use.carried), stated)
            slowed[store.name] = store
            notes += _notes(use.store, store, use.held)
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


def _notes(before: Storage, after: Storage, held: Bytes) -> Iterable[Assumption]:
    """Yield the mean rates with credits that are below the best rates of the store."""
    source = Source(
        reference="credits of its profile, for all that the run reads",
        date="undated",
        verified=False,
    )
    if after.read_operations is not None and after.read_operations != before.read_operations:
        lasts = _lasts(before.burst_operations, before, held)
        value = f"{show(after.read_operations, PER_SECOND)}{lasts}"
        what = f"mean reads a second of {before.name}, credits counted"
        yield Assumption(what=what, value=value, source=source)
    if after.read_rate != before.read_rate:
        lasts = _lasts(before.burst_bandwidth, before, held)
        value = f"{show(after.read_rate, BYTE_PER_SECOND)}{lasts}"
        what = f"mean read rate of {before.name}, credits counted"
        yield Assumption(what=what, value=value, source=source)


def _lasts(burst: Burst | None, store: Storage, held: Bytes) -> str:
    """Describe how long a store bursts at its full rate before its credits are used."""
    size = None if burst is None else held if burst.metered else store.capacity
    if burst is None or size is None or burst.lasts(size) == 0.0:
        return ""
    return f" (bursts for {show(burst.lasts(size), SECOND, 2)} of full use)"
