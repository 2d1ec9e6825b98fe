"""Levers on the input pipeline: workers, processors, how and where the data lies, helpers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from simulator.pipeline.stages.input import drives_of
from simulator.schema.convnets import ConvNet
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    Layout,
    LoaderKind,
    Placement,
    Preparation,
)
from simulator.schema.goal import Plain
from simulator.schema.machines import CpuPool, Group, short_name
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode
from simulator.schema.transformers import Transformer
from simulator.studies.baseline import Baseline, Machine, holds_better, worth_renting
from simulator.studies.levers.keys import PLACEMENT, STORE, WORKERS
from simulator.studies.levers.knobs import (
    HALF,
    TENTH_MORE,
    TWICE,
    count_knob,
    quantity_key,
    times,
)
from simulator.studies.levers.lever import (
    SPEED,
    Change,
    Kind,
    Knob,
    SearchPoint,
    Settings,
    Shortage,
    Situation,
    UnfitError,
)
from simulator.units import BYTE, BYTE_PER_SECOND, PER_SECOND, SECOND, parse, show

FASTER_DECODER: Final = 0.77
"""Time of simplejpeg or imagecodecs over Pillow's for one JPEG: median of four processors, 0.76 to
0.83 (ternaus/imread_benchmark @f869db8, 2025; `data/measured/imread_benchmark.csv`)."""
DECODER_SPREAD: Final = 0.04
"""Standard deviation of the logarithm of that ratio over the four processors."""
SHARD_SIZE: Final = "256 MB"
READERS: Final = 8
"""Requests that one worker keeps open at a time, where it reads file by file."""
MAX_WORKERS: Final = 128
MAX_RAM_SHARE: Final = 0.6
"""Share of a machine's RAM that data may take so that it is worth loading."""
DEEP_PREFETCH: Final = 4
"""Batches of prefetch beyond which a deeper one is not proposed."""
PREFETCH_DEPTHS: Final = (1, 2, 4, 8)
"""Batches of prefetch that `plan advise input` tries."""
MAX_HELPERS: Final = 4
"""Helper machines that a search tries, by powers of two."""
BANDWIDTH_STEP: Final = "1 GB/s"
"""A step of storage bandwidth in round figures."""


def starved(situation: Situation) -> bool:
    """Return whether the job waits for its data; else its input pipeline does not matter."""
    return situation.starved


def streams(situation: Situation) -> bool:
    """Return whether a starved job reads its data from a store during the run."""
    data = situation.baseline.scenario.job.dataset
    preloaded = data.cache is CachePolicy.PRELOADED
    return situation.starved and not preloaded and data.placement is Placement.STREAM


def layout_matters(situation: Situation) -> bool:
    """Return whether fewer, larger reads save time, or money where requests are charged."""
    if situation.starved:
        return streams(situation)
    scenario = situation.baseline.scenario
    charges = scenario.cluster.trainers.storage.charges
    from_store = scenario.job.dataset.placement is Placement.STREAM
    return from_store and charges is not None and bool(charges.reads)


def trains_starved(situation: Situation) -> bool:
    """Return whether a job trains and waits for its data."""
    return situation.starved and situation.baseline.scenario.job.mode is Mode.TRAIN


# workers and prefetch


def worker_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the number of workers, where the machine makes batches itself."""
    job = scenario.job
    if job.input.workers > 0 or job.remote is None:
        yield count_knob("workers", WORKERS, job.input.workers, free=True, limits=True)


def remote_worker_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the number of workers on helpers."""
    remote = scenario.job.remote
    if remote is not None:
        yield count_knob("remote workers", "remote.workers", remote.workers, free=True, limits=True)


