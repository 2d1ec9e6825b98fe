"""Asking for predictions: through the search of a sweep, which may be kept to what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from simulator.physics.footprint import Verdict
from simulator.schema.goal import Goal, Limits, Objective
from simulator.studies.recommend.baseline import Reader
from simulator.studies.recommend.choice import MONEY, TIME
from simulator.studies.recommend.problem import Inquiry
from simulator.studies.search.evaluate import Bounded
from simulator.studies.search.explore import (
    NOT_STORED,
    TIME_AND_COST,
    Judge,
    Request,
    Standing,
    bounds_of,
    explore,
)
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.studies.search.store import Store
from simulator.studies.search.workers import Workers

AT_FIRST: Final = 1
"""Candidates that are predicted for each one wanted before any is ruled out."""


class Course:
    """How far a search of several requests is as a whole.

    Parameters
    ----------
    tell : callable, optional
        Told the share that is done, and how far the request of the moment is; what it has counted
        are predictions of all requests so far.
    """

    def __init__(self, tell: Callable[[float, Standing], None] | None = None) -> None:
        self._tell = tell
        self._done = self._share = 0.0
        self._predicted = self._stored = 0
        self._last: Standing | None = None

    @property
    def predicted(self) -> int:
        """Predictions made so far, by all requests together."""
        return 0 if self._last is None else self._last.predicted

    def begin(self, share: float) -> None:
        """The requests that follow are so much of what is left."""
        self._done += self._share
        self._share = share * (1.0 - self._done)

    def next(self) -> None:
        """Another request begins; it counts from zero."""
        if self._last is not None:
            self._predicted, self._stored = self._last.predicted, self._last.stored

    def told(self, standing: Standing) -> None:
        """How far the request of the moment is."""
        self._last = replace(
            standing,
            predicted=self._predicted + standing.predicted,
            stored=self._stored + standing.stored,
        )
        if self._tell is not None:
            self._tell(self._done + self._share * standing.done, self._last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Who answers a request.

    `bounds` tells what is known without any prediction, `course` is told which share of the whole
    follows. `missing` are the keys of candidates that were wanted and that nobody has predicted.
    """

    of: Callable[[Request], tuple[Outcome, ...]]
    bounds: Callable[[Request], dict[int, Bounded]]
    course: Course = field(default_factory=Course)
    missing: set[str] = field(default_factory=set)


def asking(
    workers: Workers,
    store: Store | None,
    tell: Callable[[float, Standing], None] | None = None,
    *,
    stored_only: bool = False,
) -> Ask:
    """Ask for whatever could still be wanted.

    Parameters
    ----------
    workers : Workers
        Who reads candidates and predicts them.
    store : Store, optional
        What it has is not predicted again.
    tell : callable, optional
        Told how far all of it is.
    stored_only : bool
        Predict nothing; what the store does not have is `missing`.
    """
    course, missing = Course(tell), set[str]()

    def of(request: Request) -> tuple[Outcome, ...]:
        course.next()
        wanted = replace(request, stored_only=stored_only)
        found = explore(wanted, workers=workers, store=store, progress=course.told)
        missing.update(one.key for one in found if one.reason == NOT_STORED)
        return found

    def bounds(request: Request) -> dict[int, Bounded]:
        course.next()
        wanted = replace(request, stored_only=stored_only)
        return bounds_of(wanted, workers=workers, store=store, progress=course.told)

    return Ask(of=of, bounds=bounds, course=course, missing=missing)


