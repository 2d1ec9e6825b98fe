"""Records of a running epoch, and the decision when it has been simulated for long enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from simpy import Event

from simulator.engine.clock import Clock
from simulator.engine.loader import Supply
from simulator.engine.machine import Machine
from simulator.engine.rank import Rank
from simulator.engine.sharing import LAST, Alarm
from simulator.engine.steady_state import (
    CHECK_EVERY,
    Steady,
    batch_means,
    chance_of_an_epoch,
    find_period,
    known_well,
    undisturbed,
    warm_up,
    whole_bursts,
)
from simulator.engine.symmetry import SymmetryReduction
from simulator.engine.trace import TraceEvent
from simulator.pipeline.ledger import OWN_WORK, by_line, entries
from simulator.results.prediction import Sample, Slice
from simulator.schema.scenario import Job
from simulator.units import Seconds

MAX_STEPS: Final = 400
"""Steps that are looked at for one that repeats, unless more of them are in flight."""

ROUNDS: Final = 8
"""Times that all in flight are used up, at most, before an epoch is ended without repeating."""

MAX_EVENTS: Final = 150_000
"""Events of an epoch after which it is ended, however well its mean step is known by then."""

MIN_STEPS: Final = 64
"""Steps that are looked at, however many events they take."""

WATCHED_SHARE: Final = 0.5
"""Share of these for which steps of equal batches are expected to repeat still."""

JUST_BELOW: Final = 1.0 - 1e-4
"""Share of the least step below which repeating steps count as using up prefetched batches."""

FAR_BELOW: Final = 0.99
"""Share of the least step below which a bound replaces the simulated mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Extent of the simulation of an epoch.

    `batches` per rank; `most_steps` ends the run even if it never gets steady; by default that is
    when what is in flight has been used up a few times, and when `most_events` have happened.
    `replay` runs all of it. `start_delay` passes before the loader's workers can start. No steady
    step is shorter than `least_step` [s].
    """

    batches: int
    last_share: float
    start_delay: Seconds
    most_steps: int | None = None
    most_events: int = MAX_EVENTS
    least_step: Seconds = 0.0
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
    """A simulated epoch.

    `snapshots` holds the state at the start and after each step; the steps from snapshot `first` to
    `last` are the steady window that represents all others. `end` is the end of the last batch;
    `settled`: the run was ended before its last batch. No mean step is below `floor` [s].
    """

    end: Seconds
    first: int
    last: int
    half_width: Seconds
    settled: bool
    snapshots: Sequence[Snapshot]
    reduction: SymmetryReduction
    slices: tuple[Slice, ...] = ()
    samples: tuple[Sample, ...] = ()
    floor: Seconds = 0.0

    @property
    def ends(self) -> tuple[Seconds, ...]:
        """Ends of each step on all ranks [s from the epoch's start]."""
        return tuple(snapshot.time for snapshot in self.snapshots[1:])

    @property
    def own_first_step(self) -> Seconds:
        """Time of the average rank for step 1, without waiting for others [s]."""
        spent = [entries(by_line(totals)) for totals in self.snapshots[1].ledgers]
        own = [sum(parts[entry] for entry in OWN_WORK) for parts in spent]
        return fmean(own, self.reduction.counts)

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
        return max(self.seen_step, self.floor)

    @property
    def seen_step(self) -> Seconds:
        """Mean step of the window [s], which prefetched batches may shorten."""
        return self.window / (self.last - self.first)

    @property
    def bounded(self) -> bool:
        """True if the mean step is a bound, as no sustained step was simulated."""
        return self.seen_step < self.floor * FAR_BELOW

    @property
    def steady_steps(self) -> tuple[Seconds, ...]:
        """Step times of the steady window [s]."""
        times = [self.snapshots[i].time for i in range(self.first, self.last + 1)]
        return tuple(b - a for a, b in pairwise(times))


MIN_LONG_BURST = 16
"""Burst of batches from which the mean of bursts needs many of them."""

MIN_ROUNDS = 3
"""Times that all batches in flight must be used up before a part represents the epoch."""


class Observer:
    """Sees the steps of an epoch go by, ends it when they are steady, and sums it up."""

    def __init__(
        self, plan: Plan, supply: Supply, job: Job, reduction: SymmetryReduction, producers: int
    ) -> None:
        self._plan = plan
        self._reduction = reduction
        self.supply = supply
        self._snapshots: list[Snapshot] = []
        self._durations: list[float] = []
        self._steady: Steady | None = None
        self._floor = 0.0
        self._closed_at = 0
        spreads = (job.dataset.size_spread, job.input.cost_spread)
        self._deviation = max((s.deviation for s in spreads if s.varies), default=0.0)
        self._random = self._deviation > 0.0
        self._samples = plan.batches * job.train.batch_size
        self._per_step = job.train.accumulation
        policy = job.input.policy
        away = 0 if job.remote is None else job.remote.queue + producers
        self._burst = max(1, producers)
        asked = policy.credits + away
        self._in_flight = -(-max(asked, producers, 1) // self._per_step)
        self.least = -(-(asked + producers) // self._per_step)
        self._most = plan.most_steps or max(MAX_STEPS, ROUNDS * self.least)
        self._goes_on = policy.crosses_epochs

    @property
    def settled(self) -> bool:
        """True if the epoch was ended before its last batch."""
        return self._steady is not None

    def begin(self, snapshot: Snapshot) -> None:
        """RecordEvent the state before anything has happened."""
        self._snapshots.append(snapshot)

    def step(self, snapshot: Snapshot, issued: int, events: int = 0) -> None:
        """Record the end of a step of all ranks.

        `issued` batches have been asked for, and `events` events have happened so far.
        """
        self.add((snapshot,))
        steps = len(self._durations)
        if self._plan.progress is not None:
            self._plan.progress(steps)
        if self._steady is None and self.due(steps, events):
            self.consider(issued, events)

    def add(self, snapshots: Sequence[Snapshot]) -> None:
        """RecordEvent steps without a look at whether they are steady."""
        for snapshot in snapshots:
            self._durations.append(snapshot.time - self._snapshots[-1].time)
            self._snapshots.append(snapshot)

    def due(self, steps: int, events: int = 0) -> bool:
        """Return True if steadiness is to be checked after these steps."""
        if self._plan.replay:
            return False
        looked_at = steps % CHECK_EVERY == 0 and steps >= self._in_flight
        return looked_at or self.over(steps, events)

    def over(self, steps: int, events: int = 0) -> bool:
        """Return True if the limit of steps and events is reached."""
        if self._plan.replay:
            return False
        if events >= self._plan.most_events and steps >= MIN_STEPS:
            return True
        if steps < self._most or (self._random and self._plan.most_steps is None):
            return False
        if self._plan.most_steps is not None:
            return True
        # Equal batches whose steps have not repeated by now: watched as random ones are.
        watched = events >= WATCHED_SHARE * self._plan.most_events and steps % CHECK_EVERY == 0
        return watched and self._known() is not None

    def _known(self) -> Steady | None:
        return known_well(self._durations, self._in_flight, self._burst)

    def consider(self, issued: int, events: int = 0) -> None:
        """See whether the steps so far are steady, and end the epoch if they are."""
        steps = len(self._durations)
        self._steady = self._find()
        if self._steady is not None and self._lives_on_a_reserve(self._steady):
            self._steady = None
        if self._steady is None and self.over(steps, events):
            self._floor = self._plan.least_step
            self._steady = None if self._random else self._known()
        if self._steady is None and self.over(steps, events):
            # What has not become steady yet may still be coming from its start.
            dropped = max(warm_up(steps, self._in_flight), steps // 2)
            kept = whole_bursts(steps - dropped, self._burst)
            half_width = batch_means(self._durations[-kept:], self._burst)
            self._steady = Steady(period=1, window=kept, half_width=half_width)
        if self._steady is not None:
            self._closed_at = steps
            self._close(self._steady.period * self._per_step, issued)

    def _find(self) -> Steady | None:
        """Return the window of steps that repeat, or whose mean is known."""
        if not self._random:
            waiting = [snapshot.waiting for snapshot in self._snapshots[1:]]
            return find_period(self._durations, waiting, self.least)
        found = self._known()
        if found is None and self._burst > MIN_LONG_BURST:
            ready = [sum(s.waiting) / len(s.waiting) for s in self._snapshots[1:]]
            found = undisturbed(self._durations, ready, self._in_flight)
        return found

    def _lives_on_a_reserve(self, steady: Steady) -> bool:
        """Return True if steps are shorter than any sustained ones, beyond chance."""
        mean = fmean(self._durations[-steady.window :])
        return mean + steady.half_width < self._plan.least_step * JUST_BELOW

    def epoch(
        self, end: float, slices: tuple[Slice, ...] = (), samples: tuple[Sample, ...] = ()
    ) -> Epoch:
        """Return the finished epoch."""
        last, half_width = len(self._durations), 0.0
        if self._steady is None:
            short = last < MIN_ROUNDS * self._in_flight
            # The wait for the first batch is the run's start, not what a step takes.
            first = min(1, last - 1) if short else warm_up(last, self._in_flight)
            if short or self._goes_on or last > MAX_STEPS or not self._random:
                # What the next epoch is begun with was made in this one, and equal steps that
                # have not repeated live on what was made ahead: as a steady window has it, the
                # mean step is the one that goes on for ever.
                self._floor = self._plan.least_step
            ragged = self._plan.last_share < 1.0 or self._plan.batches % self._per_step > 0
            if ragged and last > first + 1:
                last -= 1
            if self._random:
                half_width = self._by_chance(self._durations[first:last])
        else:
            last, half_width = self._closed_at, self._steady.half_width
            first = max(0, last - self._steady.window)
        return Epoch(
            end=end,
            first=first,
            last=last,
            half_width=half_width,
            settled=self._steady is not None,
            snapshots=self._snapshots,
            reduction=self._reduction,
            slices=slices,
            samples=samples,
            floor=self._floor,
        )

    def _by_chance(self, durations: Sequence[Seconds]) -> Seconds:
        """Return the 95% half-width of the mean step of a whole epoch [s]."""
        least = chance_of_an_epoch(self._deviation, self._samples / self._burst)
        return min(batch_means(durations), least * fmean(durations))

    def _close(self, period: int, issued: int) -> None:
        spare = self.supply.limit - issued - self._per_step
        self.supply.limit -= max(0, spare // period) * period


class Recorder:
    """Shows an observer the steps, and notes the trace, while the engine runs an epoch.

    A step is looked at when everything else at the instant of its end has happened: what is seen
    does not depend on the order of what happens at once.
    """

    def __init__(self, env: Clock, machine: Machine, observer: Observer) -> None:
        self._env = env
        self._machine = machine
        self._observer = observer
        self.ranks: list[Rank] = []
        self._finished: dict[int, int] = {}
        self._ended = 0
        self._slices: list[Slice] = []
        self.supply = observer.supply

    def begin(self) -> None:
        """RecordEvent the state before anything has happened."""
        self._observer.begin(self._snapshot())

    def on_step(self, rank: int, step: int) -> None:  # noqa: ARG002 - all ranks count alike
        """RecordEvent that a rank has finished a step."""
        self._finished[step] = self._finished.get(step, 0) + 1
        if self._finished[step] < len(self.ranks):
            return
        del self._finished[step]
        self._ended += 1
        Alarm(self._env, self._look, 0.0, LAST)

    def record(self, event: TraceEvent) -> None:
        """RecordEvent a piece of work that ends now, of a rank and of those that do the same."""
        length = self._env.now - event.started
        if length <= 0.0:
            return
        self._slices += [
            Slice(
                track=f"rank {rank} {event.lane}",
                name=event.name,
                start=event.started,
                length=length,
                step=event.step,
                batch=event.batch,
                process=event.machine or f"rank {rank}",
            )
            for rank in self._machine.reduction.lanes(event.rank)
        ]

    def epoch(self, samples: tuple[Sample, ...]) -> Epoch:
        """Return the finished epoch."""
        while self._ended:
            self._look()
        return self._observer.epoch(float(self._env.now), tuple(self._slices), samples)

    def _look(self, _: Event | None = None) -> None:
        self._ended -= 1
        issued = max(rank.loader.issued for rank in self.ranks)
        self._observer.step(self._snapshot(), issued, self._env.events)

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            time=self._env.now,
            waiting=tuple(rank.loader.ready for rank in self.ranks),
            ledgers=tuple(rank.spent() for rank in self.ranks),
            busy=self._machine.busy(),
        )
