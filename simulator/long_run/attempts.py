"""Simulated runs with failures: attempts, work saved by checkpoints, waits for machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.reliability import interruption_rate
from simulator.records import dataclass
from simulator.results.prediction import (
    BLOCKED,
    CAPACITY,
    DETECTION,
    FEWER,
    LOADING,
    LOST,
    PARTS,
    REPAIR,
    REPLACEMENT,
    RESTARTING,
    USEFUL,
    Cause,
)
from simulator.schema.long_run import Failures, LongRun, Outages, Restart, Saving, Spares
from simulator.units import Seconds

Array: TypeAlias = NDArray[np.float64]
MAX_SLOWDOWN: Final = 10.0
"""Multiple of its undisturbed time, without pauses, after which a run counts as never ending."""
MAX_PAUSES: Final = 100.0
"""As many typical pauses are waited for besides, so that a short run may wait for machines."""
MAX_EVENTS: Final = 200_000
"""Failures, restarts and waits after which a run counts as never ending: 16,384 H100s had 466
interruptions in 54 days (Llama 3)."""
MAX_ROUNDS: Final = 4_000
"""Events of each run that are simulated one by one; what is left goes on at the pace so far."""
MAX_DRAWN: Final = 50_000
"""The same for failures of a memoryless process, which are simulated many at once."""
TRIAL_EVENTS: Final = 1_000
"""Events after which a run that would exceed `MAX_EVENTS` at its pace is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRuns:
    """Results of simulated runs, one entry for each.

    `finish` is the time to the end of the run (infinity if it never ends) and `parts` the time of
    each activity, both [s]. `interruptions` is the number of interruptions by cause. `away` is the
    time that machines were in repair or not yet replaced, summed over machines; `elsewhere` is the
    time that the job ran on on-demand machines during spot outages [s].
    """

    finish: Array
    parts: Mapping[str, Array]
    interruptions: Mapping[Cause, Array]
    away: Array
    elsewhere: Array


def undisturbed(run: LongRun, work: Array) -> Array:
    """Return the run time with checkpoints and without interruptions [s]."""
    return work + _marks(work, run.saving) * run.saving.blocking


def longest(run: LongRun, work: Array, pause: Seconds) -> Array:
    """Return the time after which a run counts as never ending [s].

    `pause` is the typical time of an interruption [s].
    """
    return MAX_SLOWDOWN * undisturbed(run, work) + MAX_PAUSES * pause


def goes_on(  # noqa: PLR0913 - the state of the runs
    run: LongRun, *, clock: Array, done: Array, work: Array, latest: Array, events: Array | int
) -> NDArray[np.bool_]:
    """Return for each run if it may still end by its `latest` time.

    A run is given up if 1.5 times its pace so far is not enough: after a tenth of the latest time
    (not on spot capacity, whose waits may be as long), or after `TRIAL_EVENTS` to end within
    `MAX_EVENTS`.
    """
    in_events = (events < TRIAL_EVENTS) | (1.5 * done * MAX_EVENTS >= work * events)
    in_time: NDArray[np.bool_] = (clock < latest) & in_events
    if run.outages is not None:
        return in_time
    return in_time & ((clock < 0.1 * latest) | (1.5 * done * latest >= work * clock))


def growth_to_end(
    *, live: NDArray[np.bool_], clock: Array, done: Array, work: Array, latest: Array
) -> Array:
    """Return how many times longer each run takes than so far, if it goes on at its pace.

    1 for runs that are not `live`; infinity for those that would end after their `latest` time.
    Over thousands of events the pace of a run is known to 1 or 2%.
    """
    with np.errstate(divide="ignore"):
        growth = np.where(live, work / done, 1.0)
    return np.where(live & (growth * clock > latest), np.inf, growth)


def _grown(values: Array, growth: Array) -> Array:
    """Return amounts of runs at their end; those of runs that never end stay as they are."""
    return np.asarray(values * np.where(np.isfinite(growth), growth, 1.0))


