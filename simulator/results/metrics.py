"""The registry of metrics: every reported figure of jobs and services, by its dotted name.

The name is a path in ``--json``, a ``measured.`` column of a measurement set, a term of a goal and
the argument of ``plan explain``. Rates, times and amounts are SI. None: the figure does not apply
(no accelerator, no price).

Left out: what identifies a run (schema, version, scenario, seed) and what explains it (interval,
assumptions, warnings); reports add them.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from simulator.equations.storage import bytes_from_store
from simulator.errors import UnknownName
from simulator.physics.operators import (
    hardware_utilization,
    model_utilization,
    rate_per_device,
    tokens_per_sample,
)
from simulator.pipeline.stages.base import Resource
from simulator.pipeline.stages.input import read_bytes
from simulator.results import storage_benchmark
from simulator.results.prediction import QUANTILES, Outlook, Prediction, Usage
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.terms import Term
from simulator.units import (
    BYTE,
    FLOP_PER_SECOND,
    HOUR,
    JOULE,
    KILOGRAM,
    KILOWATT_HOUR,
    KILOWATT_HOURS,
    PER_SECOND,
    SECOND,
    TRILLION,
    USD,
    WATT,
    Joules,
    PerSecond,
    Seconds,
    Unit,
)

if TYPE_CHECKING:
    from simulator.results.serving import (
        Answered,
        DeviceMemory,
        Latency,
        Saturation,
        ServiceCost,
        ServiceEnergy,
        ServicePrediction,
    )
    from simulator.schema.serving import Service

USD_PER_HOUR: Final = Unit("$/h", "dollars per hour")
TOKEN: Final = Unit("tokens", "tokens")
TOKEN_PER_SECOND: Final = Unit("tokens/s", "tokens per second")

Value: TypeAlias = float | int | str | Mapping[str, float] | None
SOLVER: Final = "event engine"
"""Value of the metric `solver`: all runs are simulated by events."""

Getter: TypeAlias = Callable[[Prediction], Value]


class Kind(StrEnum):
    """The kind of subject of a metric."""

    JOB = "job"
    SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A reported figure: dotted `name`, `unit` (None: a ratio, count or word), `better` way.

    `get` takes it from a `Prediction`, or from a `ServicePrediction` where `kind` says so. Only
    `signed` figures may be negative. A name that ends in ``.*`` is a family of figures of services
    whose values come as a mapping of their last parts.
    """

    name: str
    get: Callable[[Any], Value]
    doc: str
    unit: Unit | None = None
    better: Literal["high", "low"] | None = None
    signed: bool = False
    kind: Kind = Kind.JOB


def _time(name: str, get: Getter, doc: str) -> Metric:
    return Metric(name=name, get=get, doc=doc, unit=SECOND, better="low")


def _ratio(
    name: str, get: Getter, doc: str, better: Literal["high", "low"] | None = None
) -> Metric:
    return Metric(name=name, get=get, doc=doc, better=better)


def _less(name: str, get: Getter, doc: str, unit: Unit) -> Metric:
    """Return a metric of which less is better."""
    return Metric(name=name, get=get, doc=doc, unit=unit, better="low")


def _bytes(name: str, get: Getter, doc: str, better: Literal["low"] | None = None) -> Metric:
    return Metric(name=name, get=get, doc=doc, unit=BYTE, better=better)


def _store_bytes(prediction: Prediction) -> float:
    """Return the bytes that a machine reads past its page cache in a warm epoch [B]."""
    scenario = prediction.scenario
    job = scenario.job
    asked = job.dataset.samples * read_bytes(job.dataset, job.stored_bytes) * job.copies
    own = asked * scenario.ranks_per_job / scenario.ranks
    return float(bytes_from_store(own, prediction.cache_hit_ratio))


def _usage_metrics(resource: Resource) -> tuple[Metric, ...]:
    def part(name: str, get: Callable[[Usage], float], doc: str) -> Metric:
        def of(prediction: Prediction) -> Value:
            usage = prediction.timing.usage.get(resource)
            return None if usage is None else get(usage)

        return _ratio(f"utilization.{resource}.{name}", of, doc)

    return (
        part("mean", lambda u: u.mean, f"Busy share of {resource}, 0 to 1, over its units."),
        part("sum", lambda u: u.total, f"Busy units of {resource}: 4.0 for four busy ones."),
        part("units", lambda u: u.units, f"Units of {resource}."),
    )