def prefetch_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the depth of the prefetch."""
    pipeline = scenario.job.input
    if pipeline.workers > 0 or pipeline.loader is not LoaderKind.PYTORCH:
        yield count_knob("prefetch", "input.prefetch", pipeline.prefetch, free=True, limits=False)


def more_workers(situation: Situation) -> Iterator[Change]:
    """Propose more workers: multiples of the present number, and of the vCPUs of a rank."""
    scenario = situation.baseline.scenario
    threads = scenario.cluster.trainers.host.cpu.threads / scenario.ranks_per_host
    own, per_rank = scenario.job.input.workers, max(1, int(threads))
    each_process = " a process" if scenario.ranks_per_host > 1 else ""
    if scenario.job.remote is not None and not own:
        return
    for number in sorted({2 * own, 4 * own, per_rank, 2 * per_rank, 4, 16}):
        if own < number <= min(MAX_WORKERS, max(4, 4 * per_rank)):
            workers = f"{number} worker{'' if number == 1 else 's'}"
            yield Change(
                kind=Kind.WORKERS,
                name=f"{workers}{each_process} instead of {own or 'none'}",
                settings={WORKERS: number},
            )


def deeper_prefetch(situation: Situation) -> Iterator[Change]:
    """Propose a deeper prefetch where batches take CPU time."""
    scenario = situation.baseline.scenario
    pipeline = scenario.job.input
    threaded = pipeline.loader is not LoaderKind.PYTORCH
    prefetches = pipeline.workers > 0 or threaded
    if prefetches and pipeline.per_sample > 0.0 and pipeline.prefetch < DEEP_PREFETCH:
        yield Change(
            kind=Kind.PREFETCH,
            name=f"prefetch {DEEP_PREFETCH} instead of {pipeline.prefetch}",
            settings={"input.prefetch": DEEP_PREFETCH},
        )


def worker_candidates(at: SearchPoint) -> Iterator[Settings]:
    """Search one worker for each vCPU of a rank, and half as many."""
    job = at.baseline.scenario.job
    makes = job.input.per_sample > 0.0 and job.input.loader is not LoaderKind.ACTORS
    if WORKERS in at.point or not makes or job.remote is not None:
        yield {}
        return
    ranks = max(job.copies, at.baseline.gpus(at.machine) // at.baseline.replica(at.point))
    each = max(1, int(at.machine.threads) // ranks)
    yield from ({WORKERS: count} for count in sorted({each, max(1, each // 2)}))


# processors and RAM


def _vcpus(threads: float, cpu: CpuPool) -> Settings:
    """Return keys for a number of hardware threads, on cores in proportion."""
    cores = threads * cpu.cores / cpu.threads
    return {
        "hardware.vcpus": float(threads),
        "hardware.cores": min(float(threads), max(1.0, cores)),
    }


def vcpu_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the hardware threads of a machine."""
    cpu = scenario.cluster.trainers.host.cpu
    yield Knob(
        name="vCPUs",
        value=cpu.threads,
        settings=lambda threads: _vcpus(threads, cpu),
        least=1.0,
        steps=times(cpu.threads, TENTH_MORE, TWICE),
    )


def vcpu_and_worker_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the hardware threads of a machine, with workers in proportion."""
    cpu = scenario.cluster.trainers.host.cpu
    each = scenario.job.input.workers / cpu.threads
    if each > 0.0:
        yield Knob(
            name="vCPUs+workers",
            value=cpu.threads,
            settings=lambda threads: {
                **_vcpus(threads, cpu),
                WORKERS: max(1, round(each * threads)),
            },
            least=1.0,
            steps=times(cpu.threads, TENTH_MORE, TWICE),
        )


def cpu_speed_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the speed of the processors."""
    speed = scenario.calibration.value("cpu")
    yield Knob(
        name="CPU speed",
        value=1.0,
        unit=SPEED,
        settings=lambda faster: {"calibration.cpu": faster * speed},
        steps=times(1.0, TENTH_MORE),
    )


def ram_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the RAM of a machine."""
    ram = scenario.cluster.trainers.host.ram
    yield Knob(
        name="RAM",
        value=ram,
        unit=BYTE,
        settings=quantity_key("hardware.ram", "B"),
        steps=times(ram, TWICE),
    )


def ram_bandwidth_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the bandwidth of the RAM."""
    rate = scenario.cluster.trainers.host.memory_bandwidth
    if rate is not None:
        yield Knob(
            name="RAM bandwidth",
            value=rate,
            unit=BYTE_PER_SECOND,
            settings=quantity_key("hardware.memory_bandwidth", "B/s"),
            steps=times(rate, TWICE),
        )


