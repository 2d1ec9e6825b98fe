"""What devices take for a step, in closed form: for those who try many configurations in a loop.

Of the whole prediction these are the parts that need no events: what the step program has a device
do in a step, the memory of a device, and the price of the machines meanwhile. Batches are taken to
be on the device already, links to be idle; `predict` looks at the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from simulator.equations.cost import cost_per_step
from simulator.errors import NotModelled
from simulator.physics.device_time import cost_model
from simulator.physics.footprint import MemoryFit, memory_fit
from simulator.pipeline.closed import SERIAL_STREAMS, device_step
from simulator.pipeline.limits import check_modelled
from simulator.pipeline.program import USING
from simulator.pipeline.stages.base import Demand, Path, Per, Phase, ask
from simulator.pipeline.stages.communication import bucket_shares
from simulator.results.cost import machines_price
from simulator.schema.scenario import Scenario
from simulator.units import PerSecond, Real, Seconds, Usd

_ON_DEVICE: Final = tuple(
    slot for slot in USING if slot.stream in SERIAL_STREAMS or slot.per is Per.BUCKET
)


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
        known = None if self.memory is None else self.memory.known_verdict
        return "" if known is None else str(known)


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
    time = cost_model(scenario).time
    if time is None or scenario.cluster.trainers.host.gpu is None:
        msg = f"{scenario.name}: no accelerator computes, so there is no step to estimate"
        raise NotModelled(msg)
    job, price = scenario.job, machines_price(scenario)
    step = _step(scenario)
    samples = job.train.batch_size * job.train.accumulation * scenario.ranks * job.copies
    return Estimate(
        step_time=step,
        throughput=samples / step,
        memory=memory_fit(scenario),
        usd_per_step=None if price is None else float(cost_per_step(price, step)),
    )


def _step(scenario: Scenario) -> Seconds:
    """What a device does in a step, on links that nobody else uses [s]."""
    stages = ask(_ON_DEVICE, scenario, Phase.WARM)
    step = device_step(stages, _on_idle_links, partial(bucket_shares, scenario))
    return float(step.of(scenario.job.train.accumulation))


def _on_idle_links(demand: Demand) -> Real:
    """Time of a demand at the fastest it can go [s]."""
    rate: Real = 1.0 if demand.path is Path.COMPUTE else np.inf
    if demand.ceiling is not None:
        rate = demand.ceiling
    return demand.latency + demand.amount / rate
