"""One epoch on one machine: build the actors, run them, say what happened.

The epoch is simulated from the start of its workers to its last batch, but stops early, with
its drain, once the steps are steady; `Epoch` then says what a whole one takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from simpy import Environment

from simulator.engine.barrier import Barrier
from simulator.engine.loader import RankLoader, Steps, Team
from simulator.engine.machine import Machine, Task
from simulator.engine.rank import Note, Rank, Rules, Work
from simulator.engine.supply import Draws, Supply
from simulator.engine.watch import (
    CHECK_EVERY,
    Steady,
    batch_means,
    find_period,
    known_well,
    warm_up,
    whole_bursts,
)
from simulator.plant import Place, Plant
from simulator.results import Sample, Slice
from simulator.scenario import Job, Scenario
from simulator.stages import makes_own_batches
from simulator.stages.allreduce import bucket_shares
from simulator.stages.base import Actor, Path, StageDemands
from simulator.units import Seconds
from simulator.workload.loader import Assignment
from simulator.workload.train import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How an epoch is to be run.

    `batches` per rank; `most_steps` ends the run even if it never gets steady; `replay` runs
    all of it. `start_delay` passes before the loader's workers can start.
    """

    batches: int
    last_share: float
    start_delay: Seconds
    most_steps: int
    replay: bool = False
    trace: bool = False
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state at the end of a step of all ranks."""

    time: Seconds
    waiting: tuple[int, ...]
    ledgers: tuple[tuple[float, ...], ...]
    busy: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What a simulated epoch showed.

    `snapshots` holds the state at the start and after each step; the steps from snapshot `first`
    to `last` are the steady window that stands for all others. `end` is when all had drained.
    """

    end: Seconds
    first: int
    last: int
    half_width: Seconds
    snapshots: Sequence[Snapshot]
    slices: tuple[Slice, ...] = ()
    samples: tuple[Sample, ...] = ()

    @property
    def ends(self) -> tuple[Seconds, ...]:
        """When each step had ended on all ranks [s from the epoch's start]."""
        return tuple(snapshot.time for snapshot in self.snapshots[1:])

    @property
    def steps(self) -> int:
        """Steps that were simulated."""
        return len(self.snapshots) - 1

    @property
    def window(self) -> Seconds:
        """Length of the steady window [s]."""
        return self.snapshots[self.last].time - self.snapshots[self.first].time

    @property
    def mean_step(self) -> Seconds:
        """Mean steady step [s]."""
        return self.window / (self.last - self.first)

    @property
    def steady_steps(self) -> tuple[Seconds, ...]:
        """Step times of the steady window [s]."""
        times = [self.snapshots[i].time for i in range(self.first, self.last + 1)]
        return tuple(b - a for a, b in pairwise(times))


