"""Evidence for each rate of a scenario: stated, measured, fitted or computed.

Deviations are in ``data/uncertainty.toml``, the range of measured runs in ``data/envelope.toml``.
Measured steps are carried over from cards of the same chip, or of another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Final, TypeAlias

from simulator.memo import cached
from simulator.physics.device_time import (
    is_carried,
    is_measured,
    is_on_cores,
    is_timed,
    of_totals,
    uses_fitted_kernels,
)
from simulator.pipeline.stages.input import most_samples
from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernels import stood_in
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.model_library import SourcedTable
from simulator.reading.shipped import DATA
from simulator.reading.unresolved import UnresolvedScenario
from simulator.results.envelope import FRAMEWORK, GPU, SHARDING, Apart, Envelope, Measured, Span
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.data_loading import CostBasis
from simulator.schema.fields import (
    Choice,
    NumberField,
    NumberOrZeroField,
    TextField,
    TimeOrZeroField,
)
from simulator.schema.machines import Link
from simulator.schema.models import Model
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope
from simulator.schema.training import Mode, Sharding, Train
from simulator.schema.transformers import Transformer
from simulator.uncertainty.components import Axis, Grade, Rate, Reach
from simulator.uncertainty.provenance import Source
from simulator.units import anywhere

_DATA: Final = DATA

RateField: TypeAlias = Annotated[Rate, Choice(Rate)]
AxisField: TypeAlias = Annotated[Axis, Choice(Axis)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtTable(SourcedTable):
    """Deviation of a rate by the evidence for its figure."""

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
class OutsideTable(SourcedTable):
    """Additional deviation of a rate outside of the measured range."""

    kind: AxisField
    """The axis along which it is outside."""
    rate: RateField
    """The rate that is known less well."""
    log_sd: NumberOrZeroField
    """Log deviation that each doubling along the axis adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartTable(SourcedTable):
    """Additional deviation of jobs that differ from measured runs in one respect."""

    kind: TextField
    """What differs: a name, or a place along an axis."""
    log_sd: NumberOrZeroField
    """Log deviation that is added: once for a name, for each doubling along an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTable(SourcedTable):
    """Deviation of the memory of an accelerator."""

    kind: TextField
    """Of what: all, or what differs from measured runs."""
    log_sd: NumberOrZeroField
    """Standard deviation of its logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyFile:
    """Deviations by evidence."""

    doubt: list[DoubtTable]
    """Inside of what was measured."""
    outside: list[OutsideTable]
    """Outside of it."""
    apart: list[ApartTable]
    """Where the device's time is computed: away from the runs that are most like it."""
    memory: list[MemoryTable]
    """Of the memory of an accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Runs of one kind and series that were measured."""

    series: TextField
    """Their series."""
    names: dict[str, TextField]
    """What they have in common, by kind."""
    spans: dict[AxisField, list[NumberField]]
    """Least and largest value by axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTable:
    """A range that was measured."""

    axis: AxisField
    """What ranges."""
    low: NumberField
    """Least measured value."""
    high: NumberField
    """Largest measured value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeFile:
    """Range of all measured runs."""

    source: TextField
    """The sets it was made from."""
    date: TextField
    """When."""
    measured: list[MeasuredTable] = field(default_factory=list)
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
    measured = tuple(
        Measured(
            series=one.series,
            names=one.names,
            spans={axis: (ends[0], ends[-1]) for axis, ends in one.spans.items()},
        )
        for one in file.measured
    )
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
    apart = {one.kind: Apart(log_sd=one.log_sd, source=one.origin) for one in _deviations().apart}
    return Envelope(measured=measured, apart=apart, spans=spans)


MEMORY: Final = "as a whole"
UNLIKE: Final = "unlike measured runs"


@cache
def memory_deviations() -> Mapping[str, float]:
    """Return log deviations of an accelerator's memory.

    `MEMORY`, and what it adds to be `UNLIKE`.
    """
    return {one.kind: one.log_sd for one in _deviations().memory}


@cache
def graded(rate: Rate, grade: Grade) -> DoubtTable:
    """Return the deviation of a rate at a grade of evidence.

    Raises
    ------
    KeyError
        If there is no figure for it, which is a bug.
    """
    tables = {(table.rate, table.grade): table for table in _deviations().doubt}
    return tables[rate, grade]


_ALIKE: Final = 0.1
"""How far the ratio of matrix to vector rate may lie apart on cards of one chip, as a logarithm."""


