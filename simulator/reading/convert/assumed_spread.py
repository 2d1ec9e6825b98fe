"""The spread of samples that is assumed where none is given and equal ones would mislead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from simulator.errors import PlanError
from simulator.pipeline.loads import alternating
from simulator.pipeline.program import worker_table
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import build
from simulator.schema.candidates import stack
from simulator.schema.scenario import Scenario
from simulator.schema.workload.distribution import Shape, Spread
from simulator.uncertainty.provenance import Assumption, Source
from simulator.units import Real

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
    return scenario if given or not bool(_alternates(scenario)) else _varied(scenario)


def with_assumed_spreads(
    scenarios: Sequence[Scenario], given: Sequence[bool]
) -> tuple[Scenario | PlanError, ...]:
    """Each scenario as `with_assumed_spread` gives it; those of equal structure are asked at once.

    Parameters
    ----------
    scenarios : sequence of Scenario
        As their files say.
    given : sequence of bool
        Whether a spread is given, for each of them.

    Returns
    -------
    tuple
        In their order; a mistake stands in the place of a scenario whose batches cannot be made.
    """
    found: list[Scenario | PlanError] = list(scenarios)
    asked = [i for i, one in enumerate(given) if not one]
    for batch in stack([scenarios[i] for i in asked]):
        own = [asked[index] for index in batch.indices]
        try:
            varied = np.broadcast_to(_alternates(batch.scenario), batch.size).tolist()
        except PlanError:
            for index in own:
                found[index] = _varied_or_mistake(scenarios[index])
            continue
        for index in compress(own, varied):
            found[index] = _varied(scenarios[index])
    return tuple(found)


def _varied_or_mistake(scenario: Scenario) -> Scenario | PlanError:
    try:
        return with_assumed_spread(scenario, given=False)
    except PlanError as mistake:
        return mistake


def _varied(scenario: Scenario) -> Scenario:
    """The scenario with the assumed spread, and a note that says so."""
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


def _alternates(scenario: Scenario) -> Real:
    """Whether batches are made by workers that go back and forth, in any epoch."""
    if scenario.job.loader.crew.reads_ahead:
        return False
    topology = build(scenario)
    cold, warm = (alternating(topology, worker_table(scenario, phase)) for phase in Phase)
    return np.logical_or(cold, warm)
