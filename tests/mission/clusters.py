"""Two published pairs: a machine alone, and the same one with machines that make batches.

Source of both: AWS Machine Learning Blog (2022) and its notebooks,
aws/amazon-sagemaker-examples, training/heterogeneous-clusters. `Row` holds what it measured. The
machines are the catalogue's; a CPU cost is calibrated on one row of a pair and the other row is
predicted with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from mission.machines import (
    DATA,
    in_memory,
    job,
    managed,
    per_vcpu,
    producers,
    scenario,
    trainers,
)

from simulator.predict import predict
from simulator.results.prediction import Prediction
from simulator.schema.data_loading import CostBasis, InputPipeline, LoaderKind, Remote
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.units import BYTE_PER_SECOND, HOUR, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a row measured: step [s], price [$/s], samples a step, shares of CPU and GPU busy."""

    step: float
    price: float
    samples: float
    cpu: float = 0.0
    gpu: float = 0.0

    @property
    def device_time(self) -> float:
        """Time the devices were busy in a step [s]."""
        return self.gpu * self.step


A6 = Row(step=0.192, price=37.688 / HOUR, samples=8192, cpu=0.93, gpu=0.38)
A7 = Row(step=0.086, price=45.032 / HOUR, samples=8192, cpu=0.78, gpu=0.74)
A11 = Row(step=1.193, price=3.825 / HOUR, samples=8192)
A12 = Row(step=0.184, price=5.661 / HOUR, samples=8192)

BATCH, STEPS = 1024, 500
IMAGE = 3.0 * 32 * 32
AS_FLOATS = 4.0 * IMAGE
"""Bytes of a sample as it leaves the pipeline of the first pair: float32."""


