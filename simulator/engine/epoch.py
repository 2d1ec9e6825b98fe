"""One epoch on one machine: the actors are built, run and summed up.

The epoch is simulated from the start of its workers to its last batch. It stops early, with its
drain, once the steps are steady; the time of the whole epoch follows from the returned `Epoch`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from simpy import Environment

from simulator.engine.loader import Draws, RankLoader, Steps, Supply
from simulator.engine.machine import Machine, Task, fixed_delay_task, named, unshared
from simulator.engine.rank import Barrier, Rank, Rules, work_of
from simulator.engine.recorder import Epoch, Observer, Plan, Recorder
from simulator.engine.sharing import Clock
from simulator.engine.symmetry import reduce_symmetry
from simulator.engine.trace import MAIN, PIN_MEMORY, Meter, RecordEvent, TraceEvent
from simulator.pipeline.loads import alone, alternating
from simulator.pipeline.program import makes_own_batches
from simulator.pipeline.stages.base import Actor, Demand, Path, Slot, StageDemands
from simulator.pipeline.stages.communication import bucket_shares
from simulator.pipeline.topology import Location, Topology
from simulator.records import dataclass
from simulator.schema.data_loading import Assignment, LoaderPolicy
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.units import Seconds

TURNS: Final = 4
"""Turns in which a worker goes through the samples of a batch where it goes back and forth between
a shared store and the cores.