_TIMES: Final = (
    _time("step_time_s.mean", lambda p: p.timing.step_time.mean, "Mean step, warm-up apart."),
    _time("step_time_s.p50", lambda p: p.timing.step_time.p50, "Median step."),
    _time("step_time_s.p95", lambda p: p.timing.step_time.p95, "95th percentile of the step."),
    _time("step_time_s.p99", lambda p: p.timing.step_time.p99, "99th percentile of the step."),
    _ratio("steps_per_epoch", lambda p: p.steps_per_epoch, "Steps of an epoch."),
    _time("first_step_s", lambda p: p.timing.first_step, "From start to the end of step 1."),
    _time("epoch_time_s", lambda p: p.timing.epoch_time, "One epoch with warm caches."),
    _time("total_time_s", lambda p: p.timing.total_time, "All epochs, start to end."),
    _ratio(
        "break_even_epochs",
        lambda p: p.break_even_epochs,
        "Epochs after which staging or preloading the data has paid for itself.",
        "low",
    ),
    Metric(
        name="throughput_samples_per_s",
        get=lambda p: p.timing.throughput,
        doc="Samples trained per second at the mean step, all ranks.",
        unit=PER_SECOND,
        better="high",
    ),
)


def _counted(count: Callable[[Scenario, PerSecond], Term | None]) -> Getter:
    """Return a getter of a term at the mean throughput."""

    def of(prediction: Prediction) -> Value:
        found = count(prediction.scenario, prediction.timing.throughput)
        return None if found is None else cast("float", found.value)

    return of


def _tokens(rate: Callable[[Prediction, float], Value]) -> Getter:
    """Return a getter of `rate` of the tokens of a sample; None if samples are not text."""

    def of(prediction: Prediction) -> Value:
        tokens = tokens_per_sample(prediction.scenario)
        return None if tokens is None else rate(prediction, tokens)

    return of


def _of_each_device(prediction: Prediction, rate: float) -> Value:
    """Return the rate per device; None if cores compute."""
    group = prediction.scenario.cluster.trainers
    return rate / (group.count * group.gpus_per_host) if group.gpus_per_host else None


