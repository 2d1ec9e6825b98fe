"""Compute time of one batch on a device, from the best available evidence.

The order is: the user's own measured step times, step times that a source measured on the same
device and precision, and a roofline over the model's operators at the device's achievable rates,
with the host that launches their kernels. Without an accelerator the CPU cores are the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from simulator.equations.memory import state_bytes
from simulator.equations.roofline import carried_over_time, interpolated_step_time
from simulator.equations.step import optimizer_time
from simulator.errors import NotModelled
from simulator.memo import cached
from simulator.physics.communication import Traffic, traffic
from simulator.physics.operators import (
    OperatorTime,
    Rates,
    core_computing,
    core_rates,
    gpu_computing,
    operator_time,
)
from simulator.physics.parameters import learned_in_all
from simulator.physics.schedule import Pipeline, chunked_pipeline, simulated_bubble
from simulator.physics.training_step import Passes, TrainingStep, training_step
from simulator.physics.transformer import (
    Recomputation,
    has_kernels,
    kernels_of,
    recomputation,
    transformer_step,
)
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.calibration import IDENTITY
from simulator.schema.convnets import ConvNet
from simulator.schema.models import CustomModel, Kind, Model, Operator, StepTimes
from simulator.schema.provenance import Source
from simulator.schema.scenario import Job, Scenario
from simulator.schema.software import Kernels
from simulator.schema.training import Mode, Parallelism, Schedule, Train
from simulator.terms import Term, product_of, stated, sum_of, term
from simulator.units import Bytes, Real, Seconds

BACKWARD_SHARE = 2.0 / 3.0
"""Share of a measured step spent in the backward pass: two of three equal matrix products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime(Passes):
    """Busy time of the compute stream for one batch, and its evidence.

    `terms` are the equations of the forward pass, the backward pass and the optimizer. `equation`
    and `inputs` name the equation of the whole and its arguments. `measured` is True for a measured
    time; `carried_from` is the name of the other card from whose step it was scaled. `step` is the
    whole step if the time comes from fitted kernels, which include communication; `forward` and
    `backward` are then those of a micro-batch on the slowest stage.
    """

    equation: str
    inputs: dict[str, Real]
    source: Source
    measured: bool = False
    carried_from: str = ""
    step: TrainingStep | None = None

    @property
    def optimizer(self) -> Seconds | Real:
        """Time of the optimizer, once a step [s]."""
        return self.terms["optimizer"].value

    @property
    def total(self) -> Real:
        """Time of forward pass, backward pass and optimizer [s]."""
        return self.forward + self.backward + self.optimizer


@cached(most=16)
def device_time(scenario: Scenario) -> DeviceTime | None:
    """Return the compute time of one batch on one device; None without compute on a device."""
    job, evidence = scenario.job, evidence_of(scenario)
    if evidence is Evidence.KERNELS:
        return _from_kernels(
            scenario, training_step(transformer_step(scenario), kernels_of(scenario))
        )
    measured = measured_times(scenario)
    if measured is not None:
        return _from_measurement(scenario, measured)
    gpu = scenario.cluster.trainers.host.gpu
    if evidence is Evidence.NONE or job.model is None:
        return None
    if job.mode is Mode.TRAIN and job.train.adapters is not None:
        msg = f"{scenario.name}: adapters are timed with the kernels of a language model only"
        raise NotModelled(msg)
    computed = _from_operators(scenario, job.train, job.model, gpu)
    if evidence is Evidence.SAME_CHIP and job.same_chip_reference is not None:
        return _from_same_chip(scenario, computed, job.same_chip_reference)
    return computed


class Evidence(StrEnum):
    """Kinds of evidence of a device's compute time, best first."""

    KERNELS = "kernels"
    """Kernels and exchanges fitted to measured steps, which count all communication."""
    MEASURED = "measured"
    """A step measured on the device."""
    SAME_CHIP = "same chip"
    """A step measured on another card of the same chip; of a model known by its totals, on any."""
    OPERATORS = "operators"
    """The model's operators at the rates of the device."""
    CORES = "cores"
    """The same at the rates of the machine's cores, where it has no accelerator."""
    NONE = "none"
    """No device computes."""


