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
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from simulator.equations.storage import bytes_from_store
from simulator.errors import UnknownName
from simulator.physics.device_time import device_time
from simulator.physics.operators import (
    hardware_utilization,
    model_utilization,
    rate_per_device,
    tokens_per_sample,
)
from simulator.pipeline.stages.base import Resource
from simulator.pipeline.stages.input import read_bytes
from simulator.records import dataclass
from simulator.results.prediction import QUANTILES, Prediction
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
    PerSecond,
    Seconds,
    Unit,
)

if TYPE_CHECKING:
    from simulator.results.serving import ServicePrediction
    from simulator.schema.serving import Service

USD_PER_HOUR: Final = Unit("$/h", "dollars per hour")
TOKEN: Final = Unit("tokens", "tokens")
TOKEN_PER_SECOND: Final = Unit("tokens/s", "tokens per second")

Value: TypeAlias = float | int | str | Mapping[str, float] | None
Kind: TypeAlias = Literal["job", "service"]
"""Kind of scenario that has a metric: a job or a service."""
SOLVER: Final = "event engine"
"""Value of the metric `solver`: all runs are simulated by events."""
Getter: TypeAlias = Callable[[Any], Value]
"""Function that returns a metric from a `Prediction`, or from a part of a `ServicePrediction`."""
NOT_REPORTED: Final[Mapping[str, float]] = {}
"""Value of a metric of services that is omitted from the result."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A reported metric: dotted `name`, getter, `unit` (None: a ratio, count or text).

    `get` returns it from a `Prediction`, or from the attribute `part` of a `ServicePrediction`.
    `better`: values that are preferable, None if neither. Only `signed` metrics may be negative. A
    name that ends in ``.*`` is a group of metrics of services, whose getter returns a mapping from
    the last part of the name to the value.
    """

    name: str
    get: Getter
    doc: str
    unit: Unit | None = None
    better: Literal["high", "low"] | None = None
    signed: bool = False
    part: str = ""

    @property
    def kind(self) -> Kind:
        """Kind of scenario that has the metric: a job or a service."""
        return "service" if self.part else "job"


def _get(source: str | Getter) -> Getter:
    """Return a getter for a dotted attribute path; a callable is returned unchanged.

    The getter returns None if any attribute on the path is None.
    """
    if callable(source):
        return source
    *before, last = source.split(".")

    def get(found: Any) -> Value:  # noqa: ANN401 - a prediction or a part of one
        for step in before:
            found = getattr(found, step)
            if found is None:
                return None
        return cast("Value", getattr(found, last))

    return get


def _converted(source: str, convert: Callable[[float], float]) -> Getter:
    """Return a getter that converts the value at a dotted path to another unit."""
    get = _get(source)

    def converted(found: object) -> Value:
        value = get(found)
        return None if value is None else convert(cast("float", value))

    return converted


def _hourly(source: str) -> Getter:
    return _converted(source, lambda usd: HOUR * usd)


def _kilowatt_hours(source: str) -> Getter:
    return _converted(source, lambda joules: joules / KILOWATT_HOUR)


def _plain(name: str, source: str | Getter, doc: str, unit: Unit | None = None) -> Metric:
    return Metric(name, _get(source), doc, unit)


def _low(name: str, source: str | Getter, doc: str, unit: Unit | None = None) -> Metric:
    return Metric(name, _get(source), doc, unit, "low")


def _high(name: str, source: str | Getter, doc: str, unit: Unit | None = None) -> Metric:
    return Metric(name, _get(source), doc, unit, "high")


def _time(name: str, source: str | Getter, doc: str) -> Metric:
    return _low(name, source, doc, SECOND)


def _store_bytes(prediction: Prediction) -> float:
    """Return the bytes that a machine reads from the store per epoch, page-cache hits excluded."""
    scenario = prediction.scenario
    job = scenario.job
    asked = job.dataset.samples * read_bytes(job.dataset, job.stored_bytes) * job.copies
    own = asked * scenario.ranks_per_job / scenario.ranks
    return float(bytes_from_store(own, prediction.cache_hit_ratio))


def _usage(resource: Resource, name: str) -> Getter:
    return lambda p: getattr(p.timing.usage.get(resource), name, None)


