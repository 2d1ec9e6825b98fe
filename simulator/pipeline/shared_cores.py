"""Cores that makers of batches share with the threads that receive them: bounds from the sharing.

Every runnable thread gets the same rate (processor sharing). With n of them runnable the pool does
C(n) core-seconds a second, and each thread C(n) / n. Two things limit how fast batches come:

- *All work*: R ranks ask for R D core-seconds with each batch of every rank, and the pool does no
  more than C(n).
- *A receiver* takes a rank's batches over one after another, c core-seconds each, at the rate of
  one thread among n. Many makers at work slow it down. Few leave cores idle.

Both at once are tighter than either. Over a time T in which X batches of each rank are received,
let a receiver be on the cores for a part P of T. For any weight w >= 0

    X (R D + w c) <= P M(w) + (T - P) C,   M(w) = max over n of (1 + w / n) C(n),   C = max C(n),

as at each moment the pool does C(n), and a receiver that is on the cores C(n) / n. What a receiver
does elsewhere, m seconds a batch at least, and the time before its first batch and after its last
one, A in all, are no part of P, so P <= T - A - X m. Each weight gives a bound on T, and the
longest one counts. The number of runnable threads is a whole one, so M is a maximum over few
values. (Asymptotic bounds of a queueing network [1]_, with a linear program's dual weights.)

- *Makers alone*: no more than K threads make batches, so of n that are runnable at least n - K
  receive, and get (n - K) C(n) / n. Weighing what all receivers do by -v,

      X R (D - v c) <= T max over n of (1 - v max(0, n - K) / n) C(n),

  which is T max over n <= K of C(n) for the least v that lets no n > K count for more. A device
  that takes its batches in no time leaves all makers at work: this is then what they take.

References
----------
.. [1] E. D. Lazowska, J. Zahorjan, G. S. Graham, K. C. Sevcik, "Quantitative System Performance",
   Prentice-Hall, 1984, chapter 5, https://homes.cs.washington.edu/~lazowska/qsp/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.pipeline.loads import alone, least_step
from simulator.pipeline.stages.base import Actor, Demand, Path, StageDemands
from simulator.pipeline.topology import Location, Topology
from simulator.scenario.scenario import Scenario
from simulator.units import Real

WEIGHTS: Final = (0.0, *(1.5**power for power in range(16)))
"""Weights of a receiver's work against all work, from none to that of as many threads as a large
machine has cores: the best one lies between where second hardware threads pay and where cores do.
"""
MOST_THREADS: Final = 2048
"""Runnable threads up to which each number is looked at; no pool of the catalogue has more."""


@dataclass(frozen=True, kw_only=True)
class SharedCores:
    """The cores of a machine that trains and makes its own batches; all may be arrays.

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
        """The most that this job's threads can get of the pool [core-seconds/s]."""
        found: Real = self._capacities.max(axis=0)
        return found

    @cached_property
    def cycle(self) -> Real:
        """Least mean time between two batches of a rank in a run that goes on and on [s].

        0 where makers and receivers do not share the cores, or nothing is known of their sharing.
        """
        return self.span(1.0, 0.0)

    def span(self, batches: Real, apart: Real) -> Real:
        """Least time in which so many batches of each rank are made and received [s].

        Parameters
        ----------
        batches : float or array
            How many, the last one counted as what it holds [1].
        apart : float or array
            Time in which a receiver surely has no batch: before the first and after the last [s].
        """
        if not self._known:
            return 0.0
        least, away = self.most, apart + batches * self._elsewhere
        found: Real = 0.0
        for weight in WEIGHTS:
            together = (self._capacities * (1.0 + weight / self._runnable)).max(axis=0)
            work = batches * (self._work + weight * self._receiving)
            found = np.maximum(found, (work + (together - least) * away) / together)
        found = np.maximum(found, batches * self._making / self._most_of_makers)
        # A bound on several batches holds them all; one on none has no time to offer.
        return np.where(np.asarray(self.scenario.job.loader.crew.makers) > 0, found, 0.0)[()]

    # who is on the cores

    @cached_property
    def _known(self) -> bool:
        """Whether all work of loading is done here, by whole threads of one pace."""
        job = self.scenario.job
        here = job.remote is None and not job.loader.stragglers
        few = bool(np.all(self._most_runnable <= MOST_THREADS))
        whole = all(np.all(np.mod(d.threads, 1.0) == 0.0) for d in self._on_cores())
        return here and few and whole

    def _on_cores(self) -> Iterator[Demand]:
        return (d for s in self.stages for d in s.demands if d.path is Path.CORES)

    def _of_receiver(self, *, cores: bool) -> Iterator[Demand]:
        own = (s for s in self.stages if s.actor is Actor.RECEIVER)
        return (d for s in own for d in s.demands if (d.path is Path.CORES) is cores)

    @cached_property
    def _work(self) -> Real:
        """What a batch of every rank asks of the pool [core-seconds]."""
        each = (
            demand.amount * stage.times
            for stage in self.stages
            for demand in stage.demands
            if demand.path is Path.CORES and not stage.group
        )
        return self.topology.ranks * sum(each, 0.0)

    @cached_property
    def _receiving(self) -> Real:
        """What receiving a batch asks of the pool [core-seconds]."""
        return sum((demand.amount for demand in self._of_receiver(cores=True)), 0.0)

    @cached_property
    def _making(self) -> Real:
        """What a batch of every rank asks of the makers' share of the pool [core-seconds].

        All work less what receivers do, weighed so that their threads add nothing to the pool.
        """
        more = self._runnable > self._makers
        beside = np.where(more, self._runnable - self._makers, 1.0)
        gained = (1.0 - self._most_of_makers / self._capacities) * self._runnable / beside
        weight = np.where(more, gained, 0.0).max(axis=0)
        beside_makers: Real = np.maximum(weight, 0.0) * self.topology.ranks * self._receiving
        return self._work - beside_makers

    @cached_property
    def _most_of_makers(self) -> Real:
        """The most that the pool does as long as nobody receives [core-seconds/s]."""
        alone = np.where(self._runnable <= self._makers, self._capacities, 0.0)
        found: Real = alone.max(axis=0)
        return found

    @cached_property
    def _elsewhere(self) -> Real:
        """What else receiving a batch takes at least [s]."""
        place = Location(rank=0)
        others = self._of_receiver(cores=False)
        return sum((alone(self.topology, demand, place) for demand in others), 0.0)

    @cached_property
    def _most_runnable(self) -> Real:
        """The most threads that are ever runnable, or as many as the pool has."""
        found: Real = np.minimum(
            self._makers + self.topology.ranks, np.ceil(self.topology.host.cpu.free)
        )
        return found

    @cached_property
    def _makers(self) -> Real:
        """The most threads that are ever runnable and do not receive."""
        job = self.scenario.job
        makers = np.maximum(1.0, job.loader.crew.makers)
        own = makers * np.maximum(1.0, self.scenario.maker_threads)
        using = (s for s in self.stages if s.actor is Actor.COMPUTE_STREAM)
        fitting = [d.threads for s in using for d in s.demands if d.path is Path.CORES]
        found: Real = self.topology.ranks * (own + sum(fitting, 0.0))
        return found

    @cached_property
    def _runnable(self) -> NDArray[np.float64]:
        """Numbers of threads that may be runnable, one a row; the last row has the most."""
        most = np.asarray(self._most_runnable, dtype=float)
        each = np.arange(1.0, min(float(most.max()), MOST_THREADS) + 1.0)
        rows = np.append(each, np.inf).reshape(-1, *[1] * most.ndim)
        found: NDArray[np.float64] = np.minimum(rows, most)
        return found

    @cached_property
    def _capacities(self) -> NDArray[np.float64]:
        """What the pool does with so many runnable threads [core-seconds/s]."""
        pool = self.topology.host.cpu
        found: NDArray[np.float64] = np.asarray(pool.capacity_for(self._runnable), dtype=float)
        return found


def least_shared_step(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> Real:
    """Least mean step of a run that goes on for ever, of the busiest or of those who share [s]."""
    cores = SharedCores(scenario=scenario, topology=topology, stages=stages)
    shared: Real = cores.cycle * scenario.job.train.accumulation
    return np.maximum(least_step(scenario, topology, stages), shared)
