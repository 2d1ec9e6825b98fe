"""The [hardware] section as a group of machines, with its what-if changes."""

from __future__ import annotations

from dataclasses import replace

from simulator.pipeline.topology import drives_used
from simulator.reading.document import Document
from simulator.reading.resolved import Draft
from simulator.schema.hardware.cluster import Group, Role
from simulator.schema.hardware.host import CpuPool, Host, Network, PcieSwitch
from simulator.schema.hardware.link import Link
from simulator.schema.hardware.storage import NO_STORE, Storage
from simulator.schema.workload.train import Mode
from simulator.uncertainty.provenance import Source
from simulator.units import BytesPerSecond, PerSecond

_ROLES = {
    Mode.TRAIN: Role.TRAIN,
    Mode.ROLLOUT: Role.TRAIN,
    Mode.INFER: Role.SERVE,
    Mode.PREPARE: Role.PREPROCESS,
}


def group_of(draft: Draft) -> Group:
    """The machines of a scenario, as their profile says and as the file changes them."""
    host = _host(draft)
    # A checked scenario that names none, on a machine without drives, reads from none.
    storage = draft.storage or host.local_storage or NO_STORE
    group = Group(
        name=_ROLES[draft.mode].value,
        role=_ROLES[draft.mode],
        host=host,
        storage=storage,
        count=draft.hardware.count,
        gpus_per_host=draft.gpus,
    )
    return replace(group, storage=_storage(draft, group))


def said_in(document: Document, section: str, **keys: str) -> dict[str, Source]:
    """Sources by field for the keys that a section gives: the file and line that say so.

    Parameters
    ----------
    document : Document
        The scenario's.
    section : str
        Name of the section.
    **keys : str
        Key in the file by field of the domain type.
    """
    sources = {}
    for name, key in keys.items():
        if document.says((section, key)):
            place = document.place((section, key))
            sources[name] = Source(reference=f"given: {place}", date="undated")
    return sources


def _host(draft: Draft) -> Host:
    hardware, host = draft.hardware, draft.machine
    bandwidth = hardware.memory_bandwidth
    said = said_in(
        draft.document,
        "hardware",
        gpu="gpu",
        ram="ram",
        memory_bandwidth="memory_bandwidth",
        cpu="vcpus",
        **{"cpu.smt_worth": "smt_worth", "cpu.contention": "contention"},
    )
    return replace(
        host,
        cpu=_cpu(draft),
        ram=host.ram if hardware.ram is None else hardware.ram,
        memory_bandwidth=host.memory_bandwidth if bandwidth is None else bandwidth,
        host_link=_host_link(draft),
        switches=_switches(draft),
        peer_link=None if draft.hardware.emulated else host.peer_link,
        network=_network(draft),
        # An accelerator that stands idle is paid for, but nothing else of it counts.
        gpu=draft.gpu,
        gpu_count=max(host.gpu_count, draft.gpus) if draft.gpus else 0,
        sources={**host.sources, **said},
    )


def _cpu(draft: Draft) -> CpuPool:
    hardware, cpu = draft.hardware, draft.machine.cpu
    threads = cpu.threads if hardware.vcpus is None else hardware.vcpus
    more = threads / cpu.threads
    return replace(
        cpu,
        threads=threads,
        cores=cpu.cores * more if hardware.cores is None else hardware.cores,
        # The benchmark of the whole machine, so that one hardware thread keeps its speed.
        coremark=None if cpu.coremark is None else cpu.coremark * more,
        smt_worth=cpu.smt_worth if hardware.smt_worth is None else hardware.smt_worth,
        contention=cpu.contention if hardware.contention is None else hardware.contention,
    )


def _host_link(draft: Draft) -> Link | None:
    link, rate = draft.machine.host_link, draft.hardware.pcie_bandwidth
    return link if link is None or rate is None else _carrying(draft, link, rate)


def _switches(draft: Draft) -> tuple[PcieSwitch, ...]:
    """Switches of the machine; what an accelerator alone reaches passes its switch's uplink too."""
    rate = draft.hardware.pcie_bandwidth
    return tuple(
        switch
        if rate is None or not switch.gpus or switch.uplink.rate >= rate
        else replace(switch, uplink=_carrying(draft, switch.uplink, rate))
        for switch in draft.machine.switches
    )


def _carrying(draft: Draft, link: Link, rate: BytesPerSecond) -> Link:
    """A PCIe link that reaches what the file says."""
    said = said_in(draft.document, "hardware", achievable="pcie_bandwidth")
    return replace(
        link, achievable=rate, peak=max(rate, link.peak), sources={**link.sources, **said}
    )


def _network(draft: Draft) -> Network | None:
    network, rate = draft.machine.network, draft.hardware.network_bandwidth
    if network is None or rate is None:
        return network
    link = None if network.link is None else _wider(network.link, rate / network.bandwidth)
    return replace(network, bandwidth=rate, link=link)


def _wider(link: Link, times: float) -> Link:
    """The cards' link, and what collectives reach over it, so many times as fast."""
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


def _storage(draft: Draft, group: Group) -> Storage:
    hardware, store = draft.hardware, group.storage
    # The file means the store as a whole; a machine's own drives are described one by one.
    drives = drives_used(group)
    bandwidth, operations = hardware.storage_bandwidth, hardware.storage_operations
    latency, was = hardware.storage_latency, store.achievable_read_bandwidth
    single = hardware.storage_request_rate
    said = said_in(
        draft.document,
        "hardware",
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
        capacity=store.capacity if hardware.storage_capacity is None else hardware.storage_capacity,
        request_limit=_of_all(store.request_limit, hardware.storage_prefixes),
        write_request_limit=_of_all(store.write_request_limit, hardware.storage_prefixes),
        request_rate=store.request_rate if single is None else single,
        sources={**store.sources, **said},
    )


def _of_all(limit: PerSecond | None, prefixes: int) -> PerSecond | None:
    """Requests a second under all prefixes."""
    return None if limit is None else limit * prefixes
