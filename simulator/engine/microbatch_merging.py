"""Micro-batches of a step taken together where the device alone decides how long they take.

With hundreds of accumulated batches in a step, each of them simulated, a prediction takes seconds
and says nothing more than with a few: as long as batches are made much faster than they are used,
none is ever late, and the step is what the device takes for all of them. So batches are merged into
larger ones that cost as much together. Where workers come near the device's pace, gradients are
exchanged beside the last batch, or the program waits for the device before it takes the next one,
every batch is simulated: then it matters when each of them comes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from simulator.pipeline.loads import pressures
from simulator.pipeline.run_length import Lengths
from simulator.pipeline.stages.base import Path, Per, Phase, Resource, StageDemands
from simulator.pipeline.topology import Topology
from simulator.schema.scenario import Scenario

FEWEST: Final = 2
"""Batches of a step that are always simulated one by one."""
IDLE: Final = 0.5
"""Share of the device's time up to which all else is idle enough never to be waited for."""
FIRST: Final = 1.0 / 16.0
"""Share of a step by which merging may put off the first one, whose batches are made in time."""


def merged_together(
    scenario: Scenario, topology: Topology, demands: Mapping[Phase, tuple[StageDemands, ...]]
) -> int:
    """How many batches are taken for one: 1 unless the device alone decides."""
    accumulated, loader = scenario.job.train.accumulation, scenario.job.loader
    waits = scenario.job.train.sync_every_step or loader.policy.producers == 0
    if accumulated < 2 * FEWEST or waits or loader.stragglers:
        return 1
    if any(_reduces_beside(stages) for stages in demands.values()):
        return 1
    share = max(_share_of_device(scenario, topology, stages) for stages in demands.values())
    if share > IDLE:
        return 1
    # One worker makes the whole of the first batch, however many there are.
    kept = max(FEWEST, math.ceil(share * loader.policy.producers / FIRST))
    return max(g for g in range(1, max(1, accumulated // kept) + 1) if accumulated % g == 0)


def _reduces_beside(stages: tuple[StageDemands, ...]) -> bool:
    """Whether gradients are exchanged beside the last backward pass: as long as one batch's."""
    return any(s.demands for s in stages if s.slot.per is Per.BUCKET)


def _share_of_device(
    scenario: Scenario, topology: Topology, stages: tuple[StageDemands, ...]
) -> float:
    """Longest time that what makes batches and hands them over needs for a step, over the device's.

    The exchange of a spread model is the device's own; it counts on links that batches pass too.
    """
    imposed = dict(pressures(scenario, topology, stages))
    device = imposed.pop(str(Resource.GPU), 0.0)
    if device <= 0.0:
        return math.inf
    others = dict(pressures(scenario, topology, [_without_exchange(s) for s in stages]))
    others.pop(str(Resource.GPU), None)
    longest = [imposed[name] if alone > FIRST * device else alone for name, alone in others.items()]
    return max(longest, default=0.0) / device


def _without_exchange(stage: StageDemands) -> StageDemands:
    kept = tuple(demand for demand in stage.demands if demand.path is not Path.EXCHANGE)
    return replace(stage, demands=kept)


def merge_scenario(scenario: Scenario, together: int) -> Scenario:
    """The scenario with as many batches in one."""
    job = scenario.job
    train = replace(
        job.train,
        batch_size=job.train.batch_size * together,
        accumulation=job.train.accumulation // together,
    )
    return replace(scenario, jobs=(replace(job, train=train),))


def merge_stages(stages: tuple[StageDemands, ...], together: int) -> tuple[StageDemands, ...]:
    """What stages ask for so many batches at once; once-a-step stages as often as before."""
    return tuple(_merge(stage, together) for stage in stages)


def _merge(stage: StageDemands, together: int) -> StageDemands:
    if stage.slot.once_a_step:
        return replace(stage, times=stage.times * together)
    demands = tuple(
        replace(
            demand,
            amount=demand.amount * together,
            operations=demand.operations * together,
            latency=demand.latency * together,
        )
        for demand in stage.demands
    )
    return replace(stage, demands=demands)


def merge_lengths(lengths: Lengths, together: int) -> Lengths:
    """The same run in fewer batches; the last one holds what is left."""
    whole = (lengths.batches - 1 + lengths.last_share) / together
    batches = math.ceil(lengths.batches / together)
    return replace(
        lengths,
        batches=batches,
        last_share=min(1.0, whole - (batches - 1)),
        accumulation=lengths.accumulation // together,
    )