# storage


def _named_store(scenario: Scenario) -> tuple[Storage, float]:
    group = scenario.cluster.trainers
    return group.origin or group.storage, scenario.calibration.value("storage")


def _before_placement(group: Group) -> Group:
    return group if group.origin is None else replace(group, storage=group.origin, origin=None)


def _drives(scenario: Scenario) -> float:
    store, _ = _named_store(scenario)
    return drives_of(_before_placement(scenario.cluster.trainers), store)


def storage_bandwidth_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the read rate of the store that the file names."""
    store, faster = _named_store(scenario)
    rate = store.read_rate * _drives(scenario) / faster
    yield Knob(
        name="storage bandwidth",
        value=rate,
        unit=BYTE_PER_SECOND,
        settings=quantity_key("hardware.storage_bandwidth", "B/s"),
        steps=(
            *times(rate, TENTH_MORE, TWICE),
            (f"+{BANDWIDTH_STEP}", rate + parse(BANDWIDTH_STEP, BYTE_PER_SECOND)),
        ),
    )


def storage_iops_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the read operations of the store that the file names."""
    store, faster = _named_store(scenario)
    if store.read_operations is not None:
        operations = store.read_operations * _drives(scenario) / faster
        yield Knob(
            name="storage IOPS",
            value=operations,
            unit=PER_SECOND,
            settings=quantity_key("hardware.storage_operations", "/s"),
            steps=times(operations, TWICE),
        )


def single_read_knobs(scenario: Scenario) -> Iterator[Knob]:
    """Return rate and latency of single reads from that store, or the measured time of one."""
    store, faster = _named_store(scenario)
    measured = scenario.job.dataset.read_time
    if measured is not None:
        yield Knob(
            name="read time",
            value=measured * faster,
            unit=SECOND,
            settings=quantity_key("data.read_time", "s"),
            steps=times(measured * faster, HALF),
        )
        return
    if store.request_rate is not None:
        single = store.request_rate / faster
        yield Knob(
            name="rate of one request",
            value=single,
            unit=BYTE_PER_SECOND,
            settings=quantity_key("hardware.storage_request_rate", "B/s"),
            steps=times(single, TWICE),
        )
    if store.read_latency > 0.0:
        latency = store.read_latency * faster
        yield Knob(
            name="storage latency",
            value=latency,
            unit=SECOND,
            settings=quantity_key("hardware.storage_latency", "s"),
            steps=times(latency, HALF),
        )


def sequential_shards(situation: Situation) -> Iterator[Change]:
    """Propose shards read front to back instead of shards read at random, or of files."""
    job = situation.baseline.scenario.job
    data = job.dataset
    if data.layout is Layout.SHARDS and data.access is Access.RANDOM:
        yield Change(
            kind=Kind.LAYOUT,
            name="read shards front to back, as WebDataset and MDS do",
            settings={"data.access": Access.SEQUENTIAL.value},
        )
    if data.layout is Layout.FILES and job.mode is Mode.TRAIN and data.window is None:
        yield Change(
            kind=Kind.LAYOUT,
            name=f"pack the files into shards of {SHARD_SIZE} and read them front to back",
            settings={
                "data.layout": Layout.SHARDS.value,
                "data.shard_size": SHARD_SIZE,
                "data.access": Access.SEQUENTIAL.value,
            },
            note="writes the data once more",
        )


def concurrent_reads(situation: Situation) -> Iterator[Change]:
    """Propose several requests at a time in each worker."""
    if situation.baseline.scenario.job.dataset.readers < READERS:
        yield Change(
            kind=Kind.READERS,
            name=f"{READERS} requests at a time in each worker",
            settings={"data.readers": READERS},
        )


def closer_placement(situation: Situation) -> Iterator[Change]:
    """Propose data in RAM, or on the machine's own drives."""
    scenario = situation.baseline.scenario
    trainers = scenario.cluster.trainers
    if scenario.job.stored_total < MAX_RAM_SHARE * trainers.host.ram:
        yield Change(
            kind=Kind.PLACEMENT,
            name="load the data into RAM first",
            settings={PLACEMENT: Placement.PRELOAD.value},
        )
    if trainers.host.local_storage is not None and trainers.storage.scope is not Scope.LOCAL:
        yield Change(
            kind=Kind.PLACEMENT,
            name="copy the data to the machine's own drives first",
            settings={PLACEMENT: Placement.STAGE.value},
        )