def _at_throughput(count: Callable[[Scenario, PerSecond], Term | None]) -> Getter:
    """Return a getter of the value of a term at the mean throughput."""

    def get(prediction: Prediction) -> Value:
        found = count(prediction.scenario, prediction.timing.throughput)
        return None if found is None else cast("float", found.value)

    return get


def _tokens(rate: Callable[[Prediction, float], Value]) -> Getter:
    """Return a getter that calls `rate` with the tokens of a sample; None if samples have none."""

    def get(prediction: Prediction) -> Value:
        tokens = tokens_per_sample(prediction.scenario)
        return None if tokens is None else rate(prediction, tokens)

    return get


def _of_each_device(prediction: Prediction, rate: float) -> Value:
    """Return the rate per accelerator; None if the CPU computes the model."""
    group = prediction.scenario.cluster.trainers
    return rate / (group.count * group.gpus_per_host) if group.gpus_per_host else None


def _of_one_checkpoint(prediction: Prediction) -> Value:
    written = prediction.timing.checkpoints
    if not written:
        return 0.0
    return prediction.timing.split.checkpoint * prediction.total_steps / written


_TIMES: Final = (
    _time("step_time_s.mean", "timing.step_time.mean", "Mean step, warm-up apart."),
    _time("step_time_s.p50", "timing.step_time.p50", "Median step."),
    _time("step_time_s.p95", "timing.step_time.p95", "95th percentile of the step."),
    _time("step_time_s.p99", "timing.step_time.p99", "99th percentile of the step."),
    _plain("steps_per_epoch", "steps_per_epoch", "Steps of an epoch."),
    _time("first_step_s", "timing.first_step", "From start to the end of step 1."),
    _time("epoch_time_s", "timing.epoch_time", "One epoch with warm caches."),
    _time("total_time_s", "timing.total_time", "All epochs, start to end."),
    _low(
        "break_even_epochs",
        "break_even_epochs",
        "Epochs after which staging or preloading the data has paid for itself.",
    ),
    _high(
        "throughput_samples_per_s",
        "timing.throughput",
        "Samples trained per second at the mean step, all ranks.",
        PER_SECOND,
    ),
)
_MODEL: Final = (
    _high(
        "mfu",
        _at_throughput(model_utilization),
        "Model FLOPs utilization: arithmetic the model needs over the peak of the accelerators.",
    ),
    _high(
        "hfu",
        _at_throughput(hardware_utilization),
        "Hardware FLOPs utilization: the same with recomputed activations.",
    ),
    _high(
        "flops_per_s_per_gpu",
        _at_throughput(rate_per_device),
        "Model FLOPs of one accelerator in a second (TFLOP/s per GPU).",
        FLOP_PER_SECOND,
    ),
    _plain(
        "tokens_per_step",
        _tokens(lambda p, tokens: tokens * samples_per_step(p)),
        "Tokens of an optimizer step over all ranks: the global batch.",
        TOKEN,
    ),
    _high(
        "tokens_per_s",
        _tokens(lambda p, tokens: tokens * p.timing.throughput),
        "Tokens per second at the mean step, all ranks.",
        TOKEN_PER_SECOND,
    ),
    _high(
        "tokens_per_s_per_gpu",
        _tokens(lambda p, tokens: _of_each_device(p, tokens * p.timing.throughput)),
        "Tokens per second and accelerator.",
        TOKEN_PER_SECOND,
    ),
    _time(
        "time_per_trillion_tokens_s",
        _tokens(lambda p, tokens: TRILLION / (tokens * p.timing.throughput)),
        "How long a trillion tokens take at the mean step; other numbers in proportion.",
    ),
)
_SPLIT: Final = (
    _time(
        "checkpoint_s",
        _of_one_checkpoint,
        "What training loses for one checkpoint; 0 if the run writes none.",
    ),
    _time("step_split_s.data_stall", "timing.split.data_stall", "The device waits for a batch."),
    _time("step_split_s.h2d", "timing.split.h2d", "Exposed copy to the device."),
    _time("step_split_s.compute", "timing.split.compute", "The device computes."),
    _time("step_split_s.communication", "timing.split.communication", "Exposed communication."),
    _time("step_split_s.bubble", "timing.split.bubble", "Pipeline bubble."),
    _time("step_split_s.checkpoint", "timing.split.checkpoint", "Writing checkpoints."),
    _time(
        "step_split_s.other",
        "timing.split.other",
        "Waiting for other ranks, for the program, or for an optimizer on the host.",
    ),
    _time(
        "communication_s.exposed",
        "timing.split.communication",
        "Communication that delays the step.",
    ),
    _time("communication_s.hidden", "timing.hidden_communication", "Communication under compute."),
)
_USE: Final = (
    _high(
        "accelerator_utilization",
        "timing.accelerator_utilization",
        "Share of the step in which the accelerators compute.",
    ),
    *(
        _plain(f"utilization.{resource}.{name}", _usage(resource, field), f"{doc}.")
        for resource in Resource
        for name, field, doc in (
            ("mean", "mean", f"Busy share of {resource}, 0 to 1, over its units"),
            ("sum", "total", f"Busy units of {resource}: 4.0 for four busy ones"),
            ("units", "units", f"Units of {resource}"),
        )
    ),
    _plain(
        "bottleneck",
        "timing.bottleneck",
        "What binds: a resource, or communication, bubble, checkpoint or waiting.",
    ),
    _plain("next_bottleneck", "timing.next_bottleneck", "What would bind next."),
    _plain("solver", lambda _: SOLVER, "Method of the simulation: always the event engine."),
    _low("vcpus_needed_per_gpu", "cpu_need.per_gpu", "vCPUs that keep one accelerator busy."),
    _plain(
        "vcpus_per_gpu",
        "scenario.cluster.vcpus_per_gpu",
        "vCPUs there for each accelerator in use, those of machines that help included.",
    ),
    _low("vcpus_short", "cpu_need.short", "vCPUs the machine lacks to keep all accelerators busy."),
)
_MEMORY: Final = (
    _low("host_ram_bytes.total", "host_ram.total", "RAM one machine needs.", BYTE),
    _plain("host_ram_bytes.capacity", "host_ram.capacity", "RAM one machine has.", BYTE),
    _plain(
        "host_ram_bytes.rule_of_thumb",
        "host_ram.rule_of_thumb",
        "Memory of the accelerators in use, operating system and application: below it, paging is "
        "a risk.",
        BYTE,
    ),
    _plain("host_ram_bytes.items", "host_ram.items", "What the RAM is needed for.", BYTE),
    _low(
        "store_bytes_per_epoch",
        _store_bytes,
        "What one machine reads past its page cache in an epoch with warm caches.",
        BYTE,
    ),
    _low("gpu_memory_bytes.total", "memory.total", "Memory one accelerator needs.", BYTE),
    _plain("gpu_memory_bytes.capacity", "memory.capacity", "Memory one accelerator has.", BYTE),
    _plain(
        "gpu_memory_bytes.items",
        "memory.items",
        "What the accelerator's memory is needed for, on the fullest stage of a pipeline.",
        BYTE,
    ),
    _plain(
        "gpu_memory_bytes.stages",
        "memory.stages",
        "Memory an accelerator needs on the first, a middle and the last stage of a pipeline.",
        BYTE,
    ),
    _plain("fits.gpu", "memory.known_verdict", "yes, no or uncertain."),
    _high(
        "fits.gpu_probability",
        "memory.probability",
        "How probable it is that the memory of an accelerator is enough.",
    ),
    _plain("fits.host", "host_ram.verdict", "yes, no or uncertain."),
)
_COST: Final = (
    _low(
        "cost.usd_per_h",
        _hourly("cost.per_second"),
        "Price of all machines for an hour.",
        USD_PER_HOUR,
    ),
    _low("cost.usd_per_step", "cost.per_step", "Price of a mean step.", USD),
    _high(
        "cost.samples_per_usd",
        "cost.samples_per_usd",
        "Samples trained for a dollar over a whole epoch, its start and end included.",
    ),
    _low(
        "cost.usd_to_train",
        "in_all",
        "Bill of the whole job, start-up too: machines, and all known charges of stores.",
        USD,
    ),
    _low(
        "cost.usd_for_machines",
        "cost.for_machines",
        "The part of it that is for machines: rent, or owning them and their electricity.",
        USD,
    ),
    _time("cost.time_to_train_s", "cost.time_to_train", "Billed time of the job."),
    _low(
        "cost.energy_j_per_step",
        "cost.energy_per_step",
        "Power of all machines billed, at rest and at work, over a mean step; crude.",
        JOULE,
    ),
    _low(
        "cost.storage.usd",
        "storage.total",
        "Bill of the stores of the whole run; none where a price is not known.",
        USD,
    ),
    _low(
        "cost.storage.rent_usd",
        "storage.rent",
        "Rent for data and kept checkpoints, as long as they lie there.",
        USD,
    ),
    _low(
        "cost.storage.provisioned_usd",
        "storage.provisioned",
        "Operations and throughput that stores hold ready.",
        USD,
    ),
    _low(
        "cost.storage.requests_usd",
        "storage.requests",
        "Requests to object stores, those that read and those that write.",
        USD,
    ),
    _low(
        "cost.storage.egress_usd",
        "storage.egress",
        "Bytes that leave the region of the store, as store.location or the clouds of both say.",
        USD,
    ),
    _low("cost.usd_with_storage", "in_all", "Old name of cost.usd_to_train.", USD),
)
_ENERGY: Final = (
    _low("energy.power_w", "energy.power", "Power of all machines in a step.", WATT),
    _low(
        "energy.machines_kwh",
        _kilowatt_hours("energy.of_machines"),
        "Energy of all machines billed in the whole run, at their plugs.",
        KILOWATT_HOURS,
    ),
    _low(
        "energy.kwh",
        _kilowatt_hours("energy.of_building"),
        "The same with cooling and losses of the building, where [energy] tells of it.",
        KILOWATT_HOURS,
    ),
    _low(
        "energy.kg_co2e",
        "energy.emitted",
        "What the grid emitted for it, by location, where energy.grid is known.",
        KILOGRAM,
    ),
    _low("energy.usd", "energy.price", "Its price; rent has it included.", USD),
)
_BOUND: Final = (
    _time("bound_s.lower", "bounds.lower", "Least total time / steps of the run."),
    _time("bound_s.upper", "bounds.upper", "Most total time / steps of the run."),
)


