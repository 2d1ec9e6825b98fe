"""Workers in step: all of them do the same at the same time, and so wait for the same things.

They stay so in epochs too short to drift apart, and where the scenario says that they do.

Equal workers of equal batches begin an epoch together. They share stores, memory and cores equally,
so they are at the same point at every moment, until one of them has to wait to be asked for its
next batch. All other work (receiving, copies, exchanges) slows all of them equally, or none.
Two floors follow, higher than those that look at one unit or one worker at a time:

- *The first batches* are made by all workers at once, each at an equal share.
- *A generation*, one batch of every worker, takes all of a batch's parts one after another, each at
  that share: while they write to memory the cores rest, as no worker is anywhere else. The cores
  also carry what the receiving threads ask for. That holds for a whole epoch if no worker ever
  waits.

No worker waits where two batches of every worker may be asked for and not yet taken, and a
generation is used up before the next one is made: then each worker is asked for its next batch in
time, and by induction this stays so. That is shown with everything at its worst. Let receiving a
batch take at most `a` and all else at most `u`, with all workers' threads runnable and all others'
transfers under way. A pin-memory thread, and a device behind it that begins a batch when it has
come and the one before is done, get through a generation of w batches in at most (w - 1) max(a, u)
+ a + u; overlap only shortens that. No more is needed than the generation's time on the cores:
while workers read or write, everything else may stand still, and is still in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from simulator.engine.loader import MIN_WAVES
from simulator.engine.recorder import MAX_STEPS
from simulator.engine.symmetry import MIN_BATCHES
from simulator.pipeline.loads import users
from simulator.pipeline.run_length import Lengths
from simulator.pipeline.shared_cores import ASKED_AHEAD
from simulator.pipeline.stages.base import PRODUCERS, Actor, Demand, Path, StageDemands
from simulator.pipeline.topology import Location, Topology
from simulator.records import dataclass
from simulator.schema.data_loading import Assignment
from simulator.schema.scenario import Scenario
from simulator.studies.screening.chance import random
from simulator.units import Real

MAX_PRODUCERS: Final = MAX_STEPS // 8
"""Workers of a rank up to which an epoch is surely simulated until its generations repeat."""
UNUSED: Final = 1e-280
"""Use of an unused unit: what is carried there takes no time."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """All workers of a machine, and the times of their work while they run in step [s].

    All times may be arrays over candidates. `stages` is the demand table, `lengths` are the numbers
    of steps and batches of an epoch.
    """

    scenario: Scenario
    topology: Topology
    stages: Sequence[StageDemands]
    lengths: Lengths

    @cached_property
    def first(self) -> Real:
        """Time from the start of the workers to the first batch; 0 if unknown."""
        if not self._equal:
            return 0.0
        lengths = self.lengths
        # The engine may merge batches of a step: fewer workers then begin at once, on more each.
        full = np.minimum(np.maximum(1.0, lengths.batches - lengths.accumulation), self.begun)
        # The last batch may be smaller; where it is not among the first, all of these are full.
        return np.where(self.begun < lengths.batches, self._made(full), 0.0)[()]

    @cached_property
    def begun(self) -> Real:
        """Number of batches of each rank that workers begin at once."""
        policy = self.scenario.job.input.policy
        begun: Real = np.maximum(1.0, np.minimum(policy.producers, policy.credits))
        return begun

    @cached_property
    def cycle(self) -> Real:
        """Time between two batches of a rank while workers run in step; 0 if they may not."""
        producers = np.maximum(1.0, self._producers)
        return np.where(self._in_step, self._generation / producers, 0.0)[()]

    def epoch(self, receive: Real, copy: Real, batch: Real, once: Real) -> Real:
        """Return the time from the start of workers to the end of the last step; 0 if they drift.

        Parameters
        ----------
        receive, copy, batch, once : float or array
            Minimum times to receive, copy and compute a batch, and to end a step [s].
        """
        lengths, producers = self.lengths, np.maximum(1.0, self._producers)
        whole = np.floor((lengths.batches - 1.0) / producers)
        # The last generation: so many full batches, and the last one, which may be smaller.
        full, small = lengths.batches - 1.0 - whole * producers, lengths.last_share
        last = np.where(full > 0.0, self._made(np.maximum(1.0, full)), small * self._made(1.0))
        ahead = np.where(full > 0.0, 1.0, small) * (receive + copy)
        used = ahead + (full + small) * batch + once
        begun = self._made(producers) + (whole - 1.0) * self._generation
        taken = np.where(whole > 0.0, begun, 0.0) + last + used
        return np.where(self._in_step, taken, 0.0)[()]

    # the workers

    @cached_property
    def _equal(self) -> bool:
        groups = {stage.group for stage in self.stages if stage.actor in PRODUCERS}
        uneven = self.scenario.job.input.straggler or random(self.scenario)
        return groups == {""} and not uneven

    @cached_property
    def _producers(self) -> Real:
        return self.scenario.job.input.policy.producers

    @cached_property
    def _making(self) -> tuple[Demand, ...]:
        return tuple(d for s in self.stages if s.actor in PRODUCERS for d in s.demands)

    def _made(self, each: Real) -> Real:
        return _total(self._together(demand, each) for demand in self._making)

    def _together(self, demand: Demand, each: Real) -> Real:
        """Return the time of a demand that `each` workers of every rank have at the same time."""
        number = self.topology.ranks * each
        if demand.path is Path.CORES:
            pool = self.topology.host.cpu
            return demand.amount * number / pool.capacity_for(number * demand.threads)
        rate: Real = np.inf if demand.ceiling is None else demand.ceiling
        for unit, use in self.topology.way(demand, Location(rank=0)):
            share = self.topology.units[unit].capacity / np.maximum(use * number, UNUSED)
            rate = np.minimum(rate, share)
        return demand.latency + demand.amount / rate

    @cached_property
    def _on_cores(self) -> Real:
        working = (d for d in self._making if d.path is Path.CORES)
        return _total(self._together(demand, self._producers) for demand in working)

    @cached_property
    def _generation(self) -> Real:
        """Time in which every worker prepares one batch, and as many batches are received.

        Pin-memory threads finish before the workers' work on the cores does. Work that they did
        while the workers were still reading does not slow down that work.
        """
        pool, ranks = self.topology.host.cpu, self.topology.ranks
        on_cores = [demand.path is Path.CORES for demand in self._making]
        last = max((place for place, works in enumerate(on_cores) if works), default=0)
        waits = [
            self._together(d, self._producers) for d in self._making if d.path is not Path.CORES
        ]
        before = _total(waits[: on_cores[:last].count(False)])
        work = _total(d.amount for d in self._making if d.path is Path.CORES)
        work = work + _total(d.amount for d in self._of(Actor.PIN_MEMORY) if d.path is Path.CORES)
        threads = ranks * self._producers
        most = np.maximum(pool.capacity_for(threads), pool.capacity_for(threads + ranks))
        asked = threads * work - pool.capacity_for(ranks) * before
        return _total(waits) + np.maximum(self._on_cores, asked / most)

    # whether they stay in step

    @cached_property
    def _in_step(self) -> Real:
        """For each candidate, true if no worker ever has to wait for a request for a batch."""
        job, producers = self.scenario.job, self._producers
        policy = job.input.policy
        in_turn = policy.in_order and policy.assignment is Assignment.ROUND_ROBIN
        if not self._equal or not in_turn or policy.reads_ahead:
            return False
        receive = _total(self._at_worst(demand) for demand in self._of(Actor.PIN_MEMORY))
        use = _total(self._at_worst(demand) for demand in self._used)
        slower = np.maximum(receive, use) if job.input.pin_memory else receive + use
        in_time = (producers - 1.0) * slower + receive + use <= self._on_cores
        asked = np.logical_and(producers >= 1, policy.credits >= ASKED_AHEAD * producers)
        alone = _total(d.amount for d in self._used if d.path is Path.CORES) == 0.0
        unmerged = job.train.accumulation < 2 * MIN_BATCHES
        stay = np.logical_or(job.input.in_step, self.lengths.batches < MIN_WAVES * producers)
        sure = np.logical_and(np.logical_and(unmerged, alone), producers <= MAX_PRODUCERS)
        sure = np.logical_and(sure, stay)
        return np.logical_and(np.logical_and(in_time, asked), sure)

    def _of(self, actor: Actor) -> Iterator[Demand]:
        return (d for s in self.stages if s.actor is actor for d in s.demands)

    @cached_property
    def _used(self) -> tuple[Demand, ...]:
        before = PRODUCERS | {Actor.PIN_MEMORY}
        return tuple(d for s in self.stages if s.actor not in before for d in s.demands)

    def _at_worst(self, demand: Demand) -> Real:
        """Return the longest time of a demand while workers compute and all other transfers run."""
        if demand.path is Path.COMPUTE:
            return demand.amount
        if demand.path is Path.CORES:
            threads = self.topology.ranks * (self._producers + 1.0)
            return demand.amount * threads / self.topology.host.cpu.capacity_for(threads)
        rate: Real = np.inf if demand.ceiling is None else demand.ceiling
        for unit in dict.fromkeys(unit for unit, _ in self._taken(demand)):
            rate = np.minimum(rate, self._shares[unit])
        return demand.latency + demand.amount / rate

    @cached_property
    def _shares(self) -> Mapping[str, Real]:
        """Rate of one transfer by unit if all transfers but the workers' were concurrent."""
        wanted: dict[str, Real] = {}
        for demand in (*self._of(Actor.PIN_MEMORY), *self._used):
            for unit, use in self._taken(demand):
                wanted[unit] = wanted.get(unit, 0.0) + use
        units = self.topology.units
        return {
            unit: units[unit].capacity / np.maximum(use, UNUSED) for unit, use in wanted.items()
        }

    def _taken(self, demand: Demand) -> Iterator[tuple[str, Real]]:
        for rank, alike in users(self.topology, demand.path):
            for unit, use in self.topology.way(demand, Location(rank=rank)):
                yield unit, alike * use


def _total(times: Iterable[Real]) -> Real:
    return sum(times, 0.0)
