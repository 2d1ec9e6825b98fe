"""What stands behind each rate of a scenario: what its file states, what was measured or fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from simulator.physics.device_time import (
    is_carried,
    is_measured,
    is_on_cores,
    is_timed,
    uses_fitted_kernels,
)
from simulator.pipeline.stages.input import most_samples
from simulator.reading.fitted.deviations import (
    shipped_envelope,
)
from simulator.reading.fitted.kernels import stood_in
from simulator.reading.fitted.sisters import is_sister
from simulator.reading.unresolved import UnresolvedScenario
from simulator.results.envelope import FRAMEWORK, GPU, SHARDING
from simulator.schema.hardware.link import Link
from simulator.schema.hardware.storage import Scope
from simulator.schema.scenario import Scenario
from simulator.schema.workload.loader import CostBasis
from simulator.schema.workload.models.transformer import Transformer
from simulator.schema.workload.parallelism import Sharding
from simulator.uncertainty.components import Axis, Grade, Rate
from simulator.units import anywhere


def grades(scenario: Scenario, file: UnresolvedScenario) -> Iterator[tuple[Rate, Grade]]:
    """What stands behind each rate that the scenario can depend on.

    Where kernels and exchanges were fitted, errors of such steps are known as a whole: what they
    are made of is certain once more.
    """
    fitted = _is_fitted(scenario, file)
    yield Rate.STEP, _of_fitted_step(scenario) if fitted else Grade.COMPUTED
    if fitted and stood_in(scenario.job.software):
        yield Rate.STEP, Grade.CARRIED
        yield Rate.STEP, Grade.CARRIED_KERNELS
        yield Rate.STEP, Grade.CARRIED_LAUNCHES
    if fitted and _gathers_unmeasured(scenario):
        yield Rate.STEP, Grade.GATHERED
    yield Rate.START, Grade.COMPUTED
    if not fitted:
        yield Rate.WAITING, Grade.COMPUTED
    if _by_relative(scenario, file):
        yield Rate.DEVICE, Grade.RELATIVE
    if _asks_for_objects(scenario, file):
        yield Rate.STORAGE, Grade.CONNECTION
    for rate, find in _EVIDENCE:
        grade = None if fitted and rate in _OF_FITTED_STEPS else find(scenario, file)
        if grade is not None:
            yield rate, grade
    crowded = _of_crowd(scenario, file)
    if crowded is not None:
        yield Rate.WORKERS, crowded


_OF_FITTED_STEPS: Final = frozenset({Rate.DEVICE, Rate.NETWORK, Rate.NVLINK, Rate.COLLECTIVES})


def _of_fitted_step(scenario: Scenario) -> Grade:
    model = scenario.job.model
    if isinstance(model, Transformer) and model.experts is not None:
        return Grade.EXPERTS
    return Grade.PROFILED if scenario.job.software.profiled_kernels else Grade.FITTED


def _gathers_unmeasured(scenario: Scenario) -> bool:
    """Whether parameters are gathered between machines, by a framework never measured to do so.

    Frameworks that nothing was fitted to gather as the one does whose kernels stand in.
    """
    sharding, domain = scenario.job.parallelism.sharding, scenario.cluster.trainers.gpus_per_host
    gathers = sharding in (Sharding.GRADIENTS, Sharding.PARAMETERS) and scenario.ranks > domain
    if not gathers or stood_in(scenario.job.software):
        return False
    own = {FRAMEWORK: scenario.job.software.framework.lower(), SHARDING: str(sharding)}
    return not any(
        own.items() <= one.names.items() and one.spans[Axis.RANKS][1] > domain
        for one in shipped_envelope().measured
        if Axis.RANKS in one.spans
    )


def _asks_for_objects(scenario: Scenario, file: UnresolvedScenario) -> bool:
    """Whether samples come by requests to an object store whose rate for one nobody states."""
    store = scenario.cluster.trainers.storage
    stated = _given(file, "hardware.storage_request_rate")
    return store.scope is Scope.OBJECT and store.request_rate is not None and not stated


def _is_fitted(scenario: Scenario, file: UnresolvedScenario) -> bool:
    """Whether the step follows from kernels and exchanges that were fitted to measured ones."""
    gpu = scenario.cluster.trainers.host.gpu
    stated = _given(file, "model.step_times", "model.step_time")
    emulated = gpu is not None and gpu.emulated
    return uses_fitted_kernels(scenario) and not stated and not emulated


def _by_relative(scenario: Scenario, file: UnresolvedScenario) -> bool:
    """Whether a device that no run is known of is timed with kernels of another one."""
    gpu = scenario.cluster.trainers.host.gpu
    if gpu is None or gpu.relative is None or shipped_envelope().has(GPU, gpu.name):
        return False
    computed = is_timed(scenario) and not is_measured(scenario)
    stated = _given(file, "model.step_times", "model.step_time")
    return computed and not stated


def _given(file: UnresolvedScenario, *keys: str) -> bool:
    """Whether the scenario's files or options say any of these keys."""
    return any(file.document.value(tuple(key.split("."))) is not None for key in keys)


