"""Levers on the input pipeline: workers, processors, how and where the data lies, helpers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from simulator.pipeline.stages.input import client_of, drives_of, first_byte, single_rate
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
from simulator.schema.machines import short_name
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode
from simulator.schema.transformers import Transformer
from simulator.studies.baseline import Baseline, Machine, holds_better, worth_renting
from simulator.studies.levers import PLACEMENT, STORE, WORKERS, Settings
from simulator.studies.levers.lever import (
    HALF,
    TENTH_MORE,
    TWICE,
    Change,
    Knob,
    SearchPoint,
    Shortage,
    Situation,
    UnfitError,
    calibrated_knob,
    count_knob,
    quantity_knob,
    times,
)
from simulator.units import BYTE_PER_SECOND, PER_SECOND, SECOND, parse, show

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
READS_MEASURED: Final = (
    *("data.read_time", "hardware.storage_latency", "hardware.storage_request_rate"),
)
"""Keys that state reads as measured through the client in use."""
BANDWIDTH_STEP: Final = "1 GB/s"
"""A step of storage bandwidth in round figures."""


def starved(situation: Situation) -> bool:
    """Return whether the job waits for data; otherwise its data loading does not matter."""
    return situation.starved


def streams(situation: Situation) -> bool:
    """Return whether a starved job reads its data from a store during the run."""
    data = situation.baseline.scenario.job.dataset
    preloaded = data.cache is CachePolicy.PRELOADED
    return situation.starved and not preloaded and data.placement is Placement.STREAM


def layout_matters(situation: Situation) -> bool:
    """Return whether fewer, larger reads save time, or cost if requests are charged."""
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
    """Yield the number of workers, if the training machines prepare batches."""
    job = scenario.job
    if job.input.workers > 0 or job.remote is None:
        yield from count_knob("workers", WORKERS, job.input.workers, free=True)


def remote_worker_knob(scenario: Scenario) -> Iterator[Knob]:
    """Yield the number of workers on each helper."""
    remote = scenario.job.remote
    if remote is not None:
        yield from count_knob("remote workers", "remote.workers", remote.workers, free=True)


def prefetch_knob(scenario: Scenario) -> Iterator[Knob]:
    """Yield the prefetch depth."""
    pipeline = scenario.job.input
    if pipeline.workers > 0 or pipeline.loader is not LoaderKind.PYTORCH:
        yield from count_knob(
            "prefetch", "input.prefetch", pipeline.prefetch, free=True, limits=False
        )


def more_workers(situation: Situation) -> Iterator[Change]:
    """Propose more workers: multiples of the current number, and of the vCPUs per rank."""
    scenario = situation.baseline.scenario
    threads = scenario.cluster.trainers.host.cpu.threads / scenario.ranks_per_host
    own, per_rank = scenario.job.input.workers, max(1, int(threads))
    each_process = " a process" if scenario.ranks_per_host > 1 else ""
    if scenario.job.remote is not None and not own:
        return
    for number in sorted({2 * own, 4 * own, per_rank, 2 * per_rank, 4, 16}):
        if own < number <= min(MAX_WORKERS, max(4, 4 * per_rank)):
            workers = f"{number} worker{'' if number == 1 else 's'}"
            yield Change(f"{workers}{each_process} instead of {own or 'none'}", {WORKERS: number})


def deeper_prefetch(situation: Situation) -> Iterator[Change]:
    """Propose a deeper prefetch if samples take CPU time."""
    scenario = situation.baseline.scenario
    pipeline = scenario.job.input
    threaded = pipeline.loader is not LoaderKind.PYTORCH
    prefetches = pipeline.workers > 0 or threaded
    if prefetches and pipeline.per_sample > 0.0 and pipeline.prefetch < DEEP_PREFETCH:
        yield Change(
            f"prefetch {DEEP_PREFETCH} instead of {pipeline.prefetch}",
            {"input.prefetch": DEEP_PREFETCH},
        )


def copies_in_line(situation: Situation) -> bool:
    """Return whether copies to a device with memory of its own do not overlap with its compute."""
    scenario = situation.baseline.scenario
    gpu = scenario.cluster.trainers.host.gpu
    own_memory = gpu is not None and not gpu.emulated and not gpu.unified_memory
    return own_memory and not scenario.job.input.copies_beside_compute


def copies_ahead(situation: Situation) -> Iterator[Change]:
    """Propose a prefetcher that copies pinned batches on a stream of its own."""
    pins = situation.baseline.scenario.job.input.pin_memory
    pinned = "" if pins else "pin batches and "
    yield Change(
        f"{pinned}copy batches ahead on a stream of their own, as prefetchers do",
        {**({} if pins else {"input.pin_memory": True}), "input.overlap_copies": True},
    )


def worker_candidates(at: SearchPoint) -> Iterator[Settings]:
    """Search one worker per vCPU of a rank, and half as many."""
    job = at.baseline.scenario.job
    makes = job.input.per_sample > 0.0 and job.input.loader is not LoaderKind.ACTORS
    if WORKERS in at.point or not makes or job.remote is not None:
        yield {}
        return
    ranks = max(job.copies, at.baseline.gpus(at.machine) // at.baseline.replica(at.point))
    each = max(1, int(at.machine.threads) // ranks)
    yield from ({WORKERS: count} for count in sorted({each, max(1, each // 2)}))


# processors and RAM


def vcpu_knob(scenario: Scenario, *, workers: bool = False) -> Iterator[Knob]:
    """Yield the vCPUs of a machine, with cores and, if `workers`, workers in proportion."""
    cpu = scenario.cluster.trainers.host.cpu
    each = scenario.job.input.workers / cpu.threads

    def settings(threads: float) -> Settings:
        cores = threads * cpu.cores / cpu.threads
        found: dict[str, Plain] = {
            "hardware.vcpus": float(threads),
            "hardware.cores": min(float(threads), max(1.0, cores)),
        }
        return found | ({WORKERS: max(1, round(each * threads))} if workers else {})

    if each > 0.0 or not workers:
        yield Knob(
            name="vCPUs+workers" if workers else "vCPUs",
            value=cpu.threads,
            settings=settings,
            least=1.0,
            multiple=max(1.0, float(cpu.threads // cpu.cores)),
            steps=times(cpu.threads, TENTH_MORE, TWICE),
        )


# storage


def storage_rate_knobs(scenario: Scenario) -> Iterator[Knob]:
    """Return the read bandwidth of the scenario's store."""
    store, drives = _named_store(scenario)
    rate = store.read_rate * drives / scenario.calibration.value("storage")
    faster = (f"+{BANDWIDTH_STEP}", rate + parse(BANDWIDTH_STEP, BYTE_PER_SECOND))
    return quantity_knob(
        *("storage bandwidth", "hardware.storage_bandwidth", BYTE_PER_SECOND, rate),
        *(TENTH_MORE, TWICE),
        more=(faster,),
    )


