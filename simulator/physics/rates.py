"""What a device reaches: an accelerator, or the cores of a machine that has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from simulator.errors import NotModelled
from simulator.physics.describe import peak_of_values
from simulator.physics.operator_time import Rates
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import Host
from simulator.schema.precision import Precision
from simulator.schema.scenario import Scenario
from simulator.schema.workload.kernels import Kernels
from simulator.schema.workload.train import Train
from simulator.uncertainty.provenance import Source
from simulator.units import FlopsPerSecond

UNSTATED: Final = Source(reference="the accelerator's profile", date="undated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """What computes: what it reaches, in which format, and what kernels reach and cost there."""

    rates: Rates
    precision: Precision
    kernels: Kernels | None
    source: Source


def of_gpu(scenario: Scenario, train: Train, gpu: Gpu) -> Computing:
    """What an accelerator computes a scenario's model with; `train` has the precision."""
    k = scenario.job.software.kernels
    rates = rates_of(gpu, scenario.job.train.precision, k)
    return Computing(
        rates=_calibrated(scenario, rates),
        precision=_runs_as(gpu, train.precision),
        kernels=k,
        source=_of_rates(gpu, train.precision, k),
    )


def of_cores(scenario: Scenario) -> Computing:
    """What the cores of the training machine compute its model with.

    Raises
    ------
    NotModelled
        If no rate of them is known.
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
    """Arithmetic and memory of all cores, in fp32; None where no rate of them is known.

    Parameters
    ----------
    host : Host
        The machine; its processor says which share of the peak is reached.
    """
    peak, units = core_peak(host, Precision.FP32), host.cpu.vector
    if peak is None or units is None or host.memory_bandwidth is None:
        return None
    reached, memory = units.share * peak, units.memory_share * host.memory_bandwidth
    return Rates(matrix=reached, vector=reached, memory=memory, attention=(reached, reached))


def core_peak(host: Host, precision: Precision) -> FlopsPerSecond | None:
    """Most that all cores of a machine multiply and add [FLOP/s]; None where it is not known.

    Parameters
    ----------
    host : Host
        The machine: cores x base clock x operations of a cycle.
    precision : Precision
        Number format. In 16 bit and less those of matrix units, where cores have some; else values
        are widened.
    """
    cpu, units = host.cpu, host.cpu.vector
    if units is None or cpu.base_clock is None or host.memory_bandwidth is None:
        return None
    narrow = None if precision is Precision.FP32 else units.matrix_per_cycle
    return cpu.cores * cpu.base_clock * (narrow or units.flop_per_cycle)


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


def rates_of(gpu: Gpu, precision: Precision, k: Kernels | None) -> Rates:
    """What operators reach on a device.

    A precision that the device lacks runs at the rate of its stated fallback.

    Parameters
    ----------
    gpu : Gpu
        The accelerator.
    precision : Precision
        Of the bulk of the arithmetic.
    k : Kernels or None
        Shares of the data sheet's rates; None: all of them.
    """
    runs_as = _runs_as(gpu, precision)
    peak, bandwidth = gpu.peak[runs_as], gpu.memory_bandwidth
    vector = gpu.peak.get(Precision.FP32, peak)
    if k is None:
        return Rates(matrix=peak, vector=vector, memory=bandwidth, attention=(peak, peak))
    attention = peak_of_values(gpu, precision) * k.kernel.attention
    return Rates(
        matrix=peak * k.product.share,
        vector=vector,
        memory=bandwidth * k.kernel.memory,
        attention=(attention, attention * k.kernel.attention_backward),
        units=gpu.multiprocessors,
        throttle=k.product.throttle,
    )


def _of_rates(gpu: Gpu, precision: Precision, k: Kernels | None) -> Source:
    """Where the rates of a roofline come from: the datasheet, and the share of it in training."""
    peak = gpu.sources.get(f"peak.{_runs_as(gpu, precision)}", UNSTATED)
    share = UNSTATED if k is None else k.sources["share16"]
    return Source(
        reference=f"{peak.reference}; shares of the datasheet: {share.reference}",
        date=share.date,
        verified=peak.verified and share.verified,
    )


def _runs_as(gpu: Gpu, precision: Precision) -> Precision:
    return gpu.fallback.get(precision, precision)
