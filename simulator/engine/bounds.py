"""Closed-form bounds on a whole run, from the same demands: what no queue or overlap can change.

`lower`: the busiest unit must carry all that is asked of it (operational law: throughput is at
most capacity over demand), and so must whoever takes one batch at a time: W workers make at most
W batches in the time that one of them needs for a batch, alone on the machine. `upper`: everything
happens one after another. Both hold for total time over steps of the whole run, exactly for
deterministic service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simulator.pipeline.loads import alone, least_batch, longest, users
from simulator.pipeline.run_length import Extras, Lengths, worker_start
from simulator.pipeline.stages.base import PRODUCERS, Phase, StageDemands
from simulator.pipeline.topology import Location, Topology
from simulator.results.prediction import Bounds
from simulator.schema.scenario import Scenario
from simulator.units import Real


def bounds(
    scenario: Scenario,
    topology: Topology,
    demands: Mapping[Phase, Sequence[StageDemands]],
    lengths: Lengths,
    extras: Extras,
) -> Bounds:
    """Bounds on total time / steps of the run [s].

    Parameters
    ----------
    scenario, topology, demands
        What is run, on which units, and what each stage asks for with cold and warm caches.
    lengths, extras : Lengths, Extras
        How long the run is, and what is composed beside its epochs.
    """
    cold, warm = demands[Phase.COLD], demands[Phase.WARM]
    first, later = np.minimum(1.0, lengths.epochs), np.maximum(0.0, lengths.epochs - 1.0)
    slow = slowest(scenario)
    one_by_one = first * serial_batch(topology, cold) + later * serial_batch(topology, warm)
    starts = (worker_start(scenario) + scenario.job.loader.epoch_start) * (1.0 + later)
    steps, whole = lengths.total_steps, lengths.steps * lengths.accumulation
    lower: Any = lower_bound(scenario, topology, demands, lengths, extras)
    return Bounds(
        lower=lower,
        upper=(extras.once + starts + whole * one_by_one * slow) / steps + extras.per_step,
    )


def lower_bound(
    scenario: Scenario,
    topology: Topology,
    demands: Mapping[Phase, Sequence[StageDemands]],
    lengths: Lengths,
    extras: Extras,
) -> Real:
    """The lower of the bounds on total time / steps of the run [s]; parameters as for `bounds`."""
    first, later = np.minimum(1.0, lengths.epochs), np.maximum(0.0, lengths.epochs - 1.0)
    batches = lengths.batches - 1.0 + lengths.last_share
    busiest = first * least_batch(scenario, topology, demands[Phase.COLD])
    busiest = busiest + later * least_batch(scenario, topology, demands[Phase.WARM])
    lower: Real = (extras.once + batches * busiest) / lengths.total_steps + extras.per_step
    return lower


def serial_batch(topology: Topology, stages: Sequence[StageDemands]) -> Real:
    """Time of one batch of every rank when nothing overlaps and the slowest group makes it [s]."""
    made: dict[str, Real] = {}
    used: Real = 0.0
    for stage in stages:
        site = topology.sites_of(stage.group)[0]
        taken: Real = 0.0
        for demand in stage.demands:
            # What goes on beside compute is as fast as that; by itself it could be faster.
            asked = replace(demand, ceiling=None) if stage.slot.beside_compute else demand
            for rank, alike in users(topology, demand.path):
                once = alone(topology, asked, Location(rank=rank, site=site))
                taken = taken + alike * once * stage.times
        if stage.actor in PRODUCERS:
            made[stage.group] = made.get(stage.group, 0.0) + taken
        else:
            used = used + taken
    return used + longest(made.values())


def slowest(scenario: Scenario) -> float:
    """The factor of a batch that every straggler of the loader hits."""
    factors = [max(1.0, straggler.factor) for straggler in scenario.job.loader.stragglers]
    return float(np.prod(factors))