_MODEL: Final = (
    _ratio(
        "mfu",
        _counted(model_utilization),
        "Model FLOPs utilization: arithmetic the model needs over the peak of the accelerators.",
        "high",
    ),
    _ratio(
        "hfu",
        _counted(hardware_utilization),
        "Hardware FLOPs utilization: the same with recomputed activations.",
        "high",
    ),
    Metric(
        name="flops_per_s_per_gpu",
        get=_counted(rate_per_device),
        doc="Model FLOPs of one accelerator in a second (TFLOP/s per GPU).",
        unit=FLOP_PER_SECOND,
        better="high",
    ),
    Metric(
        name="tokens_per_step",
        get=_tokens(lambda p, tokens: tokens * samples_per_step(p)),
        doc="Tokens of an optimizer step over all ranks: the global batch.",
        unit=TOKEN,
    ),
    Metric(
        name="tokens_per_s",
        get=_tokens(lambda p, tokens: tokens * p.timing.throughput),
        doc="Tokens per second at the mean step, all ranks.",
        unit=TOKEN_PER_SECOND,
        better="high",
    ),
    Metric(
        name="tokens_per_s_per_gpu",
        get=_tokens(lambda p, tokens: _of_each_device(p, tokens * p.timing.throughput)),
        doc="Tokens per second and accelerator.",
        unit=TOKEN_PER_SECOND,
        better="high",
    ),
    _time(
        "time_per_trillion_tokens_s",
        _tokens(lambda p, tokens: TRILLION / (tokens * p.timing.throughput)),
        "How long a trillion tokens take at the mean step; other numbers in proportion.",
    ),
)
_SPLIT: Final = (
    _time(
        "step_split_s.data_stall",
        lambda p: p.timing.split.data_stall,
        "The device waits for a batch.",
    ),
    _time("step_split_s.h2d", lambda p: p.timing.split.h2d, "Exposed copy to the device."),
    _time("step_split_s.compute", lambda p: p.timing.split.compute, "The device computes."),
    _time(
        "step_split_s.communication",
        lambda p: p.timing.split.communication,
        "Exposed communication.",
    ),
    _time("step_split_s.bubble", lambda p: p.timing.split.bubble, "Pipeline bubble."),
    _time("step_split_s.checkpoint", lambda p: p.timing.split.checkpoint, "Writing checkpoints."),
    _time(
        "step_split_s.other",
        lambda p: p.timing.split.other,
        "Waiting for other ranks, for the program, or for an optimizer on the host.",
    ),
    _time(
        "communication_s.exposed",
        lambda p: p.timing.communication.exposed,
        "Communication that delays the step.",
    ),
    _time(
        "communication_s.hidden",
        lambda p: p.timing.communication.hidden,
        "Communication under compute.",
    ),
)
_USE: Final = (
    _ratio(
        "accelerator_utilization",
        lambda p: p.timing.accelerator_utilization,
        "Share of the step in which the accelerators compute.",
        "high",
    ),
    *(metric for resource in Resource for metric in _usage_metrics(resource)),
    _ratio(
        "bottleneck",
        lambda p: p.timing.bottleneck,
        "What binds: a resource, or communication, bubble, checkpoint or waiting.",
    ),
    _ratio("next_bottleneck", lambda p: p.timing.next_bottleneck, "What would bind next."),
    _ratio("solver", lambda _: SOLVER, "Method of the simulation: always the event engine."),
    _ratio(
        "vcpus_needed_per_gpu",
        lambda p: None if p.cpu_need is None else p.cpu_need.per_gpu,
        "vCPUs that keep one accelerator busy.",
        "low",
    ),
    _ratio(
        "vcpus_per_gpu",
        lambda p: p.scenario.cluster.vcpus_per_gpu,
        "vCPUs there for each accelerator in use, those of machines that help included.",
    ),
    _ratio(
        "vcpus_short",
        lambda p: None if p.cpu_need is None else p.cpu_need.short,
        "vCPUs the machine lacks to keep all accelerators busy.",
        "low",
    ),
)
_MEMORY: Final = (
    _bytes("host_ram_bytes.total", lambda p: p.host_ram.total, "RAM one machine needs.", "low"),
    _bytes("host_ram_bytes.capacity", lambda p: p.host_ram.capacity, "RAM one machine has."),
    _bytes(
        "host_ram_bytes.rule_of_thumb",
        lambda p: p.host_ram.rule_of_thumb,
        "Memory of the accelerators in use, operating system and application: below it, paging is "
        "a risk.",
    ),
    _bytes("host_ram_bytes.items", lambda p: p.host_ram.items, "What the RAM is needed for."),
    _bytes(
        "store_bytes_per_epoch",
        _store_bytes,
        "What one machine reads past its page cache in an epoch with warm caches.",
        "low",
    ),
    _bytes(
        "gpu_memory_bytes.total",
        lambda p: None if p.memory is None else p.memory.total,
        "Memory one accelerator needs.",
        "low",
    ),
    _bytes(
        "gpu_memory_bytes.capacity",
        lambda p: None if p.memory is None else p.memory.capacity,
        "Memory one accelerator has.",
    ),
    _bytes(
        "gpu_memory_bytes.items",
        lambda p: None if p.memory is None else p.memory.items,
        "What the accelerator's memory is needed for, on the fullest stage of a pipeline.",
    ),
    _bytes(
        "gpu_memory_bytes.stages",
        lambda p: None if p.memory is None else p.memory.stages,
        "Memory an accelerator needs on the first, a middle and the last stage of a pipeline.",
    ),
    _ratio(
        "fits.gpu",
        lambda p: None if p.memory is None else p.memory.known_verdict,
        "yes, no or uncertain.",
    ),
    _ratio(
        "fits.gpu_probability",
        lambda p: None if p.memory is None else p.memory.probability,
        "How probable it is that the memory of an accelerator is enough.",
        "high",
    ),
    _ratio("fits.host", lambda p: p.host_ram.verdict, "yes, no or uncertain."),
)
_COST: Final = (
    _less(
        "cost.usd_per_h",
        lambda p: None if p.cost.per_second is None else p.cost.per_second * HOUR,
        "Price of all machines for an hour.",
        USD_PER_HOUR,
    ),
    _less("cost.usd_per_step", lambda p: p.cost.per_step, "Price of a mean step.", USD),
    _ratio(
        "cost.samples_per_usd",
        lambda p: p.cost.samples_per_usd,
        "Samples trained for a dollar over a whole epoch, its start and end included.",
        "high",
    ),
    _less(
        "cost.usd_to_train",
        lambda p: p.in_all,
        "Bill of the whole job, start-up too: machines, and all known charges of stores.",
        USD,
    ),
    _less(
        "cost.usd_for_machines",
        lambda p: p.cost.for_machines,
        "The part of it that is for machines: rent, or owning them and their electricity.",
        USD,
    ),
    _time("cost.time_to_train_s", lambda p: p.cost.time_to_train, "Billed time of the job."),
    _less(
        "cost.energy_j_per_step",
        lambda p: p.cost.energy_per_step,
        "Power of all machines billed, at rest and at work, over a mean step; crude.",
        JOULE,
    ),
)


def _kilowatt_hours(energy: Joules | None) -> float | None:
    return None if energy is None else energy / KILOWATT_HOUR


