"""Equal ranks folded: a few are simulated, each standing for many.

Ranks of one machine that have no unit of their own are alike: what one asks of a shared unit, all
ask. Without randomness they do everything at the same instant, so one stands for all, exactly:
each of its flows takes as many shares of a shared unit, and each of its threads is as many. With
random samples `SAMPLED` ranks stand for all, of this machine and of those like it.

How much later the latest of all is than the latest of those few depends on what holds batches up.
Workers make them ahead of time and share a store, which holds all ranks up together: there the
difference is small (within half a point of utilization of all ranks simulated, for 12 to 411 of
them; more only where a store a tenth too slow meets queues of a hundred batches), and none is
added. A rank that makes each batch when it needs it has no such reserve: there the barrier waits
for the latest of all, as far as draws of a normal distribution would spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.plant import Plant
from simulator.scenario import Scenario

SAMPLED: Final = 8
"""Ranks that stand for all others where samples are random; so many are never folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """`ranks` are simulated; each stands for `weight` ranks of its machine.

    At a barrier they are taken for `standing_for` ranks.
    """

    ranks: int
    weight: float = 1.0
    standing_for: int = 0


def fold(scenario: Scenario, plant: Plant) -> Fold:
    """Which ranks of a machine are simulated, and how many each of them stands for."""
    job = scenario.job
    random = job.dataset.size_spread.varies or job.preprocessing.cost_spread.varies
    unready = random and job.loader.crew.makers == 0
    standing_for = scenario.ranks if unready else 0
    marked = any(straggler.rank is not None for straggler in job.loader.stragglers)
    several = job.copies > 1 or job.remote is not None
    if plant.ranks <= SAMPLED or not plant.ranks_alike or marked or several:
        return Fold(ranks=plant.ranks, standing_for=standing_for)
    ranks = SAMPLED if random else 1
    return Fold(ranks=ranks, weight=plant.ranks / ranks, standing_for=standing_for)