@cached()
def sister_of(train: Train, gpu: Gpu | None, model: Model | None, framework: str) -> Gpu | None:
    """Return the nearest card of the same chip with measured steps, if its own has none.

    Frequencies, memory and enabled units differ between such cards, so a measured step is carried
    over as a ratio. The precision and the framework are those of the job. A model that is known by
    its totals takes twice as long and more than those tell, so that its steps are carried over from
    any card, in a precision of the same width.
    """
    if gpu is None or model is None or train.mode is not Mode.TRAIN:
        return None
    precision, framework = train.precision, framework.lower()
    own = [times for times in model.step_times if times.gpu and times.framework == framework]
    exact = {times.gpu or "" for times in own if times.precision is precision}
    if gpu.name in exact:
        return None
    names, width = exact, precision.bytes_per_element
    if of_totals(model):
        wide = [(times.gpu or "", times.precision or Precision.FP32) for times in own]
        names = {name for name, given in wide if given.bytes_per_element == width}
    cards = [_shipped(name) for name in sorted(names)]
    alike = [card for card in cards if is_sister(gpu, card)]
    anywhere = cards if of_totals(model) else []
    return min(alike or anywhere, key=lambda card: _distance(gpu, card), default=None)


@cache
def _shipped(name: str) -> Gpu:
    return Catalogue.default().gpu(name)


def is_sister(one: Gpu, other: Gpu) -> bool:
    """Return true if two cards have the same chip.

    One architecture, and units of the same kinds.
    """
    ratios = [_matrix(card) / card.peak.get(Precision.FP32, math.inf) for card in (one, other)]
    if one.architecture != other.architecture or not all(ratios):
        return False
    return abs(math.log(ratios[0] / ratios[1])) < _ALIKE


def _matrix(card: Gpu) -> float:
    wide = (card.peak.get(name) for name in (Precision.FP16, Precision.BF16, Precision.FP32))
    return next(filter(None, wide), max(card.peak.values(), default=0.0))


def _distance(one: Gpu, other: Gpu) -> float:
    """Return the distance of two cards' data sheets, as logarithms of rates that both state."""
    pairs = (
        (_matrix(one), _matrix(other)),
        (one.memory_bandwidth, other.memory_bandwidth),
    )
    return sum(abs(math.log(mine / theirs)) for mine, theirs in pairs if mine and theirs)


def grades(scenario: Scenario, file: UnresolvedScenario) -> Iterator[tuple[Rate, Grade]]:
    """Yield the evidence for each rate that the scenario can depend on.

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
    """Return true if a framework without such measurements gathers parameters between machines.

    Frameworks that nothing was fitted to gather as the one does whose kernels it uses.
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
    store = scenario.cluster.trainers.storage
    stated = _given(file, "hardware.storage_request_rate")
    return store.scope is Scope.OBJECT and store.request_rate is not None and not stated


def _is_fitted(scenario: Scenario, file: UnresolvedScenario) -> bool:
    """Return true if the step is computed by fitted kernels and exchanges."""
    gpu = scenario.cluster.trainers.host.gpu
    stated = _given(file, "model.step_times", "model.step_time")
    emulated = gpu is not None and gpu.emulated
    return uses_fitted_kernels(scenario) and not stated and not emulated


def _by_relative(scenario: Scenario, file: UnresolvedScenario) -> bool:
    """Return true if a device that no run is known of is timed with kernels of another one."""
    gpu = scenario.cluster.trainers.host.gpu
    if gpu is None or gpu.relative is None or shipped_envelope().has(GPU, gpu.name):
        return False
    computed = is_timed(scenario) and not is_measured(scenario)
    stated = _given(file, "model.step_times", "model.step_time")
    return computed and not stated


def _given(file: UnresolvedScenario, *keys: str) -> bool:
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
    work = scenario.job.input
    if work.per_sample == 0.0 and work.per_batch == 0.0:
        return None
    return Grade.STATED if work.coremark_per_vcpu is None else Grade.COMPUTED


def _of_crowd(scenario: Scenario, file: UnresolvedScenario) -> Grade | None:
    """Return the evidence for the contention of busy cores, if it is of other machines.

    It matters where loaders can keep more than half of the cores busy, and costs were not stated
    for busy ones.
    """
    pool, work = scenario.cluster.trainers.host.cpu, scenario.job.input
    source = file.host.sources.get("cpu.contention")
    stated = _given(file, "hardware.contention") or (source is not None and source.verified)
    policy = scenario.job.input.policy
    busy = scenario.ranks_per_host * policy.producers * scenario.producer_threads
    if stated or work.cost_basis is CostBasis.VCPU or work.per_sample + work.per_batch == 0.0:
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
    """Return true if readers that take their stated time ask for more than the store delivers."""
    cluster, job = scenario.cluster, scenario.job
    shared = 1 if cluster.trainers.storage.scope is Scope.LOCAL else cluster.trainers.count
    processes = scenario.ranks_per_host * shared
    readers = max(1, job.input.workers) * processes * scenario.producer_threads
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