_STORES: Final = (
    _less(
        "cost.storage.usd",
        lambda p: p.storage.total,
        "Bill of the stores of the whole run; none where a price is not known.",
        USD,
    ),
    _less(
        "cost.storage.rent_usd",
        lambda p: p.storage.rent,
        "Rent for data and kept checkpoints, as long as they lie there.",
        USD,
    ),
    _less(
        "cost.storage.provisioned_usd",
        lambda p: p.storage.provisioned,
        "Operations and throughput that stores hold ready.",
        USD,
    ),
    _less(
        "cost.storage.requests_usd",
        lambda p: p.storage.requests,
        "Requests to object stores, those that read and those that write.",
        USD,
    ),
    _less(
        "cost.storage.egress_usd",
        lambda p: p.storage.egress,
        "Bytes that leave the region of the store, as store.location or the clouds of both say.",
        USD,
    ),
    _less(
        "cost.usd_with_storage",
        lambda p: p.in_all,
        "Old name of cost.usd_to_train.",
        USD,
    ),
)
_ENERGY: Final = (
    _less("energy.power_w", lambda p: p.energy.power, "Power of all machines in a step.", WATT),
    _less(
        "energy.machines_kwh",
        lambda p: _kilowatt_hours(p.energy.of_machines),
        "Energy of all machines billed in the whole run, at their plugs.",
        KILOWATT_HOURS,
    ),
    _less(
        "energy.kwh",
        lambda p: _kilowatt_hours(p.energy.of_building),
        "The same with cooling and losses of the building, where [energy] tells of it.",
        KILOWATT_HOURS,
    ),
    _less(
        "energy.kg_co2e",
        lambda p: p.energy.emitted,
        "What the grid emitted for it, by location, where energy.grid is known.",
        KILOGRAM,
    ),
    _less("energy.usd", lambda p: p.energy.price, "Its price; rent has it included.", USD),
)
_BOUND: Final = (
    _time("bound_s.lower", lambda p: p.bounds.lower, "Least total time / steps of the run."),
    _time("bound_s.upper", lambda p: p.bounds.upper, "Most total time / steps of the run."),
)

_BENCHMARK: Final = (
    _ratio(
        "mlperf_storage.accelerator_utilization",
        storage_benchmark.utilization,
        "Compute over an epoch without its first step, as the storage benchmark counts.",
        "high",
    ),
    Metric(
        name="mlperf_storage.throughput_v1_samples_per_s",
        get=storage_benchmark.throughput_v1,
        doc="Samples over the whole epoch, as version 1.0 of the storage benchmark counts.",
        unit=PER_SECOND,
        better="high",
    ),
    Metric(
        name="mlperf_storage.throughput_v2_samples_per_s",
        get=storage_benchmark.throughput_v2,
        doc="As version 2.0 counts: two steps' samples, one step's time left out.",
        unit=PER_SECOND,
        better="high",
    ),
    _time(
        "mlperf_storage.first_step_s",
        storage_benchmark.first_step,
        "Step 1 of an epoch on the average rank, without waiting for others.",
    ),
    _time(
        "mlperf_storage.step_time_s",
        storage_benchmark.step_time,
        "Mean over all steps of an epoch but its first, waiting for others included.",
    ),
)


def _of_run(get: Callable[[Outlook], Value]) -> Getter:
    """Return a getter of the long run; None if the scenario has no interruptions."""
    return lambda p: None if p.outlook is None else get(p.outlook)


def _ends(quantile: float) -> tuple[Metric, ...]:
    """Return the metrics of end and cost at a quantile."""
    point, said = f"p{quantile * 100:.0f}", f"with a chance of {quantile:.0%}"
    money = _of_run(lambda o: None if o.bill is None else o.bill[quantile])
    stores = _of_run(lambda o: None if o.stores is None else o.stores[quantile])
    return (
        _time(
            f"run.finish_s.{point}",
            _of_run(lambda o: o.finish[quantile]),
            f"When the run has ended {said}, failures and all.",
        ),
        Metric(
            name=f"run.usd.{point}",
            get=money,
            doc=f"What machines and stores have cost at most {said}, failures and all.",
            unit=USD,
            better="low",
        ),
        Metric(
            name=f"run.storage_usd.{point}",
            get=stores,
            doc=f"The part of it that is for stores {said}; none where a price is not known.",
            unit=USD,
            better="low",
        ),
    )


