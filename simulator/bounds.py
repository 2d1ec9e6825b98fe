"""Closed-form bounds on a whole run, from the same demands: what no queue or overlap can change.

`lower`: the busiest unit must carry all that is asked of it (operational law: throughput is at
most capacity over demand). `upper`: everything happens one after another. Both hold for total
time over steps of the whole run, exactly for deterministic service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.loads import alone, unit_loads
from simulator.plant import Plant
from simulator.results import Bounds
from simulator.run_length import Extras, Lengths, worker_start
from simulator.scenario import Scenario
from simulator.stages.allreduce import bucket_shares
from simulator.stages.base import Actor, Phase, StageDemands
from simulator.units import Real


def bounds(
    scenario: Scenario,
    plant: Plant,
    demands: Mapping[Phase, Sequence[StageDemands]],
    lengths: Lengths,
    extras: Extras,
) -> Bounds:
    """Bounds on total time / steps of the run [s].

    Parameters
    ----------
    scenario, plant, demands
        What is run, on which units, and what each stage asks for with cold and warm caches.
    lengths, extras : Lengths, Extras
        How long the run is, and what is composed beside its epochs.
    """
    cold, warm = demands[Phase.COLD], demands[Phase.WARM]
    first, later = np.minimum(1.0, lengths.epochs), np.maximum(0.0, lengths.epochs - 1.0)
    batches = lengths.batches - 1.0 + lengths.last_share
    beside = extras.once + extras.per_epoch * lengths.epochs
    busiest = first * fastest_batch(plant, cold) + later * fastest_batch(plant, warm)
    slow = slowest(scenario)
    one_by_one = first * serial_batch(plant, scenario, cold) + later * serial_batch(
        plant, scenario, warm
    )
    starts = worker_start(scenario) * (1.0 + later)
    steps = lengths.total_steps
    return Bounds(
        lower=(beside + batches * busiest) / steps + extras.per_step,
        upper=(beside + starts + lengths.batches * one_by_one * slow) / steps + extras.per_step,
    )


def fastest_batch(plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Least time between two batches of a rank: that of the busiest unit [s]."""
    least: Real = 0.0
    for load in unit_loads(plant, stages).values():
        least = np.maximum(least, load)
    return least


def serial_batch(plant: Plant, scenario: Scenario, stages: Sequence[StageDemands]) -> Real:
    """Time of one batch of every rank when nothing overlaps [s]."""
    reduces = any(s.demands for s in stages if s.actor is Actor.COMMUNICATION_STREAM)
    buckets = len(bucket_shares(scenario)) if reduces else 1
    total: Real = 0.0
    for stage in stages:
        again = buckets - 1 if stage.actor is Actor.COMMUNICATION_STREAM else 0
        for demand in stage.demands:
            for rank in range(plant.ranks):
                total = total + alone(plant, demand, rank) + again * demand.latency
    return total


def slowest(scenario: Scenario) -> float:
    """The factor of a batch that every straggler of the loader hits."""
    factors = [max(1.0, straggler.factor) for straggler in scenario.job.loader.stragglers]
    return float(np.prod(factors))
