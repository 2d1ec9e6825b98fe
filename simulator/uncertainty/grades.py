"""Evidence for each rate of a scenario: stated, measured, fitted or computed.

Uncertainties are in ``data/uncertainty.toml``, the range of measured runs in
``data/envelope.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Annotated, Final, TypeAlias

from simulator.physics.device_time import Evidence, evidence_of, uses_fitted_kernels
from simulator.pipeline.stages.communication import over_peer_link
from simulator.pipeline.stages.input import client_of, most_samples
from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernels import stood_in
from simulator.reading.shipped import DATA
from simulator.reading.training import is_sister
from simulator.records import dataclass
from simulator.results.envelope import (
    FRAMEWORK,
    GPU,
    SHARDING,
    Apart,
    AxisField,
    Envelope,
    Measured,
    Span,
)
from simulator.schema.data_loading import CachePolicy, CostBasis
from simulator.schema.fields import (
    Choice,
    Citation,
    NumberField,
    NumberOrZeroField,
    TextField,
    TimeOrZeroField,
)
from simulator.schema.long_run import Target
from simulator.schema.machines import Hardware, Link
from simulator.schema.provenance import Source
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope
from simulator.schema.training import Mode, Sharding
from simulator.schema.transformers import Transformer
from simulator.schema.uncertainty import Axis, Grade, Rate, Reach
from simulator.units import anywhere

_DATA: Final = DATA

RateField: TypeAlias = Annotated[Rate, Choice(Rate)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtTable(Citation):
    """Uncertainty of a rate with one grade of evidence."""

    rate: RateField
    """Which rate."""
    grade: Annotated[Grade, Choice(Grade)]
    """What stands behind the figure."""
    log_sd: NumberOrZeroField
    """Standard deviation of the rate's logarithm."""
    seconds: TimeOrZeroField = 0.0
    """Additional deviation of a step that does not grow with the step."""
    per_doubling: dict[AxisField, NumberOrZeroField] = field(default_factory=dict)
    """What each doubling beyond what was measured adds, by axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTable(Citation):
    """Additional uncertainty of a rate outside of the measured range."""

    kind: AxisField
    """The axis along which it is outside."""
    rate: RateField
    """The rate that is known less well."""
    log_sd: NumberOrZeroField
    """Log deviation that each doubling along the axis adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTable(Citation):
    """Uncertainty of the memory that a job needs on an accelerator."""

    kind: TextField
    """Of what: all, or what differs from measured runs."""
    log_sd: NumberOrZeroField
    """Standard deviation of its logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyFile:
    """Contents of ``uncertainty.toml``: uncertainties by evidence."""

    doubt: list[DoubtTable]
    """Inside of what was measured."""
    outside: list[OutsideTable]
    """Outside of it."""
    apart: list[Apart]
    """Where the device's time is computed: away from the runs that are most like it."""
    memory: list[MemoryTable]
    """Of the memory of an accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTable:
    """Measured range of one axis."""

    axis: AxisField
    """What ranges."""
    low: NumberField
    """Least measured value."""
    high: NumberField
    """Largest measured value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeFile:
    """Contents of ``envelope.toml``: the range of all measured runs."""

    source: TextField
    """The sets it was made from."""
    date: TextField
    """When."""
    measured: tuple[Measured, ...] = ()
    """Runs whose device time a prediction computes."""
    span: list[SpanTable] = field(default_factory=list)
    """Ranges."""


@cache
def _deviations() -> UncertaintyFile:
    return check(UncertaintyFile, read_document(_DATA / "uncertainty.toml"))


@cache
def shipped_envelope() -> Envelope:
    """Return the range of the shipped measurement sets and step times."""
    file = check(EnvelopeFile, read_document(_DATA / "envelope.toml"))
    tables = {table.kind: table for table in _deviations().outside}
    made = Source(reference=file.source, date=file.date)
    spans = tuple(
        Span(
            reach=Reach(
                axis=one.axis, low=one.low, high=one.high, per_doubling=tables[one.axis].log_sd
            ),
            rate=tables[one.axis].rate,
            source=made,
        )
        for one in file.span
    )
    apart = {one.kind: one for one in _deviations().apart}
    return Envelope(measured=file.measured, apart=apart, spans=spans)