_RUN: Final = (
    _ratio(
        "run.goodput",
        _of_run(lambda o: o.goodput),
        "Share of the run's time that is work which counts (ETTR).",
        "high",
    ),
    *(metric for quantile in QUANTILES for metric in _ends(quantile)),
    Metric(
        name="run.between_interruptions_s",
        get=_of_run(lambda o: o.between),
        doc="Mean time between interruptions of the run.",
        unit=SECOND,
        better="high",
    ),
    _ratio("run.parts", _of_run(lambda o: dict(o.parts)), "What the run's time goes to, shares."),
    Metric(
        name="run.checkpoint_interval_s",
        get=_of_run(lambda o: o.saving.interval),
        doc="Work between two checkpoints: as given, else the best one by simulation.",
        unit=SECOND,
    ),
    _time(
        "run.checkpoint_blocking_s",
        _of_run(lambda o: o.saving.blocking),
        "What training waits for a checkpoint.",
    ),
    _time(
        "run.checkpoint_durable_s",
        _of_run(lambda o: o.saving.durable),
        "From the beginning of a checkpoint until it could be loaded.",
    ),
    _ratio(
        "run.deadline_chance",
        _of_run(lambda o: o.in_time),
        "How probable it is that the run ends by run.deadline.",
        "high",
    ),
    _ratio(
        "run.budget_chance",
        _of_run(lambda o: o.in_budget),
        "How probable it is that the bill stays below run.budget.",
        "high",
    ),
)

JOB_METRICS: Final[tuple[Metric, ...]] = (
    *_TIMES,
    *_MODEL,
    *_SPLIT,
    *_USE,
    *_MEMORY,
    *_COST,
    *_STORES,
    *_ENERGY,
    *_BOUND,
    *_RUN,
    *_BENCHMARK,
)
"""The metrics of jobs in the order of ``--json``."""


Part = TypeVar("Part")
Better: TypeAlias = Literal["high", "low"]


class _Of(Generic[Part]):
    """Entries for metrics that are taken from one part of the prediction of a service."""

    def high(
        self, name: str, get: Callable[[Part], Value], doc: str, unit: Unit | None = None
    ) -> Metric:
        return Metric(name=name, get=get, doc=doc, unit=unit, better="high")

    def low(
        self, name: str, get: Callable[[Part], Value], doc: str, unit: Unit | None = None
    ) -> Metric:
        return Metric(name=name, get=get, doc=doc, unit=unit, better="low")

    def plain(
        self, name: str, get: Callable[[Part], Value], doc: str, unit: Unit | None = None
    ) -> Metric:
        return Metric(name=name, get=get, doc=doc, unit=unit)


_answered: Final[_Of[Answered]] = _Of()
_saturation: Final[_Of[Saturation]] = _Of()
_memory: Final[_Of[DeviceMemory]] = _Of()
_cost: Final[_Of[ServiceCost]] = _Of()
_energy: Final[_Of[ServiceEnergy]] = _Of()


def _latencies(part: str, doc: str) -> tuple[Metric, ...]:
    def of(statistic: str) -> Callable[[Answered], Value]:
        def get(answered: Answered) -> Value:
            latency: Latency = getattr(answered, part)
            return cast("float", getattr(latency, statistic))

        return get

    return tuple(
        _answered.low(
            f"{part}_s.{statistic}", of(statistic), f"{doc}, {statistic} of requests.", SECOND
        )
        for statistic in ("mean", "p50", "p90", "p99")
    )


def _transfer(answered: Answered) -> Value:
    return answered.transfer if answered.busy_of else NOT_REPORTED


def _of_stores(name: str, doc: str) -> Metric:
    def get(cost: ServiceCost) -> Value:
        if cost.stores is None:
            return NOT_REPORTED
        return cast("float | None", getattr(cost.stores, name))

    path = "usd" if name == "total" else f"{name}_usd"
    return _cost.low(f"cost.storage.{path}", get, doc, USD)


