"""Time of a model's operators on an accelerator or on cores, and the model's FLOPs.

A matrix product takes the time of its tiles, or of its memory traffic where that is longer. Other
operators take the longer of their arithmetic and their traffic, and each kernel a start-up time.

FLOPs of a sample are counted as in published MFU and HFU values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.roofline import (
    computed_flops,
    flops_rate,
    flops_utilization,
    roofline_time,
    trained_flops,
)
from simulator.errors import NotModelled
from simulator.physics.kernels import (
    NOTHING,
    Gemms,
    KernelTimes,
    PassTerms,
    PassTimes,
    Units,
    device_terms,
    forward_and_backward,
    launch_time,
    overlapped_with_launches,
    stacked,
    three_passes,
    with_repeated_launches,
)
from simulator.physics.transformer import NO_RECOMPUTATION, Recomputation, peak_of_values
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.machines import Host
from simulator.schema.models import Kind, Model, Operator, forward_flops
from simulator.schema.provenance import Source
from simulator.schema.scenario import Scenario
from simulator.schema.software import Kernels
from simulator.schema.training import Mode, Recompute, Train
from simulator.schema.transformer_families import EncoderDecoder
from simulator.schema.transformers import Transformer
from simulator.terms import Term, term
from simulator.units import BytesPerSecond, FlopsPerSecond, PerSecond, Real, Seconds

Array: TypeAlias = NDArray[np.float64]
_FLOP_PER_MAC: Final = 2.0
BLOCK_RATE: Final = 10e9
"""What one block of threads streams, alone on its unit [B/s]: fitted to one row, ResNet-50 in fp16
channels-first on an A100 SXM (lambdal/deeplearning-benchmark@aa5addb6 pytorch-train-throughput-v2,
2025). Rows of the same table on H100, GH200, H200 and B200 check it
(docs/internals/evidence-scaling.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Achieved rates of a device: matrix and vector arithmetic [FLOP/s], memory [B/s].

    `attention` is the rate of fused attention, forward and backward [FLOP/s]. `units` is the number
    of multiprocessors, each of which computes a tile of a product; None if unknown. `throttle` is
    the relative reduction of the clock if only matrix units work.
    """

    matrix: FlopsPerSecond
    vector: FlopsPerSecond
    memory: BytesPerSecond
    attention: tuple[FlopsPerSecond, FlopsPerSecond]
    units: float | None = None
    throttle: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """Time of a forward and a backward pass on the device, and of their kernel launches.

    `kernels` is the number of launches, recomputation included, `host` the time to launch them.
    """

    terms: PassTerms
    kernels: PassTimes
    host: PassTimes

    @property
    def forward(self) -> Seconds | Real:
        """Time of the forward pass [s]."""
        return self.terms.forward.value

    @property
    def backward(self) -> Seconds | Real:
        """Time of the backward pass [s]."""
        return self.terms.backward.value


def operator_time(
    operators: Sequence[Operator],
    rates: Rates,
    kernels: Kernels | None,
    recomputation: Recomputation = NO_RECOMPUTATION,
) -> OperatorTime:
    """Return the time of all operators of a batch.

    Parameters
    ----------
    operators : sequence of Operator
        The operators of one batch.
    rates : Rates
        Achieved rates of the device with all its multiprocessors busy.
    kernels : Kernels or None
        Fitted kernels; None: operators take their roofline times.
    recomputation : Recomputation
        Shares of the forward pass that the backward pass repeats.
    """
    number = PassTimes(
        sum(op.kernels for op in operators), sum(op.backward_kernels for op in operators)
    )
    attention = [op for op in operators if op.kind is Kind.ATTENTION]
    products = [op for op in operators if op.matrix and op.kind is not Kind.ATTENTION]
    tiled = [op for op in products if _is_tiled(op, rates, kernels)]
    whole = [op for op in products if not _is_tiled(op, rates, kernels)]
    parts = KernelTimes(
        products=_tiled_products(tiled, rates, kernels) + _rooflines(whole, rates, rates.matrix),
        attention=PassTimes(
            _rooflines(attention, rates, rates.attention[0]).forward,
            _rooflines(attention, rates, rates.attention[1]).backward,
        ),
        passes=_memory_operators([op for op in operators if not op.matrix], rates, kernels),
        starts=number.times(0.0 if kernels is None else kernels.kernel.start),
        host=NOTHING
        if kernels is None
        else launch_time(number, kernels).times(kernels.launch.factor),
    )
    terms, host = (
        device_terms(parts, rates.throttle, recomputation),
        with_repeated_launches(parts.host, recomputation),
    )
    if kernels is not None:
        terms = PassTerms(
            overlapped_with_launches(kernels, terms.forward, host.forward),
            overlapped_with_launches(kernels, terms.backward, host.backward),
        )
    return OperatorTime(
        terms=terms, kernels=with_repeated_launches(number, recomputation), host=host
    )


def _is_tiled(op: Operator, rates: Rates, kernels: Kernels | None) -> bool:
    return kernels is not None and rates.units is not None and op.product is not None


def _rooflines(operators: Sequence[Operator], rates: Rates, rate: FlopsPerSecond) -> PassTimes:
    """Return the summed roofline times of operators at a peak of `rate` [s]."""
    time = NOTHING
    for op in operators:
        memory = _memory_rate(op, rates)
        time += PassTimes(
            roofline_time(op.flops, op.traffic, rate, memory),
            roofline_time(op.backward_flops, op.backward_traffic, rate, memory),
        )
    return time


def _memory_operators(
    operators: Sequence[Operator], rates: Rates, kernels: Kernels | None
) -> PassTimes:
    """Return the summed times of operators without matrix products [s].

    Their traffic is scaled to the measured one.
    """
    moved = [op if np.any(op.flops) else _as_moved(op, kernels) for op in operators]
    return _rooflines(moved, rates, rates.vector)


def _as_moved(op: Operator, kernels: Kernels | None) -> Operator:
    """Return the operator with its traffic scaled to that of the framework's kernels."""
    if kernels is None:
        return op
    fitted = {Kind.PLAIN: kernels.kernel.plain, Kind.GATED: kernels.kernel.gated}
    factor = fitted.get(op.kind, kernels.kernel.others)
    if factor == 1.0:
        return op
    return replace(op, traffic=factor * op.traffic, backward_traffic=factor * op.backward_traffic)


def _memory_rate(op: Operator, rates: Rates) -> BytesPerSecond:
    """Return the memory bandwidth of an operator, which few thread blocks may limit [B/s]."""
    if rates.units is None or np.isinf(op.blocks):
        return rates.memory
    return min(rates.memory, min(op.blocks, rates.units) * BLOCK_RATE)


def _tiled_products(
    operators: Sequence[Operator], rates: Rates, kernels: Kernels | None
) -> PassTimes:
    """Return the times of matrix products and of their input and weight gradients [s].

    If the backward pass has fewer FLOPs than two gradients, the input gradient is reduced or left
    out.
    """
    if not operators or kernels is None or rates.units is None:
        return NOTHING
    rows = [
        (*op.product[:4], op.flops, op.backward_flops, op.traffic, op.backward_traffic)
        for op in operators
        if op.product is not None
    ]
    m, n, inner, count, flops, back, traffic, back_traffic = stacked(rows)
    flop_of_pass = _FLOP_PER_MAC * m * n * inner * count
    of_weights = np.minimum(1.0, flops / np.maximum(back, 1.0))
    shares = np.array((np.ones_like(of_weights), 1.0 - of_weights, of_weights))
    all_flops = shares * np.array((flops, back, back))
    moved = shares * np.array((traffic, back_traffic, back_traffic))
    units = Units(rates.matrix, rates.memory, rates.units, kernels.product)
    gemms = Gemms(*three_passes(m, n, inner), count, all_flops / flop_of_pass, moved)
    candidates = np.broadcast_shapes(*(np.shape(value) for row in rows for value in row))
    forward, backward = forward_and_backward(gemms, units)
    return PassTimes(_sum(forward, candidates), _sum(backward, candidates))


def _sum(times: Array, candidates: tuple[int, ...]) -> Real:
    """Sum times over matrix products: a number, or an array of shape `candidates`."""
    total: Real = times.sum(axis=0).reshape(candidates)[()]
    return total


UNSTATED: Final = Source(reference="the accelerator's profile", date="undated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """A device with its rates, number format, fitted kernels and the source of the rates."""

    rates: Rates
    precision: Precision
    kernels: Kernels | None
    source: Source


def gpu_computing(scenario: Scenario, train: Train, gpu: Gpu) -> Computing:
    """Return an accelerator with its rates for the scenario's model in the precision of `train`."""
    kernels = scenario.job.software.kernels
    rates = rates_of(gpu, scenario.job.train.precision, kernels)
    return Computing(
        rates=_calibrated(scenario, rates),
        precision=_computed_precision(gpu, train.precision),
        kernels=kernels,
        source=_rate_source(gpu, train.precision, kernels),
    )


def core_computing(scenario: Scenario) -> Computing:
    """Return the CPU cores of the training machine as a device.

    Raises
    ------
    NotModelled
        If the rates of the cores are unknown.
    """
    host = scenario.cluster.trainers.host
    rates, vector = core_rates(host), host.cpu.vector
    if rates is None or vector is None:
        msg = f"no rate is known at which the cores of {host.name} compute"
        raise NotModelled(msg)
    return Computing(
        rates=_calibrated(scenario, rates),
        precision=Precision.FP32,
        kernels=None,
        source=vector.source,
    )


def core_rates(host: Host) -> Rates | None:
    """Return arithmetic and memory rates of all CPU cores in fp32; None if unknown.

    Parameters
    ----------
    host : Host
        The machine; its processor has the achieved share of the peak.
    """
    peak, units = core_peak(host, Precision.FP32), host.cpu.vector
    if peak is None or units is None or host.memory_bandwidth is None:
        return None
    reached, memory = units.share * peak, units.memory_share * host.memory_bandwidth
    return Rates(matrix=reached, vector=reached, memory=memory, attention=(reached, reached))


def core_peak(host: Host, precision: Precision) -> FlopsPerSecond | None:
    """Return the peak of all CPU cores of a machine [FLOP/s]; None if unknown.

    Parameters
    ----------
    host : Host
        The machine; its peak is cores x base clock x FLOPs per cycle.
    precision : Precision
        Number format. With 16 bit or less, FLOPs are those of the cores' matrix units, if any; else
        values are converted to fp32. In fp64 a vector holds half as many values as in fp32.
    """
    cpu, units = host.cpu, host.cpu.vector
    if units is None or cpu.base_clock is None or host.memory_bandwidth is None:
        return None
    lanes = min(1.0, Precision.FP32.bytes_per_element / precision.bytes_per_element)
    wide = precision.bytes_per_element > Precision.BF16.bytes_per_element
    matrix = None if wide else units.matrix_per_cycle
    return cpu.cores * cpu.base_clock * (matrix or lanes * units.flop_per_cycle)


def _calibrated(scenario: Scenario, own: Rates) -> Rates:
    calibration = scenario.calibration
    arithmetic = calibration.value("compute")
    return replace(
        own,
        matrix=own.matrix * arithmetic,
        vector=own.vector * arithmetic,
        attention=(own.attention[0] * arithmetic, own.attention[1] * arithmetic),
        memory=own.memory * calibration.value("device_memory"),
    )


def rates_of(gpu: Gpu, precision: Precision, kernels: Kernels | None) -> Rates:
    """Return the achieved rates of operators on a device.

    A precision that the device lacks runs at the rate of its stated fallback.

    Parameters
    ----------
    gpu : Gpu
        The accelerator.
    precision : Precision
        Precision of most of the arithmetic.
    """
    runs_as = _computed_precision(gpu, precision)
    peak, bandwidth = gpu.peak[runs_as], gpu.memory_bandwidth
    vector = gpu.peak.get(Precision.FP32, peak)
    if kernels is None:
        return Rates(matrix=peak, vector=vector, memory=bandwidth, attention=(peak, peak))
    attention = peak_of_values(gpu, precision) * kernels.kernel.attention
    return Rates(
        matrix=peak * kernels.product.share,
        vector=vector,
        memory=bandwidth * kernels.kernel.memory,
        attention=(attention, attention * kernels.kernel.attention_backward),
        units=gpu.multiprocessors,
        throttle=kernels.product.throttle,
    )


def _rate_source(gpu: Gpu, precision: Precision, kernels: Kernels | None) -> Source:
    """Return the source of roofline rates: of the datasheet, and of the achieved share."""
    peak = gpu.sources.get(f"peak.{_computed_precision(gpu, precision)}", UNSTATED)
    share = UNSTATED if kernels is None else kernels.sources["share16"]
    return Source(
        reference=f"{peak.reference}; shares of the datasheet: {share.reference}",
        date=share.date,
        verified=peak.verified and share.verified,
    )


def _computed_precision(gpu: Gpu, precision: Precision) -> Precision:
    return gpu.fallback.get(precision, precision)


_FLOPS_PER_MAC = 2.0
_PASSES = {Mode.TRAIN: 3.0}
"""Forward passes' worth of work on a sample; 1 where nothing is learned from it."""
_EVERY_SECOND = 0.5
"""What of the products with weights is computed again where every second one is."""


def tokens_per_sample(scenario: Scenario) -> float | None:
    """Return the number of tokens of one sample; None if samples are not text."""
    stacks = _stacks(scenario.job.model)
    return sum(stack.tokens for stack in stacks) or None


def rate_per_device(
    scenario: Scenario, throughput: PerSecond, *, recomputed: bool = False
) -> Term | None:
    """Return the model FLOPs per second and accelerator [FLOP/s]; None if unknown.

    `recomputed` counts recomputed activations too.
    """
    flops, trainers = _model_flops(scenario), scenario.cluster.trainers
    if flops is None:
        return None
    if recomputed:
        flops = term(computed_flops, model_flops=flops, again=_again(scenario))
    devices = float(trainers.count * trainers.gpus_per_host)
    return term(flops_rate, flops=flops, throughput=throughput, devices=devices)


def model_utilization(scenario: Scenario, throughput: PerSecond) -> Term | None:
    """Return the MFU: model FLOPs over the datasheet's peak; None if unknown."""
    rate, peak = rate_per_device(scenario, throughput), _peak(scenario)
    return term(flops_utilization, rate=rate, peak=peak) if rate and peak else None


def hardware_utilization(scenario: Scenario, throughput: PerSecond) -> Term | None:
    """Return the HFU, which counts recomputed activations too; None if unknown."""
    rate, peak = rate_per_device(scenario, throughput, recomputed=True), _peak(scenario)
    return term(flops_utilization, rate=rate, peak=peak) if rate and peak else None


def _peak(scenario: Scenario) -> FlopsPerSecond | None:
    """Return the peak of an accelerator at the job's precision [FLOP/s]; None if unknown."""
    gpu, precision = scenario.cluster.trainers.host.gpu, scenario.job.train.precision
    return None if gpu is None else gpu.peak.get(gpu.fallback.get(precision, precision))


def _stacks(model: Model | None) -> tuple[Transformer, ...]:
    if isinstance(model, EncoderDecoder):
        return model.encoder, model.decoder
    return (model,) if isinstance(model, Transformer) else ()


def _forward(scenario: Scenario) -> tuple[float, float]:
    """Return the FLOPs of a sample's forward pass: in weight products, and in attention."""
    model = scenario.job.model
    stacks = _stacks(model)
    if model is not None and not stacks:
        return float(forward_flops(model, 1.0, scenario.job.train.precision)), 0.0
    products = sum(stack.weight_macs for stack in stacks)
    attention = sum(stack.attention_macs for stack in stacks)
    return _FLOPS_PER_MAC * products, _FLOPS_PER_MAC * attention


def _model_flops(scenario: Scenario) -> Term | None:
    trainers = scenario.cluster.trainers
    if trainers.host.gpu is None or trainers.gpus_per_host == 0:
        return None
    products, attention = _forward(scenario)
    if products + attention <= 0.0:
        return None
    head_only = scenario.job.train.head_only
    passes = 1.0 if head_only else _PASSES.get(scenario.job.mode, 1.0)
    frozen = float(scenario.job.mode is Mode.TRAIN and scenario.job.train.adapters is not None)
    return term(trained_flops, products=products, attention=attention, passes=passes, frozen=frozen)


def _again(scenario: Scenario) -> float:
    """Return the recomputed FLOPs of a sample.

    Small modules have no products, and a head is never recomputed. Selective recomputation counts
    as in Korthikanti et al. (https://arxiv.org/abs/2205.05198, appendix A: s/6h becomes s/3h),
    whose HFU is commonly quoted: all three passes of attention once more, although a device
    recomputes one of them.
    """
    recompute, (products, attention) = scenario.job.train.recompute, _forward(scenario)
    heads = _FLOPS_PER_MAC * sum(stack.head_macs for stack in _stacks(scenario.job.model))
    if scenario.job.mode is not Mode.TRAIN:
        return 0.0
    share = scenario.job.train.recompute_share
    return share * {
        Recompute.SELECTIVE: _PASSES[Mode.TRAIN] * attention,
        Recompute.OPERATORS: _EVERY_SECOND * (products - heads),
        Recompute.FULL: products - heads + attention,
    }.get(recompute, 0.0)
