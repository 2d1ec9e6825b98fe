"""Spread of samples in size and cost that is assumed where none is stated and it matters.

Equal samples mislead where workers alternate between a shared store and the cores: all of them
would read together and compute together.
"""

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
from simulator.schema.fields import Shape, Spread
from simulator.schema.scenario import Scenario
from simulator.uncertainty.provenance import Assumption, Source
from simulator.units import Real

ASSUMED = Spread(shape=Shape.GAMMA, relative_deviation=0.2)
_SOURCE = Source(
    reference="a guess: real samples differ, and workers that alternate between a store and the "
    "cores drift apart; equal samples would keep them reading together and computing together "
    "(any spread of a few per cent per sample prevents it)",
    date="2026-11-21",
    verified=False,
)


def with_assumed_spread(scenario: Scenario) -> Scenario:
    """Assume that samples vary in size and cost, where no spread is stated and it matters.

    Raises
    ------
    PlanError
        If the machines cannot run the job.
    """
    if not scenario.assume_spread:
        return scenario
    return _varied(scenario) if bool(_alternates(scenario)) else _equal(scenario)


def with_assumed_spreads(scenarios: Sequence[Scenario]) -> tuple[Scenario | PlanError, ...]:
    """Apply `with_assumed_spread` to many scenarios, to those of equal structure at once.

    Returns
    -------
    tuple
        In the order of `scenarios`; the error of a scenario in its place.
    """
    resolved: list[Scenario | PlanError] = list(scenarios)
    asked = [i for i, scenario in enumerate(scenarios) if scenario.assume_spread]
    for batch in stack([scenarios[i] for i in asked]):
        indices = [asked[index] for index in batch.indices]
        try:
            varied = np.broadcast_to(_alternates(batch.scenario), batch.size).tolist()
        except PlanError:
            for index in indices:
                resolved[index] = _resolved_or_error(scenarios[index])
            continue
        for index in indices:
            resolved[index] = _equal(scenarios[index])
        for index in compress(indices, varied):
            resolved[index] = _varied(scenarios[index])
    return tuple(resolved)


def _resolved_or_error(scenario: Scenario) -> Scenario | PlanError:
    try:
        return with_assumed_spread(scenario)
    except PlanError as error:
        return error


def _equal(scenario: Scenario) -> Scenario:
    return replace(scenario, assume_spread=False)


def _varied(scenario: Scenario) -> Scenario:
    """Return the scenario with the assumed spread, and list the assumption in its notes."""
    job = scenario.job
    varied = replace(
        job,
        dataset=replace(job.dataset, size_spread=ASSUMED),
        input=replace(job.input, cost_spread=ASSUMED),
    )
    note = Assumption(
        what="spread of samples in size and cost (data.size_spread, input.cost_spread not given)",
        value=f"{ASSUMED.deviation:.0%} of the mean, {ASSUMED.shape}",
        source=_SOURCE,
    )
    notes = (*scenario.notes, note)
    return replace(scenario, jobs=(varied,), notes=notes, assume_spread=False)


def _alternates(scenario: Scenario) -> Real:
    """Return True where the workers alternate between a store and the cores in any epoch."""
    if scenario.job.input.policy.reads_ahead:
        return False
    topology = build(scenario)
    cold, warm = (alternating(topology, worker_table(scenario, phase)) for phase in Phase)
    return np.logical_or(cold, warm)