NOT_REPORTED: Final[Mapping[str, float]] = {}
"""Value of a metric of services that is left out of their figures."""
_ANSWERED: Final = (
    _answered.plain("requests", lambda a: a.requests, "Requests that are counted."),
    _answered.low("duration_s", lambda a: a.duration, "Time of the run.", SECOND),
    *_latencies("first_token", "From sending a request to its first token"),
    *_latencies("per_token", "Time of an answer's further tokens over their number"),
    *_latencies("end_to_end", "From sending a request to its last token"),
    *_latencies("wait", "From sending a request until it first runs"),
    _answered.high(
        "requests_per_s", lambda a: a.request_rate, "Requests answered per second.", PER_SECOND
    ),
    _answered.high(
        "prompt_tokens_per_s",
        lambda a: a.prompt_rate,
        "Tokens of prompts over the time of the run.",
        TOKEN_PER_SECOND,
    ),
    _answered.high(
        "output_tokens_per_s",
        lambda a: a.output_rate,
        "Tokens of answers over the time of the run.",
        TOKEN_PER_SECOND,
    ),
    _answered.high("slo.within.*", lambda a: a.within, "Share of requests within each limit."),
    _answered.high(
        "slo.attainment", lambda a: a.attainment, "Share of requests within all limits."
    ),
    _answered.high(
        "slo.goodput_per_s",
        lambda a: a.goodput,
        "Requests per second within all limits.",
        PER_SECOND,
    ),
    _answered.plain("queue.running", lambda a: a.running, "Requests that run, on average."),
    _answered.low("queue.waiting", lambda a: a.waiting, "Requests that wait, on average."),
    _answered.plain("replicas.mean", lambda a: a.replicas, "Replicas, on average."),
    _answered.plain(
        "utilization.accelerator",
        lambda a: a.busy,
        "Share of the time in which a replica computes.",
    ),
    _answered.plain(
        "utilization.*",
        lambda a: {**a.busy_of, **a.links},
        "The same of replicas for prompts and for answers, and of links.",
    ),
    _answered.low(
        "transfer_s.mean", _transfer, "Time of keys and values between replicas.", SECOND
    ),
    _answered.plain(
        "utilization.host",
        lambda a: a.host_busy,
        "Share of the time of the host's threads that goes into requests before their batches.",
    ),
    _answered.plain("utilization.cache_mean", lambda a: a.cache_mean, "Share of the cache in use."),
    _answered.plain("utilization.cache_peak", lambda a: a.cache_peak, "The same at most."),
    _answered.plain(
        "queue.decoding_per_iteration",
        lambda a: a.batch,
        "Requests that decode in an iteration, or samples in a batch.",
    ),
    _answered.plain("iterations", lambda a: a.iterations, "Iterations of the run."),
    _answered.low("preemptions", lambda a: a.preemptions, "Requests put back for lack of cache."),
    _answered.low(
        "end_to_end_s.half_width",
        lambda a: a.half_width,
        "95% half-width of the mean end-to-end latency by batch means.",
        SECOND,
    ),
)
_SATURATION: Final = (
    _saturation.high(
        "saturation.requests_per_s",
        lambda s: s.request_rate,
        "Requests per second that the replicas sustain.",
        PER_SECOND,
    ),
    _saturation.high(
        "saturation.output_tokens_per_s",
        lambda s: s.output_rate,
        "Tokens of answers that the replicas write a second while requests always wait.",
        TOKEN_PER_SECOND,
    ),
    _saturation.high("saturation.headroom", lambda s: s.headroom, "Capacity over the load."),
    Metric(
        name="saturation.drift_per_s",
        get=lambda s: s.drift,
        doc="Requests per second by which the queue grows.",
        unit=PER_SECOND,
        better="low",
        signed=True,
    ),
)
_DEVICE_MEMORY: Final = (
    _memory.plain("gpu_memory_bytes.*", lambda m: m.items, "Memory of a device by item.", BYTE),
    _memory.low("gpu_memory_bytes.total", lambda m: m.total, "Memory of a device in use.", BYTE),
    _memory.plain("gpu_memory_bytes.capacity", lambda m: m.capacity, "Memory of a device.", BYTE),
    Metric(
        name="cache_tokens",
        get=lambda m: float(m.cache_tokens),
        doc="Tokens that the cache of a replica holds.",
        unit=TOKEN,
    ),
)
_RENT: Final = (
    _cost.low(
        "cost.usd_per_hour",
        lambda c: None if c.per_second is None else HOUR * c.per_second,
        "Price of all machines for an hour.",
        USD_PER_HOUR,
    ),
)
_WORK_COST: Final = (
    _cost.low(
        "cost.usd_per_million_output_tokens",
        lambda c: c.per_million_output_tokens,
        "Price of a million tokens of answers.",
        USD,
    ),
    _cost.low(
        "cost.usd_per_million_tokens",
        lambda c: c.per_million_tokens,
        "Price of a million tokens of prompts and answers.",
        USD,
    ),
    _cost.low(
        "cost.usd_per_thousand_requests",
        lambda c: c.per_thousand_requests,
        "Price of a thousand requests.",
        USD,
    ),
    _of_stores("total", "Bill of the store of requests; none where a price is not known."),
    _of_stores("rent", "Rent of the store."),
    _of_stores("requests", "Requests to the store."),
    _of_stores("egress", "Bytes that leave the region of the store."),
)
_WORK_ENERGY: Final = (
    _energy.low("energy.power_w", lambda e: e.power, "Mean power of all machines.", WATT),
    _energy.low(
        "energy.kwh_per_million_output_tokens",
        lambda e: _kilowatt_hours(e.per_million_output_tokens),
        "Energy of a million tokens of answers.",
        KILOWATT_HOURS,
    ),
    _energy.low(
        "energy.kwh_per_million_tokens",
        lambda e: _kilowatt_hours(e.per_million_tokens),
        "Energy of a million tokens of prompts and answers.",
        KILOWATT_HOURS,
    ),
    _energy.low(
        "energy.kwh_per_thousand_requests",
        lambda e: _kilowatt_hours(e.per_thousand_requests),
        "Energy of a thousand requests.",
        KILOWATT_HOURS,
    ),
    _energy.low(
        "energy.kg_co2e_per_thousand_requests",
        lambda e: e.emitted_per_thousand_requests,
        "Emissions of a thousand requests, where energy.grid is known.",
        KILOGRAM,
    ),
)


