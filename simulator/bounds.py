"""Closed-form bounds on a whole run, from the same demands: what no queue or overlap can change.

`lower`: the busiest unit must carry all that is asked of it (operational law: throughput is at
most capacity over demand), and so must whoever takes one batch at a time: W workers make at most
W batches in the time that one of them needs for a batch, alone on the machine. `upper`: everything
happens one after another. Both hold for total time over steps of the whole run, exactly for
deterministic service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.loads import TINY, alone, longest, serial_cycles, unit_loads, users
from simulator.plant import Place, Plant
from simulator.results import Bounds
from simulator.run_length import Extras, Lengths, worker_start
from simulator.scenario import Scenario
from simulator.stages.base import MAKERS, Phase, StageDemands
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
    beside = extras.once
    busiest = first * least_batch(scenario, plant, cold)
    busiest = busiest + later * least_batch(scenario, plant, warm)
    slow = slowest(scenario)
    one_by_one = first * serial_batch(plant, cold) + later * serial_batch(plant, warm)
    starts = (worker_start(scenario) + scenario.job.loader.epoch_start) * (1.0 + later)
    steps, whole = lengths.total_steps, lengths.steps * lengths.accumulation
    return Bounds(
        lower=(beside + batches * busiest) / steps + extras.per_step,
        upper=(beside + starts + whole * one_by_one * slow) / steps + extras.per_step,
    )


def least_step(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Least mean step of a run that goes on for ever [s]."""
    return least_batch(scenario, plant, stages) * scenario.job.train.accumulation


def least_batch(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Least mean time between two batches of a rank [s]: of the busiest unit or serial actor."""
    serial = longest(serial_cycles(scenario, plant, stages))
    return np.maximum(fastest_batch(plant, stages), serial)


def fastest_batch(plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Least time between two batches of a rank [s].

    That of the busiest unit. Where groups make batches side by side, together they make no more
    than the sum of what each could make alone.
    """
    groups = {stage.group for stage in stages if stage.actor in MAKERS}
    if len(groups) <= 1:
        return _longest(unit_loads(plant, stages))
    using = _longest(unit_loads(plant, [s for s in stages if s.actor not in MAKERS]))
    rate: Real = 0.0
    makers = [
        unit_loads(plant, [s for s in stages if s.actor in MAKERS and s.group == group])
        for group in groups
    ]
    for loads in makers:
        rate = rate + 1.0 / np.maximum(_longest(loads), TINY)
    least: Real = np.maximum(using, 1.0 / rate)
    for unit in set.intersection(*(set(loads) for loads in makers)):
        # Whoever makes a batch, a unit that all go through carries it.
        shared: Real = np.inf
        for loads in makers:
            shared = np.minimum(shared, loads[unit])
        least = np.maximum(least, shared)
    return least


def _longest(loads: Mapping[str, Real]) -> Real:
    return longest(loads.values())


def serial_batch(plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Time of one batch of every rank when nothing overlaps and the slowest group makes it [s]."""
    made: dict[str, Real] = {}
    used: Real = 0.0
    for stage in stages:
        site = plant.sites_of(stage.group)[0]
        taken: Real = 0.0
        for demand in stage.demands:
            for rank, alike in users(plant, demand.path):
                once = alone(plant, demand, Place(rank=rank, site=site))
                taken = taken + alike * once * stage.times
        if stage.actor in MAKERS:
            made[stage.group] = made.get(stage.group, 0.0) + taken
        else:
            used = used + taken
    return used + _longest(made)


def slowest(scenario: Scenario) -> float:
    """The factor of a batch that every straggler of the loader hits."""
    factors = [max(1.0, straggler.factor) for straggler in scenario.job.loader.stragglers]
    return float(np.prod(factors))