def _marks(work: Array, saving: Saving) -> Array:
    """Return the number of checkpoints during `work` [s], one at its end if it is then due."""
    return np.floor(work / saving.interval + 1e-9)


def kept_work(run: LongRun, passed: Array, cause: NDArray[np.int_]) -> tuple[Array, Array]:
    """Return the work done in interrupted attempts, and the part that a checkpoint saved [s].

    `passed` is the time of each attempt [s], `cause` that of its interruption.
    """
    saving = run.saving
    if np.isinf(saving.interval):
        progress, durable = passed, np.zeros_like(passed)
    else:
        period = saving.interval + saving.blocking
        whole = np.floor(passed / period)
        rest = np.minimum(passed - whole * period, saving.interval)
        progress = whole * saving.interval + rest
        durable = _durable(run.saving, passed, period)
        if saving.near is not None:
            late = saving.near.durable - saving.blocking
            close = np.floor(np.maximum(0.0, passed - late) / period) * saving.interval
            durable = np.where(leaves_near(run.saving, cause), np.maximum(close, durable), durable)
    notice = 0.0 if run.outages is None else run.outages.notice
    warned = (cause == int(Cause.CAPACITY)) & (notice >= saving.durable)
    saved = np.maximum(durable, progress - np.where(warned, saving.durable, 0.0))
    return progress, np.where(warned | is_announced(cause), saved, durable)


def is_announced(cause: NDArray[np.int_]) -> NDArray[np.bool_]:
    """Return for each cause if it is announced, so that training saves its work first."""
    moved = (cause == int(Cause.RETURNED)) | (cause == int(Cause.MOVED))
    told: NDArray[np.bool_] = (cause == int(Cause.PLANNED)) | moved
    return told


def _durable(saving: Saving, passed: Array, period: Seconds) -> Array:
    """Return the work that the last checkpoint in the store preserves [s].

    `passed` is the time since the attempt began [s], `period` the time from one checkpoint to the
    next [s]. The store takes one checkpoint at a time.
    """
    late = saving.durable - saving.blocking
    stride = max(1.0, np.ceil(late / period - 1e-9)) * period
    work = stride / period * saving.interval
    return np.asarray(np.floor(np.maximum(0.0, passed - late) / stride) * work)


def leaves_near(saving: Saving, cause: NDArray[np.int_]) -> NDArray[np.bool_]:
    """Return for each cause if a checkpoint in host RAM or on local drives survives it."""
    near = saving.near
    if near is None:
        return np.zeros(cause.shape, dtype=bool)
    # A job that moves to other machines loses the copies on the old ones.
    here = is_announced(cause) & (cause != Cause.MOVED)
    stays: NDArray[np.bool_] = (cause == Cause.JOB) | here
    outlived: NDArray[np.bool_] = (cause == Cause.MACHINE) & near.outlives_machine
    return np.logical_or(stays, outlived)


GAPS_AT_ONCE: Final = 64
"""Gaps of each run that are simulated at once, if there are not too many runs."""
MAX_GAPS: Final = 2_000_000
"""Gaps of all runs that are simulated at once: some 15 numbers each, 240 MB."""


def is_memoryless(run: LongRun) -> bool:
    """Return whether failures are a memoryless process.

    They are without spare machines, outages and checkpoints in host RAM or on local drives.
    """
    failures = run.failures
    forgets = failures is not None and failures.spares is None and failures.lemons is None
    return forgets and run.outages is None and run.saving.near is None


