"""The [hardware] section as a group of machines, with its what-if changes."""

from __future__ import annotations

from dataclasses import replace

from simulator.memo import cached
from simulator.pipeline.topology import drives_used
from simulator.reading.sections import HardwareSection
from simulator.schema.hardware.cluster import Group, Role
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import CpuPool, Host, Network, PcieSwitch
from simulator.schema.hardware.link import Link
from simulator.schema.hardware.storage import NO_STORE, Storage
from simulator.schema.workload.train import Mode
from simulator.units import BytesPerSecond, PerSecond

_ROLES = {
    Mode.TRAIN: Role.TRAIN,
    Mode.ROLLOUT: Role.TRAIN,
    Mode.INFER: Role.SERVE,
    Mode.PREPARE: Role.PREPROCESS,
}


@cached()
def group_of(  # noqa: PLR0913, PLR0917 - all that describes the machines
    stated: HardwareSection,
    machine: Host,
    named: Storage | None,
    mode: Mode,
    gpus: int,
    gpu: Gpu | None,
) -> Group:
    """Return the machines that train, as their profile says and as the file changes them.

    Parameters
    ----------
    stated : HardwareSection
        What the file states.
    machine : Host
        As its profile says.
    named : Storage, optional
        The store that the file names.
    mode : Mode
        What the job does.
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


def _host(stated: HardwareSection, machine: Host, gpus: int, gpu: Gpu | None) -> Host:
    bandwidth = stated.memory_bandwidth
    sources = stated.stated(
        gpu="gpu",
        ram="ram",
        memory_bandwidth="memory_bandwidth",
        cpu="vcpus",
        **{"cpu.smt_worth": "smt_worth", "cpu.contention": "contention"},
    )
    return replace(
        machine,
        cpu=_cpu(stated, machine.cpu),
        ram=machine.ram if stated.ram is None else stated.ram,
        memory_bandwidth=machine.memory_bandwidth if bandwidth is None else bandwidth,
        host_link=_host_link(stated, machine),
        switches=_switches(stated, machine),
        peer_link=None if stated.emulated else machine.peer_link,
        network=_network(stated, machine),
        # An accelerator that stands idle is paid for, but nothing else of it counts.
        gpu=gpu,
        gpu_count=max(machine.gpu_count, gpus) if gpus else 0,
        sources={**machine.sources, **sources},
    )


def _cpu(stated: HardwareSection, cpu: CpuPool) -> CpuPool:
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
    )


def _host_link(stated: HardwareSection, machine: Host) -> Link | None:
    link, rate = machine.host_link, stated.pcie_bandwidth
    return link if link is None or rate is None else _carrying(stated, link, rate)


def _switches(stated: HardwareSection, machine: Host) -> tuple[PcieSwitch, ...]:
    """Switches of the machine; what an accelerator alone reaches passes its switch's uplink too."""
    rate = stated.pcie_bandwidth
    return tuple(
        switch
        if rate is None or not switch.gpus or switch.uplink.rate >= rate
        else replace(switch, uplink=_carrying(stated, switch.uplink, rate))
        for switch in machine.switches
    )


def _carrying(stated: HardwareSection, link: Link, rate: BytesPerSecond) -> Link:
    """Return a PCIe link that reaches what the file says."""
    sources = stated.stated(achievable="pcie_bandwidth")
    return replace(
        link, achievable=rate, peak=max(rate, link.peak), sources={**link.sources, **sources}
    )


def _network(stated: HardwareSection, machine: Host) -> Network | None:
    network, rate = machine.network, stated.network_bandwidth
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


def _storage(stated: HardwareSection, group: Group) -> Storage:
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


def _of_all(limit: PerSecond | None, prefixes: int) -> PerSecond | None:
    """Requests a second under all prefixes."""
    return None if limit is None else limit * prefixes
