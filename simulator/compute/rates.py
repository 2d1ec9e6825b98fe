"""What a device reaches: an accelerator, or the cores of a machine that has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from simulator.compute.operator_time import Rates
from simulator.confidence.calibration import Efficiency
from simulator.confidence.provenance import Source
from simulator.errors import NotModelled
from simulator.scenario.hardware.gpu import Gpu
from simulator.scenario.hardware.host import Host
from simulator.scenario.precision import Precision
from simulator.scenario.scenario import Scenario
from simulator.scenario.workload.kernels import Launching
from simulator.scenario.workload.train import Train
from simulator.units import FlopsPerSecond

UNSTATED: Final = Source(reference="the accelerator's profile", date="undated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """What computes: what it reaches, in which format, and what kernels cost beside their work."""

    rates: Rates
    precision: Precision
    launching: Launching | None
    source: Source


def of_gpu(scenario: Scenario, train: Train, gpu: Gpu) -> Computing:
    """What an accelerator computes a scenario's model with; `train` has the precision."""
    software = scenario.job.software
    rates = rates_of(gpu, scenario.job.train.precision, software.efficiency)
    return Computing(
        rates=_calibrated(scenario, rates),
        precision=_runs_as(gpu, train.precision),
        launching=software.launching,
        source=_of_rates(scenario, gpu, train.precision),
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
        launching=None,
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
    return Rates(matrix=reached, vector=reached, memory=memory)


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
        memory=own.memory * calibration.value("device_memory"),
    )


def rates_of(gpu: Gpu, precision: Precision, efficiency: Efficiency) -> Rates:
    """What operators reach on a device.

    A measured rate below the share of the data sheet limits too: that of the best matrix product,
    and of the memory. A precision that the device lacks runs at the rate of its stated fallback.

    Parameters
    ----------
    gpu : Gpu
        The accelerator.
    precision : Precision
        Of the bulk of the arithmetic.
    efficiency : Efficiency
        Shares of the data sheet's rates.
    """
    runs_as = _runs_as(gpu, precision)
    peak, bandwidth = gpu.peak[runs_as], gpu.memory_bandwidth
    return Rates(
        matrix=min(peak * efficiency.matrix, gpu.achievable.get(runs_as, peak)),
        vector=gpu.peak.get(Precision.FP32, peak),
        memory=min(bandwidth * efficiency.memory, gpu.achievable_memory_bandwidth or bandwidth),
        units=gpu.multiprocessors,
        throttle=efficiency.throttle,
    )


def _of_rates(scenario: Scenario, gpu: Gpu, precision: Precision) -> Source:
    """Where the rates of a roofline come from: the datasheet, and the share of it in training."""
    peak = gpu.sources.get(f"peak.{_runs_as(gpu, precision)}", UNSTATED)
    share = scenario.job.software.efficiency.source
    return Source(
        reference=f"{peak.reference}; shares of the datasheet: {share.reference}",
        date=share.date,
        verified=peak.verified and share.verified,
    )


def _runs_as(gpu: Gpu, precision: Precision) -> Precision:
    return gpu.fallback.get(precision, precision)
