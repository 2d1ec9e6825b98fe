"""What devices take for a step, in closed form: for those who try many configurations in a loop.

Of the whole prediction these are the parts that need no events: compute and exchange of a step, the
memory of a device, and the price of the machines meanwhile. Data is taken to be at hand, devices to
be alike; `predict` looks at the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.bill import machines_price
from simulator.compute.device_time import DeviceTime, device_time
from simulator.equations.cost import cost_per_step
from simulator.equations.step import exposed_communication
from simulator.errors import NotModelled
from simulator.footprint import MemoryFit, memory_fit
from simulator.limits import check_modelled
from simulator.scenario import Scenario
from simulator.stages.allreduce import all_reduce_time, bucket_shares
from simulator.units import PerSecond, Seconds, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A step on devices that never wait for data.

    `step_time` is its length [s], `throughput` the samples of all devices [1/s], `memory` what one
    device needs and has (None where that is not known), `usd_per_step` the price of all machines
    for a step [$] (None where a price is not known).
    """

    step_time: Seconds
    throughput: PerSecond
    memory: MemoryFit | None
    usd_per_step: Usd | None

    @property
    def fits(self) -> str:
        """``yes``, ``uncertain`` or ``no``: whether a device has the memory; empty: not known."""
        return "" if self.memory is None else str(self.memory.verdict)


def estimate(scenario: Scenario) -> Estimate:
    """The step of a scenario in closed form.

    Parameters
    ----------
    scenario : Scenario
        One whose devices compute.

    Raises
    ------
    NotModelled
        If no device computes in it, or the model does not cover it.
    """
    check_modelled(scenario)
    time = device_time(scenario)
    if time is None or scenario.cluster.trainers.host.gpu is None:
        msg = f"{scenario.name}: no accelerator computes, so there is no step to estimate"
        raise NotModelled(msg)
    job, price = scenario.job, machines_price(scenario)
    step = _step(scenario, time)
    samples = job.train.batch_size * job.train.accumulation * scenario.ranks * job.copies
    return Estimate(
        step_time=step,
        throughput=samples / step,
        memory=memory_fit(scenario),
        usd_per_step=None if price is None else float(cost_per_step(price, step)),
    )


def _step(scenario: Scenario, time: DeviceTime) -> Seconds:
    """Compute, and the exchange that is waited for [s]."""
    if time.step is not None:
        return float(time.step.total)
    batches = scenario.job.train.accumulation
    compute = batches * (time.forward + time.backward) + time.optimizer
    exchange = all_reduce_time(scenario)
    if not exchange:
        return float(compute)
    shares = bucket_shares(scenario)
    window = (1.0 - shares[0]) * time.backward
    return float(compute + exposed_communication(exchange, window, shares[-1] * exchange))
