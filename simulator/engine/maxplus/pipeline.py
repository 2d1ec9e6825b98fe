"""A pipeline as fixed times and rules, where it is one in which nothing slows anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from simulator.engine.contention import unshared
from simulator.engine.epoch import ranks_meet
from simulator.engine.fixed_delays import Course, course
from simulator.engine.folding import Fold, fold
from simulator.engine.rank import Work, work_of
from simulator.pipeline.stages.allreduce import bucket_shares
from simulator.pipeline.stages.base import Actor, Demand, Path, StageDemands
from simulator.pipeline.topology import Location, Topology
from simulator.schema.scenario import Scenario
from simulator.schema.workload.loader import Assignment, Crew
from simulator.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDevice:
    """Work of a rank's compute stream [s]."""

    seconds: Seconds


Piece: TypeAlias = Course | OnDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """What each actor of the one simulated rank does for a batch, and by which rules.

    `read` and `make` are a worker's, `receive` the receiving thread's. `meets`: gradients are
    exchanged at the end of a step.
    """

    scenario: Scenario
    fold: Fold
    read: tuple[Piece, ...]
    make: tuple[Piece, ...]
    receive: tuple[Piece, ...]
    work: Work[Piece]
    meets: bool

    @property
    def crew(self) -> Crew:
        """The loader's rules."""
        return self.scenario.job.loader.crew


def pipeline(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> Pipeline | None:
    """The pipeline of a run in fixed times; None where something may slow something else.

    Parameters
    ----------
    scenario, topology, stages
        What is run, on which units, and what each stage asks for.
    """
    if not _in_turn(scenario):
        return None
    folded = fold(scenario, topology, stages)
    if len(folded.ranks) > 1:
        return None
    alone = unshared(scenario, topology, stages, folded)
    place = Location(rank=folded.ranks[0])
    pieces: dict[int, list[Piece]] = {}
    for number, stage in enumerate(stages):
        own = pieces[number] = []
        for demand in stage.demands:
            if float(demand.amount) == 0.0 and float(demand.latency) == 0.0:
                continue
            fixed = _piece(demand, course(demand, place, topology, folded, alone))
            if fixed is None:
                return None
            own.append(fixed)
    by_slot = {stage.slot: pieces[number] for number, stage in enumerate(stages)}

    def of(actor: Actor, *, reads: bool = False) -> tuple[Piece, ...]:
        chosen = (
            number
            for number, stage in enumerate(stages)
            if stage.actor is actor and stage.slot.reads is reads
        )
        return tuple(piece for number in chosen for piece in pieces[number])

    return Pipeline(
        scenario=scenario,
        fold=folded,
        read=of(Actor.WORKER, reads=True),
        make=of(Actor.WORKER),
        receive=of(Actor.RECEIVER),
        work=work_of(stages, bucket_shares(scenario), lambda stage: by_slot[stage.slot]),
        meets=ranks_meet(scenario, topology),
    )


def _piece(demand: Demand, fixed: Course | None) -> Piece | None:
    if demand.path is Path.COMPUTE:
        return OnDevice(seconds=float(demand.amount))
    return fixed


def _in_turn(scenario: Scenario) -> bool:
    """Whether batches are equal, and made and taken in one order that is known beforehand."""
    job = scenario.job
    varies = job.dataset.size_spread.varies or job.preprocessing.cost_spread.varies
    crew = job.loader.crew
    ordered = crew.in_order and crew.assignment is Assignment.ROUND_ROBIN
    return ordered and not varies and not job.loader.stragglers and job.remote is None