A worker reads and decodes one sample after another. Were all of a batch read first and all of it
decoded then, workers in step would read together and compute together, until the spread of
samples has parted them: the mean step is the same, but takes far longer to be known. A ViT on S3
(32 workers for each of 8 GPUs, 1,200 steps) takes 160 +- 13 ms (prefetch 1) and 158 +- 5 ms
(prefetch 2) with one turn, 154 and 157 +- 1.5 ms with four and with sixteen, which cost twice as
many events."""

MIN_SAMPLES_PER_TURN: Final = 4
"""Samples of a turn, at least: the spread of a few samples parts workers soon enough."""

MAX_PREFETCHED: Final = 20_000
"""Batches of a queue for each rank that are asked for; no simulation makes more of them ahead."""


def run_epoch(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands], plan: Plan, seed: int
) -> Epoch:
    """Simulate an epoch of the scenario's job.

    Parameters
    ----------
    scenario, topology, stages
        The job, the units of its machines, and the demands of each stage.
    plan : Plan
        Number of batches, and limits of the simulation.
    seed : int
        Seed of all random draws.
    """
    env = Clock()
    job = scenario.job
    reduction = reduce_symmetry(scenario, topology, stages)
    meter = Meter(named(reduction)) if plan.trace else None
    machine = Machine(
        env, topology, reduction, unshared(scenario, topology, stages, reduction), meter
    )
    site = _Site(scenario=scenario, machine=machine, stages=stages, plan=plan)
    producers = len(site.producers(reduction.ranks[0]))
    drifting = 0 if job.input.in_step else producers
    supply = Supply(plan.batches, plan.last_share, job.input.straggler, drifting)
    recorder = Recorder(env, machine, Observer(plan, supply, job, reduction, producers))
    meeting = ranks_meet(scenario, topology)
    parties = Counter(rank // topology.ring for rank in reduction.ranks)
    barriers = {
        copy: (Barrier(env, here, reduction.standing_for), Barrier(env, here)) if meeting else None
        for copy, here in parties.items()
    }
    generators = np.random.default_rng(seed).spawn(len(reduction.ranks))
    recorder.ranks = [
        _make_rank(site, rank, generator, barriers[rank // topology.ring], recorder)
        for rank, generator in zip(reduction.ranks, generators, strict=True)
    ]
    recorder.begin()
    for rank in recorder.ranks:
        rank.start()
    env.run_until(env.all_of([rank.finished for rank in recorder.ranks]))
    return recorder.epoch(() if meter is None else tuple(meter.samples))


def phases_matter(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands], plan: Plan
) -> bool:
    """Return True if the step depends on the phases of workers that prepare equal batches.

    It does not if a worker is alone, if workers are declared to stay in step, or if none of their
    tasks is slowed by another, which makes the mean step that of the longest cycle in any phase.
    """
    policy = scenario.job.input.policy
    if scenario.job.input.in_step or scenario.job.remote is not None:
        return False
    if Supply(plan.batches, producers=policy.producers).producers == 0:
        return False
    reduction = reduce_symmetry(scenario, topology, stages)
    free = unshared(scenario, topology, stages, reduction)
    place = Location(rank=reduction.ranks[0])
    return any(
        fixed_delay_task(demand, place, topology, reduction, free) is None
        for stage in stages
        if stage.actor is Actor.WORKER
        for demand in stage.demands
    )


def ranks_meet(scenario: Scenario, topology: Topology) -> bool:
    """Return True if ranks synchronize at the end of a step.

    They do in training with several ranks or machines.
    """
    others = topology.ring > 1 or scenario.cluster.trainers.count > 1
    return others and scenario.job.mode is Mode.TRAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """The ranks of a job on their machines, with the demand table and the simulation plan."""

    scenario: Scenario
    machine: Machine
    stages: Sequence[StageDemands]
    plan: Plan

    @property
    def device_wait(self) -> float:
        """Time that a step waits for the slowest device if batches arrive at once [s]."""
        waits = (stage for stage in self.stages if stage.slot.after_late)
        return sum(float(demand.latency) for stage in waits for demand in stage.demands)

    def producers(self, rank: int) -> list[Location]:
        """Return the location of each worker that prepares batches of a rank."""
        job, topology = self.scenario.job, self.machine.topology
        served = self.scenario.ranks_served
        policy = job.input.policy
        own = policy.producers if makes_own_batches(self.scenario) else 0
        places = [Location(rank=rank)] * own
        if job.remote is not None:
            for site in map(self.machine.reduction.site, topology.sites_of(job.remote.name)):
                places += [Location(rank=rank, site=site)] * job.remote.producers(served)
        return places

    def policy(self, rank: int) -> LoaderPolicy:
        """Return the loader policy of a rank, its workers on helpers included."""
        job, policy = self.scenario.job, self.scenario.job.input.policy
        if job.remote is None:
            return policy
        own = policy.credits if makes_own_batches(self.scenario) else 0
        away = sum(place.site > 0 for place in self.producers(rank))
        return replace(
            policy,
            producers=len(self.producers(rank)),
            credits=own + min(job.remote.queue, MAX_PREFETCHED) + away,
            assignment=Assignment.SHARED_QUEUE,
            in_order=False,
            reads_ahead=False,
        )

    def tasks(self, actor: Actor, place: Location) -> list[tuple[Task, Slot, Demand]]:
        """Return the tasks of an actor for one batch in stage order, with slot and demand."""
        site = self.machine.topology.sites[place.site]
        group = site.group.name if place.site else ""
        found = (
            (self.machine.task(demand, place), stage.slot, demand)
            for stage in self.stages
            if stage.actor is actor and stage.group == group
            for demand in stage.demands
        )
        return [(task, slot, demand) for task, slot, demand in found if task is not None]

    @property
    def turns(self) -> int:
        """Number of turns in which workers interleave the samples of a batch.

        A worker reads and processes a part of the samples in each turn. It is 1 where this has no
        effect: no stage shares a unit, or only one resource is used.
        """
        topology = self.machine.topology
        shared = any(
            self.machine.shares(demand, Location(rank=0, site=topology.sites_of(stage.group)[0]))
            for stage in self.stages
            if stage.slot.by_sample
            for demand in stage.demands
        )
        if not (shared and bool(alternating(topology, self.stages))):
            return 1
        return max(1, min(TURNS, int(self.scenario.job.train.batch_size) // MIN_SAMPLES_PER_TURN))

    def tasks_of(self, rank: int, stage: StageDemands) -> list[Task]:
        """Return the tasks of a rank in a stage."""
        place = Location(rank=rank)
        tasks = (self.machine.task(demand, place) for demand in stage.demands)
        return [task for task in tasks if task is not None]


def _make_rank(
    site: _Site,
    index: int,
    generator: np.random.Generator,
    barriers: tuple[Barrier, Barrier] | None,
    recorder: Recorder,
) -> Rank:
    env, job, supply = site.machine.env, site.scenario.job, recorder.supply
    producer = _make_producer(site, index, generator, recorder)
    loader = RankLoader(
        env,
        site.policy(index),
        supply,
        producer.read_samples,
        producer.make_batch,
        receive=producer.receive_batch,
        send=None if job.remote is None else producer.send_batch,
        pin_memory_thread=job.input.pin_memory,
        waited=None if producer.record is None else producer.waited,
    )
    loads_inline = site.policy(index).producers == 0
    rules = Rules(
        accumulation=job.train.accumulation,
        copies_beside_compute=job.input.copies_beside_compute,
        copies_block=job.input.copies_block,
        waits_each_step=job.train.sync_every_step,
        loads_inline=loads_inline,
        waits_each_batch=loads_inline and site.machine.topology.host.gpu is None,
        start_delay=site.plan.start_delay,
        device_wait=site.device_wait,
        stands_for=site.machine.reduction.count(index) / max(site.machine.reduction.counts),
    )
    return Rank(
        env,
        index,
        loader=loader,
        supply=supply,
        work=work_of(site.stages, bucket_shares(site.scenario), partial(site.tasks_of, index)),
        rules=rules,
        barriers=barriers,
        on_step=recorder.on_step,
        record=producer.record,
    )


def _make_producer(
    site: _Site, index: int, generator: np.random.Generator, recorder: Recorder
) -> _Producer:
    job = site.scenario.job
    samples = int(job.train.batch_size)
    spreads = (job.dataset.size_spread, job.input.cost_spread)
    own = generator.spawn(len(spreads))
    sizes, costs = (Draws(spread, samples, its) for spread, its in zip(spreads, own, strict=True))
    producers = site.producers(index)
    places = producers or [Location(rank=index)]
    work = {
        place: [
            _Piece(task, slot, costs)
            if demand.path is Path.CORES
            else _Piece(task, slot, sizes, float(alone(site.machine.topology, demand, place)))
            for task, slot, demand in site.tasks(Actor.WORKER, place)
        ]
        for place in set(places)
    }
    ahead, turns = site.policy(index).reads_ahead, site.turns
    making_lanes = [f"worker {number}" for number in range(len(producers))] or [MAIN]
    reads_ahead = ahead and bool(producers)
    reading = {place: [p for p in pieces if p.slot.reads] for place, pieces in work.items()}
    making = {
        place: _in_turns([p for p in pieces if not (ahead and p.slot.reads)], turns)
        for place, pieces in work.items()
    }
    sending = {
        place: [task for task, _, _ in site.tasks(Actor.SENDER, place)] for place in set(places)
    }
    return _Producer(
        env=site.machine.env,
        rank=index,
        reading=[reading[place] for place in places],
        making=[making[place] for place in places],
        sending=[sending[place] for place in places],
        receiving=[task for task, _, _ in site.tasks(Actor.PIN_MEMORY, Location(rank=index))],
        machines=[site.machine.topology.sites[place.site].prefix.strip() for place in places],
        making_lanes=making_lanes,
        reading_lanes=[f"{name} reader" for name in making_lanes] if reads_ahead else making_lanes,
        receiving_lane=PIN_MEMORY if job.input.pin_memory and producers else MAIN,
        supply=recorder.supply,
        record=recorder.record if site.plan.trace else None,
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A task of a worker for a share of the samples of a batch.

    `draws` gives the random amount of the batch relative to the mean. `alone` is the time of a
    transfer without contention [s]; None for work on the cores.
    """

    task: Task
    slot: Slot
    draws: Draws
    alone: Seconds | None = None
    share: float = 1.0