class _Recorder:
    """Collects step ends, snapshots and traces while the epoch runs, and ends it when steady."""

    def __init__(
        self, env: Environment, machine: Machine, plan: Plan, supply: Supply, job: Job
    ) -> None:
        self._env = env
        self._machine = machine
        self._plan = plan
        self.supply = supply
        self.ranks: list[Rank] = []
        self._finished: dict[int, int] = {}
        self._snapshots: list[Snapshot] = []
        self._durations: list[float] = []
        self._slices: list[Slice] = []
        self._steady: Steady | None = None
        self._closed_at = 0
        self._random = job.dataset.size_spread.varies or job.preprocessing.cost_spread.varies
        self._per_step = job.train.accumulation
        crew = job.loader.crew
        away = 0 if job.remote is None else job.remote.queue + job.remote.workers
        self._burst = max(1, crew.makers)
        self._in_flight = -(-max(crew.credits + away, crew.makers, 1) // job.train.accumulation)

    def begin(self) -> None:
        """Note the state before anything has happened."""
        self._snapshots.append(self._snapshot())

    def on_step(self, rank: int, step: int) -> None:  # noqa: ARG002 - all ranks count alike
        """Note that a rank has finished a step."""
        self._finished[step] = self._finished.get(step, 0) + 1
        if self._finished[step] < len(self.ranks):
            return
        del self._finished[step]
        self._snapshots.append(self._snapshot())
        self._durations.append(self._snapshots[-1].time - self._snapshots[-2].time)
        steps = len(self._durations)
        if self._plan.progress is not None:
            self._plan.progress(steps)
        if self._steady is None and not self._plan.replay:
            self._consider(steps)

    def note(self, track: str, name: str, started: float, step: int) -> None:
        """Note a piece of work that ends now."""
        length = self._env.now - started
        self._slices.append(Slice(track=track, name=name, start=started, length=length, step=step))

    def epoch(self, end: float, samples: tuple[Sample, ...]) -> Epoch:
        """What the finished run showed."""
        last, half_width = len(self._durations), 0.0
        if self._steady is None:
            first = warm_up(last, self._in_flight)
            ragged = self._plan.last_share < 1.0 or self._plan.batches % self._per_step > 0
            if ragged and last > first + 1:
                last -= 1
            if self._random:
                half_width = batch_means(self._durations[first:last])
        else:
            last, half_width = self._closed_at, self._steady.half_width
            first = max(0, last - self._steady.window)
        return Epoch(
            end=end,
            first=first,
            last=last,
            half_width=half_width,
            snapshots=self._snapshots,
            slices=tuple(self._slices),
            samples=samples,
        )

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            time=self._env.now,
            waiting=tuple(rank.loader.ready for rank in self.ranks),
            ledgers=tuple(rank.ledger.totals() for rank in self.ranks),
            busy=self._machine.busy(),
        )

    def _consider(self, steps: int) -> None:
        over = steps >= self._plan.most_steps
        if not over and (steps % CHECK_EVERY or steps < self._in_flight):
            return
        if self._random:
            self._steady = known_well(self._durations, self._in_flight)
        else:
            waiting = [snapshot.waiting for snapshot in self._snapshots[1:]]
            self._steady = find_period(self._durations, waiting)
        if self._steady is None and over:
            kept = whole_bursts(steps - warm_up(steps, self._in_flight), self._burst)
            half_width = batch_means(self._durations[-kept:])
            self._steady = Steady(period=1, window=kept, half_width=half_width)
        if self._steady is not None:
            self._closed_at = steps
            self._close(self._steady.period * self._per_step)

    def _close(self, period: int) -> None:
        issued = max(rank.loader.issued for rank in self.ranks)
        spare = self.supply.limit - issued - self._per_step
        self.supply.limit -= max(0, spare // period) * period


def run_epoch(
    scenario: Scenario, plant: Plant, stages: Sequence[StageDemands], plan: Plan, seed: int
) -> Epoch:
    """Simulate an epoch of the scenario's job.

    Parameters
    ----------
    scenario, plant, stages
        What is run, on which units, and what each stage asks for.
    plan : Plan
        How many batches, and when to stop.
    seed : int
        Of all random draws.
    """
    env = Environment()
    job = scenario.job
    samples: list[Sample] = []
    machine = Machine(env, plant, on_change=partial(_sample, samples) if plan.trace else None)
    supply = Supply(plan.batches, plan.last_share, job.loader.stragglers)
    recorder = _Recorder(env, machine, plan, supply, job)
    site = _Site(scenario=scenario, machine=machine, stages=stages, plan=plan)
    meeting = plant.ring > 1 and job.mode is Mode.TRAIN
    barriers = [
        (Barrier(env, plant.ring), Barrier(env, plant.ring)) if meeting else None
        for _ in range(job.copies)
    ]
    generators = np.random.default_rng(seed).spawn(plant.ranks)
    recorder.ranks = [
        _make_rank(site, index, generators[index], barriers[index // plant.ring], recorder)
        for index in range(plant.ranks)
    ]
    recorder.begin()
    for rank in recorder.ranks:
        rank.start()
    env.run(env.all_of([rank.finished for rank in recorder.ranks]))
    return recorder.epoch(float(env.now), tuple(samples))


def _sample(samples: list[Sample], time: float, unit: object, value: float) -> None:
    samples.append(Sample(unit=str(unit), time=time, value=value))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """Where ranks are put: the scenario, its machines and its demand table."""

    scenario: Scenario
    machine: Machine
    stages: Sequence[StageDemands]
    plan: Plan

    def makers(self, rank: int) -> list[Place]:
        """Where the makers of a rank's batches work, one entry a maker."""
        job, plant = self.scenario.job, self.machine.plant
        crew = job.loader.crew
        own = crew.makers if makes_own_batches(self.scenario) else 0
        places = [Place(rank=rank)] * own
        if job.remote is not None:
            for site in plant.sites_of(job.remote.group):
                places += [Place(rank=rank, site=site)] * job.remote.makers(plant.ranks)
        return places

    def team(self, rank: int) -> Team:
        """The rules by which a rank's makers work together."""
        job, crew = self.scenario.job, self.scenario.job.loader.crew
        if job.remote is None:
            return Team(
                makers=crew.makers,
                credits=crew.credits,
                assignment=crew.assignment,
                in_order=crew.in_order,
            )
        own = crew.credits if makes_own_batches(self.scenario) else 0
        away = sum(place.site > 0 for place in self.makers(rank))
        return Team(
            makers=len(self.makers(rank)),
            credits=own + job.remote.queue + away,
            assignment=Assignment.SHARED_QUEUE,
            in_order=False,
        )

    def tasks(self, actor: Actor, place: Place) -> list[tuple[Task, str, Path]]:
        """What an actor at a place does for a batch, stage by stage."""
        site = self.machine.plant.sites[place.site]
        group = site.group.name if place.site else ""
        found = (
            (self.machine.task(demand, place), stage.stage, demand.path)
            for stage in self.stages
            if stage.actor is actor and stage.group == group
            for demand in stage.demands
        )
        return [(task, name, path) for task, name, path in found if task is not None]

    def tasks_of(self, stage: str, rank: int) -> list[Task]:
        """What a rank does in the stage of that name."""
        found = (s for s in self.stages if s.stage == stage)
        place = Place(rank=rank)
        tasks = (self.machine.task(demand, place) for s in found for demand in s.demands)
        return [task for task in tasks if task is not None]


def _make_rank(
    site: _Site,
    index: int,
    generator: np.random.Generator,
    barriers: tuple[Barrier, Barrier] | None,
    recorder: _Recorder,
) -> Rank:
    env, job, supply = site.machine.env, site.scenario.job, recorder.supply
    samples = int(job.train.batch_size)
    sizes = Draws(job.dataset.size_spread, samples, generator)
    costs = Draws(job.preprocessing.cost_spread, samples, generator)
    places = site.makers(index) or [Place(rank=index)]
    work = {
        place: [
            (task, name, costs if path is Path.CORES else sizes)
            for task, name, path in site.tasks(Actor.WORKER, place)
        ]
        for place in set(places)
    }
    maker = _Maker(
        env=env,
        rank=index,
        tasks=[work[place] for place in places],
        supply=supply,
        note=recorder.note if site.plan.trace else None,
    )
    receiving = [task for task, _, _ in site.tasks(Actor.RECEIVER, Place(rank=index))]
    loader = RankLoader(
        env,
        site.team(index),
        supply,
        maker.make,
        partial(_receive, receiving, supply),
        receiver_thread=job.loader.pin_memory,
    )
    rules = Rules(
        accumulation=job.train.accumulation,
        copies_beside_compute=job.loader.pin_memory and job.loader.overlap_copies,
        waits_each_step=job.train.sync_every_step,
        start_delay=site.plan.start_delay,
    )
    return Rank(
        env,
        index,
        loader=loader,
        supply=supply,
        work=_work(site, index),
        rules=rules,
        barriers=barriers,
        on_step=recorder.on_step,
        note=maker.note,
    )


def _work(site: _Site, index: int) -> Work:
    reduce = site.tasks_of("all-reduce", index)
    return Work(
        copy=site.tasks_of("copy", index),
        forward=[*site.tasks_of("fit", index), *site.tasks_of("forward", index)],
        backward=site.tasks_of("backward", index),
        update=site.tasks_of("optimizer", index),
        reduce=reduce,
        result=site.tasks_of("result", index),
        bucket_shares=bucket_shares(site.scenario) if reduce else (1.0,),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    """What each worker does for a batch, with the batch's own size and cost."""

    env: Environment
    rank: int
    tasks: Sequence[Sequence[tuple[Task, str, Draws]]]
    supply: Supply
    note: Note | None

    def make(self, worker: int, batch: int) -> Steps:
        scale = self.supply.share(batch) * self.supply.slowness(worker, batch)
        drawn: dict[Draws, float] = {}
        for task, name, draws in self.tasks[worker]:
            if draws not in drawn:
                drawn[draws] = draws.next()
            started = self.env.now
            yield task(scale * drawn[draws])
            if self.note is not None and self.env.now > started:
                self.note(f"rank {self.rank} worker {worker}", name, started, batch)


def _receive(tasks: Sequence[Task], supply: Supply, batch: int) -> Steps:
    for task in tasks:
        yield task(supply.share(batch))
