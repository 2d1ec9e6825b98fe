"""Levers on machines: how many, which, with which accelerators, and how they are bought."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.physics.collectives import pace_inside
from simulator.schema.cost import Purchase
from simulator.schema.data_loading import Preparation
from simulator.schema.goal import Plain
from simulator.schema.machines import PAIR, Collective, Host, PeerPath, short_name
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.studies.baseline import Baseline, Machine
from simulator.studies.levers import COUNT, MACHINE, MEASURED_ON, PURCHASE, WORKERS, Settings
from simulator.studies.levers.data_loading import MAX_WORKERS
from simulator.studies.levers.lever import Change, Knob, SearchPoint, Shortage, Situation
from simulator.units import BYTE, BYTE_PER_SECOND, parse

MAX_MACHINES: Final = 8
"""Machines that a search tries where no limit says how many there may be."""
PEER_LINK: Final = "hardware.peer_link"
LARGE_BUFFER: Final = parse("1 GiB", BYTE)
"""Buffer of an all-reduce whose time is its bytes."""
_MACHINE_FIGURES: Final = ("gpu", "vcpus", "cores", "ram", "memory_bandwidth", "network_bandwidth")
"""Keys that describe a machine instead of its profile."""


def _is_described(baseline: Baseline) -> bool:
    return any(baseline.reader.given(f"hardware.{key}") is not None for key in _MACHINE_FIGURES)


def more_machines(situation: Situation) -> Iterator[Change]:
    """Propose twice as many machines, if the work is divided among them."""
    scenario = situation.baseline.scenario
    host, count = scenario.cluster.trainers.host, scenario.cluster.trainers.count
    if scenario.job.mode is Mode.PREPARE and host.cloud and scenario.job.remote is None:
        yield Change(
            f"share the work among {2 * count:,} machines instead of {count:,}", {COUNT: 2 * count}
        )


def machine_count_candidates(at: SearchPoint) -> Iterator[Settings]:
    """Search numbers of machines: powers of two, and the current number."""
    if COUNT in at.point:
        yield {}
        return
    scenario, job = at.baseline.scenario, at.baseline.scenario.job
    own = scenario.cluster.trainers.count
    most = at.goal.limits.nodes or max(MAX_MACHINES, own)
    alone = job.copies > 1 or not at.machine.networked
    counts = {1} if alone else {2**k for k in range(most.bit_length())}
    if not alone and own <= most:
        counts.add(own)
    yield from ({COUNT: count} for count in sorted(counts))


def all_accelerators(situation: Situation) -> Iterator[Change]:
    """Propose to use all accelerators of a machine that is paid for as a whole.

    The vCPUs are divided among them.
    """
    baseline = situation.baseline
    scenario, trainers = baseline.scenario, baseline.scenario.cluster.trainers
    there, pipeline = trainers.host.gpu_count, scenario.job.input
    if _is_described(baseline) or not baseline.own.cloud or scenario.job.copies > 1:
        return
    if trainers.gpus_per_host >= there:
        return
    settings: dict[str, Plain] = {"hardware.gpus": there}
    share = max(1, int(trainers.host.cpu.threads) // there)
    if pipeline.workers > share:
        settings[WORKERS] = share
    fixed = baseline.reader.given("train.global_batch_size") is not None
    more = there / trainers.gpus_per_host
    yield Change(
        f"use all {there} accelerators of the machine instead of {trainers.gpus_per_host}",
        settings,
        note="" if fixed else f"a step then takes {more:g} times as many samples",
    )


def other_peer_paths(situation: Situation) -> Iterator[Change]:
    """Propose a faster path between cards: a bridge, or PCIe without a copy in host memory."""
    trainers = situation.baseline.scenario.cluster.trainers
    host, gpus = trainers.host, trainers.gpus_per_host
    if gpus < PAIR or host.gpu is None or host.peer_path is PeerPath.NVLINK:
        return
    if _offered(host, PeerPath.NVLINK, gpus):
        yield Change(
            "an NVLink bridge between the two cards",
            {PEER_LINK: PeerPath.NVLINK.value},
            note="its price is not included",
        )
    if host.peer_path is PeerPath.HOST and _offered(host, PeerPath.P2P, gpus):
        yield Change(
            "peer-to-peer copies between the cards",
            {PEER_LINK: PeerPath.P2P.value},
            note="needs kernel and NCCL settings such as iommu=pt and NCCL_P2P_LEVEL=SYS",
        )


def peer_path_knob(scenario: Scenario) -> Iterator[Knob]:
    """Yield the rate between cards, which another path between them changes."""
    trainers = scenario.cluster.trainers
    host, gpus = trainers.host, trainers.gpus_per_host
    if gpus < PAIR or host.gpu is None or host.host_link is None or scenario.job.model is None:
        return
    paths = {
        path: rate
        for path in PeerPath
        if (changed := host.with_peers(path)).peer_path is path
        and _offered(host, path, gpus)
        and (rate := _peer_rate(changed, gpus)) > 0.0
    }
    now = paths.get(host.peer_path, 0.0)
    if len(paths) < PAIR or host.peer_path is PeerPath.NVLINK:
        return

    def settings(rate: float) -> Settings:
        return {PEER_LINK: min(paths, key=lambda path: abs(paths[path] - rate)).value}

    yield Knob(
        name="path between GPUs",
        value=now,
        unit=BYTE_PER_SECOND,
        settings=settings,
        limits=False,
        steps=tuple((path.value, rate) for path, rate in paths.items() if rate > now),
    )


def _offered(host: Host, path: PeerPath, gpus: int) -> bool:
    """Return whether accelerators can be connected by a path, or are."""
    if path is PeerPath.NVLINK and host.peer_path is not path:
        return host.bridge is not None and gpus == PAIR
    return path is not PeerPath.P2P or host.gpu is None or host.gpu.peer_access


def _peer_rate(host: Host, gpus: int) -> float:
    """Return the bus bandwidth of a large all-reduce inside a machine [B/s]."""
    return float(pace_inside(Collective.ALL_REDUCE, LARGE_BUFFER, gpus, host)[1])


def other_machines(situation: Situation) -> Iterator[Change]:
    """Propose machines of the cloud with the same software and number of accelerators."""
    baseline = situation.baseline
    scenario, own, job = baseline.scenario, baseline.own, baseline.scenario.job
    priced = scenario.cost.price is None and own.priced
    if _is_described(baseline) or job.remote is not None or not priced:
        return
    measured = job.step_times is not None or job.input.where is Preparation.DEVICE
    for machine in baseline.machines:
        same_gpu = bool(machine.gpu) and machine.gpu == own.gpu
        same_kind = machine.stack == own.stack and machine.gpus == own.gpus
        if machine.name == own.name or not same_kind or (measured and not same_gpu):
            continue
        yield Change(
            f"rent {scenario.cluster.trainers.count} x {short_name(machine.name)}",
            {
                MACHINE: machine.name,
                **carried_cpu_times(baseline, machine),
                **_carried_workers(baseline, machine),
            },
        )


def _carried_workers(baseline: Baseline, machine: Machine) -> dict[str, Plain]:
    """Return the workers for another machine: scaled with vCPUs if they use all of them."""
    scenario = baseline.scenario
    own = scenario.job.input.workers
    if own == 0 or scenario.job.input.per_sample == 0.0:
        return {}
    if own * max(1, scenario.ranks_per_host) < baseline.own.threads:
        return {}
    more = round(own * machine.threads / baseline.own.threads)
    return {WORKERS: max(1, min(MAX_WORKERS, more))}


def carried_cpu_times(baseline: Baseline, machine: Machine) -> dict[str, Plain]:
    """Return settings that scale the CPU times of the scenario to another machine.

    They were measured on the scenario's machine unless it states another one. A machine without a
    known CoreMark is assumed to have equal cores.
    """
    stated = baseline.reader.given(MEASURED_ON) is not None
    work = baseline.scenario.job.input.per_sample > 0.0
    if not work or machine.name == baseline.own.name:
        return {}
    if stated:
        return {} if machine.marked else {MEASURED_ON: machine.name}
    return {MEASURED_ON: baseline.own.name} if machine.marked and baseline.own.marked else {}


def family_candidates(shortage: Shortage) -> Iterator[Settings]:
    """Search machines of the same family with more vCPUs per accelerator, for equal GPUs."""
    baseline = shortage.baseline
    own = baseline.own
    for machine in shortage.offered:
        related = (machine.cloud, machine.family) == (own.cloud, own.family)
        if not related or machine.gpus == 0 or machine.threads_per_gpu <= own.threads_per_gpu:
            continue
        wanted = own.gpus * baseline.scenario.cluster.trainers.count
        counts = {1, -(-wanted // machine.gpus) if machine.networked else 1}
        for count in sorted(counts):
            yield {
                MACHINE: machine.name,
                COUNT: count,
                **carried_cpu_times(baseline, machine),
                WORKERS: int(machine.threads_per_gpu),
            }


def spot_candidates(at: SearchPoint) -> Iterator[Settings]:
    """Search the scenario's way to buy, and spot capacity if the goal allows it."""
    yield {}
    if PURCHASE not in at.point and at.goal.spot is not None and Purchase.SPOT in at.machine.sold:
        yield {PURCHASE: Purchase.SPOT.value}


def owned_machines(host: Host, count: int) -> Settings:
    """Return the settings for purchased machines."""
    return {MACHINE: host.name, COUNT: count, PURCHASE: Purchase.OWNED.value}