def _part(
    take: Callable[[ServicePrediction], object], metrics: tuple[Metric, ...]
) -> tuple[Metric, ...]:
    """Return metrics of a part of a prediction as metrics of the whole."""

    def of(metric: Metric) -> Metric:
        def get(prediction: ServicePrediction) -> Value:
            part = take(prediction)
            return NOT_REPORTED if part is None else metric.get(part)

        return replace(metric, get=get, kind=Kind.SERVICE)

    return tuple(map(of, metrics))


SERVICE_METRICS: Final[tuple[Metric, ...]] = (
    *_part(lambda p: p.answered, _ANSWERED),
    *_part(lambda p: p.saturation, _SATURATION),
    *_part(lambda p: p.memory, _DEVICE_MEMORY),
    *_part(lambda p: p.cost, (*_RENT, *_WORK_COST)),
    *_part(lambda p: p.energy, _WORK_ENERGY),
)
"""The metrics of services in the order of ``--json``."""
METRICS: Final = (*JOB_METRICS, *SERVICE_METRICS)
"""The registry: every reported figure."""

OLD_NAMES: Final = {"cost.usd_with_storage": "cost.usd_to_train"}
"""Names that figures once had and that are still read, with those they have now."""


def old_names(*texts: str) -> list[str]:
    """Return a note for each old name of a metric that expressions use."""
    return [
        f"note: {old} is an old name of {new}"
        for old, new in OLD_NAMES.items()
        if any(old in text for text in texts)
    ]


_BY_NAME: Final = {metric.name: metric for metric in JOB_METRICS}
_MEASURED_PREFIXES: Final = ("first_token_s.", "per_token_s.", "end_to_end_s.")
_MEASURED_OF_SERVICES: Final = {
    metric.name: metric
    for metric in SERVICE_METRICS
    if metric.name in {"output_tokens_per_s", "saturation.output_tokens_per_s"}
    or (metric.name.startswith(_MEASURED_PREFIXES) and not metric.name.endswith("half_width"))
}
"""Metrics of services that load generators report."""


