"""Stages that compute: forward, backward and optimizer on the device, the host or its cores."""

from __future__ import annotations

from simulator.equations import cpu
from simulator.equations.step import batch_work
from simulator.physics.device_time import device_time
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking, passing
from simulator.pipeline.stages.communication import step_of
from simulator.records import dataclass
from simulator.schema.data_loading import Preparation
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.terms import product_of, quotient_of, stated, sum_of, term
from simulator.units import anywhere, where


@dataclass(frozen=True, slots=True)
class DecodeOnDevice:
    """Decoding and augmentation of the batch on the device, before its forward pass."""

    name: str = "decode on device"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return busy seconds of the compute stream; empty if the CPU preprocesses."""
        work = scenario.job.input
        if work.where is not Preparation.DEVICE:
            return ()
        batch = scenario.job.train.batch_size
        busy = term(batch_work, batch_size=batch, per_sample=work.device_time)
        return (asking(busy, Resource.GPU, Path.COMPUTE),)


@dataclass(frozen=True, slots=True)
class DevicePass:
    """Compute of the model on the device: a pass over a batch, or the optimizer of a step.

    `name` is that of its term of `DeviceTime`: forward, backward or optimizer. Gradients of the
    backward pass become ready bucket by bucket.
    """

    name: str

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return busy seconds of the compute stream; empty without a device."""
        has_device = scenario.cluster.trainers.host.gpu is not None
        time = device_time(scenario) if has_device else None
        return () if time is None else (asking(time.terms[self.name], Resource.GPU, Path.COMPUTE),)


@dataclass(frozen=True, slots=True)
class CpuTraining:
    """Training of a batch by the main process on the CPU, on machines without a device."""

    name: str = "fit"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return core-seconds: as stated by the model, or of a step with all threads busy."""
        job, host = scenario.job, scenario.cluster.trainers.host
        if host.gpu is not None:
            return ()
        if job.step_times is not None or job.model is None or job.model.cpu_seconds == 0.0:
            return self._with_all_threads(scenario)
        return (
            asking(
                term(
                    batch_work,
                    batch_size=job.train.batch_size,
                    per_sample=job.model.cpu_seconds,
                ),
                Resource.CPU,
                Path.CORES,
                threads=host.cpu.threads,
            ),
        )

    def _with_all_threads(self, scenario: Scenario) -> tuple[Demand, ...]:
        time, pool = device_time(scenario), scenario.cluster.trainers.host.cpu
        if time is None:
            return ()
        work = term(cpu.cores_work, step_time=time.total, capacity=pool.capacity)
        return (asking(work, Resource.CPU, Path.CORES, threads=pool.threads),)


@dataclass(frozen=True, slots=True)
class Launch:
    """Launching of a batch's kernels by the main thread, where that thread loads batches too.

    Without workers the thread makes a batch, copies it and launches its kernels one after another.
    How long it launches is rarely known. It is taken to be as long as the device computes, as for a
    program that reads the loss of every step, or whose device waits for launches; a program that
    runs further ahead takes less (`Rate.LAUNCH`). An emulated device is a wait of that thread.
    """

    name: str = "launch"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the time of the main thread; empty if workers load batches, or no device."""
        job, host = scenario.job, scenario.cluster.trainers.host
        if job.remote is not None or host.gpu is None or job.mode is Mode.PREPARE:
            return ()
        alone = where(job.input.policy.producers > 0, 0.0, 1.0)
        if not anywhere(alone):
            return ()
        if job.train.launch_time is not None and not host.gpu.emulated:
            launching = stated(launch_time=job.train.launch_time)
            return (passing(product_of(launching=launching, alone=alone), Resource.CPU),)
        time = device_time(scenario)
        if time is None:
            return ()
        computing = sum_of(
            forward=time.terms["forward"],
            backward=time.terms["backward"],
            optimizer=quotient_of(
                optimizer=time.terms["optimizer"], accumulation=job.train.accumulation
            ),
        )
        return (passing(product_of(computing=computing, alone=alone), Resource.GPU),)


@dataclass(frozen=True, slots=True)
class HostOptimizer:
    """Optimizer on the host: exposed time of gradient offload, update and parameter fetch.

    The update shares the bandwidth of host memory.
    """

    name: str = "optimizer on the host"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the exposed offload time, the host-memory traffic, and the exposed fetch time."""
        step = step_of(scenario)
        if step is None or not scenario.job.parallelism.offload_optimizer:
            return ()
        host, ranks = step.host, scenario.ranks_per_host
        return (
            passing(host.sending, Resource.PCIE),
            asking(
                quotient_of(machine=host.moving, ranks=ranks),
                Resource.HOST_MEMORY,
                Path.MEMORY,
                ceiling=host.rate / ranks,
            ),
            passing(host.fetching, Resource.PCIE),
        )


@dataclass(frozen=True, slots=True)
class StepOverhead:
    """Overhead of the training loop while the device waits: logging, statistics, callbacks.

    It is a stated time of one thread that always has a core.
    """

    name: str = "program"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the idle wait of the device."""
        overhead = scenario.job.train.step_overhead
        if overhead == 0.0:
            return ()
        return (passing(stated(step_overhead=overhead), Resource.CPU),)
