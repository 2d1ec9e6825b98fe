"""Records of a running epoch, and the decision that its steps are steady.

The law of the window
---------------------
Let W workers prepare the batches of a rank, with at most C batches requested and not yet taken.
Without randomness the times of batch k are a function of those of earlier batches: its worker is
free once batch k - W is finished, it is requested once batch k - C is taken, the device begins
once batch k - 1 is done. So the times of the last M = W + C batches are the whole state of
the pipeline, and the function is homogeneous: were all of them later by c, all that follows would
be later by c [1]_. If therefore the steps over the last M batches, and as much before, repeat with
a period of p steps, which take P seconds, and so does what waits in the loaders, then the state is
the one of p steps before, shifted by P, and by induction so is all that follows: the mean step is P
/ p. A window shorter than M proves nothing: a *wave*, in which W workers deliver one
after another, is up to W equal steps, and the pause between two waves may come right after it.

What waits is only seen in whole batches. A reserve that shrinks by less than one of them over the
window is not seen, so a second law is applied: no run stays faster than its slowest
resource or serial actor (its *least step*, `loads.least_step`). Steps that repeat below it live
on a reserve, and are not steady. Where a run is ended before it has become steady, as its waves are
longer than what is simulated at most, its mean step is at least that bound.

A random run ends when the 95% confidence interval of the mean step, from batch means [2]_, is
narrow enough, or when its loaders hide all that is random. So does one of equal batches that has
not repeated for long: many workers on machines that they share may meet in thousands of ways.

An epoch that was simulated to its end needs no confidence in a window: its time T is a function of
its samples' own times, drawn one by one. T is the longest path through them, so a sample that takes
longer by d moves it by d where it lies on that path, and not at all elsewhere. With the times of
the samples on the path adding up to T, and each of deviation v of its mean c, the Efron-Stein
inequality [3]_ gives var(T) <= v^2 c T: relative to T at most v / sqrt(n), where n is how many
samples follow one another in a worker. Waves that deliver close together, of which an epoch may
hold three, can say nothing of the kind.

References
----------
.. [1] F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, "Synchronization and Linearity", Wiley,
   1992, chapter 3, https://www.rocq.inria.fr/metalau/cohen/documents/BCOQ-book.pdf
.. [2] A. M. Law, "Simulation Modeling and Analysis", 5th ed., 2015, section 9.5.3.
.. [3] S. Boucheron, G. Lugosi, P. Massart, "Concentration Inequalities", Oxford, 2013, theorem 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Final

from simpy import Event

from simulator.engine.loader import Supply
from simulator.engine.machine import Machine
from simulator.engine.rank import Rank
from simulator.engine.sharing import LAST, Alarm, Clock
from simulator.engine.symmetry import SymmetryReduction
from simulator.engine.trace import TraceEvent
from simulator.pipeline.program import OWN_WORK, by_line, entries
from simulator.records import dataclass
from simulator.results.prediction import Sample, Slice
from simulator.schema.scenario import Job
from simulator.units import Seconds

SAME_STEP = 1e-9
"""Relative difference under which two step times are the same."""

MAX_PERIOD = 256
MIN_REPEATS = 3
MIN_WINDOW = 24
CHECK_EVERY = 8
BATCHES = 16
MIN_BATCH = 4
PRECISION = 0.01
"""Relative half-width of the mean step at which a random run may end."""

NORMAL_95 = 1.96
"""Half-width of a 95% interval of a normal distribution over its standard deviation."""

MIN_SHRINKAGE = 1.0
"""Batches by which a reserve that is being used up falls from one window to the next."""

MIN_BATCH_MEANS = 8
"""Means of a burst each from which on they say how well their mean is known."""

STUDENT_T = {
    8: 2.365,
    9: 2.306,
    10: 2.262,
    11: 2.228,
    12: 2.201,
    13: 2.179,
    14: 2.160,
    15: 2.145,
    16: 2.131,
}
"""97.5% quantile of Student's t by the number of batch means, one less than which is its degrees of
freedom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The steady window: the last `window` steps, which hold whole periods of `period` steps."""

    period: int
    window: int
    half_width: float = 0.0


def find_period(
    durations: Sequence[float], waiting: Sequence[object], least: int = 0
) -> Steady | None:
    """Return the steady window with the shortest period with which the last steps repeat.

    Parameters
    ----------
    durations : sequence of float
        Step times so far [s].
    waiting : sequence
        Contents of the loaders' queues at the end of each step.
    least : int, optional
        Smallest window [steps]: the number of batches in preparation and in flight.

    Returns
    -------
    Steady or None
        None if no period repeats `MIN_REPEATS` times over `MIN_WINDOW` and `least` steps.
    """
    steps = len(durations)
    slack = SAME_STEP * max(fmean(durations[-max(MIN_WINDOW, least) :]), 1e-300) if steps else 0.0
    for period in range(1, min(longest_period(least), steps // (MIN_REPEATS + 1)) + 1):
        if abs(durations[-1] - durations[-1 - period]) > slack:
            continue
        window = window_of(period, least)
        if window + period <= steps and _repeats(durations, waiting, period, window, slack):
            return Steady(period=period, window=window)
    return None


def longest_period(least: int) -> int:
    """Return the longest period to look for [steps]; `least` is the number of batches in flight."""
    return max(MAX_PERIOD, least)


def window_of(period: int, least: int) -> int:
    """Return the window over which a period must repeat [steps].

    It is a multiple of the period, and at least `least`.
    """
    return period * max(MIN_REPEATS, math.ceil(max(MIN_WINDOW, least) / period))


def _repeats(
    durations: Sequence[float],
    waiting: Sequence[object],
    period: int,
    window: int,
    slack: float,
) -> bool:
    last = len(durations) - 1
    return all(
        abs(durations[last - i] - durations[last - i - period]) <= slack
        and waiting[last - i] == waiting[last - i - period]
        for i in range(window)
    )


def batch_means(durations: Sequence[float], burst: int = 1) -> float:
    """Return the 95% half-width of the mean step time by the method of batch means [s].

    It uses up to 16 groups of consecutive steps, each of whole bursts (`burst` steps). With too few
    steps it returns half the observed range, which is not a confidence interval.
    """
    number = BATCHES
    if BATCHES * burst > len(durations) >= MIN_BATCH_MEANS * burst:
        number = len(durations) // burst
    size = whole_bursts(len(durations) // number, burst) if len(durations) >= number else 0
    if size == 0:
        return (max(durations) - min(durations)) / 2.0
    used = durations[-size * number :]
    means = [fmean(used[i * size : (i + 1) * size]) for i in range(number)]
    return STUDENT_T[number] * stdev(means) / math.sqrt(number)


def chance_of_an_epoch(deviation: float, in_series: float) -> float:
    """Return an upper bound on the relative 95% half-width of the time of a whole epoch.

    Parameters
    ----------
    deviation : float
        Standard deviation of the time of one sample, relative to its mean.
    in_series : float
        Samples that one worker processes in series.

    Examples
    --------
    >>> round(chance_of_an_epoch(0.2, 185.0), 4)  # 40,000 samples, 216 producers
    0.0288
    """
    return NORMAL_95 * deviation / math.sqrt(max(1.0, in_series))


def warm_up(steps: int, in_flight: int) -> int:
    """Return the number of initial steps to discard: twice those in flight, or a third."""
    return min(2 * in_flight + 2, steps // 3)


def known_well(durations: Sequence[float], in_flight: int, burst: int) -> Steady | None:
    """Return a steady window if the relative half-width of the mean step is at most `PRECISION`."""
    first = warm_up(len(durations), in_flight)
    kept = durations[first:]
    if len(kept) < BATCHES * max(MIN_BATCH, burst):
        return None
    half_width = batch_means(kept, burst)
    if half_width > PRECISION * fmean(kept):
        return None
    return Steady(period=1, window=len(kept), half_width=half_width)


def undisturbed(
    durations: Sequence[float], ready: Sequence[float], in_flight: int
) -> Steady | None:
    """Return a steady window if all steps are equal and queues do not shrink, despite randomness.

    Parameters
    ----------
    durations : sequence of float
        Step times so far [s].
    ready : sequence of float
        Finished batches in the queue of the average rank at the end of each step.
    in_flight : int
        Highest number of batches requested and not yet taken.
    """
    window = max(MIN_WINDOW, in_flight)
    if len(durations) - 2 * window < in_flight:
        return None
    last = durations[-2 * window :]
    if max(last) - min(last) > SAME_STEP * max(last):
        return None
    if fmean(ready[-window:]) < fmean(ready[-2 * window : -window]) - MIN_SHRINKAGE:
        return None
    return Steady(period=1, window=2 * window)


def whole_bursts(steps: int, burst: int) -> int:
    """Return the largest number of steps up to `steps` that is a multiple of `burst`.

    A window that cuts a burst of batches in two would be too fast or too slow by a part of it.
    """
    return max(1, steps - steps % burst if steps >= burst else steps)


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

    `batches` is the number of batches per rank. `most_steps` ends the simulation even if it is not
    steady; by default a few times the batches in flight. It also ends after `most_events` events.
    `replay` simulates all batches. Workers start after `start_delay` [s]. No steady step is shorter
    than `least_step` [s].
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
    `last` are the steady window that represents all others. `end` is the end of the last batch.
    `settled` is True if the simulation ended before the last batch of the epoch. The mean step is
    at least `floor` [s].
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
    def own_first_step(self) -> Seconds:
        """Time of the average rank for step 1, without waits for other ranks [s]."""
        spent = [entries(by_line(totals)) for totals in self.snapshots[1].ledgers]
        own = [sum(parts[entry] for entry in OWN_WORK) for parts in spent]
        return fmean(own, self.reduction.counts)

    @property
    def steps(self) -> int:
        """Number of simulated steps."""
        return len(self.snapshots) - 1

    @property
    def mean_step(self) -> Seconds:
        """Mean steady step [s]."""
        return max(self.seen_step, self.floor)

    @property
    def seen_step(self) -> Seconds:
        """Mean step of the steady window [s], which batches prefetched before it may shorten."""
        window = self.snapshots[self.last].time - self.snapshots[self.first].time
        return window / (self.last - self.first)

    @property
    def bounded(self) -> bool:
        """True if the mean step is the closed-form bound.

        The simulated steps were then shorter, as they used up prefetched batches.
        """
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
    """Collects the steps of an epoch, ends the simulation when they are steady, and sums it up."""

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
        """Record the state before the first event."""
        self._snapshots.append(snapshot)

    def step(self, snapshot: Snapshot, issued: int, events: int = 0) -> None:
        """Record the end of a step of all ranks, and end the epoch if its steps are steady.

        So far `issued` batches were requested and `events` events processed.
        """
        self.add((snapshot,))
        steps = len(self._durations)
        if self._plan.progress is not None:
            self._plan.progress(steps)
        if self._steady is None and self.due(steps, events):
            self.consider(issued, events)

    def add(self, snapshots: Sequence[Snapshot]) -> None:
        """Record steps without checking if they are steady."""
        for snapshot in snapshots:
            self._durations.append(snapshot.time - self._snapshots[-1].time)
            self._snapshots.append(snapshot)

    def due(self, steps: int, events: int = 0) -> bool:
        """Return True if it is time to check if steps are steady."""
        if self._plan.replay:
            return False
        looked_at = steps % CHECK_EVERY == 0 and steps >= self._in_flight
        return looked_at or self.over(steps, events)

    def over(self, steps: int, events: int = 0) -> bool:
        """Return True if the limit of steps or of events is reached."""
        if self._plan.replay:
            return False
        if events >= self._plan.most_events and steps >= MIN_STEPS:
            return True
        if steps < self._most or (self._random and self._plan.most_steps is None):
            return False
        if self._plan.most_steps is not None:
            return True
        # Steps of equal batches that have not repeated by now are judged as random ones.
        watched = events >= WATCHED_SHARE * self._plan.most_events and steps % CHECK_EVERY == 0
        return watched and self._known() is not None

    def _known(self) -> Steady | None:
        return known_well(self._durations, self._in_flight, self._burst)

    def consider(self, issued: int, events: int = 0) -> None:
        """End the epoch if its steps are steady or a limit is reached."""
        steps = len(self._durations)
        self._steady = self._find()
        if self._steady is not None and self._lives_on_a_reserve(self._steady):
            self._steady = None
        if self._steady is None and self.over(steps, events):
            self._floor = self._plan.least_step
            self._steady = None if self._random else self._known()
        if self._steady is None and self.over(steps, events):
            # Steps that are not steady yet may still depend on the start.
            dropped = max(warm_up(steps, self._in_flight), steps // 2)
            kept = whole_bursts(steps - dropped, self._burst)
            half_width = batch_means(self._durations[-kept:], self._burst)
            self._steady = Steady(period=1, window=kept, half_width=half_width)
        if self._steady is not None:
            self._closed_at = steps
            self._close(self._steady.period * self._per_step, issued)

    def _find(self) -> Steady | None:
        """Return the window of steps that repeat, or whose mean is known; None if none is."""
        if not self._random:
            waiting = [snapshot.waiting for snapshot in self._snapshots[1:]]
            return find_period(self._durations, waiting, self.least)
        found = self._known()
        if found is None and self._burst > MIN_LONG_BURST:
            ready = [sum(s.waiting) / len(s.waiting) for s in self._snapshots[1:]]
            found = undisturbed(self._durations, ready, self._in_flight)
        return found

    def _lives_on_a_reserve(self, steady: Steady) -> bool:
        """Return True if steps are too short to be sustained: they use up prefetched batches."""
        mean = fmean(self._durations[-steady.window :])
        return mean + steady.half_width < self._plan.least_step * JUST_BELOW

    def epoch(
        self, end: float, slices: tuple[Slice, ...] = (), samples: tuple[Sample, ...] = ()
    ) -> Epoch:
        """Return the finished epoch."""
        last, half_width = len(self._durations), 0.0
        if self._steady is None:
            short = last < MIN_ROUNDS * self._in_flight
            # The wait for the first batch belongs to the start of the run, not to a step.
            first = min(1, last - 1) if short else warm_up(last, self._in_flight)
            if short or self._goes_on or last > MAX_STEPS or not self._random:
                # The next epoch begins with batches of this one, and equal steps that have not
                # repeated use up prefetched batches. The mean step must be sustainable, as in a
                # steady window.
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
        """Return the 95% half-width of the mean step of a fully simulated epoch [s]."""
        least = chance_of_an_epoch(self._deviation, self._samples / self._burst)
        return min(batch_means(durations), least * fmean(durations))

    def _close(self, period: int, issued: int) -> None:
        spare = self.supply.limit - issued - self._per_step
        self.supply.limit -= max(0, spare // period) * period


class Recorder:
    """Passes each step to an observer and records the trace while the engine runs an epoch.

    The state at the end of a step is read after all other events of that instant, so that it does
    not depend on their order.
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
        """Record the state before the first event."""
        self._observer.begin(self._snapshot())

    def on_step(self, rank: int, step: int) -> None:  # noqa: ARG002 - all ranks count alike
        """Record that a rank has finished a step."""
        self._finished[step] = self._finished.get(step, 0) + 1
        if self._finished[step] < len(self.ranks):
            return
        del self._finished[step]
        self._ended += 1
        Alarm(self._env, self._look, 0.0, LAST)

    def record(self, event: TraceEvent) -> None:
        """Record an event that ends now, for its rank and all ranks it represents."""
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