def select(path: str) -> tuple[Metric, ...]:
    """Return the metrics of jobs at or below a dotted path: ``cost`` gives all of the cost.

    Raises
    ------
    UnknownName
        If nothing lies there; names the nearest metric.

    Examples
    --------
    >>> [metric.name for metric in select("bound_s")]
    ['bound_s.lower', 'bound_s.upper']
    """
    found = tuple(m for m in JOB_METRICS if m.name == path or m.name.startswith(f"{path}."))
    if found:
        return found
    close = difflib.get_close_matches(path, _BY_NAME, n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    msg = f"unknown metric '{path}'{hint}"
    raise UnknownName(msg)


_WORDS: Final = frozenset({"bottleneck", "next_bottleneck", "solver", "fits.gpu", "fits.host"})
_TABLES: Final = frozenset(
    {"host_ram_bytes.items", "gpu_memory_bytes.items", "gpu_memory_bytes.stages", "run.parts"}
)


def measurable(path: str) -> Metric | None:
    """Return the metric of a measured number called `path`; None if there is none.

    Items of a table are numbers too.

    Examples
    --------
    >>> [measurable(p) is None for p in ("first_step_s", "gpu_memory_bytes.items.optimizer", "x")]
    [False, False, True]
    """
    table, _, item = path.rpartition(".")
    if table in _TABLES and item:
        return _BY_NAME[table]
    return None if path in _WORDS | _TABLES else (_BY_NAME | _MEASURED_OF_SERVICES).get(path)


def measurable_names() -> tuple[str, ...]:
    """Names of all metrics that can be measured as one number."""
    return tuple(
        name for name in (*_BY_NAME, *_MEASURED_OF_SERVICES) if measurable(name) is not None
    )


def figures(prediction: Prediction) -> dict[str, Value]:
    """Return all metrics of a job by name."""
    return {metric.name: metric.get(prediction) for metric in JOB_METRICS}


def service_figures(prediction: ServicePrediction) -> dict[str, float | None]:
    """Return the figures of a service by name, in SI units.

    A figure without a value (beyond saturation, without a price) is None. A model that answers in
    one pass has none of tokens and of a cache.
    """
    found = _values(SERVICE_METRICS, prediction)
    return {name: value for name, value in found if applies(prediction.service, name)}


def answered_figures(answered: Answered) -> dict[str, float]:
    """Return the figures of a run by name."""
    return cast("dict[str, float]", dict(_values(_ANSWERED, answered)))


def work_figures(cost: ServiceCost, energy: ServiceEnergy) -> dict[str, float | None]:
    """Return the cost and energy of tokens and requests by name."""
    return dict([*_values(_WORK_COST, cost), *_values(_WORK_ENERGY, energy)])


def saturation_figures(saturation: Saturation) -> dict[str, float | None]:
    """Return the figures of saturation by name."""
    return dict(_values(_SATURATION, saturation))


def _values(metrics: tuple[Metric, ...], part: object) -> Iterator[tuple[str, float | None]]:
    for metric in metrics:
        value = metric.get(part)
        if isinstance(value, Mapping):
            yield from ((f"{metric.name[:-1]}{item}", number) for item, number in value.items())
        elif not isinstance(value, str):
            yield metric.name, value


_OF_TOKENS: Final = (
    *("first_token_s", "per_token_s", "output_tokens", "prompt_tokens", "cache_tokens"),
    *("utilization.cache", "saturation.output_tokens", "cost.usd_per_million", "preemptions"),
    *("energy.kwh_per_million", "gpu_memory_bytes.cache"),
    *("slo.within.first_token", "slo.within.per_token"),
)
"""Prefixes of figures of tokens and of their cache."""


def applies(service: Service, name: str) -> bool:
    """Return whether a figure has a meaning for a service."""
    return service.one_pass is None or not name.startswith(_OF_TOKENS)


def is_share(name: str) -> bool:
    """Return whether a figure of services is a share: of requests, or of a resource."""
    return is_utilization(name) or name.startswith(("slo.within.", "slo.attainment"))


def is_utilization(name: str) -> bool:
    """Return whether a figure of services is the share of a resource in use."""
    return name.startswith("utilization.")


def number_at(prediction: Prediction, path: str) -> float | None:
    """Return the finite number at a dotted path of the prediction; None if it has none."""
    metric = measurable(path)
    value = None if metric is None else metric.get(prediction)
    if isinstance(value, Mapping):
        value = value.get(path.rpartition(".")[2])
    if isinstance(value, str) or value is None or not math.isfinite(value):
        return None
    return float(value)


def unit_of(name: str, kind: str) -> str:
    """Return the symbol of the unit of a figure of a kind; empty for ratios, counts and words."""
    of_kind = JOB_METRICS if kind == Kind.JOB else SERVICE_METRICS
    known = {metric.name: metric for metric in of_kind}
    metric = known.get(name) or known.get(f"{name.rpartition('.')[0]}.*")
    return "" if metric is None or metric.unit is None else metric.unit.symbol


def samples_per_step(prediction: Prediction) -> float:
    """Return the samples of one optimizer step over all ranks of all jobs."""
    return prediction.timing.throughput * prediction.timing.step_time.mean


def waiting_for_ranks(prediction: Prediction) -> Seconds:
    """Return the time of a step in which ranks wait for each other [s]."""
    scenario = prediction.scenario
    together = scenario.job.mode is Mode.TRAIN and scenario.ranks_per_job > 1
    return prediction.timing.split.other if together else 0.0


def unstarved_rate(prediction: Prediction) -> PerSecond | None:
    """Return samples per second with every batch ready in time [/s]; None without an accelerator.

    Copies concurrent with compute are then hidden; those of a late batch are not.
    """
    timing, loader = prediction.timing, prediction.scenario.job.loader
    working = timing.step_time.mean - timing.split.data_stall - waiting_for_ranks(prediction)
    copied = timing.split.h2d if loader.copies_beside_compute else 0.0
    working = max(working - copied, copied)
    if timing.accelerator_utilization is None or working <= 0.0:
        return None
    return samples_per_step(prediction) / working


def training_log(prediction: Prediction, every: int) -> tuple[tuple[int, Seconds, PerSecond], ...]:
    """Return the log of a training loop that reports every `every` steps.

    Returns
    -------
    tuple
        (steps done, seconds since the start [s], samples per second over the interval [/s]).
    """
    ends = tuple(accumulate(prediction.timing.step_times))[every - 1 :: every]
    samples = every * samples_per_step(prediction)
    return tuple(
        (every * number, end, samples / (end - start))
        for number, (start, end) in enumerate(pairwise((0.0, *ends)), start=1)
    )