def _of_device(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    gpu = scenario.cluster.trainers.host.gpu
    if not is_timed(scenario) or (gpu is not None and gpu.emulated):
        # A program that waits does so for as long as it is told.
        return None
    if _given(file, "model.step_times", "model.step_time"):
        return Grade.STATED
    if is_on_cores(scenario):
        return Grade.ON_CORES
    if is_carried(scenario):
        return Grade.SISTER if _of_one_chip(scenario) else Grade.OTHER_CARD
    return Grade.MEASURED if is_measured(scenario) else Grade.COMPUTED


def _of_one_chip(scenario: Scenario) -> bool:
    gpu, sister = scenario.cluster.trainers.host.gpu, scenario.job.same_chip_reference
    return gpu is not None and sister is not None and is_sister(gpu, sister)


def _of_workers(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    del file
    work = scenario.job.preprocessing
    if work.per_sample == 0.0 and work.per_batch == 0.0:
        return None
    return Grade.STATED if work.coremark_per_vcpu is None else Grade.COMPUTED


def _of_crowd(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    """By which machines it is known how much busy cores slow one another, if not by this one.

    It matters where loaders can keep more than half of the cores busy, and costs were not stated
    for busy ones.
    """
    pool, work = scenario.cluster.trainers.host.cpu, scenario.job.preprocessing
    source = file.host.sources.get("cpu.contention")
    stated = _given(file, "hardware.contention") or (source is not None and source.verified)
    policy = scenario.job.loader.policy
    busy = scenario.ranks_per_host * policy.producers * scenario.producer_threads
    if stated or work.basis is CostBasis.VCPU or work.per_sample + work.per_batch == 0.0:
        return None
    if busy <= pool.cores / 2.0:
        return None
    return Grade.CROWDED if pool.cores >= _SERVER else Grade.CROWDED_SMALL


_SERVER: Final = 8.0
"""Cores of the smallest machine whose contention is known of several like it."""


def _of_handover(scenario: Scenario, file: UnresolvedScenario) -> Grade:
    del scenario
    stated = _given(file, "input.receive_per_batch", "input.receive_per_sample")
    return Grade.STATED if stated else Grade.ASSUMED


def _of_storage(scenario: Scenario, file: UnresolvedScenario) -> Grade:
    timed = _given(file, "data.read_time") and not _store_decides(scenario)
    if timed or _given(file, *_STORAGE_KEYS):
        return Grade.STATED
    measured = scenario.cluster.trainers.storage.achievable_read_bandwidth
    return Grade.DATASHEET if measured is None else Grade.MEASURED


_STORAGE_KEYS: Final = (
    "hardware.storage_bandwidth",
    "hardware.storage_operations",
)


def _store_decides(scenario: Scenario) -> bool:
    """Whether readers that take their stated time ask for more than the store delivers."""
    cluster, job = scenario.cluster, scenario.job
    shared = 1 if cluster.trainers.storage.scope is Scope.LOCAL else cluster.trainers.count
    processes = scenario.ranks_per_host * shared
    readers = max(1, job.loader.workers) * processes * scenario.producer_threads
    return anywhere(readers > most_samples(scenario) * (job.dataset.read_time or 0.0))


def _of_network(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    if scenario.cluster.trainers.host.network is None:
        return None
    return Grade.STATED if _given(file, "hardware.network_bandwidth") else Grade.DATASHEET


def _of_pcie(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    grade = _of_link(scenario.cluster.trainers.host.host_link)
    return Grade.STATED if grade and _given(file, "hardware.pcie_bandwidth") else grade


def _of_nvlink(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    del file
    return _of_link(scenario.cluster.trainers.host.peer_link)


def _of_link(link: Link | None) -> Grade | None:
    if link is None:
        return None
    return Grade.DATASHEET if link.achievable is None else Grade.MEASURED


def _of_memory(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    if scenario.cluster.trainers.host.memory_bandwidth is None:
        return None
    return Grade.STATED if _given(file, "hardware.memory_bandwidth") else Grade.DATASHEET


def _of_collectives(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    del file
    return Grade.COMPUTED if scenario.ranks > 1 else None


_EVIDENCE: Final[
    tuple[tuple[Rate, Callable[[Scenario, UnresolvedScenario], Grade | None]], ...]
] = (
    (Rate.DEVICE, _of_device),
    (Rate.WORKERS, _of_workers),
    (Rate.HANDOVER, _of_handover),
    (Rate.STORAGE, _of_storage),
    (Rate.NETWORK, _of_network),
    (Rate.PCIE, _of_pcie),
    (Rate.NVLINK, _of_nvlink),
    (Rate.HOST_MEMORY, _of_memory),
    (Rate.COLLECTIVES, _of_collectives),
)