def other_stores(situation: Situation) -> Iterator[Change]:
    """Propose other stores of the cloud with a known price."""
    baseline = situation.baseline
    if not baseline.store or baseline.reader.given("hardware.storage_bandwidth") is not None:
        return
    size = baseline.scenario.job.stored_total
    for store in baseline.nearby(baseline.own):
        if store.name != baseline.store and store.standing(size) is not None:
            yield Change(
                kind=Kind.STORAGE,
                name=f"keep the data on {store.name.rpartition('/')[2]}",
                settings={STORE: store.name},
            )


def storage_candidates(at: SearchPoint) -> Iterator[Settings]:
    """Search the scenario's store, the machine's own drives, and stores of the same cloud.

    Raises
    ------
    UnfitError
        If no known store can be reached from the machine.
    """
    if STORE in at.point or PLACEMENT in at.point:
        yield {}
        return
    baseline, machine, dataset = at.baseline, at.machine, at.baseline.scenario.job.dataset
    named = next((store for store in baseline.stores if store.name == baseline.store), None)
    reads = dataset.cache is not CachePolicy.PRELOADED
    from_store = dataset.placement is Placement.STREAM
    size = baseline.scenario.job.stored_total
    others = [store for store in baseline.nearby(machine) if store.name != baseline.store]
    nearby = worth_renting(machine, others, size)
    if not baseline.store:
        nearby = [store for store in nearby if not holds_better(machine, store, size)]
    stays = machine.drives if not baseline.store else named is None or machine.cloud in named.clouds
    if stays:
        yield {}
    if stays and baseline.store and reads and from_store and machine.drives and named is not None:
        yield {PLACEMENT: Placement.STAGE.value}
    if not stays and not nearby:
        msg = "this machine reaches no known store; name one in hardware.storage"
        raise UnfitError(msg)
    kept = nearby if reads else nearby[: 0 if stays else 1]
    yield from ({STORE: store.name} for store in kept)


# links of the host