@cached(most=16)
def evidence_of(scenario: Scenario) -> Evidence:
    """Return the kind of evidence from which the compute time of a scenario is predicted.

    A measured step is preferred if each device holds the whole model, as it does not separate
    compute from communication.
    """
    job, gpu = scenario.job, scenario.cluster.trainers.host.gpu
    measured = measured_times(scenario)
    alone = not job.parallelism.splits_model
    if job.mode is Mode.TRAIN and has_kernels(scenario) and not (alone and measured is not None):
        return Evidence.KERNELS
    if measured is not None:
        return Evidence.MEASURED
    if job.model is None:
        return Evidence.NONE
    if gpu is None:
        return Evidence.CORES if _cores_compute(scenario, job.model) else Evidence.NONE
    carried = carried_times(scenario) is not None
    return Evidence.SAME_CHIP if carried else Evidence.OPERATORS


def _cores_compute(scenario: Scenario, model: Model) -> bool:
    """Return whether the compute time follows from operators on CPU cores.

    Models that state their time per sample on CPUs are not computed this way.
    """
    in_full = scenario.job.train.precision is Precision.FP32
    rate_known = in_full and core_rates(scenario.cluster.trainers.host) is not None
    learns = scenario.job.mode is not Mode.PREPARE and model.cpu_seconds == 0.0
    return rate_known and learns and _is_counted(model)


def _from_same_chip(scenario: Scenario, computed: DeviceTime, reference: Gpu) -> DeviceTime:
    """Return the time of a step measured on another card with the same chip, scaled to this one.

    The factor is the ratio of the computed times on both cards.
    """
    job = scenario.job
    times = carried_times(scenario)
    if times is None or job.model is None:
        return computed
    train = replace(job.train, precision=times.precision or job.train.precision)
    as_measured = replace(scenario, jobs=(replace(job, train=train),))
    there = _from_operators(as_measured, train, job.model, reference).total
    measured = _measured_at_batch(as_measured, times, reference)
    whole = term(carried_over_time, seconds=measured, reference=there, own=computed.total)
    return DeviceTime(
        terms=_split_step(whole, BACKWARD_SHARE),
        equation="roofline.carried_over_time",
        inputs={"seconds [s]": measured.value, "reference [s]": there, "own [s]": computed.total},
        source=replace(
            times.source, reference=f"{times.source.reference}; measured on {reference.name}"
        ),
        carried_from=reference.name,
    )


def carried_times(scenario: Scenario) -> StepTimes | None:
    """Return the step times of another card that `device_time` scales; None if it does not."""
    job = scenario.job
    reference = job.same_chip_reference
    if reference is None or job.model is None:
        return None
    exact = _library_times(job, reference)
    if exact is not None or not isinstance(job.model, CustomModel):
        return exact
    framework, width = job.software.framework.lower(), job.train.precision.bytes_per_element
    alike = [
        times
        for times in job.model.step_times
        if (times.gpu, times.framework) == (reference.name, framework)
        and (times.precision or Precision.FP32).bytes_per_element == width
    ]
    return _joined_times(alike)


def uses_fitted_kernels(scenario: Scenario) -> bool:
    """Return whether the step time comes from fitted kernels, which include communication."""
    return evidence_of(scenario) is Evidence.KERNELS


def _from_kernels(scenario: Scenario, step: TrainingStep) -> DeviceTime:
    degrees, sources = scenario.job.parallelism, kernels_of(scenario).sources
    if degrees.schedule is not Schedule.ONE_FORWARD_ONE_BACKWARD:
        step = replace(step, terms={**step.terms, "bubble": _simulated_bubble_term(step, degrees)})
    return DeviceTime(
        terms={
            "forward": step.terms["forward"],
            "backward": step.terms["backward"],
            "optimizer": sum_of(update=step.terms["update"], launches=step.terms["launches"]),
        },
        equation="step.training_step",
        inputs={
            "micro-batch": scenario.job.train.batch_size,
            "tensor": degrees.tensor,
            "pipeline": degrees.pipeline,
            "context": degrees.context,
            "replicas": scenario.ranks,
        },
        source=sources["share16"],
        step=step,
    )