def _in_turns(pieces: Sequence[_Piece], turns: int) -> list[_Piece]:
    """Divide the per-sample tasks of a worker into `turns` equal parts and interleave them.

    Tasks of a whole batch follow at the end.
    """
    first = [piece for piece in pieces if piece.slot.by_sample]
    if turns == 1 or len({piece.slot.name for piece in first}) == 1:
        return list(pieces)
    part = [replace(piece, share=1.0 / turns) for piece in first]
    return [*part * turns, *(piece for piece in pieces if not piece.slot.by_sample)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Producer:
    """The steps of each worker for a batch, scaled by the size and cost of that batch."""

    env: Environment
    rank: int
    reading: Sequence[Sequence[_Piece]]
    making: Sequence[Sequence[_Piece]]
    sending: Sequence[Sequence[Task]]
    receiving: Sequence[Task]
    machines: Sequence[str]
    making_lanes: Sequence[str]
    reading_lanes: Sequence[str]
    receiving_lane: str
    supply: Supply
    record: RecordEvent | None

    def read_samples(self, worker: int, batch: int) -> Steps:
        """Read the samples of a batch, ahead of the thread that processes them."""
        return self._do(self.reading[worker], self.reading_lanes[worker], worker, batch)

    def make_batch(self, worker: int, batch: int) -> Steps:
        """Process the samples of a batch until it is finished."""
        return self._do(self.making[worker], self.making_lanes[worker], worker, batch)

    def _do(self, pieces: Sequence[_Piece], lane: str, worker: int, batch: int) -> Steps:
        slow = self.supply.slowness(self.rank, worker, batch)
        scale = self.supply.share(batch) * self.supply.phase(batch)
        for piece in pieces:
            started = self.env.now
            amount = scale * piece.draws.of(batch) * piece.share
            # A straggler works longer, but moves no more bytes: it pauses while others move theirs.
            yield piece.task(amount * slow if piece.alone is None else amount)
            if piece.alone is not None and slow > 1.0:
                yield self.env.timeout((slow - 1.0) * piece.alone * amount)
            if self.record is not None:
                self._record(lane, piece.slot.label, started, batch, worker)

    def send_batch(self, worker: int, batch: int) -> Steps:
        """Send a finished batch from a helper to the machine that trains."""
        started = self.env.now
        for task in self.sending[worker]:
            yield task(self.supply.share(batch))
        if self.record is not None:
            lane = f"{self.making_lanes[worker]} sender"
            self._record(lane, "send", started, batch, worker)

    def receive_batch(self, batch: int) -> Steps:
        """Receive a finished batch in the training process, for example by pinning it."""
        started = self.env.now
        for task in self.receiving:
            yield task(self.supply.share(batch))
        if self.record is not None:
            lane = self.receiving_lane
            event = TraceEvent(
                rank=self.rank, lane=lane, name="receive", started=started, batch=batch
            )
            self.record(event)

    def waited(self, worker: int, since: float, batch: int) -> None:
        """Record the time during which a worker was idle, as no batch was requested."""
        self._record(self.making_lanes[worker], "waits to be asked", since, batch, worker)

    def _record(self, lane: str, name: str, started: float, batch: int, worker: int) -> None:
        if self.record is not None:
            event = TraceEvent(
                rank=self.rank,
                lane=lane,
                name=name,
                started=started,
                batch=batch,
                machine=self.machines[worker],
            )
            self.record(event)