MEMORY: Final = "as a whole"
UNLIKE: Final = "unlike measured runs"


@cache
def memory_deviations() -> Mapping[str, float]:
    """Return the uncertainty of device memory by kind.

    The kinds are `MEMORY`, and `UNLIKE`, which is added for jobs unlike the measured ones.
    """
    return {one.kind: one.log_sd for one in _deviations().memory}


@cache
def graded(rate: Rate, grade: Grade) -> DoubtTable:
    """Return the uncertainty of a rate with a grade of evidence.

    Raises
    ------
    KeyError
        If the data file has no value for it, which is a bug.
    """
    tables = {(table.rate, table.grade): table for table in _deviations().doubt}
    return tables[rate, grade]


def grades(scenario: Scenario, stated: Hardware) -> Iterator[tuple[Rate, Grade]]:
    """Yield the grade of evidence of each rate on which the scenario may depend.

    For steps from fitted kernels and communication, the error of the whole step is known, so that
    their parts have no uncertainty of their own.

    Parameters
    ----------
    scenario : Scenario
        The scenario, with all values resolved.
    stated : Hardware
        The hardware table of its file, which states values of the machine.
    """
    fitted = _is_fitted(scenario)
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
    if _by_relative(scenario):
        yield Rate.DEVICE, Grade.RELATIVE
    yield from _of_client(scenario, stated)
    for rate, find in _EVIDENCE:
        grade = find(scenario, stated)
        covered = fitted and rate in _OF_FITTED_STEPS and grade is not Grade.PEERS
        if grade is not None and not covered:
            yield rate, grade
    opens = scenario.cluster.trainers.storage.open_operations > 0.0
    if opens and _of_storage(scenario, stated) is not Grade.STATED:
        yield Rate.STORAGE, Grade.OPENING
    if _launches_unknown(scenario):
        yield Rate.LAUNCH, Grade.ASSUMED
    crowded = _of_crowd(scenario)
    if crowded is not None:
        yield Rate.WORKERS, crowded


_OF_FITTED_STEPS: Final = frozenset({Rate.DEVICE, Rate.NETWORK, Rate.NVLINK, Rate.COLLECTIVES})


def _of_fitted_step(scenario: Scenario) -> Grade:
    model = scenario.job.model
    if isinstance(model, Transformer) and model.experts is not None:
        return Grade.EXPERTS
    return Grade.PROFILED if scenario.job.software.profiled_kernels else Grade.FITTED