def tensorflow(cost: float, device_time: float, *, together: bool) -> Scenario:
    """ResNet-50 on 32 x 32 x 3, 1,024 a rank on eight A100, alone or with two c5.18xlarge.

    Parameters
    ----------
    cost : float
        CPU time of a sample on one vCPU of the training machine, all of them busy [s].
    device_time : float
        Time the device needs for its 1,024 samples [s].
    together : bool
        With a worker of the data service on all three nodes.
    """
    alone = managed("ml.p4d.24xlarge")
    groups = [trainers(alone)]
    remote = None
    if together:
        groups.append(producers(managed("ml.c5.18xlarge"), count=2))
        remote = Remote(name=DATA, workers=72, shares_batches=True)
    work = InputPipeline(
        augment=cost,
        output_bytes_per_sample=AS_FLOATS,
        cost_basis=CostBasis.VCPU,
        coremark_per_vcpu=per_vcpu(alone),
    )
    own = replace(work, loader=LoaderKind.TF_DATA, workers=96 // 8, pin_memory=True)
    data = in_memory(STEPS * A6.samples, IMAGE)
    made = job(dataset=data, batch=BATCH, step=device_time, pipeline=own, remote=remote)
    return scenario("tensorflow", made, *groups)


MNIST_BATCH = 8192
DIGIT = 28.0 * 28
DIGIT_AS_FLOATS = 4.0 * DIGIT
PIN_RATE = parse("0.97 GB/s", BYTE_PER_SECOND)
"""What a pin thread copies: 236 images/s in batches of 16 and 65.8 MB (github.com/roboflow/rf-detr,
pull request 1396, 32 vCPUs). Another machine and other work: an assumption."""
DEVICE_TIME = 0.02
"""Device time of a step of the second pair, which the source doesn't state: it hides (below)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanisms:
    """What tells a vCPU of one machine from one of another; each is off by default.

    `yardstick` gives the speed of a vCPU; `sharing`: a core's second thread adds what the
    catalogue says; `contention`: busy cores slow one another; `receiving`: main and pin threads
    take CPU.
    """

    yardstick: Callable[[Host], float] | None = None
    sharing: bool = False
    contention: bool = False
    receiving: bool = False
    device_time: float = DEVICE_TIME

    def seen(self, host: Host) -> Host:
        """The machine as these mechanisms see it."""
        cpu = host.cpu
        speed = None if self.yardstick is None else self.yardstick(host) * cpu.threads
        pool = replace(
            cpu,
            coremark=speed,
            smt_worth=cpu.smt_worth if self.sharing else 1.0,
            contention=cpu.contention if self.contention else 0.0,
        )
        return replace(host, cpu=pool)


def clock(host: Host) -> float:
    """The base clock, as a yardstick for the speed of a vCPU [Hz]."""
    assert host.cpu.base_clock is not None
    return host.cpu.base_clock


def pytorch(cost: float, mechanisms: Mechanisms, *, together: bool) -> Scenario:
    """MNIST with a blur, 8,192 a batch on a p3.2xlarge: 8 own workers, or 32 on a c5.9xlarge.

    Parameters
    ----------
    cost : float
        CPU time of a sample on one vCPU of the training machine, all of them busy [s].
    mechanisms : Mechanisms
        What is taken into account.
    together : bool
        Batches come over the network only, through a queue of 32.
    """
    alone = mechanisms.seen(managed("ml.p3.2xlarge"))
    groups = [trainers(alone)]
    remote = None
    if together:
        groups.append(producers(mechanisms.seen(managed("ml.c5.9xlarge"))))
        remote = Remote(name=DATA, workers=32, queue=32)
    work = InputPipeline(
        augment=cost,
        output_bytes_per_sample=DIGIT_AS_FLOATS,
        cost_basis=CostBasis.VCPU,
        coremark_per_vcpu=None if mechanisms.yardstick is None else per_vcpu(alone),
    )
    pinning = MNIST_BATCH * DIGIT_AS_FLOATS / PIN_RATE if mechanisms.receiving else 0.0
    own = replace(work, workers=0 if together else 8, pin_memory=True, receive_per_batch=pinning)
    data = in_memory(4800 * A11.samples, DIGIT)
    made = job(
        dataset=data,
        batch=MNIST_BATCH,
        step=mechanisms.device_time,
        pipeline=own,
        remote=remote,
    )
    return scenario("pytorch", made, *groups)


def stopwatch(measured: Row, plan: Scenario) -> Prediction:
    """The machines of a plan, with a step that takes exactly what was measured: for its bill."""
    assert plan.job.step_times is not None
    free = replace(plan.job.input, augment=0.0)
    times = replace(plan.job.step_times, seconds=(measured.step,))
    return predict(replace(plan, jobs=(replace(plan.job, input=free, step_times=times),)))


def calibrated(build: Callable[[float], Scenario], target: float, start: float) -> float:
    """The cost with which a scenario's simulated step is the measured one [s].

    Parameters
    ----------
    build : callable
        Makes the scenario of the row from a cost [s].
    target : float
        Its measured step [s].
    start : float
        Where to begin [s].
    """
    cost = start
    for _ in range(20):
        step = predict(build(cost)).timing.step_time.mean
        if abs(step / target - 1.0) < 1e-4:
            return cost
        cost *= target / step
    msg = f"no cost gives a step of {target} s"
    raise AssertionError(msg)


@cache
def cost_from(row: Row) -> float:
    """CPU time of a sample with which a row of the first pair comes out as measured [s]."""
    together = row == A7
    return calibrated(
        lambda cost: tensorflow(cost, row.device_time, together=together), row.step, 2e-3
    )


@cache
def from_row(row: Row, *, together: bool) -> Prediction:
    """Either set of machines of the first pair, with what `row` says."""
    return predict(tensorflow(cost_from(row), row.device_time, together=together))


@cache
def offloaded(mechanisms: Mechanisms) -> Prediction:
    """The second pair's row with the machine next to it, from the row without."""
    cost = calibrated(
        lambda cost: pytorch(cost, mechanisms, together=False), A11.step, A11.step / A11.samples
    )
    return predict(pytorch(cost, mechanisms, together=True))


COREMARK = {
    "worker count": Mechanisms(),
    "+ CoreMark of a vCPU": Mechanisms(yardstick=per_vcpu),
    "+ two threads a core": Mechanisms(yardstick=per_vcpu, sharing=True),
    "+ busy cores slow one another": Mechanisms(yardstick=per_vcpu, sharing=True, contention=True),
    "+ pin thread": Mechanisms(yardstick=per_vcpu, sharing=True, contention=True, receiving=True),
}
"""What is taken into account for the second pair, one mechanism after another."""
CLOCK = {
    name.replace("CoreMark", "base clock"): replace(
        given, yardstick=None if given.yardstick is None else clock
    )
    for name, given in COREMARK.items()
}
"""The same with the ratio of clocks for the speed of a vCPU."""
