"""The spread of samples that is assumed where none is given and equal ones would mislead."""

from __future__ import annotations

from dataclasses import replace

from simulator.loads import alternates
from simulator.plant import build
from simulator.provenance import Assumption, Source
from simulator.scenario import Scenario
from simulator.stages import worker_table
from simulator.stages.base import Phase
from simulator.workload.spread import Shape, Spread

ASSUMED = Spread(shape=Shape.GAMMA, relative_deviation=0.2)
_SOURCE = Source(
    reference="a guess: real samples differ, and workers that alternate between a store and the "
    "cores drift apart; with equal samples they would read together and compute together for "
    "ever (any spread of a few per cent per sample does it)",
    date="2026-11-21",
    verified=False,
)


def with_assumed_spread(scenario: Scenario, *, given: bool) -> Scenario:
    """The scenario with samples that vary in size and cost, if that matters and none is `given`."""
    if given or not _alternates(scenario):
        return scenario
    job = scenario.job
    varied = replace(
        job,
        dataset=replace(job.dataset, size_spread=ASSUMED),
        preprocessing=replace(job.preprocessing, cost_spread=ASSUMED),
    )
    note = Assumption(
        what="spread of samples in size and cost (data.size_spread, input.cost_spread not given)",
        value=f"{ASSUMED.relative_deviation:.0%} of the mean, {ASSUMED.shape}",
        source=_SOURCE,
    )
    return replace(scenario, jobs=(varied,), notes=(*scenario.notes, note))


def _alternates(scenario: Scenario) -> bool:
    """Whether batches are made by workers that go back and forth, in any epoch."""
    if scenario.job.loader.crew.reads_ahead:
        return False
    plant = build(scenario)
    return any(alternates(plant, worker_table(scenario, phase)) for phase in Phase)