@dataclass(slots=True, kw_only=True)
class Search:
    """A search that goes on: candidates, and what is known of each so far.

    `judge` says how a candidate's figures count; `bounded` is known of candidates at once, from
    the first question about all of them on.
    """

    reader: Reader
    goal: Goal
    candidates: tuple[Candidate, ...]
    ask: Ask
    known: dict[int, Outcome]
    judge: Judge | None = None
    seed: int = 0
    bounded: dict[int, Bounded] | None = None

    @staticmethod
    def of(inquiry: Inquiry, ask: Ask, *, seed: int) -> Search:
        """A search that knows nothing yet."""
        return Search(
            reader=inquiry.ground.reader,
            goal=inquiry.goal,
            candidates=tuple(
                Candidate(index=index, settings=one) for index, one in enumerate(inquiry.settings)
            ),
            ask=ask,
            known={},
            judge=inquiry.counted,
            seed=seed,
        )

    def bound(self, share: float) -> None:
        """Know of all candidates at once what no prediction is needed for; a share of the work."""
        self.ask.course.begin(share)
        self.bounded = self.ask.bounds(self._request(self.candidates, (self.goal.objective,)))

    def best_of(
        self,
        candidates: Sequence[Candidate],
        *,
        top: int = 1,
        close: float = 0.0,
        within_limits: bool = True,
    ) -> None:
        """Make sure that the best of these by the goal are predicted, if any may be best.

        Parameters
        ----------
        candidates : sequence of Candidate
            Which ones.
        top : int
            So many of them.
        close : float
            Share by which another one may be better all the same.
        within_limits : bool
            Those that keep the limits on time and cost too, not only on memory.
        """
        where = limits_as_text(self.goal.limits) if within_limits else self._memory()
        request = self._request(candidates, (self.goal.objective,))
        request = replace(request, top=top, margin=-close, first=AT_FIRST * top, where=where)
        self._learn(request)

    def front(self, candidates: Sequence[Candidate], *, close: float = 0.0) -> None:
        """The front of these in time and cost within the limits on memory.

        What is ahead of it by no more than a share `close` may be missing.
        """
        request = self._request(candidates, TIME_AND_COST)
        self._learn(replace(request, margin=-close, where=self._memory()))

    def all_of(self, candidates: Sequence[Candidate]) -> None:
        """Predict all of these."""
        self._learn(replace(self._request(candidates, (self.goal.objective,)), exhaustive=True))

    def meeting(self, candidates: Sequence[Candidate], objective: Objective, where: str) -> None:
        """The best of these that meet a condition, by an objective."""
        request = self._request(candidates, (objective,))
        self._learn(replace(request, top=1, first=AT_FIRST, where=where))

    def _request(
        self, candidates: Sequence[Candidate], objectives: tuple[Objective, ...]
    ) -> Request:
        return Request(
            reader=self.reader,
            candidates=tuple(candidates),
            objectives=objectives,
            seed=self.seed,
            intervals=True,
            judge=self.judge,
            bounded=self.bounded,
        )

    def _learn(self, request: Request) -> None:
        if not request.candidates:
            return
        for outcome in self.ask.of(request):
            before = self.known.get(outcome.candidate.index)
            if before is None or before.status is not Status.PREDICTED:
                self.known[outcome.candidate.index] = outcome

    def _memory(self) -> str:
        """The limits that are not on time or cost, as a condition."""
        return limits_as_text(replace(self.goal.limits, deadline=None, budget=None))


def limits_as_text(limits: Limits) -> str:
    """The limits that need figures as a condition; what may not fit is no recommendation.

    Examples
    --------
    >>> limits_as_text(Limits(deadline=60.0, gpu_memory_margin=0.25)).split(" and ")[1::3]
    ['not gpu_memory_bytes.total > 0.75 * gpu_memory_bytes.capacity', 'total_time_s <= 60.0']
    """
    margins = (
        ("host_ram_bytes", limits.ram_margin),
        ("gpu_memory_bytes", limits.gpu_memory_margin),
    )
    parts = [
        f"not {what}.total > {1.0 - margin!r} * {what}.capacity"  # what has none keeps it
        for what, margin in margins
    ]
    parts += [f"not {name} == '{Verdict.UNCERTAIN.value}'" for name in ("fits.host", "fits.gpu")]
    parts += [f"({limits.where})"] if limits.where else []
    parts += [] if limits.deadline is None else [f"{TIME} <= {limits.deadline!r}"]
    parts += [] if limits.budget is None else [f"{MONEY} <= {limits.budget!r}"]
    return " and ".join(parts)