def storage_operation_knobs(scenario: Scenario) -> Iterator[Knob]:
    """Return the read operations per second of the scenario's store."""
    store, drives = _named_store(scenario)
    known = store.read_operations
    operations = None if known is None else known * drives / scenario.calibration.value("storage")
    return quantity_knob(
        "storage IOPS", "hardware.storage_operations", PER_SECOND, operations, TWICE
    )


def _named_store(scenario: Scenario) -> tuple[Storage, float]:
    """Return the store in the scenario, before any placement, and its number of drives."""
    group = scenario.cluster.trainers
    if group.origin is not None:
        group = replace(group, storage=group.origin, origin=None)
    return group.storage, drives_of(group, group.storage)


def single_read_knobs(scenario: Scenario) -> Iterator[Knob]:
    """Yield rate and latency of single reads from the store, or the measured read time."""
    store, faster = _named_store(scenario)[0], scenario.calibration.value("storage")
    measured = scenario.job.dataset.read_time
    if measured is not None:
        yield from quantity_knob("read time", "data.read_time", SECOND, measured * faster, HALF)
        return
    single = single_rate(scenario, store)
    rate = None if single is None else float(single) / faster
    key = "hardware.storage_request_rate"
    yield from quantity_knob("rate of one request", key, BYTE_PER_SECOND, rate, TWICE)
    latency = float(first_byte(scenario, store)) * faster or None
    key = "hardware.storage_latency"
    yield from quantity_knob("storage latency", key, SECOND, latency, HALF)


def client_knob(scenario: Scenario) -> Iterator[Knob]:
    """Yield the speed of the client of an object store, unless its reads were measured."""
    client, data = client_of(scenario, _named_store(scenario)[0]), scenario.job.dataset
    if client is not None and data.read_time is None and client.request_time > 0.0:
        yield from calibrated_knob("client of the store", "client", scenario, TWICE)


def other_clients(situation: Situation) -> Iterator[Change]:
    """Propose other clients of an object store whose reads were measured."""
    baseline = situation.baseline
    store, used = baseline.scenario.cluster.trainers.storage, baseline.scenario.job.client
    stated = any(map(baseline.reader.given, READS_MEASURED))
    if used is None or store.scope is not Scope.OBJECT or store.as_read or stated:
        return
    for name in baseline.reader.names("data.client"):
        client, here = baseline.reader.catalogue.client(name), short_name(store.name)
        figures = (client.sources.get(key) for key in ("request_time", "stream_rate"))
        measured = all(source is not None and source.verified for source in figures)
        if measured and client.name != used.name and here in client.stores:
            now = short_name(used.name) if used.is_known else "the present client"
            yield Change(
                f"read {here} through {short_name(name)} instead of {now}",
                {"data.client": short_name(name)},
            )