def _simulated_bubble_term(step: TrainingStep, degrees: Parallelism) -> Term:
    """Return the bubble of a schedule without closed form, by simulation."""
    first, middle, last = step.stages
    return term(
        simulated_bubble,
        schedule=degrees.schedule,
        first=first,
        middle=middle,
        last=last,
        forward=step.forward,
        backward=step.backward,
        stages=degrees.pipeline,
        chunks=degrees.interleave,
        micro_batches=step.micro_batches,
    )


def pipeline_of(step: TrainingStep, degrees: Parallelism) -> Pipeline:
    """Return the times of a micro-batch on each chunk of a pipeline, sends included."""
    return chunked_pipeline(
        step.stages, step.forward, step.backward, degrees.pipeline, degrees.interleave
    )


def measured_times(scenario: Scenario) -> StepTimes | None:
    """Return step times measured on the scenario's device: the user's, else the library's."""
    job = scenario.job
    return job.step_times or _library_times(job, scenario.cluster.trainers.host.gpu)


def _library_times(job: Job, gpu: Gpu | None) -> StepTimes | None:
    """Return the library's times on this device at this framework and precision."""
    if job.model is None or gpu is None or job.mode is not Mode.TRAIN or job.train.freezes:
        return None
    wanted = (gpu.name, job.train.precision, job.software.framework.lower())
    return _joined_times(
        [t for t in job.model.step_times if (t.gpu, t.precision, t.framework) == wanted]
    )


def _joined_times(fitting: Sequence[StepTimes]) -> StepTimes | None:
    """Merge measurements in order of batch size; at equal sizes the first one counts."""
    points = {
        batch: seconds
        for times in reversed(fitting)
        for batch, seconds in zip(times.batch_sizes, times.seconds, strict=True)
    }
    if not points:
        return None
    sizes = tuple(sorted(points))
    return replace(fitting[0], batch_sizes=sizes, seconds=tuple(points[size] for size in sizes))


def _from_measurement(scenario: Scenario, measured: StepTimes) -> DeviceTime:
    job = scenario.job
    whole = _measured_at_batch(scenario, measured, scenario.cluster.trainers.host.gpu)
    backward = BACKWARD_SHARE if job.mode is Mode.TRAIN else 0.0
    return DeviceTime(
        terms=_split_step(whole, backward),
        equation="roofline.interpolated_step_time",
        inputs={"batch_size": job.train.batch_size, "measured points": len(measured.seconds)},
        source=measured.source,
        measured=True,
    )


def _split_step(whole: Term, backward: float) -> dict[str, Term]:
    """Return the passes of a measured step; `backward` is the share of the backward pass.

    The optimizer's time is 0, as the step includes it.
    """
    return {
        "forward": product_of(step=whole, forward_share=1.0 - backward),
        "backward": product_of(step=whole, backward_share=backward),
        "optimizer": stated(optimizer=0.0),
    }


def _measured_at_batch(scenario: Scenario, measured: StepTimes, gpu: Gpu | None) -> Term:
    """Return the step time at the job's batch size, from measured steps [s].

    A single measurement is scaled by the ratio of the computed times at the two batch sizes, so
    that launches and small kernels do not shrink with the batch; in proportion to the batch if the
    model's operators are unknown.

    Calibration factors apply to the rates of the roofline. They do not change a step time that the
    scenario states; a step that others measured on a device of this kind is scaled as the computed
    one.
    """
    batch, sizes = scenario.job.train.batch_size, measured.batch_sizes
    model = scenario.job.model
    if gpu is None or gpu.emulated or model is None or not _is_counted(model):
        return _interpolated(batch, measured)
    plain, train = replace(scenario, calibration=IDENTITY), scenario.job.train
    computed = _from_operators(plain, train, model, gpu).total
    several, then = len(sizes) > 1, _model_as_measured(model, measured)
    if several and then is model:
        time = _interpolated(batch, measured)
    else:
        at = train if several else replace(train, batch_size=sizes[0])
        time = term(
            carried_over_time,
            seconds=_interpolated(batch if several else sizes[0], measured),
            reference=_from_operators(plain, at, then, gpu).total,
            own=computed,
        )
    if scenario.job.step_times is not None or scenario.calibration == IDENTITY:
        return time
    calibrated = _from_operators(scenario, train, model, gpu).total
    return term(carried_over_time, seconds=time, reference=computed, own=calibrated)


def _interpolated(batch: Real, measured: StepTimes) -> Term:
    return term(
        interpolated_step_time,
        batch=batch,
        batch_sizes=measured.batch_sizes,
        seconds=measured.seconds,
    )


