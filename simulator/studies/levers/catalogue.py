"""The list of levers: everything about a job or a service that a study can change.

A lever is one entry of `LEVERS` or `SERVICE_LEVERS`. Each verb shows a part of the list, by the
filters of names at the end, and in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Final

from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.schema.serving import Service
from simulator.studies.levers import COUNT, Settings, data_loading, machines, service, training
from simulator.studies.levers.lever import (
    TENTH_MORE,
    TWICE,
    Change,
    Given,
    JobLever,
    Knob,
    Lever,
    SearchPoint,
    ServiceLever,
    ServiceSituation,
    Shortage,
    Situation,
    calibrated_knob,
    count_knob,
    quantity_knob,
)
from simulator.units import BYTE, BYTE_PER_SECOND


def _host(scenario: Scenario) -> Host:
    return scenario.cluster.trainers.host


LEVERS: Final[tuple[JobLever, ...]] = (
    # input pipeline
    Lever(
        name="workers",
        keys=("input.workers",),
        applies=data_loading.starved,
        changes=data_loading.more_workers,
        knobs=data_loading.worker_knob,
        candidates=data_loading.worker_candidates,
    ),
    Lever(
        name="remote workers",
        keys=("remote.workers",),
        knobs=data_loading.remote_worker_knob,
    ),
    Lever(
        name="prefetch",
        keys=("input.prefetch",),
        applies=data_loading.starved,
        changes=data_loading.deeper_prefetch,
        knobs=data_loading.prefetch_knob,
    ),
    Lever(
        name="copies ahead",
        keys=("input.pin_memory", "input.overlap_copies"),
        applies=data_loading.copies_in_line,
        changes=data_loading.copies_ahead,
    ),
    Lever(
        name="layout",
        keys=("data.layout", "data.shard_size", "data.access"),
        kind="access and shards",
        applies=data_loading.layout_matters,
        changes=data_loading.sequential_shards,
    ),
    Lever(
        name="concurrent reads",
        keys=("data.readers",),
        kind="readers",
        applies=data_loading.streams,
        changes=data_loading.concurrent_reads,
    ),
    Lever(
        name="placement",
        keys=("data.placement",),
        kind="where the data lies",
        applies=data_loading.streams,
        changes=data_loading.closer_placement,
    ),
    Lever(
        name="storage",
        keys=("hardware.storage", "data.placement"),
        applies=data_loading.streams,
        changes=data_loading.other_stores,
        candidates=data_loading.storage_candidates,
    ),
    Lever(
        name="decoder",
        keys=("input.decode",),
        kind="decode library",
        applies=data_loading.starved,
        changes=data_loading.faster_decoder,
    ),
    Lever(
        name="helpers",
        keys=("remote.machine", "remote.count", "remote.storage"),
        applies=data_loading.trains_starved,
        changes=data_loading.added_helpers,
        relief=data_loading.helpers,
    ),
    Lever(
        name="preparation beforehand",
        keys=("input.where", "input.prepared_bytes_per_sample"),
        kind="preparing beforehand",
        applies=data_loading.trains_starved,
        changes=data_loading.preparation_beforehand,
        relief=data_loading.prepared_data,
    ),
    Lever(
        name="number of helpers",
        keys=("remote.count",),
        kind="helpers",
        changes=data_loading.other_helper_count,
        knobs=data_loading.helper_count_knobs,
    ),
    # host
    Lever(name="vCPUs", keys=("hardware.vcpus", "hardware.cores"), knobs=data_loading.vcpu_knob),
    Lever(
        name="vCPUs+workers",
        keys=("hardware.vcpus", "hardware.cores", "input.workers"),
        knobs=partial(data_loading.vcpu_knob, workers=True),
    ),
    Lever(
        name="CPU speed",
        keys=("calibration.cpu",),
        knobs=lambda s: calibrated_knob("CPU speed", "cpu", s, TENTH_MORE),
    ),
    Lever(
        name="RAM",
        keys=("hardware.ram",),
        knobs=lambda s: quantity_knob("RAM", "hardware.ram", BYTE, _host(s).ram, TWICE),
    ),
    Lever(
        name="RAM bandwidth",
        keys=("hardware.memory_bandwidth",),
        knobs=lambda s: quantity_knob(
            *("RAM bandwidth", "hardware.memory_bandwidth", BYTE_PER_SECOND),
            *(_host(s).memory_bandwidth, TWICE),
        ),
    ),
    Lever(
        name="storage bandwidth",
        keys=("hardware.storage_bandwidth",),
        knobs=data_loading.storage_rate_knobs,
    ),
    Lever(
        name="storage IOPS",
        keys=("hardware.storage_operations",),
        knobs=data_loading.storage_operation_knobs,
    ),
    Lever(
        name="single reads",
        keys=("data.read_time", "hardware.storage_request_rate", "hardware.storage_latency"),
        knobs=data_loading.single_read_knobs,
    ),
    Lever(
        name="client",
        keys=("data.client",),
        applies=data_loading.streams,
        changes=data_loading.other_clients,
        knobs=data_loading.client_knob,
    ),
    Lever(
        name="network bandwidth",
        keys=("hardware.network_bandwidth",),
        knobs=data_loading.network_knob,
    ),
    Lever(
        name="PCIe bandwidth",
        keys=("hardware.pcie_bandwidth",),
        knobs=lambda s: quantity_knob(
            *("PCIe bandwidth", "hardware.pcie_bandwidth", BYTE_PER_SECOND),
            *(_host(s).device_rate, TWICE),
        ),
    ),
    # training step
    Lever(
        name="precision",
        keys=("train.precision", "train.mixed_precision"),
        applies=training.computes,
        changes=training.lower_precision,
    ),
    Lever(
        name="software",
        keys=("software.compile", "software.fused_attention", "software.memory_format"),
        kind="compile",
        applies=training.computes,
        changes=training.faster_software,
    ),
    Lever(
        name="batch size",
        keys=("train.batch_size", "train.accumulation"),
        kind="batch",
        applies=training.trains,
        changes=training.other_micro_batches,
        knobs=training.batch_knob,
        candidates=training.batch_candidates,
    ),
    Lever(
        name="recomputation",
        keys=("train.recompute",),
        kind="memory of the device",
        applies=training.trains,
        changes=training.other_recomputation,
    ),
    Lever(
        name="sharding",
        keys=("parallelism.sharding",),
        kind="parallelism",
        applies=training.trains,
        changes=training.sharded_state,
    ),
    Lever(
        name="parallelism",
        keys=("parallelism.tensor", "parallelism.pipeline", "parallelism.sharding"),
        applies=training.computes,
        changes=training.other_degrees,
        candidates=training.parallelism_candidates,
    ),
    Lever(
        name="sharding with recomputation",
        keys=("parallelism.sharding", "train.recompute", "parallelism.offload_optimizer"),
        kind="parallelism",
        applies=training.is_too_large,
        changes=training.sharding_with_recomputation,
    ),
    Lever(
        name="offloaded update",
        keys=("train.recompute", "parallelism.offload_optimizer"),
        kind="memory of the device",
        applies=training.is_too_large,
        changes=training.offloaded_update,
    ),
    Lever(
        name="adapters",
        keys=("train.trained", "train.frozen_precision", "train.recompute"),
        kind="trainable parameters",
        applies=training.is_too_large,
        changes=training.low_rank_adapters,
    ),
    Lever(
        name="checkpoints",
        keys=("train.checkpoint_every_steps",),
        changes=training.rarer_checkpoints,
    ),
    Lever(
        name="background checkpoints",
        keys=("checkpoint.asynchronous",),
        changes=training.background_checkpoints,
    ),
    Lever(
        name="GPU speed",
        keys=("calibration.compute", "calibration.device_memory"),
        knobs=training.device_speed_knob,
    ),
    Lever(
        name="links between GPUs", keys=("calibration.collective",), knobs=training.device_link_knob
    ),
    # machines
    Lever(
        name="path between GPUs",
        keys=("hardware.peer_link",),
        applies=training.computes,
        changes=machines.other_peer_paths,
        knobs=machines.peer_path_knob,
    ),
    Lever(
        name="accelerators",
        keys=("hardware.gpus", "input.workers"),
        kind="accelerators of the machine",
        applies=training.computes,
        changes=machines.all_accelerators,
    ),
    Lever(
        name="another machine",
        keys=("hardware.machine", "input.measured_on", "input.workers"),
        changes=machines.other_machines,
    ),
    Lever(
        name="machine of the family",
        keys=("hardware.machine", "hardware.count", "input.measured_on", "input.workers"),
        relief=machines.family_candidates,
    ),
    Lever(
        name="machines",
        keys=("hardware.count",),
        kind="more machines",
        changes=machines.more_machines,
        knobs=lambda s: count_knob("machines", COUNT, s.cluster.trainers.count, limits=False),
        candidates=machines.machine_count_candidates,
    ),
    Lever(name="purchase", keys=("cost.purchase",), candidates=machines.spot_candidates),
)
"""Every lever of jobs."""

SERVICE_LEVERS: Final[tuple[ServiceLever, ...]] = (
    Lever(
        name="machines",
        keys=("hardware.count", "serving.replicas", "serving.prefill.replicas"),
        changes=service.other_machine_counts,
    ),
    Lever(
        name="batches",
        keys=("serving.max_batch", "serving.queue_delay"),
        applies=service.answers_in_one_pass,
        changes=service.other_batches,
        variants=service.batch_sizes,
    ),
    Lever(
        name="tensor degree",
        keys=("serving.tensor", "serving.replicas"),
        applies=service.has_fixed_replicas,
        changes=service.other_tensor_degrees,
    ),
    Lever(
        name="separate prefill",
        keys=("serving.prefill.replicas", "serving.replicas"),
        kind="prompts apart",
        applies=service.has_fixed_replicas,
        changes=service.separate_prefill,
    ),
    Lever(
        name="number formats",
        keys=("serving.weights", "serving.cache"),
        applies=service.decodes,
        changes=service.lower_precision,
    ),
    Lever(
        name="iterations",
        keys=("serving.max_batched_tokens", "serving.max_sequences"),
        kind="tokens and requests of an iteration",
        applies=service.decodes,
        changes=service.other_iterations,
        variants=service.iteration_sizes,
    ),
    Lever(
        name="speculation",
        keys=("serving.speculation.drafts", "serving.speculation.acceptance"),
        applies=service.decodes,
        changes=service.speculative_decoding,
    ),
    Lever(
        name="autoscaling",
        keys=("serving.autoscaling.target",),
        applies=service.decodes,
        changes=service.autoscaled_machines,
    ),
    Lever(
        name="concurrent reads",
        keys=("load.inputs.readers",),
        kind="reads at a time",
        changes=service.concurrent_reads,
        variants=service.inputs_in_memory,
    ),
    Lever(name="purchase", keys=("cost.purchase",), changes=service.other_purchases),
    Lever(
        name="another machine",
        keys=("hardware.machine", "hardware.count", "serving.tensor", "serving.replicas"),
        changes=service.other_hosts,
    ),
    Lever(name="memory bandwidth", variants=service.faster_memory),
    Lever(name="arithmetic", variants=service.faster_arithmetic),
    Lever(name="device memory", variants=service.larger_memory),
    Lever(name="links", variants=service.faster_links),
    Lever(name="overhead", variants=service.no_overhead),
    Lever(name="routing", keys=("serving.routing",), variants=service.least_loaded_routing),
    Lever(name="load", keys=("load.rate",), variants=service.other_loads),
)
"""All levers of services."""


class Resource(StrEnum):
    """Resources that `plan size` sizes."""

    STORAGE = "storage"
    NETWORK = "network"
    CPU = "cpu"
    RAM = "ram"


# The part of the list that each verb shows, in its order.

NEXT_STEPS: Final = (
    *("workers", "prefetch", "copies ahead", "layout", "concurrent reads", "client", "placement"),
    *("storage", "decoder", "helpers", "preparation beforehand", "precision", "software"),
    *("batch size", "recomputation", "sharding", "parallelism", "path between GPUs"),
    *("accelerators", "sharding with recomputation"),
    *("offloaded update", "adapters", "number of helpers", "background checkpoints"),
    *("checkpoints", "another machine"),
    "machines",
)
"""Levers of "Do next" in plan simulate and plan advise."""
WHATIF: Final = (
    *("workers", "remote workers", "prefetch", "batch size", "vCPUs", "vCPUs+workers"),
    *("CPU speed", "RAM", "RAM bandwidth", "storage bandwidth", "storage IOPS", "single reads"),
    *("client", "network bandwidth", "PCIe bandwidth", "GPU speed", "links between GPUs"),
    *("path between GPUs", "machines"),
    "number of helpers",
)
"""Levers of plan whatif."""
SIZE: Final[Mapping[Resource, tuple[str, ...]]] = {
    Resource.STORAGE: ("storage bandwidth", "storage IOPS"),
    Resource.NETWORK: ("network bandwidth",),
    Resource.CPU: ("vCPUs+workers", "vCPUs"),
    Resource.RAM: ("RAM",),
}
"""Levers of plan size by resource."""
ADVISE_INPUT: Final = ("workers", "prefetch")
"""Levers of plan advise input."""
SEARCH: Final = ("machines", "storage", "parallelism", "batch size", "workers", "purchase")
"""Levers of plan recommend; each adds to the settings of those before it."""
RELIEF: Final[Mapping[str, str]] = {
    "machine of the family": "a larger machine of the family",
    "helpers": "helpers that prepare batches",
    "preparation beforehand": "preparing once, before the run",
}
"""Levers of plan recommend for a job that its processors slow down, with the names shown."""
SERVICE_NEXT_STEPS: Final = (
    *("machines", "batches", "tensor degree", "separate prefill", "number formats"),
    *("iterations", "speculation", "autoscaling", "concurrent reads", "purchase"),
    "another machine",
)
"""Levers of "Do next" for services."""
SERVICE_WHATIF: Final = (
    *("memory bandwidth", "arithmetic", "device memory", "links", "concurrent reads"),
    *("overhead", "routing", "batches", "iterations", "load"),
)
"""Levers of plan whatif for services."""


def lever(name: str) -> JobLever:
    """Return the lever of jobs with this name; raise KeyError if there is none."""
    return {entry.name: entry for entry in LEVERS}[name]


def service_lever(name: str) -> ServiceLever:
    """Return the lever of services with this name; raise KeyError if there is none."""
    return {entry.name: entry for entry in SERVICE_LEVERS}[name]


def changes(situation: Situation) -> Iterator[Change]:
    """Yield useful changes to a job; the scenario may still refuse them."""
    return _changes(map(lever, NEXT_STEPS), situation)


def service_changes(situation: ServiceSituation) -> Iterator[Change]:
    """Yield useful changes to a service; the service may still refuse them."""
    return _changes(map(service_lever, SERVICE_NEXT_STEPS), situation)


def _changes(levers: Iterable[Lever[Given]], situation: Given) -> Iterator[Change]:
    for entry in levers:
        if entry.changes is not None and (entry.applies is None or entry.applies(situation)):
            for change in entry.changes(situation):
                yield replace(change, kind=change.kind or entry.kind or entry.name)


def variants(described: Service) -> Iterator[tuple[str, Service]]:
    """Yield changed services by name, for a what-if."""
    for entry in map(service_lever, SERVICE_WHATIF):
        if entry.variants is not None:
            yield from entry.variants(described)


def knobs(scenario: Scenario, device: str = "GPU") -> tuple[Knob, ...]:
    """Return all amounts of a job that can be increased or decreased.

    Parameters
    ----------
    scenario : Scenario
        Scenario without changes.
    device : str
        Word for its accelerators, used in names.
    """
    return tuple(
        replace(knob, name=knob.name.replace("GPU", device)) if "GPU" in entry.name else knob
        for entry in map(lever, WHATIF)
        if entry.knobs is not None
        for knob in entry.knobs(scenario)
    )


def candidates(name: str, at: SearchPoint) -> Iterator[Settings]:
    """Return the settings that a lever adds to a partial candidate of a search.

    Raises
    ------
    KeyError
        If the lever has none.
    """
    found = lever(name).candidates
    if found is None:
        raise KeyError(name)
    return found(at)


def relief(name: str, shortage: Shortage) -> Iterator[Settings]:
    """Return the settings of a lever that a search tries for a CPU-bound job."""
    found = lever(name).relief
    if found is None:
        raise KeyError(name)
    return found(shortage)