def network_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the bandwidth of the network cards."""
    network = scenario.cluster.trainers.host.network
    if network is not None:
        rate = network.bandwidth / scenario.calibration.value("network")
        more = (f"+1 NIC of {network.cards}", 1.0 + 1.0 / network.cards)
        yield Knob(
            name="network bandwidth",
            value=rate,
            unit=BYTE_PER_SECOND,
            settings=quantity_key("hardware.network_bandwidth", "B/s"),
            steps=times(rate, *([more] if network.cards > 1 else []), TWICE),
        )


def pcie_knob(scenario: Scenario) -> Iterator[Knob]:
    """Return the bandwidth of the slots of accelerators."""
    rate = scenario.cluster.trainers.host.device_rate
    if rate is not None:
        yield Knob(
            name="PCIe bandwidth",
            value=rate,
            unit=BYTE_PER_SECOND,
            settings=quantity_key("hardware.pcie_bandwidth", "B/s"),
            steps=times(rate, TWICE),
        )


# less CPU work, helpers


def faster_decoder(situation: Situation) -> Iterator[Change]:
    """Propose a faster library for decoding JPEGs."""
    scenario = situation.baseline.scenario
    work, model = scenario.job.input, scenario.job.model
    images = isinstance(model, ConvNet) or (isinstance(model, Transformer) and not model.tokens)
    stated = situation.baseline.reader.given("input.decode")
    if images and work.decode > 0.0 and work.where is Preparation.CPU and stated is not None:
        faster = FASTER_DECODER * parse(str(stated), SECOND)
        yield Change(
            kind=Kind.DECODER,
            name="replace Pillow by simplejpeg or imagecodecs to decode JPEGs",
            settings={"input.decode": show(faster, SECOND, 3)},
            log_sd=DECODER_SPREAD,
        )


def prepared_data(shortage: Shortage) -> Iterator[Settings]:
    """Store samples as they are when finished, where their size is known, and only collate then."""
    job = shortage.baseline.scenario.job
    work = job.input
    makes = job.input.loader is not LoaderKind.ACTORS
    prepares = work.where is Preparation.CPU and work.decode + work.augment > 0.0
    if makes and prepares and work.output_bytes_per_sample > 0.0:
        yield {
            "input.where": Preparation.BEFOREHAND.value,
            "input.prepared_bytes_per_sample": f"{work.output_bytes_per_sample:.0f} B",
        }


def preparation_beforehand(situation: Situation) -> Iterator[Change]:
    """Propose to decode the data set once before the run."""
    for settings in prepared_data(_shortage(situation.baseline)):
        yield Change(
            kind=Kind.BEFOREHAND,
            name="pre-decode the data set once, before the run",
            settings=settings,
            note="random augmentation must then be done elsewhere or be left out",
        )


def helpers(shortage: Shortage) -> Iterator[Settings]:
    """Add machines of the cloud without accelerators that make batches for one that trains."""
    scenario, own = shortage.baseline.scenario, shortage.baseline.own
    job = scenario.job
    alone = scenario.cluster.trainers.count == 1 and job.copies == 1 and job.remote is None
    if not alone or not own.networked or job.mode is not Mode.TRAIN:
        return
    counts = [2**k for k in range(MAX_HELPERS.bit_length())]
    for machine in shortage.helpers:
        if machine.cloud != own.cloud or machine.gpus or not machine.networked:
            continue
        for store, count in product(_helper_stores(shortage.baseline, machine), counts):
            yield {"remote.machine": machine.name, "remote.count": count, **store}


def _helper_stores(baseline: Baseline, helper: Machine) -> list[dict[str, Plain]]:
    """Return where a helper reads: as in the scenario; stores of the cloud where it cannot."""
    data, own = baseline.scenario.job.dataset, baseline.scenario.cluster.trainers.storage
    shared = own.scope is not Scope.LOCAL or data.cache is CachePolicy.PRELOADED
    if shared or helper.drives or baseline.reader.given("remote.storage") is not None:
        return [{}]
    size = baseline.scenario.job.stored_total
    kept = worth_renting(helper, baseline.nearby(helper), size)
    return [{"remote.storage": store.name} for store in kept] or [{}]


def added_helpers(situation: Situation) -> Iterator[Change]:
    """Propose helpers: the largest machine without accelerators of each family of the cloud."""
    for settings in helpers(_shortage(situation.baseline)):
        name = short_name(settings["remote.machine"])
        yield Change(
            kind=Kind.HELPERS,
            name=f"add {settings['remote.count']} x {name} as helpers that make batches",
            settings=settings,
        )


def _shortage(baseline: Baseline) -> Shortage:
    largest: dict[str, Machine] = {}
    for machine in baseline.machines:
        if machine.cloud == baseline.own.cloud and not machine.gpus and machine.networked:
            known = largest.get(machine.family)
            if known is None or machine.threads > known.threads:
                largest[machine.family] = machine
    return Shortage(baseline=baseline, offered=(), helpers=tuple(largest.values()))


def other_helper_count(situation: Situation) -> Iterator[Change]:
    """Propose fewer helpers, or more of them, by powers of two."""
    scenario = situation.baseline.scenario
    remote = scenario.job.remote
    if remote is None:
        return
    own = next(group.count for group in scenario.cluster.groups if group.name == remote.name)
    fewer = (own >> k for k in range(1, own.bit_length()))
    for number in (*fewer, own + 1, 2 * own, 4 * own):
        yield Change(
            kind=Kind.HELPERS,
            name=f"{number:,} helper{'' if number == 1 else 's'} instead of {own:,}",
            settings={"remote.count": number},
        )


def helper_count_knobs(scenario: Scenario) -> Iterator[Knob]:
    """Return the numbers of machines in groups that do not train."""
    for group in scenario.cluster.groups:
        if group is not scenario.cluster.trainers:
            name = f"machines of '{group.name}'"
            yield count_knob(name, "remote.count", group.count, free=False, limits=True)
