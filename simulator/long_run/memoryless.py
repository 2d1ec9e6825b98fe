"""Lives of a run whose failures forget the past, many failures of many lives at once.

Where rates are the same all through a life, the time from one failure to the next is exponential
whatever happens meanwhile. So all such gaps can be drawn beforehand: each is a restart as far as it
gets, and then an attempt. Spares, lemons and spot capacity remember what happened before, and so
does a nearer copy of a checkpoint: `attempts` takes those from event to event.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.equations.reliability import interruption_rate
from simulator.long_run.progress import Array, Lives, goes_on, kept, longest, undisturbed
from simulator.results.outlook import BLOCKED, DETECTION, LOST, PARTS, RESTARTING, USEFUL, Cause
from simulator.schema.long_run import Failures, LongRun, Restart

AT_ONCE: Final = 64
"""Gaps of each life that are taken at once, where lives are not too many."""
MOST: Final = 2_000_000
"""Gaps of all lives that are taken at once: some 15 numbers each, 240 MB."""


def is_memoryless(run: LongRun) -> bool:
    """Whether what happens next does not depend on what happened before."""
    failures = run.failures
    forgets = failures is not None and failures.spares is None and failures.lemons is None
    return forgets and run.spells is None and run.saving.near is None


def memoryless_lives(run: LongRun, work: Array, random: np.random.Generator) -> Lives:
    """Lives of a run with so much `work` each [s]; the run has to be memoryless."""
    if run.failures is None:
        msg = "a run without failures has no gaps between them"
        raise TypeError(msg)
    gaps = _Gaps(run, run.failures, work, random)
    latest = longest(run, work, run.failures.restart.total)
    while gaps.live.any():
        gaps.take()
        gaps.live &= goes_on(run, gaps.clock, gaps.done, work, latest)
    finish = np.where(gaps.ended, gaps.clock, np.inf)
    none = np.zeros_like(work)
    return Lives(
        finish=finish, parts=gaps.parts, interruptions=gaps.struck, away=none, elsewhere=none
    )


class _Gaps:
    """Where each life stands after the gaps it has lived through."""

    def __init__(
        self, run: LongRun, failures: Failures, work: Array, random: np.random.Generator
    ) -> None:
        draws = work.size
        self._run, self._work, self._random = run, work, random
        self._many = max(1, min(AT_ONCE, MOST // max(1, draws)))
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
        """The next gaps of all lives, up to the one in which each ends."""
        chance = self._random.random((2, self._work.size, self._many))
        some = np.flatnonzero(self.live)
        gap, cause = self._drawn(chance[:, some], some)
        before = np.concatenate([self._before[some, None], cause[:, :-1]], axis=1)
        spent = _restarts(self._restart, gap, before)
        trained = gap - sum(spent.values())
        progress, held = kept(self._run, trained, cause)
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
        """Times between failures, and what each failure is."""
        machine, job, planned = (rate[some, None] for rate in self._rates)
        total = machine + job + planned
        with np.errstate(divide="ignore"):
            gap = -np.log1p(-chance[0]) / total
        which = chance[1] * total
        cause = np.where(which < machine, Cause.MACHINE, Cause.JOB)
        return gap, np.where(which >= machine + job, Cause.PLANNED, cause)


def _restarts(restart: Restart, gap: Array, before: NDArray[np.int_]) -> dict[str, Array]:
    """What of each gap goes to the parts of the restart that it begins with [s].

    What was announced need not be noticed; a life begins without a restart.
    """
    spent: dict[str, Array] = {}
    begun = np.zeros_like(gap)
    for name in RESTARTING:
        noticed = (before == Cause.PLANNED) & (name == DETECTION)
        takes = np.where((before < 0) | noticed, 0.0, float(getattr(restart, name)))
        spent[name] = np.clip(gap - begun, 0.0, takes)
        begun = begun + takes
    return spent
