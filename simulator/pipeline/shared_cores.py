"""Bounds on the step if workers and pin-memory threads share the CPU cores.

Every runnable thread gets the same rate (processor sharing). With n of them runnable the pool does
C(n) core-seconds a second, and each thread C(n) / n. Two things limit how fast batches come:

- *All work*: R ranks ask for R D core-seconds with each batch of every rank, and the pool does no
  more than C(n).
- *A pin-memory thread* takes a rank's batches over one after another, c core-seconds each, at the
  rate of one thread among n. Many workers at work slow it down. Few leave cores idle.

Both at once are tighter than either. Over a time T in which X batches of each rank are received,
let a pin-memory thread be on the cores for a part P of T. For any weight w >= 0

    X (R D + w c) <= P M(w) + (T - P) C,   M(w) = max over n of (1 + w / n) C(n),   C = max C(n),

as at each moment the pool does C(n), and a pin-memory thread that is on the cores C(n) / n. What a
pin-memory thread does elsewhere, m seconds a batch at least, and the time before its first batch
and after its last one, A in all, do not belong to P, so P <= T - A - X m. Each weight gives a bound
on T, and the longest one counts. The number of runnable threads is a whole one, so M is a maximum
over few values. (Asymptotic bounds of a queueing network [1]_, with a linear program's dual
weights.)

- *Workers alone*: no more than K threads make batches, so of n that are runnable at least n - K
  receive, and get (n - K) C(n) / n. Weighing what all pin-memory threads do by -v,

      X R (D - v c) <= T max over n of (1 - v max(0, n - K) / n) C(n),

  which is T max over n <= K of C(n) for the least v that lets no n > K count for more. A device
  that takes its batches in no time leaves all workers at work: this is then what they take.

The equilibrium
---------------
The bounds let the number of runnable threads swing from moment to moment, and a run does not. Let
the workers be able to make batches faster than they are received. Each then waits to be asked for
its next batch, which happens once for each batch that the pin-memory thread takes over: batches are
begun one by one, as they are received. Measure time by the work that one runnable thread does
("virtual time" of processor sharing [2]_). There every task takes as long as it has work: a batch
is received every V = c + (what runs meanwhile in the m seconds elsewhere), and with D' core-seconds
of a worker for each batch k = D' / V workers are runnable in the mean. As batches begin evenly,
their number alternates between the whole numbers next to k, so that the time between two batches is
the mean over these two of what V takes at the rate of one thread among them and the pin-memory
threads. Where that asks for more workers than there are, all of them always make batches, and
pin-memory threads join them for c of every D' / workers. Runs settle to this, but it is not a
bound: nothing forbids a run to oscillate. Of 390 candidates with drawn machines, workers, batches
and prefetch (2026-11-24), no later epoch that the engine simulates is shorter than `settled_span`
has it.

References
----------
.. [1] E. D. Lazowska, J. Zahorjan, G. S. Graham, K. C. Sevcik, "Quantitative System Performance",
   Prentice-Hall, 1984, chapter 5, https://homes.cs.washington.edu/~lazowska/qsp/
.. [2] A. K. Parekh, R. G. Gallager, "A generalized processor sharing approach to flow control in
   integrated services networks", IEEE/ACM Trans. Networking 1 (3), 1993, section III.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.pipeline.loads import alone, least_step
from simulator.pipeline.stages.base import Actor, Demand, Path, StageDemands
from simulator.pipeline.topology import Location, Topology
from simulator.records import dataclass
from simulator.schema.scenario import Scenario
from simulator.units import Real

WEIGHTS: Final = (0.0, *(1.5**power for power in range(16)))
"""Weights of a pin-memory thread's work against all work, from 0 to that of as many threads as a
large machine has cores. The best one lies between where second hardware threads pay and where
cores do."""
ROUNDS: Final = 12
"""Rounds after which the work of a cycle is known: each leaves a per cent of the error, or less."""
ASKED_AHEAD: Final = 2.0
"""Batches of each worker, one on its way and one made ahead, that must be allowed to be asked for
and not yet taken, so that it never waits to be asked because of another worker."""
MAX_THREADS: Final = 2048
"""Runnable threads up to which each number is looked at; no pool of the catalogue has more."""


@dataclass(frozen=True, kw_only=True)
class SharedCores:
    """The CPU cores of a machine that trains and prepares its own batches; values may be arrays.

    Parameters
    ----------
    scenario, topology, stages
        What is run, on which units, and what each stage asks for.
    """

    scenario: Scenario
    topology: Topology
    stages: Sequence[StageDemands]

    @cached_property
    def most(self) -> Real:
        """Highest speed of the pool for this job's threads [core-seconds/s]."""
        found: Real = self._capacities.max(axis=0)
        return found

    @cached_property
    def cycle(self) -> Real:
        """Lower bound on the steady-state time between two batches of a rank [s].

        0 if workers and pin-memory threads do not share the cores, or the effect is unknown.
        """
        return self.span(1.0, 0.0)

    def span(self, batches: Real, apart: Real) -> Real:
        """Return the shortest time in which batches of each rank are prepared and received [s].

        Parameters
        ----------
        batches : float or array
            Number of batches; the last one counts by its size [1].
        apart : float or array
            Time in which a pin-memory thread has no batch: before the first and after the last [s].
        """
        if not self._known:
            return 0.0
        least, away = self.most, apart + batches * self._elsewhere
        found: Real = 0.0
        for weight in WEIGHTS:
            together = (self._capacities * (1.0 + weight / self._runnable)).max(axis=0)
            work = batches * (self._work + weight * self._receiving)
            found = np.maximum(found, (work + (together - least) * away) / together)
        found = np.maximum(found, batches * self._making / self._most_of_producers)
        # A bound on several batches holds them all; one on none has no time to offer.
        return np.where(np.asarray(self.scenario.job.input.policy.producers) > 0, found, 0.0)[()]

    @cached_property
    def equilibrium(self) -> Real:
        """Steady-state time between two batches of a rank at equilibrium [s].

        It is not a bound (see the module). 0 if other threads use the cores too, or the effect is
        unknown.
        """
        if not self._settles:
            return 0.0
        return np.where(self._enough_producers, self._received_every, self._made_every)[()]

    def settled_span(self, batches: Real, first: Real, used: Real) -> Real:
        """Return the time in which a number of batches of each rank are prepared and received [s].

        It is the equilibrium with the start and end of workers: at first each worker prepares as
        many batches as may be prefetched, with nothing to receive before the first one; after the
        last request the pin-memory threads are alone. 0 if the equilibrium is unknown.
        """
        if not self._settles:
            return 0.0
        policy, producers, each = self.scenario.job.input.policy, self._workers, self._made
        begin = np.maximum(first, each * self._slowness(producers, 0.0))
        busy = begin + np.maximum(0.0, batches - producers) * self._made_every
        ahead = each * policy.credits / producers
        begin = begin + np.maximum(0.0, ahead - each) * self._slowness(producers, 1.0)
        settled = np.maximum(0.0, batches - policy.credits) * self._received_every
        settled = settled + (2.0 * each - ahead) * self._slowness(self._busy, 1.0)
        alone = self._elsewhere + self._receiving * self._slowness(0.0, 1.0)
        end = np.maximum(0.0, policy.credits - self._busy) * np.maximum(alone, used)
        waited = np.where(settled > 0.0, begin + settled + end, 0.0)
        return np.where(self._enough_producers, waited, busy)[()]

    # what a run settles to, in the work that one runnable thread does meanwhile [core-seconds]

    @cached_property
    def _settles(self) -> bool:
        """True if only single-threaded workers and pin-memory threads use the cores.

        Each worker must also be asked for two batches at once, so that it always has a next one.
        """
        own = frozenset({Actor.WORKER, Actor.PIN_MEMORY})
        users = [(s, d) for s in self.stages for d in s.demands if d.path is Path.CORES]
        single = all(np.all(d.threads == 1.0) for _, d in users)
        alone = all(s.actor in own for s, d in users if np.any(d.amount > 0.0))
        receives = bool(np.all(self._receiving > 0.0)) and self.scenario.job.input.pin_memory
        policy = self.scenario.job.input.policy
        asked = np.logical_and(self._workers > 0.0, policy.credits >= ASKED_AHEAD * self._workers)
        return self._known and single and alone and receives and bool(np.all(asked))

    @cached_property
    def _workers(self) -> Real:
        """Number of workers of a rank."""
        return np.asarray(self.scenario.job.input.policy.producers, dtype=float)

    @cached_property
    def _enough_producers(self) -> Real:
        """True if pin-memory threads are the bottleneck, False if workers are."""
        return np.asarray(self._busy <= self._workers)

    @cached_property
    def _made(self) -> Real:
        """Work of a worker on a batch [core-seconds]."""
        return self._work / self.topology.ranks - self._receiving

    @cached_property
    def _cycle_work(self) -> Real:
        """Work of an always runnable thread between two batches [core-seconds]."""
        cycle: Real = self._receiving
        for _ in range(ROUNDS):
            cycle = self._receiving + self._elsewhere / self._slowness(self._made / cycle, 0.0)
        return cycle

    @cached_property
    def _received_every(self) -> Real:
        """Time between two batches if pin-memory threads are the bottleneck [s]."""
        return self._elsewhere + self._receiving * self._slowness(self._busy, 1.0)

    @cached_property
    def _made_every(self) -> Real:
        """Time between two batches if workers are the bottleneck [s]."""
        rest = np.maximum(0.0, self._made / self._workers - self._receiving)
        received = self._receiving * self._slowness(self._workers, 1.0)
        found: Real = received + rest * self._slowness(self._workers, 0.0)
        return found

    @cached_property
    def _busy(self) -> Real:
        """Mean number of runnable workers of a rank."""
        found: Real = self._made / self._cycle_work
        return found

    def _slowness(self, producers: Real, receiving: float) -> Real:
        """Return the time that a thread needs for one core-second of work [s].

        A fractional number of workers alternates between the whole numbers next to it.
        """
        few = np.floor(producers)
        part, found = producers - few, []
        for number in (few, few + 1.0):
            runnable = np.maximum(self.topology.ranks * (number + receiving), 1.0)
            found.append(runnable / self.topology.host.cpu.capacity_for(runnable))
        slowness: Real = (1.0 - part) * found[0] + part * found[1]
        return slowness

    # who is on the cores

    @cached_property
    def _known(self) -> bool:
        """True if the bounds apply: all batches are prepared here, by threads of equal speed."""
        job = self.scenario.job
        here = job.remote is None and not job.input.straggler
        few = bool(np.all(self._most_runnable <= MAX_THREADS))
        whole = all(np.all(np.mod(d.threads, 1.0) == 0.0) for d in self._on_cores())
        return here and few and whole

    def _on_cores(self) -> Iterator[Demand]:
        return (d for s in self.stages for d in s.demands if d.path is Path.CORES)

    def _of_pin_memory(self, *, cores: bool) -> Iterator[Demand]:
        own = (s for s in self.stages if s.actor is Actor.PIN_MEMORY)
        return (d for s in own for d in s.demands if (d.path is Path.CORES) is cores)

    @cached_property
    def _work(self) -> Real:
        """CPU work of one batch of every rank [core-seconds]."""
        each = (
            demand.amount * stage.times
            for stage in self.stages
            for demand in stage.demands
            if demand.path is Path.CORES and not stage.group
        )
        return self.topology.ranks * sum(each, 0.0)

    @cached_property
    def _receiving(self) -> Real:
        """CPU work to receive one batch [core-seconds]."""
        return sum((demand.amount for demand in self._of_pin_memory(cores=True)), 0.0)

    @cached_property
    def _making(self) -> Real:
        """CPU work of one batch of every rank that is left to workers' cores [core-seconds].

        It is all work minus that of pin-memory threads, weighted so that their threads add nothing
        to the capacity of the pool.
        """
        more = self._runnable > self._working_threads
        beside = np.where(more, self._runnable - self._working_threads, 1.0)
        gained = (1.0 - self._most_of_producers / self._capacities) * self._runnable / beside
        weight = np.maximum(np.where(more, gained, 0.0).max(axis=0), 0.0)
        found: Real = self._work - weight * self.topology.ranks * self._receiving
        return found

    @cached_property
    def _most_of_producers(self) -> Real:
        """Highest capacity of the pool without pin-memory threads [core-seconds/s]."""
        alone = np.where(self._runnable <= self._working_threads, self._capacities, 0.0)
        found: Real = alone.max(axis=0)
        return found

    @cached_property
    def _elsewhere(self) -> Real:
        """Lower bound on the time of receiving a batch outside of the cores [s]."""
        place = Location(rank=0)
        others = self._of_pin_memory(cores=False)
        return sum((alone(self.topology, demand, place) for demand in others), 0.0)

    @cached_property
    def _most_runnable(self) -> Real:
        """Highest number of threads that are runnable at once, at most those of the pool."""
        found: Real = np.minimum(
            self._working_threads + self.topology.ranks, np.ceil(self.topology.host.cpu.free)
        )
        return found

    @cached_property
    def _working_threads(self) -> Real:
        """Highest number of runnable threads other than pin-memory threads."""
        job = self.scenario.job
        producers = np.maximum(1.0, job.input.policy.producers)
        own = producers * np.maximum(1.0, self.scenario.producer_threads)
        using = (s for s in self.stages if s.actor is Actor.COMPUTE_STREAM)
        fitting = [d.threads for s in using for d in s.demands if d.path is Path.CORES]
        found: Real = self.topology.ranks * (own + sum(fitting, 0.0))
        return found

    @cached_property
    def _runnable(self) -> NDArray[np.float64]:
        """Possible numbers of runnable threads, one in each row; the last row has the highest."""
        most = np.asarray(self._most_runnable, dtype=float)
        each = np.arange(1.0, min(float(most.max()), MAX_THREADS) + 1.0)
        rows = np.append(each, np.inf).reshape(-1, *[1] * most.ndim)
        found: NDArray[np.float64] = np.minimum(rows, most)
        return found

    @cached_property
    def _capacities(self) -> NDArray[np.float64]:
        """Capacity of the pool for each number of runnable threads [core-seconds/s]."""
        pool = self.topology.host.cpu
        found: NDArray[np.float64] = np.asarray(pool.capacity_for(self._runnable), dtype=float)
        return found


def least_shared_step(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> Real:
    """Return the lower bound on the steady-state step, shared cores included [s]."""
    cores = SharedCores(scenario=scenario, topology=topology, stages=stages)
    shared: Real = cores.cycle * scenario.job.train.accumulation
    return np.maximum(least_step(scenario, topology, stages), shared)
