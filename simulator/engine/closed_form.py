"""Closed-form bounds of a run, and the estimate of a step.

Lower bound: the busiest unit must carry the work of all ranks (operational law: throughput is at
most capacity over demand), and each serial actor its own: W workers make at most W batches in the
time of one batch alone on the machine. Upper bound: no overlap at all. Both hold for total time
over steps of the whole run, exactly for deterministic service. The estimate is the step of devices
that never wait for data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from simulator.equations.cost import cost_per_step
from simulator.errors import NotModelled
from simulator.physics.device_time import device_time
from simulator.physics.footprint import MemoryFit, memory_fit
from simulator.pipeline.loads import (
    SERIAL_STREAMS,
    device_step,
    least_batch,
    serial_batch,
)
from simulator.pipeline.program import USING, check_modelled
from simulator.pipeline.run_length import Extras, Lengths, worker_start
from simulator.pipeline.stages.base import Demand, Path, Per, Phase, StageDemands, ask
from simulator.pipeline.stages.communication import bucket_shares
from simulator.pipeline.topology import Topology
from simulator.records import dataclass
from simulator.results.cost import machines_price
from simulator.results.prediction import Bounds
from simulator.schema.scenario import Scenario
from simulator.units import PerSecond, Real, Seconds, Usd


def bounds(
    scenario: Scenario,
    topology: Topology,
    demands: Mapping[Phase, Sequence[StageDemands]],
    lengths: Lengths,
    extras: Extras,
) -> Bounds:
    """Return the lower and the upper bound on the mean step time of the run [s].

    Parameters
    ----------
    scenario, topology, demands
        The job, its units, and the demands of each stage with cold and warm caches.
    lengths, extras : Lengths, Extras
        Length of the run, and times outside of its epochs.
    """
    cold, warm = demands[Phase.COLD], demands[Phase.WARM]
    first, later = np.minimum(1.0, lengths.epochs), np.maximum(0.0, lengths.epochs - 1.0)
    # Every straggler of the loader may hold a batch up.
    slow = math.prod(max(1.0, straggler.factor) for straggler in scenario.job.input.straggler)
    one_by_one = first * serial_batch(topology, cold) + later * serial_batch(topology, warm)
    starts = (worker_start(scenario) + scenario.job.input.epoch_start) * (1.0 + later)
    steps, whole = lengths.total_steps, lengths.steps * lengths.accumulation
    lower: Any = lower_bound(scenario, topology, demands, lengths, extras)
    upper = (extras.once + starts + whole * one_by_one * slow) / steps
    return Bounds(
        lower=lower,
        upper=upper * (1.0 + extras.most_share) + extras.most_per_step,
    )


def lower_bound(
    scenario: Scenario,
    topology: Topology,
    demands: Mapping[Phase, Sequence[StageDemands]],
    lengths: Lengths,
    extras: Extras,
) -> Real:
    """Return the lower bound on the mean step time of the run [s]; parameters as for `bounds`."""
    first, later = np.minimum(1.0, lengths.epochs), np.maximum(0.0, lengths.epochs - 1.0)
    batches = lengths.batches - 1.0 + lengths.last_share
    busiest = first * least_batch(scenario, topology, demands[Phase.COLD])
    busiest = busiest + later * least_batch(scenario, topology, demands[Phase.WARM])
    lower: Real = (extras.once + batches * busiest) / lengths.total_steps + extras.per_step
    return lower


_ON_DEVICE: Final = tuple(
    slot for slot in USING if slot.stream in SERIAL_STREAMS or slot.per is Per.BUCKET
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A closed-form estimate of a step in which devices never wait for data.

    `step_time` is the time of the step [s], `throughput` the samples of all devices [1/s], `memory`
    the memory that one device needs and has (None if unknown), `usd_per_step` the price of all
    machines for a step [$] (None if unknown).
    """

    step_time: Seconds
    throughput: PerSecond
    memory: MemoryFit | None
    usd_per_step: Usd | None

    @property
    def fits(self) -> str:
        """``yes``, ``uncertain`` or ``no``: the job fits in device memory; empty if unknown."""
        known = None if self.memory is None else self.memory.known_verdict
        return "" if known is None else str(known)


def estimate(scenario: Scenario) -> Estimate:
    """Return the closed-form estimate of a step in which devices never wait for data.

    Parameters
    ----------
    scenario : Scenario
        The job; it needs an accelerator.

    Raises
    ------
    NotModelled
        If the scenario has no accelerator, or the model does not cover it.
    """
    check_modelled(scenario)
    time = device_time(scenario)
    if time is None or scenario.cluster.trainers.host.gpu is None:
        msg = f"{scenario.name}: no accelerator computes, so there is no step to estimate"
        raise NotModelled(msg)
    job, price = scenario.job, machines_price(scenario)
    step = device_bound(scenario)
    samples = job.train.batch_size * job.train.accumulation * scenario.ranks * job.copies
    return Estimate(
        step_time=step,
        throughput=samples / step,
        memory=memory_fit(scenario),
        usd_per_step=None if price is None else float(cost_per_step(price, step)),
    )


def device_bound(scenario: Scenario) -> Seconds:
    """Return the step time of a device that never waits for data, on links for itself [s].

    It counts the exchange that the backward pass does not hide; 0 without an accelerator.
    """
    if device_time(scenario) is None or scenario.cluster.trainers.host.gpu is None:
        return 0.0
    stages = ask(_ON_DEVICE, scenario, Phase.WARM)
    step = device_step(stages, _on_idle_links, partial(bucket_shares, scenario))
    return float(step.of(scenario.job.train.accumulation))


def _on_idle_links(demand: Demand) -> Real:
    """Return the time of a demand that shares no unit [s]."""
    rate: Real = 1.0 if demand.path is Path.COMPUTE else np.inf
    if demand.ceiling is not None:
        rate = demand.ceiling
    return demand.latency + demand.amount / rate