def _model_as_measured(model: Model, measured: StepTimes) -> Model:
    """Return the model with the memory format (channels last or not) of the measurement."""
    if not isinstance(model, ConvNet) or model.channels_last is measured.channels_last:
        return model
    return replace(model, channels_last=measured.channels_last)


@cached(most=1000)
def _is_counted(model: Model) -> bool:
    """Return whether the FLOPs of the model are known."""
    return any(op.flops > 0.0 for op in model.operators(1.0, Precision.FP32))


def _from_operators(scenario: Scenario, train: Train, model: Model, gpu: Gpu | None) -> DeviceTime:
    """Return the time from operators at the rates of an accelerator, or of CPU cores."""
    job, training = scenario.job, scenario.job.mode is Mode.TRAIN
    device = core_computing(scenario) if gpu is None else gpu_computing(scenario, train, gpu)
    kernels, rates = device.kernels, device.rates
    work, operators, flops = _counted_operators(
        model,
        kernels,
        rates,
        recomputation(train, fused_attention=job.software.fused_attention),
        train.batch_size,
        device.precision,
        training=training,
        head_only=train.head_only,
    )
    update = term(
        optimizer_time,
        traffic=optimizer_traffic(job, model),
        bandwidth=rates.memory,
        launches=0.0 if kernels is None else kernels.launch.step * kernels.launch.factor,
    )
    nothing = stated(nothing=0.0)
    return DeviceTime(
        terms={
            "forward": work.terms.forward,
            "backward": work.terms.backward if training else nothing,
            "optimizer": update if training else nothing,
        },
        equation="roofline.roofline_time",
        inputs={
            "operators": operators,
            "kernels": work.kernels.forward + work.kernels.backward,
            "host's time to launch them [s]": work.host.forward + work.host.backward,
            "forward FLOP": flops,
            "matrix rate [FLOP/s]": rates.matrix,
            "memory rate [B/s]": rates.memory,
        },
        source=device.source,
    )


# Consecutive candidates of a search mostly compute the same batch.
@cached(most=1000, by_value=(Rates, Recomputation, np.ndarray))
def _counted_operators(  # noqa: PLR0913, PLR0917 - all that the result depends on
    model: Model,
    kernels: Kernels | None,
    rates: Rates,
    recomputed: Recomputation,
    samples: Real,
    precision: Precision,
    *,
    training: bool,
    head_only: bool,
) -> tuple[OperatorTime, int, Real]:
    """Return the device time of a batch's operators, their number, and forward FLOPs."""
    operators = model.operators(samples, precision)
    passes = operators if training else _inference_operators(operators)
    if head_only:
        passes = tuple(
            op
            if op.head
            else replace(op, backward_flops=0.0, backward_traffic=0.0, backward_kernels=0.0)
            for op in passes
        )
    time = operator_time(passes, rates, kernels, recomputed)
    return time, len(operators), sum((op.flops for op in operators), 0.0)


def _inference_operators(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Return the operators without backward pass and without the extra traffic of training.

    Norms and activations move the counted bytes: the factor for language models was fitted to
    training steps.
    """
    return tuple(
        replace(
            op,
            traffic=op.traffic - op.training_traffic,
            backward_flops=0.0,
            backward_traffic=0.0,
            backward_kernels=0.0,
            blocks=np.inf,
            kind=op.kind if op.kind is Kind.ATTENTION else Kind.OTHER,
        )
        for op in operators
    )


def optimizer_traffic(job: Job, model: Model) -> Bytes | Real:
    """Return the device-memory traffic of an optimizer step [B].

    It reads weights, gradients and state, and writes weights and state, in fp32. Embedding rows
    without a gradient are not touched.
    """
    full = Precision.FP32.bytes_per_element
    moved = 3.0 * full + 2.0 * state_bytes(job.train.optimizer, full)
    learned = learned_in_all(job) if job.train.freezes else model.dense_parameters
    return learned * moved


@cached(most=16)
def device_traffic(scenario: Scenario) -> Traffic | None:
    """Return the bytes that a device sends; None if the time is not from fitted kernels."""
    return traffic(transformer_step(scenario)) if uses_fitted_kernels(scenario) else None