def memoryless_runs(run: LongRun, work: Array, random: np.random.Generator) -> SimulatedRuns:
    """Simulate runs with memoryless failures; `work` is the work of each [s]."""
    if run.failures is None:
        msg = "a run without failures has no gaps between them"
        raise TypeError(msg)
    gaps = _Gaps(run, run.failures, work, random)
    latest = longest(run, work, run.failures.restart.total)
    events = np.zeros_like(work)
    while gaps.live.any() and events.max(initial=0.0) < MAX_DRAWN:
        gaps.take()
        events = sum(gaps.struck.values(), np.zeros_like(work))
        gaps.live &= goes_on(
            run, clock=gaps.clock, done=gaps.done, work=work, latest=latest, events=events
        )
    growth = growth_to_end(
        live=gaps.live, clock=gaps.clock, done=gaps.done, work=work, latest=latest
    )
    none = np.zeros_like(work)
    return SimulatedRuns(
        finish=np.where(gaps.ended | gaps.live, gaps.clock * growth, np.inf),
        parts={name: _grown(time, growth) for name, time in gaps.parts.items()},
        interruptions={cause: _grown(count, growth) for cause, count in gaps.struck.items()},
        away=none,
        elsewhere=none,
    )


class _Gaps:
    """State of each simulated run, advanced by intervals between failures (gaps)."""

    def __init__(
        self, run: LongRun, failures: Failures, work: Array, random: np.random.Generator
    ) -> None:
        draws = work.size
        self._run, self._work, self._random = run, work, random
        self._many = max(1, min(GAPS_AT_ONCE, MAX_GAPS // max(1, draws)))
        scale = np.exp(failures.doubt * random.standard_normal(draws))
        machine = float(interruption_rate(run.machines, failures.per_machine, 0.0))
        self._rates = (scale * machine, scale * failures.per_job, np.full(draws, failures.planned))
        self._restart = failures.restart
        self.done = np.zeros(draws)
        self._before = np.full(draws, -1)
        self.clock = np.zeros(draws)
        self.live = np.ones(draws, dtype=bool)
        self.ended = np.zeros(draws, dtype=bool)
        self.parts = {name: np.zeros(draws) for name in PARTS}
        self.struck = {cause: np.zeros(draws) for cause in Cause}

    def take(self) -> None:
        """Advance all runs by the next intervals between failures, at most to their end."""
        chance = self._random.random((2, self._work.size, self._many))
        some = np.flatnonzero(self.live)
        gap, cause = self._drawn(chance[:, some], some)
        before = np.concatenate([self._before[some, None], cause[:, :-1]], axis=1)
        spent = _restarts(self._restart, gap, before)
        trained = gap - sum(spent.values())
        progress, held = kept_work(self._run, trained, cause)
        done = self.done[some, None] + np.cumsum(held, axis=1) - held
        left = self._work[some, None] - done
        takes = undisturbed(self._run, left)
        last = (takes <= trained) & (trained > 0.0)
        ends = last.any(axis=1)
        number = np.where(ends, last.argmax(axis=1), self._many)
        place = np.arange(self._many)
        whole, final = place < number[:, None], place == number[:, None]
        self._add(USEFUL, some, np.where(final, left, held), whole | final)
        self._add(LOST, some, np.where(final, 0.0, progress - held), whole)
        self._add(BLOCKED, some, np.where(final, takes - left, trained - progress), whole | final)
        for name, time in spent.items():
            self._add(name, some, time, whole | final)
        for each in Cause:
            self.struck[each][some] += (whole & (cause == each)).sum(axis=1)
        passed = np.where(final, gap - trained + takes, gap)
        self.clock[some] += np.where(whole | final, passed, 0.0).sum(axis=1)
        self.done[some] = np.where(ends, self._work[some], done[:, -1] + held[:, -1])
        self._before[some] = cause[:, -1]
        self.ended[some], self.live[some] = ends, ~ends

    def _add(
        self, name: str, some: NDArray[np.intp], time: Array, counts: NDArray[np.bool_]
    ) -> None:
        self.parts[name][some] += np.where(counts, time, 0.0).sum(axis=1)

    def _drawn(self, chance: Array, some: NDArray[np.intp]) -> tuple[Array, NDArray[np.int_]]:
        """Draw the times between failures, and their causes."""
        machine, job, planned = (rate[some, None] for rate in self._rates)
        total = machine + job + planned
        with np.errstate(divide="ignore"):
            gap = -np.log1p(-chance[0]) / total
        which = chance[1] * total
        cause = np.where(which < machine, Cause.MACHINE, Cause.JOB)
        return gap, np.where(which >= machine + job, Cause.PLANNED, cause)


def _restarts(restart: Restart, gap: Array, before: NDArray[np.int_]) -> dict[str, Array]:
    """Return the time of each part of the restart at the start of each interval [s].

    Announced interruptions need no detection; a run begins without a restart. `before` is the cause
    of the interruption before each interval `gap`.
    """
    spent: dict[str, Array] = {}
    begun = np.zeros_like(gap)
    for name in RESTARTING:
        noticed = (before == Cause.PLANNED) & (name == DETECTION)
        takes = np.where((before < 0) | noticed, 0.0, float(getattr(restart, name)))
        spent[name] = np.clip(gap - begun, 0.0, takes)
        begun = begun + takes
    return spent


Some: TypeAlias = NDArray[np.intp]
"""Numbers of draws."""
MACHINE, JOB, PLANNED, GONE, RETURNED, MOVED = (int(cause) for cause in Cause)
"""Causes as the plain numbers that arrays are compared with fastest."""


def simulate_runs(run: LongRun, *, draws: int, seed: int = 0) -> SimulatedRuns:
    """Simulate a run many times.

    Parameters
    ----------
    run : LongRun
        The run, its failures and its outages.
    draws : int
        Number of simulated runs.
    seed : int
        Seed of all random numbers. The n-th event of a simulated run gets the same numbers in all
        runs, so that two runs of one seed can be compared.

    Returns
    -------
    SimulatedRuns
        Arrays of `draws` entries.
    """
    random = np.random.default_rng(seed)
    work = run.work * np.exp(run.work_doubt * random.standard_normal(draws))
    if run.outages is None and not _ever_fails(run):
        return _plain(run, work)
    if is_memoryless(run):
        return memoryless_runs(run, work, random)
    return _Drawing(run, work, random).ended()


def _ever_fails(run: LongRun) -> bool:
    """Return whether any failure rate is above zero."""
    failures = run.failures
    return failures is not None and (failures.per_machine + failures.per_job + failures.planned) > 0


def _plain(run: LongRun, work: Array) -> SimulatedRuns:
    """Return the results of runs without interruptions: work and checkpoints."""
    parts = {name: np.zeros_like(work) for name in PARTS}
    parts[USEFUL] += work
    parts[BLOCKED] += undisturbed(run, work) - work
    none = np.zeros_like(work)
    struck = dict.fromkeys(Cause, none)
    finish = undisturbed(run, work)
    return SimulatedRuns(
        finish=finish, parts=parts, interruptions=struck, away=none, elsewhere=none
    )


class _Drawing:
    """State of each simulated run: clock, work done, and machines."""

    def __init__(self, run: LongRun, work: Array, random: np.random.Generator) -> None:
        self.run, self._work = run, work
        self._random, draws = random, work.size
        self._clock = np.zeros(draws)
        self._done = np.zeros(draws)
        self._running = np.ones(draws, dtype=bool)
        self._live = np.ones(draws, dtype=bool)
        self._unnoticed = np.zeros(draws, dtype=bool)
        self._from_near = np.zeros(draws, dtype=bool)
        self._parts = {name: np.zeros(draws) for name in PARTS}
        self._struck = np.zeros((len(Cause), draws))
        self._machines = _Machines(run, draws, self._random)
        self._available_until = np.full(draws, np.inf)
        self._pair = np.zeros(draws, dtype=np.intp)
        # Start of the time on on-demand machines; infinity if the run is not on them.
        self._since = np.full(draws, np.inf)
        self._elsewhere = np.zeros(draws)
        none: tuple[Seconds, ...] = ()
        self._up = np.asarray(none if run.outages is None else run.outages.up)
        self._down = np.asarray(none if run.outages is None else run.outages.down)
        if run.outages is not None:
            self._enter_trace(run.outages)

    def ended(self) -> SimulatedRuns:
        """Simulate every run to its end, or `MAX_ROUNDS` events of it, and return the results."""
        latest = longest(self.run, self._work, self._pause())
        turn = 0
        while self._live.any() and turn < MAX_ROUNDS:
            turn += 1
            chance = self._random.random((3, self._clock.size))
            # One event for each run and round, so that no random numbers are used twice.
            standing = np.flatnonzero(self._live & ~self._running)
            self._attempt(np.flatnonzero(self._live & self._running), chance)
            self._recover(standing, chance)
            self._live &= goes_on(
                self.run,
                clock=self._clock,
                done=self._done,
                work=self._work,
                latest=latest,
                events=turn,
            )
        away = self._machines.time_away(self._clock)
        self._leave_demand(np.flatnonzero(np.isfinite(self._since)))
        growth = growth_to_end(
            live=self._live, clock=self._clock, done=self._done, work=self._work, latest=latest
        )
        ends = self._live | (self._done >= self._work)
        return SimulatedRuns(
            finish=np.where(ends, self._clock * growth, np.inf),
            parts={name: _grown(time, growth) for name, time in self._parts.items()},
            interruptions={cause: _grown(self._struck[cause], growth) for cause in Cause},
            away=_grown(away, growth),
            elsewhere=_grown(self._elsewhere, growth),
        )

    def _pause(self) -> Seconds:
        """Return the typical time of an interruption [s]: outage, restart and repair."""
        outages, failures = self.run.outages, self.run.failures
        down = 0.0 if outages is None else float(np.mean(outages.down))
        if failures is None:
            return down
        repair = 0.0 if failures.spares is None else failures.spares.repair
        return down + failures.restart.total + repair

    def _enter_trace(self, outages: Outages) -> None:
        """Place each run at a random time of the capacity trace."""
        up, down = self._up, self._down
        each = up.size // outages.zones
        for zone in range(outages.zones):
            first, some = zone * each, self._pair[zone :: outages.zones]
            times = (up + down)[first : first + each]
            some[:] = first + self._random.choice(each, some.size, p=times / times.sum())
        passed = self._random.random(self._clock.size) * (up + down)[self._pair]
        there = passed < up[self._pair]
        self._available_until = up[self._pair] - passed
        gone = np.flatnonzero(~there)
        self._go_without(gone, ((up + down)[self._pair] - passed)[gone], outages)

    def _next_pair(self, some: Some, outages: Outages) -> Some:
        """Return the index of the next period with machines, in trace order or at random."""
        each, now = self._up.size // outages.zones, self._pair[some]
        place = (
            (now + 1) % each if outages.in_order else self._random.integers(each, size=some.size)
        )
        return now - now % each + place

    def _attempt(self, some: Some, chance: Array) -> None:
        """Advance training until the end of the run or the next event."""
        if not some.size:
            return
        passed, cause = self._next_event(some, chance)
        rate = self._machines.pace(some, self._clock)
        back = self._machines.next_back(some, self._clock)
        cause = np.where(back < passed, RETURNED, cause)
        passed = np.minimum(back, passed)
        left = (self._work[some] - self._done[some]) / rate
        takes = undisturbed(self.run, left)
        ends = takes <= passed
        progress, kept = kept_work(self.run, passed, cause)
        kept = np.where(ends, left, kept)
        blocked = np.where(ends, takes - left, passed - progress)
        self._parts[USEFUL][some] += kept * rate
        self._parts[FEWER][some] += kept * (1.0 - rate)
        self._parts[BLOCKED][some] += blocked
        self._parts[LOST][some] += np.where(ends, 0.0, progress - kept)
        self._done[some] = np.where(ends, self._work[some], self._done[some] + kept * rate)
        self._clock[some] += np.where(ends, takes, passed)
        self._live[some[ends]] = False
        self._strike(some[~ends], cause[~ends], chance)

    def _next_event(self, some: Some, chance: Array) -> tuple[Array, NDArray[np.int_]]:
        """Return the time to the next event, and its cause."""
        machine, job, planned = self._machines.rates(some, self._clock)
        total = machine + job + planned
        with np.errstate(divide="ignore"):
            failure = -np.log1p(-chance[0, some]) / total
        # A period may have ended while the job waited for a repair.
        period = np.maximum(0.0, self._available_until[some] - self._clock[some])
        which = chance[1, some] * total
        cause = np.where(which < machine, MACHINE, JOB)
        cause = np.where(which >= machine + job, PLANNED, cause)
        turn = np.where(np.isfinite(self._since[some]), MOVED, GONE)
        cause = np.where(period <= failure, turn, cause)
        return np.minimum(failure, period), cause

    def _strike(
        self, some: Some, cause: NDArray[np.int_], chance: Array, *, fresh: bool = True
    ) -> None:
        """Record an interruption of an attempt (`fresh`) or of a restart, and machines lost."""
        if not some.size:
            return
        self._running[some] = False
        broken = cause == MACHINE
        self._unnoticed[some] = broken | (cause == JOB)
        # A failed restart does not change which checkpoint has to be loaded.
        self._from_near[some] = leaves_near(self.run.saving, cause) & (
            fresh | self._from_near[some]
        )
        self._struck[cause, some] += 1.0
        self._machines.fail(some[broken], self._clock, chance[2])
        self._lose_capacity(some[cause == GONE])
        self._move_back(some[cause == MOVED])

    def _lose_capacity(self, some: Some) -> None:
        """Start an outage of spot capacity."""
        outages = self.run.outages
        if outages is None or not some.size:
            return
        wait = self._down[self._pair[some]]
        if not outages.fallback:
            self._machines.all_gone(some, self._clock, wait)
        self._go_without(some, wait, outages)

    def _go_without(self, some: Some, wait: Array, outages: Outages) -> None:
        """Wait for the end of an outage, or continue on on-demand machines."""
        if outages.fallback:
            self._since[some] = self._clock[some]
            self._available_until[some] = self._clock[some] + wait
            return
        self._clock[some] += wait
        self._parts[CAPACITY][some] += wait
        self._enter_next(some, outages)

    def _enter_next(self, some: Some, outages: Outages) -> None:
        """End an outage of spot capacity and draw the next period."""
        self._pair[some] = self._next_pair(some, outages)
        self._available_until[some] = self._clock[some] + self._up[self._pair[some]]

    def _move_back(self, some: Some) -> None:
        """Return from on-demand machines to spot machines."""
        if self.run.outages is None or not some.size:
            return
        self._leave_demand(some)
        self._enter_next(some, self.run.outages)

    def _leave_demand(self, some: Some) -> None:
        self._elsewhere[some] += self._clock[some] - self._since[some]
        self._since[some] = np.inf

    def _recover(self, some: Some, chance: Array) -> None:
        """Wait for a machine if too few are available, else restart, up to the next event."""
        if not some.size:
            return
        lacking = self._machines.lacking(some, self._clock)
        waiting = some[lacking]
        if waiting.size:
            passed = self._machines.wait(waiting, self._clock, chance)
            self._parts[REPAIR][waiting] += passed
        self._restart(some[~lacking], chance)

    def _restart(self, some: Some, chance: Array) -> None:
        if not some.size:
            return
        passed, cause = self._next_event(some, chance)
        begun = np.zeros(some.size)
        for name in RESTARTING:
            takes = self._restart_part(name, some)
            self._parts[name][some] += np.clip(passed - begun, 0.0, takes)
            begun = begun + takes
        done = begun <= passed
        self._clock[some] += np.minimum(begun, passed)
        self._running[some[done]] = True
        self._strike(some[~done], cause[~done], chance, fresh=False)

    def _restart_part(self, name: str, some: Some) -> Array:
        """Return the time of a part of the restart [s]; announced events need no detection."""
        if self.run.failures is None:
            return np.zeros(some.size)
        takes = float(getattr(self.run.failures.restart, name))
        near = self.run.saving.near
        if name == LOADING and near is not None:
            return np.where(self._from_near[some], min(takes, near.load), takes)
        if name == REPLACEMENT:
            return np.where(self._machines.away(some, self._clock) > 0.0, 0.0, takes)
        return np.where(self._unnoticed[some], takes, 0.0 if name == DETECTION else takes)


class _Machines:
    """Machines of each simulated run: failure rates, lemons, and machines in repair."""

    def __init__(self, run: LongRun, draws: int, random: np.random.Generator) -> None:
        self._run, self._random = run, random
        failures = run.failures
        self._scale = np.ones(draws)
        self._lemons = np.zeros(draws)
        # Times at which machines were lost, and at which they return.
        self._lost, self._back = np.zeros((draws, 4)), np.zeros((draws, 4))
        # Number of missing machines when last updated, and return time of the next one.
        self._missing, self._next = np.zeros(draws), np.full(draws, np.inf)
        self._away = np.zeros(draws)
        self._desks: Array | None = None
        if failures is None:
            return
        self._scale = np.exp(failures.doubt * random.standard_normal(draws))
        if failures.lemons is not None:
            self._lemons += round(failures.lemons.share * run.machines)
        if failures.spares is not None and failures.spares.technicians is not None:
            self._desks = np.zeros((draws, failures.spares.technicians))
        first = float(self._lemons[0]) if draws else 0.0
        weight = run.machines + first * (self._factor - 1.0)
        self._healthy = failures.per_machine * run.machines / weight

    @property
    def _factor(self) -> float:
        failures = self._run.failures
        return 1.0 if failures is None or failures.lemons is None else failures.lemons.factor

    def away(self, some: Some, clock: Array) -> Array:
        """Return the number of machines that each run lacks."""
        spares = None if self._run.failures is None else self._run.failures.spares
        if spares is None or not self._run.rates_with_fewer:
            return np.zeros(some.size)
        away: Array = np.maximum(0.0, self._broken(some, clock) - spares.count)
        return away

    def pace(self, some: Some, clock: Array) -> Array:
        """Return the speed of each run with its machines, relative to all machines."""
        rates = np.array([1.0, *self._run.rates_with_fewer])
        away = self.away(some, clock).astype(np.intp)
        return np.asarray(rates[np.minimum(away, len(rates) - 1)])

    def next_back(self, some: Some, clock: Array) -> Array:
        """Return the time until another machine is back [s]; infinity if none is missing."""
        if not self._run.rates_with_fewer:
            return np.full(some.size, np.inf)
        away = self.away(some, clock)
        return np.where(away > 0.0, self._next[some] - clock[some], np.inf)

    def rates(self, some: Some, clock: Array) -> tuple[Array, Array, Array]:
        """Return the rates of machine failures, job failures and planned stops [/s]."""
        failures, none = self._run.failures, np.zeros(some.size)
        if failures is None:
            return none, none, none
        there = self._run.machines - self.away(some, clock)
        alike = there + self._lemons[some] * (self._factor - 1.0)
        machine = interruption_rate(alike, self._healthy, 0.0) * self._scale[some]
        return machine, failures.per_job * self._scale[some], none + failures.planned

    def fail(self, some: Some, clock: Array, chance: Array) -> None:
        """Record a machine failure of each run: the machine may be a lemon, and is repaired."""
        failures = self._run.failures
        if failures is None or not some.size:
            return
        if failures.lemons is not None and failures.lemons.excluded:
            bad = self._lemons[some] * self._factor
            share = bad / (self._run.machines + self._lemons[some] * (self._factor - 1.0))
            self._lemons[some] -= chance[some] < share
        if failures.spares is not None:
            self._repair(some, clock[some], failures.spares)

    def _repair(self, some: Some, now: Array, spares: Spares) -> None:
        takes = _times_away(spares, some.size, self._random)
        begins = now
        if self._desks is not None:
            desk = self._desks[some].argmin(axis=1)
            begins = np.maximum(now, self._desks[some, desk])
            self._desks[some, desk] = begins + takes
        slot = self._back[some].argmin(axis=1)
        ended = self._back[some, slot]
        if (ended > now).any():
            self._back = np.hstack([self._back, np.zeros_like(self._back)])
            self._lost = np.hstack([self._lost, np.zeros_like(self._lost)])
            slot = self._back[some].argmin(axis=1)
            ended = self._back[some, slot]
        self._away[some] += ended - self._lost[some, slot]
        back = begins + takes
        self._settle(some, now)
        self._lost[some, slot], self._back[some, slot] = now, back
        self._missing[some] += back > now
        self._next[some] = np.minimum(self._next[some], np.where(back > now, back, np.inf))

    def all_gone(self, some: Some, clock: Array, wait: Array) -> None:
        """Exclude an outage from the time that machines are missing in repair."""
        now = clock[some, None]
        meanwhile = np.clip(self._back[some] - now, 0.0, wait[:, None])
        self._away[some] -= meanwhile.sum(axis=1)

    def time_away(self, clock: Array) -> Array:
        """Return the time that machines of each run were missing so far [s].

        It is summed over machines.
        """
        last = np.minimum(self._back, clock[:, None]) - self._lost
        away: Array = self._away + last.sum(axis=1)
        return away

    def _broken(self, some: Some, clock: Array) -> Array:
        self._settle(some, clock[some])
        away: Array = self._missing[some]
        return away

    def _settle(self, some: Some, now: Array) -> None:
        """Update the number of missing machines of runs in which one has returned by `now`."""
        returned = self._next[some] <= now
        rows = some[returned]
        if not rows.size:
            return
        back = self._back[rows]
        away = back > now[returned, None]
        self._missing[rows] = np.count_nonzero(away, axis=1)
        self._next[rows] = np.where(away, back, np.inf).min(axis=1)

    def lacking(self, some: Some, clock: Array) -> NDArray[np.bool_]:
        """Return for each run if it has fewer machines than the job needs."""
        spares = None if self._run.failures is None else self._run.failures.spares
        if spares is None:
            return np.zeros(some.size, dtype=bool)
        return self._broken(some, clock) > spares.count + len(self._run.rates_with_fewer)

    def wait(self, some: Some, clock: Array, chance: Array) -> Array:
        """Wait until a machine is repaired or another one fails; return the elapsed time [s]."""
        failures = self._run.failures
        if failures is None or failures.spares is None:
            return np.zeros(some.size)
        now, away = clock[some], self._broken(some, clock)
        repaired = self._next[some]
        on = self._run.machines + failures.spares.count - away
        rate = failures.per_machine * self._scale[some] * np.maximum(on, 0.0)
        with np.errstate(divide="ignore"):
            fails = now - np.log1p(-chance[0, some]) / rate
        clock[some] = np.minimum(repaired, fails)
        self.fail(some[fails < repaired], clock, chance[2])
        passed: Array = clock[some] - now
        return passed


def _times_away(spares: Spares, many: int, random: np.random.Generator) -> Array:
    """Draw the repair times of `many` failed machines [s]."""
    if spares.variation == 1.0:
        return random.exponential(spares.repair, many)
    # A lognormal distribution by its mean and its standard deviation over that.
    variance = np.log1p(spares.variation**2)
    return spares.repair * random.lognormal(-0.5 * variance, np.sqrt(variance), many)