def sequential_shards(situation: Situation) -> Iterator[Change]:
    """Propose shards read front to back instead of shards read at random, or of files."""
    job = situation.baseline.scenario.job
    data = job.dataset
    if data.layout is Layout.SHARDS and data.access is Access.RANDOM:
        yield Change(
            "read shards front to back, as WebDataset and MDS do",
            {"data.access": Access.SEQUENTIAL.value},
        )
    if data.layout is Layout.FILES and job.mode is Mode.TRAIN and data.window is None:
        yield Change(
            f"pack the files into shards of {SHARD_SIZE} and read them front to back",
            {
                "data.layout": Layout.SHARDS.value,
                "data.shard_size": SHARD_SIZE,
                "data.access": Access.SEQUENTIAL.value,
            },
            note="writes the data once more",
        )


def concurrent_reads(situation: Situation) -> Iterator[Change]:
    """Propose several concurrent requests in each worker."""
    if situation.baseline.scenario.job.dataset.readers < READERS:
        yield Change(f"{READERS} requests at a time in each worker", {"data.readers": READERS})


def closer_placement(situation: Situation) -> Iterator[Change]:
    """Propose to hold the data in RAM, or on the machine's own drives."""
    scenario = situation.baseline.scenario
    trainers = scenario.cluster.trainers
    if scenario.job.stored_total < MAX_RAM_SHARE * trainers.host.ram:
        yield Change("load the data into RAM first", {PLACEMENT: Placement.PRELOAD.value})
    if trainers.host.local_storage is not None and trainers.storage.scope is not Scope.LOCAL:
        yield Change(
            "copy the data to the machine's own drives first", {PLACEMENT: Placement.STAGE.value}
        )


def other_stores(situation: Situation) -> Iterator[Change]:
    """Propose other stores of the cloud with a known price."""
    baseline = situation.baseline
    if not baseline.store or baseline.reader.given("hardware.storage_bandwidth") is not None:
        return
    size = baseline.scenario.job.stored_total
    for store in baseline.nearby(baseline.own):
        if store.name != baseline.store and store.standing(size) is not None:
            yield Change(f"keep the data on {store.name.rpartition('/')[2]}", {STORE: store.name})


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
    """Yield the bandwidth of the network cards."""
    network = scenario.cluster.trainers.host.network
    if network is not None:
        rate = network.bandwidth / scenario.calibration.value("network")
        more = [(f"+1 NIC of {network.cards}", 1.0 + 1.0 / network.cards)]
        factors = (*(more if network.cards > 1 else ()), TWICE)
        name, key = "network bandwidth", "hardware.network_bandwidth"
        yield from quantity_knob(name, key, BYTE_PER_SECOND, rate, *factors)


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
            "replace Pillow by simplejpeg or imagecodecs to decode JPEGs",
            {"input.decode": show(faster, SECOND, 3)},
            log_sd=DECODER_SPREAD,
        )


def prepared_data(shortage: Shortage) -> Iterator[Settings]:
    """Yield settings that store finished samples, if their size is known, and only collate them."""
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
            "pre-decode the data set once, before the run",
            settings,
            note="random augmentation must then be done elsewhere or be left out",
        )


def helpers(shortage: Shortage) -> Iterator[Settings]:
    """Yield settings with helpers: machines of the cloud without accelerators."""
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
    """Return settings of the store of a helper: that of the scenario, or those of its cloud."""
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
            f"add {settings['remote.count']} x {name} as helpers that make batches", settings
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
    """Propose fewer or more helpers, by powers of two."""
    scenario = situation.baseline.scenario
    remote = scenario.job.remote
    if remote is None:
        return
    own = next(group.count for group in scenario.cluster.groups if group.name == remote.name)
    fewer = (own >> k for k in range(1, own.bit_length()))
    for number in (*fewer, own + 1, 2 * own, 4 * own):
        yield Change(
            f"{number:,} helper{'' if number == 1 else 's'} instead of {own:,}",
            {"remote.count": number},
        )


def helper_count_knobs(scenario: Scenario) -> Iterator[Knob]:
    """Yield the number of machines of each group that does not train."""
    for group in scenario.cluster.groups:
        if group is not scenario.cluster.trainers:
            name = f"machines of '{group.name}'"
            yield from count_knob(name, "remote.count", group.count)