def _at_quantile(field: str, quantile: float) -> Getter:
    """Return a getter of a quantile of the long run; None without a forecast of it."""

    def get(prediction: Prediction) -> Value:
        found = getattr(prediction.outlook, field, None)
        return None if found is None else cast("float", found[quantile])

    return get


def _ends(quantile: float) -> tuple[Metric, ...]:
    """Return the metrics of finish time and costs at a quantile of the long run."""
    point, chance = f"p{quantile * 100:.0f}", f"with a chance of {quantile:.0%}"
    return (
        _time(
            f"run.finish_s.{point}",
            _at_quantile("finish", quantile),
            f"When the run has ended {chance}, failures and all.",
        ),
        _low(
            f"run.usd.{point}",
            _at_quantile("bill", quantile),
            f"What machines and stores have cost at most {chance}, failures and all.",
            USD,
        ),
        _low(
            f"run.storage_usd.{point}",
            _at_quantile("stores", quantile),
            f"The part of it that is for stores {chance}; none where a price is not known.",
            USD,
        ),
    )


_RUN: Final = (
    _high(
        "run.goodput",
        "outlook.goodput",
        "Share of the run's time that is work which counts (ETTR).",
    ),
    *(metric for quantile in QUANTILES for metric in _ends(quantile)),
    _high(
        "run.between_interruptions_s",
        "outlook.between",
        "Mean time between interruptions of the run.",
        SECOND,
    ),
    _plain("run.parts", "outlook.parts", "What the run's time goes to, shares."),
    _plain(
        "run.checkpoint_interval_s",
        "outlook.saving.interval",
        "Work between two checkpoints: as given, else the best one by simulation.",
        SECOND,
    ),
    _time(
        "run.checkpoint_blocking_s",
        "outlook.saving.blocking",
        "What training waits for a checkpoint.",
    ),
    _time(
        "run.checkpoint_durable_s",
        "outlook.saving.durable",
        "From the beginning of a checkpoint until it could be loaded.",
    ),
    _high(
        "run.deadline_chance",
        "outlook.in_time",
        "How probable it is that the run ends by run.deadline.",
    ),
    _high(
        "run.budget_chance",
        "outlook.in_budget",
        "How probable it is that the bill stays below run.budget.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Epoch:
    """An epoch by the definitions of MLPerf Storage: times [s], and samples per step of all ranks.

    The benchmark (DLIO) runs one process for each accelerator. A step loads a batch, waits as long
    as the accelerator would compute, and meets all others at a barrier. Step 1 of an epoch is
    excluded: while it loads, all workers fill their queues. `first` is its time on an average rank
    without the barrier, so waiting for the slowest rank's first batch lowers the utilization.
    `reduced` is the time of the epoch without `first`.

    Utilization is the nominal compute time of all steps but the first over the reduced epoch in
    version 1.0 (DLIO ``mlperf_storage_v1.0``, ``utils/statscounter.py``), the measured compute time
    over the same in version 2.0 and later, here the nominal one. Throughput counts all samples
    over the whole epoch in version 1.0; since version 2.0 the reduced time counts, with two steps'
    samples left out although one step's time is.
    """

    steps: int
    compute: Seconds
    samples: float
    time: Seconds
    first: Seconds

    @property
    def reduced(self) -> Seconds:
        return self.time - self.first


_MIN_BENCHMARK_STEPS: Final = 3


def _benchmark(figure: Callable[[_Epoch], float]) -> Getter:
    """Return a getter of the mean of `figure` over the epochs of emulated accelerators.

    The getter returns None without emulation or with too few steps.
    """

    def get(prediction: Prediction) -> Value:
        scenario, timing, steps = prediction.scenario, prediction.timing, prediction.steps_per_epoch
        gpu, train = scenario.cluster.trainers.host.gpu, scenario.job.train
        if gpu is None or not gpu.emulated or steps < _MIN_BENCHMARK_STEPS:
            return None
        device = device_time(scenario)
        first, *later = (
            figure(
                _Epoch(
                    steps=steps,
                    compute=0.0 if device is None else float(device.total) * train.accumulation,
                    samples=train.batch_size * train.accumulation * scenario.ranks,
                    time=time,
                    first=first_step,
                )
            )
            for time, first_step in (
                (timing.first_epoch_time, timing.first_steps[0]),
                *(((timing.epoch_time, timing.first_steps[1]),) if train.epochs > 1.0 else ()),
            )
        )
        return (first + (train.epochs - 1.0) * later[0]) / train.epochs if later else first

    return get


_BENCHMARK: Final = (
    _high(
        "mlperf_storage.accelerator_utilization",
        _benchmark(lambda epoch: epoch.compute * (epoch.steps - 1) / epoch.reduced),
        "Compute over an epoch without its first step, as the storage benchmark counts.",
    ),
    _high(
        "mlperf_storage.throughput_v1_samples_per_s",
        _benchmark(lambda epoch: epoch.samples * epoch.steps / epoch.time),
        "Samples over the whole epoch, as version 1.0 of the storage benchmark counts.",
        PER_SECOND,
    ),
    _high(
        "mlperf_storage.throughput_v2_samples_per_s",
        _benchmark(lambda epoch: epoch.samples * (epoch.steps - 2) / epoch.reduced),
        "As version 2.0 counts: two steps' samples, one step's time left out.",
        PER_SECOND,
    ),
    _time(
        "mlperf_storage.first_step_s",
        _benchmark(lambda epoch: epoch.first),
        "Step 1 of an epoch on the average rank, without waiting for others.",
    ),
    _time(
        "mlperf_storage.step_time_s",
        _benchmark(lambda epoch: epoch.reduced / (epoch.steps - 1)),
        "Mean over all steps of an epoch but its first, waiting for others included.",
    ),
)
JOB_METRICS: Final[tuple[Metric, ...]] = (
    *(*_TIMES, *_MODEL, *_SPLIT, *_USE, *_MEMORY, *_COST, *_ENERGY, *_BOUND, *_RUN, *_BENCHMARK),
)
"""The metrics of jobs in the order of ``--json``."""


def _latencies(part: str, doc: str) -> Iterator[Metric]:
    for statistic in ("mean", "p50", "p90", "p99"):
        name = f"{part}_s.{statistic}"
        yield _time(name, f"{part}.{statistic}", f"{doc}, {statistic} of requests.")
    at_slo = f"{doc}, quantile of requests at slo.share."
    yield _time(f"{part}_s.at_slo", f"{part}.at_slo", at_slo)


def _of_stores(name: str, doc: str) -> Metric:
    path = "usd" if name == "total" else f"{name}_usd"
    get = _get(f"stores.{name}")
    return _low(
        f"cost.storage.{path}",
        lambda cost: NOT_REPORTED if cost.stores is None else get(cost),
        doc,
        USD,
    )


_ANSWERED: Final = (
    _plain("requests", "requests", "Requests that are counted."),
    _low("duration_s", "duration", "Time of the run.", SECOND),
    *_latencies("first_token", "From sending a request to its first token"),
    *_latencies("per_token", "Time of an answer's further tokens over their number"),
    *_latencies("end_to_end", "From sending a request to its last token"),
    *_latencies("wait", "From sending a request until it first runs"),
    _high("requests_per_s", "request_rate", "Requests answered per second.", PER_SECOND),
    _high(
        "prompt_tokens_per_s",
        "prompt_rate",
        "Tokens of prompts over the time of the run.",
        TOKEN_PER_SECOND,
    ),
    _high(
        "output_tokens_per_s",
        "output_rate",
        "Tokens of answers over the time of the run.",
        TOKEN_PER_SECOND,
    ),
    _high("slo.within.*", "within", "Share of requests within each limit."),
    _high("slo.attainment", "attainment", "Share of requests within all limits."),
    _high("slo.goodput_per_s", "goodput", "Requests per second within all limits.", PER_SECOND),
    _plain("queue.running", "running", "Requests that run, on average."),
    _low("queue.waiting", "waiting", "Requests that wait, on average."),
    _plain("replicas.mean", "replicas", "Replicas, on average."),
    _plain("utilization.accelerator", "busy", "Share of the time in which a replica computes."),
    _plain(
        "utilization.*",
        lambda answered: {**answered.busy_of, **answered.links},
        "The same of replicas for prompts and for answers, and of links.",
    ),
    _low(
        "transfer_s.mean",
        lambda answered: answered.transfer if answered.busy_of else NOT_REPORTED,
        "Time of keys and values between replicas.",
        SECOND,
    ),
    _plain(
        "utilization.host",
        "host_busy",
        "Share of the time of the host's threads that goes into requests before their batches.",
    ),
    _plain("utilization.cache_mean", "cache_mean", "Share of the cache in use."),
    _plain("utilization.cache_peak", "cache_peak", "The same at most."),
    _plain(
        "queue.decoding_per_iteration",
        "batch",
        "Requests that decode in an iteration, or samples in a batch.",
    ),
    _plain("iterations", "iterations", "Iterations of the run."),
    _low("preemptions", "preemptions", "Requests put back for lack of cache."),
    _low(
        "end_to_end_s.half_width",
        "half_width",
        "95% half-width of the mean end-to-end latency by batch means.",
        SECOND,
    ),
)
_SATURATION: Final = (
    _high(
        "saturation.requests_per_s",
        "request_rate",
        "Requests per second that the replicas sustain.",
        PER_SECOND,
    ),
    _high(
        "saturation.output_tokens_per_s",
        "output_rate",
        "Tokens of answers that the replicas write a second while requests always wait.",
        TOKEN_PER_SECOND,
    ),
    _high("saturation.headroom", "headroom", "Capacity over the load."),
    _high(
        "saturation.requests_per_s_within_slo",
        lambda found: NOT_REPORTED if found.within_slo is None else found.within_slo,
        "Highest rate of requests at which the SLO is met.",
        PER_SECOND,
    ),
    replace(
        _low(
            "saturation.drift_per_s",
            "drift",
            "Requests per second by which the queue grows.",
            PER_SECOND,
        ),
        signed=True,
    ),
)
_DEVICE_MEMORY: Final = (
    _plain("gpu_memory_bytes.*", "items", "Memory of a device by item.", BYTE),
    _low("gpu_memory_bytes.total", "total", "Memory of a device in use.", BYTE),
    _plain("gpu_memory_bytes.capacity", "capacity", "Memory of a device.", BYTE),
    _plain(
        "cache_tokens",
        lambda memory: float(memory.cache_tokens),
        "Tokens that the cache of a replica holds.",
        TOKEN,
    ),
)
_SERVICE_COST: Final = (
    _low(
        "cost.usd_per_hour",
        _hourly("per_second"),
        "Price of all machines for an hour.",
        USD_PER_HOUR,
    ),
    _low(
        "cost.usd_per_million_output_tokens",
        "per_million_output_tokens",
        "Price of a million tokens of answers.",
        USD,
    ),
    _low(
        "cost.usd_per_million_tokens",
        "per_million_tokens",
        "Price of a million tokens of prompts and answers.",
        USD,
    ),
    _low(
        "cost.usd_per_thousand_requests",
        "per_thousand_requests",
        "Price of a thousand requests.",
        USD,
    ),
    _of_stores("total", "Bill of the store of requests; none where a price is not known."),
    _of_stores("rent", "Rent of the store."),
    _of_stores("requests", "Requests to the store."),
    _of_stores("egress", "Bytes that leave the region of the store."),
)
_SERVICE_ENERGY: Final = (
    _low("energy.power_w", "power", "Mean power of all machines.", WATT),
    _low(
        "energy.kwh_per_million_output_tokens",
        _kilowatt_hours("per_million_output_tokens"),
        "Energy of a million tokens of answers.",
        KILOWATT_HOURS,
    ),
    _low(
        "energy.kwh_per_million_tokens",
        _kilowatt_hours("per_million_tokens"),
        "Energy of a million tokens of prompts and answers.",
        KILOWATT_HOURS,
    ),
    _low(
        "energy.kwh_per_thousand_requests",
        _kilowatt_hours("per_thousand_requests"),
        "Energy of a thousand requests.",
        KILOWATT_HOURS,
    ),
    _low(
        "energy.kg_co2e_per_thousand_requests",
        "emitted_per_thousand_requests",
        "Emissions of a thousand requests, where energy.grid is known.",
        KILOGRAM,
    ),
)


SERVICE_METRICS: Final[tuple[Metric, ...]] = tuple(
    replace(metric, part=part)
    for part, metrics in (
        ("answered", _ANSWERED),
        ("saturation", _SATURATION),
        ("memory", _DEVICE_MEMORY),
        ("cost", _SERVICE_COST),
        ("energy", _SERVICE_ENERGY),
    )
    for metric in metrics
)
"""The metrics of services in the order of ``--json``."""
METRICS: Final = (*JOB_METRICS, *SERVICE_METRICS)
"""The registry: every reported figure."""

OLD_NAMES: Final = {"cost.usd_with_storage": "cost.usd_to_train"}
"""Former names of metrics that are still accepted, with their current names."""


def old_names(*texts: str) -> list[str]:
    """Return a note for each former name of a metric that the expressions use."""
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
    or (
        metric.name.startswith(_MEASURED_PREFIXES)
        and not metric.name.endswith(("half_width", "at_slo"))
    )
}
"""Metrics of services that load generators report."""


def select(path: str) -> tuple[Metric, ...]:
    """Return the metrics of jobs at or below a dotted path: ``cost`` selects all costs.

    Raises
    ------
    UnknownName
        If there is no such metric; the message names the nearest one.

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
    """Return the metric that a measured number named `path` is compared with; None if unknown.

    Items of a table are accepted too; texts and whole tables are not.

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
    """Return the names of all metrics that can be compared with a measured number."""
    return tuple(
        name for name in (*_BY_NAME, *_MEASURED_OF_SERVICES) if measurable(name) is not None
    )


def figures(prediction: Prediction) -> dict[str, Value]:
    """Return all metrics of a job by name."""
    return {metric.name: metric.get(prediction) for metric in JOB_METRICS}


def service_figures(prediction: ServicePrediction) -> dict[str, float | None]:
    """Return all metrics of a service by name, in SI units.

    A metric without a value (beyond saturation, without a price) is None. Models that answer in one
    forward pass have no metrics of tokens or of the KV cache.
    """
    parts = {metric.part: getattr(prediction, metric.part) for metric in SERVICE_METRICS}
    found = part_figures(**parts)
    return {name: value for name, value in found.items() if applies(prediction.service, name)}


def part_figures(**parts: object) -> dict[str, float | None]:
    """Return the metrics of parts of a `ServicePrediction` by name; omit parts that are None.

    Examples
    --------
    >>> from simulator.results.serving import Saturation
    >>> found = Saturation(request_rate=4.0, output_rate=800.0, headroom=2.0, drift=None)
    >>> part_figures(saturation=found, cost=None)["saturation.headroom"]
    2.0
    """
    found: dict[str, float | None] = {}
    for metric in SERVICE_METRICS:
        part = parts.get(metric.part)
        value = NOT_REPORTED if part is None else metric.get(part)
        if isinstance(value, Mapping):
            found |= {f"{metric.name[:-1]}{item}": number for item, number in value.items()}
        elif not isinstance(value, str):
            found[metric.name] = value
    return found


_OF_TOKENS: Final = (
    *("first_token_s", "per_token_s", "output_tokens", "prompt_tokens", "cache_tokens"),
    *("utilization.cache", "saturation.output_tokens", "cost.usd_per_million", "preemptions"),
    *("energy.kwh_per_million", "gpu_memory_bytes.cache"),
    *("slo.within.first_token", "slo.within.per_token"),
)
"""Prefixes of metrics of tokens and of the KV cache."""


def applies(service: Service, name: str) -> bool:
    """Return whether a metric applies to a service."""
    return service.one_pass is None or not name.startswith(_OF_TOKENS)


def is_share(name: str) -> bool:
    """Return whether a metric of services is a share: of requests, or of a resource."""
    return is_utilization(name) or name.startswith(("slo.within.", "slo.attainment"))


def is_utilization(name: str) -> bool:
    """Return whether a metric of services is the utilization of a resource."""
    return name.startswith("utilization.")


def number_at(prediction: Prediction, path: str) -> float | None:
    """Return the finite number at a dotted path of the prediction; None if there is none."""
    metric = measurable(path)
    value = None if metric is None else metric.get(prediction)
    if isinstance(value, Mapping):
        value = value.get(path.rpartition(".")[2])
    if isinstance(value, str) or value is None or not math.isfinite(value):
        return None
    return float(value)


def unit_of(name: str, kind: str) -> str:
    """Return the unit symbol of a metric of jobs or services; empty if it has no unit."""
    of_kind = JOB_METRICS if kind == "job" else SERVICE_METRICS
    known = {metric.name: metric for metric in of_kind}
    metric = known.get(name) or known.get(f"{name.rpartition('.')[0]}.*")
    return "" if metric is None or metric.unit is None else metric.unit.symbol


def samples_per_step(prediction: Prediction) -> float:
    """Return the samples per optimizer step over all ranks of all jobs."""
    return prediction.timing.throughput * prediction.timing.step_time.mean


def waiting_for_ranks(prediction: Prediction) -> Seconds:
    """Return the time per step in which ranks wait for each other [s]."""
    scenario = prediction.scenario
    together = scenario.job.mode is Mode.TRAIN and scenario.ranks_per_job > 1
    return prediction.timing.split.other if together else 0.0


def unstarved_rate(prediction: Prediction) -> PerSecond | None:
    """Return the throughput if every batch were ready in time [/s]; None without accelerators.

    Host-to-device copies then overlap with compute if the framework supports it.
    """
    timing, pipeline = prediction.timing, prediction.scenario.job.input
    working = timing.step_time.mean - timing.split.data_stall - waiting_for_ranks(prediction)
    copied = timing.split.h2d if pipeline.copies_beside_compute else 0.0
    working = max(working - copied, copied)
    if timing.accelerator_utilization is None or working <= 0.0:
        return None
    return samples_per_step(prediction) / working


def training_log(prediction: Prediction, every: int) -> tuple[tuple[int, Seconds, PerSecond], ...]:
    """Return the log of a training loop that reports every `every` steps.

    Returns
    -------
    tuple
        For each report: steps done, time since the start [s], and samples per second since the
        previous report [/s].
    """
    ends = tuple(accumulate(prediction.timing.step_times))[every - 1 :: every]
    samples = every * samples_per_step(prediction)
    return tuple(
        (every * number, end, samples / (end - start))
        for number, (start, end) in enumerate(pairwise((0.0, *ends)), start=1)
    )