def _gathers_unmeasured(scenario: Scenario) -> bool:
    """Return True if parameters are gathered between machines by a framework not measured so.

    Frameworks without fitted kernels gather like the framework whose kernels they use.
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


def _of_client(scenario: Scenario, stated: Hardware) -> Iterator[tuple[Rate, Grade]]:
    """Yield the evidence for reads of an object store through its client, and its CPU work."""
    store, job = scenario.cluster.trainers.storage, scenario.job
    client, dataset = client_of(scenario, store), job.dataset
    if client is None or dataset.cache is CachePolicy.PRELOADED:
        return
    if dataset.read_time is not None:
        yield Rate.CLIENT, Grade.STATED
        return
    keys = {"storage_latency": Grade.UNKNOWN_REQUEST, "storage_request_rate": Grade.UNKNOWN_STREAM}
    open_ = [grade for key, grade in keys.items() if not stated.states(key)]
    if store.as_read or not open_:
        yield Rate.CLIENT, Grade.STATED
    elif client.is_known:
        figures = (client.sources.get(key) for key in ("request_time", "stream_rate"))
        verified = all(source is None or source.verified for source in figures)
        yield Rate.CLIENT, Grade.MEASURED if verified else Grade.ASSUMED
    else:
        yield from ((Rate.CLIENT, grade) for grade in open_)
    if dataset.states("request_cpu") or dataset.states("core_rate"):
        yield Rate.CLIENT_CPU, Grade.STATED
    elif client.is_known:
        figures = (client.sources.get(key) for key in ("request_cpu", "core_rate"))
        verified = all(source is None or source.verified for source in figures)
        yield Rate.CLIENT_CPU, Grade.MEASURED if verified else Grade.ASSUMED
    else:
        yield Rate.CLIENT_CPU, Grade.UNKNOWN_CPU


def _is_fitted(scenario: Scenario) -> bool:
    """Return True if the step is computed from fitted kernels and communication."""
    gpu = scenario.cluster.trainers.host.gpu
    emulated = gpu is not None and gpu.emulated
    return uses_fitted_kernels(scenario) and scenario.job.step_times is None and not emulated


def _by_relative(scenario: Scenario) -> bool:
    """Return True if a device without measured runs is timed with the kernels of another one."""
    gpu = scenario.cluster.trainers.host.gpu
    if gpu is None or gpu.relative is None or shipped_envelope().has(GPU, gpu.name):
        return False
    computed = evidence_of(scenario) not in {Evidence.NONE, Evidence.MEASURED}
    return computed and scenario.job.step_times is None


def _of_device(scenario: Scenario, stated: Hardware) -> Grade | None:
    del stated
    gpu = scenario.cluster.trainers.host.gpu
    if evidence_of(scenario) is Evidence.NONE or (gpu is not None and gpu.emulated):
        # A program that waits a stated time has no uncertainty.
        return None
    if scenario.job.step_times is not None:
        return Grade.STATED
    if evidence_of(scenario) is Evidence.CORES:
        return Grade.ON_CORES
    if evidence_of(scenario) is Evidence.SAME_CHIP:
        return Grade.SISTER if _of_one_chip(scenario) else Grade.OTHER_CARD
    return Grade.MEASURED if evidence_of(scenario) is Evidence.MEASURED else Grade.COMPUTED


def _of_one_chip(scenario: Scenario) -> bool:
    gpu, sister = scenario.cluster.trainers.host.gpu, scenario.job.same_chip_reference
    return gpu is not None and sister is not None and is_sister(gpu, sister)


def _of_workers(scenario: Scenario, stated: Hardware) -> Grade | None:
    del stated
    work = scenario.job.input
    if work.per_sample == 0.0 and work.per_batch == 0.0:
        return None
    return Grade.STATED if work.coremark_per_vcpu is None else Grade.COMPUTED


def _of_crowd(scenario: Scenario) -> Grade | None:
    """Return the evidence for the contention of busy cores; None if it has no effect.

    It has an effect if workers can occupy more than half of the cores, the contention was not
    measured on this machine, and costs were not stated for busy cores.
    """
    host, work = scenario.cluster.trainers.host, scenario.job.input
    pool, source = host.cpu, host.sources.get("cpu.contention")
    policy = scenario.job.input.policy
    busy = scenario.ranks_per_host * policy.producers * scenario.producer_threads
    known = source is not None and source.verified
    if known or work.cost_basis is CostBasis.VCPU or work.per_sample + work.per_batch == 0.0:
        return None
    if busy <= pool.cores / 2.0:
        return None
    return Grade.CROWDED if pool.cores >= _SERVER else Grade.CROWDED_SMALL


_SERVER: Final = 8.0
"""Cores of the smallest machine whose contention is known of several like it."""


def _launches_unknown(scenario: Scenario) -> bool:
    """Return True if a main thread that loads batches launches for an unknown time.

    A program that waits for the device in each step is in series however long it launches.
    """
    job, gpu = scenario.job, scenario.cluster.trainers.host.gpu
    inline = job.remote is None and not job.input.policy.producers
    if not inline or gpu is None or gpu.emulated or job.mode is Mode.PREPARE:
        return False
    in_series = job.train.sync_every_step and job.train.accumulation == 1
    return job.train.launch_time is None and not in_series


def _of_handover(scenario: Scenario, stated: Hardware) -> Grade:
    del stated
    keys = ("receive_per_batch", "receive_per_sample")
    return Grade.STATED if any(map(scenario.job.input.states, keys)) else Grade.ASSUMED


def _of_storage(scenario: Scenario, stated: Hardware) -> Grade:
    timed = scenario.job.dataset.read_time is not None and not _store_decides(scenario)
    if timed or stated.states("storage_bandwidth") or stated.states("storage_operations"):
        return Grade.STATED
    measured = scenario.cluster.trainers.storage.achievable_read_bandwidth
    return Grade.DATASHEET if measured is None else Grade.MEASURED


def _store_decides(scenario: Scenario) -> bool:
    """Return True if readers with a stated time per sample exceed the rate of the store."""
    cluster, job = scenario.cluster, scenario.job
    shared = 1 if cluster.trainers.storage.scope is Scope.LOCAL else cluster.trainers.count
    processes = scenario.ranks_per_host * shared
    readers = max(1, job.input.workers) * processes * scenario.producer_threads
    return anywhere(readers > most_samples(scenario) * (job.dataset.read_time or 0.0))


def _of_network(scenario: Scenario, stated: Hardware) -> Grade | None:
    if scenario.cluster.trainers.host.network is None:
        return None
    return Grade.STATED if stated.states("network_bandwidth") else Grade.DATASHEET


def _of_pcie(scenario: Scenario, stated: Hardware) -> Grade | None:
    grade = _of_link(scenario.cluster.trainers.host.host_link)
    return Grade.STATED if grade and stated.states("pcie_bandwidth") else grade


def _of_nvlink(scenario: Scenario, stated: Hardware) -> Grade | None:
    del stated
    host = scenario.cluster.trainers.host
    return _of_link(host.peer_link) if over_peer_link(host) else None


def _of_link(link: Link | None) -> Grade | None:
    if link is None:
        return None
    return Grade.DATASHEET if link.achievable is None else Grade.MEASURED


def _of_memory(scenario: Scenario, stated: Hardware) -> Grade | None:
    if scenario.cluster.trainers.host.memory_bandwidth is None:
        return None
    return Grade.STATED if stated.states("memory_bandwidth") else Grade.DATASHEET


def _of_collectives(scenario: Scenario, stated: Hardware) -> Grade | None:
    if scenario.devices <= 1:
        return None
    group = scenario.cluster.trainers
    several = group.gpus_per_host > 1 and group.host.gpu is not None
    if several and not stated.states("peer_link") and not over_peer_link(group.host):
        return Grade.PEERS
    return Grade.COMPUTED if scenario.ranks > 1 else None


def _of_checkpoints(scenario: Scenario, stated: Hardware) -> Grade | None:
    del stated
    job, given = scenario.job, scenario.checkpoints
    if job.mode is not Mode.TRAIN or job.model is None or given.blocking is not None:
        return None
    if given.asynchronous:
        return Grade.COMPUTED
    if job.train.states("checkpoint_process_rate"):
        return Grade.STATED
    far = scenario.cluster.trainers.storage.scope is Scope.OBJECT and given.to is Target.STORE
    if far and job.client is not None and job.client.write_rate is not None:
        return Grade.MEASURED
    return Grade.UNKNOWN_STREAM if far else Grade.ASSUMED


_EVIDENCE: Final[tuple[tuple[Rate, Callable[[Scenario, Hardware], Grade | None]], ...]] = (
    (Rate.DEVICE, _of_device),
    (Rate.WORKERS, _of_workers),
    (Rate.HANDOVER, _of_handover),
    (Rate.STORAGE, _of_storage),
    (Rate.NETWORK, _of_network),
    (Rate.PCIE, _of_pcie),
    (Rate.NVLINK, _of_nvlink),
    (Rate.HOST_MEMORY, _of_memory),
    (Rate.COLLECTIVES, _of_collectives),
    (Rate.CHECKPOINT, _of_checkpoints),
)
