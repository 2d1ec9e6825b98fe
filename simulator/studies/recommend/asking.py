"""Asking for predictions: through the search of a sweep, or only of what lies in a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from simulator.errors import PlanError
from simulator.goal import Goal, Objective
from simulator.studies.evaluate import Assignment, stored_key
from simulator.studies.explore import TIME_AND_COST, Request, Standing, explore
from simulator.studies.outcome import Candidate, Outcome, Status
from simulator.studies.recommend.ground import Reader, Settings
from simulator.studies.store import Store
from simulator.studies.workers import Workers

NOT_STORED = "not predicted in what is stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Who answers a request; `remembered` says whether all came from a store, nothing predicted."""

    of: Callable[[Request], tuple[Outcome, ...]]
    remembered: Callable[[], bool] = lambda: False


def searching(
    workers: Workers, store: Store | None, progress: Callable[[Standing], None] | None = None
) -> Ask:
    """Ask by predicting whatever could still be wanted."""
    return Ask(of=lambda request: explore(request, workers=workers, store=store, progress=progress))


def remembering(store: Store, otherwise: Ask) -> Ask:
    """Ask only for what is stored; a store that knows none of the first candidates is searched.

    The first request of a recommendation is for the scenario as it stands, which every search
    predicts.
    """
    known: dict[bytes, bool] = {}

    def ask(request: Request) -> tuple[Outcome, ...]:
        found = _remembered(store, request)
        whose = Assignment.of(request.reader, seed=request.seed, doubts=request.doubts).reader
        if known.setdefault(whose, any(one.key for one in found)):
            return found
        return otherwise.of(request)

    return Ask(of=ask, remembered=lambda: all(known.values()))


def _remembered(store: Store, request: Request) -> tuple[Outcome, ...]:
    assignment = Assignment.of(request.reader, seed=request.seed, doubts=request.doubts)
    keys = [_key(request, candidate, assignment) for candidate in request.candidates]
    found = store.found([key for key in keys if key])
    return tuple(
        replace(found[key], candidate=candidate)
        if key in found
        else Outcome(candidate=candidate, status=Status.SCREENED, reason=NOT_STORED)
        for candidate, key in zip(request.candidates, keys, strict=True)
    )


def _key(request: Request, candidate: Candidate, assignment: Assignment) -> str:
    try:
        return stored_key(request.reader.read(candidate.settings).key, assignment)
    except PlanError:
        return ""


@dataclass(slots=True, kw_only=True)
class Search:
    """A search that goes on: candidates, and what is known of each so far."""

    reader: Reader
    goal: Goal
    candidates: tuple[Candidate, ...]
    ask: Ask
    known: dict[int, Outcome]
    seed: int = 0
    margin: float = 0.0

    @staticmethod
    def of(
        reader: Reader, goal: Goal, settings: Sequence[Settings], ask: Ask, *, seed: int
    ) -> Search:
        """A search that knows nothing yet."""
        candidates = tuple(
            Candidate(index=index, settings=one) for index, one in enumerate(settings)
        )
        return Search(reader=reader, goal=goal, candidates=candidates, ask=ask, known={}, seed=seed)

    def survey(self, top: int) -> None:
        """The front in time, cost and the goal, and the best so many by the goal."""
        objectives = dict.fromkeys((self.goal.objective, *TIME_AND_COST))
        self._learn(self.candidates, tuple(objectives), top, self._memory())

    def best_of(self, candidates: Sequence[Candidate], *, within_limits: bool = True) -> None:
        """Make sure that the best of these by the goal is predicted, if any may be best."""
        parts = [self._memory(), self._most() if within_limits else ""]
        where = " and ".join(part for part in parts if part)
        self._learn(tuple(candidates), (self.goal.objective,), 1, where)

    def extremes(self, candidates: Sequence[Candidate]) -> None:
        """The front of these in time and cost, within the limits on memory and without them."""
        self._learn(tuple(candidates), TIME_AND_COST, None, "")
        if self._memory():
            self._learn(tuple(candidates), TIME_AND_COST, None, self._memory())

    def all_of(self, candidates: Sequence[Candidate]) -> None:
        """Predict all of these."""
        self._learn(tuple(candidates), (self.goal.objective,), None, "", exhaustive=True)

    def _learn(
        self,
        candidates: tuple[Candidate, ...],
        objectives: tuple[Objective, ...],
        top: int | None,
        where: str,
        *,
        exhaustive: bool = False,
    ) -> None:
        if not candidates:
            return
        request = Request(
            reader=self.reader,
            candidates=candidates,
            objectives=objectives,
            top=top,
            margin=self.margin,
            exhaustive=exhaustive,
            where=where,
            seed=self.seed,
            doubts=True,
        )
        for outcome in self.ask.of(request):
            before = self.known.get(outcome.candidate.index)
            if before is None or before.status is not Status.PREDICTED:
                self.known[outcome.candidate.index] = outcome

    def _memory(self) -> str:
        """The limits that are not on time or cost, as a condition."""
        limits = self.goal.limits
        margins = (
            ("host_ram_bytes", limits.ram_margin),
            ("gpu_memory_bytes", limits.gpu_memory_margin),
        )
        parts = [
            f"{what}.total <= {1.0 - margin!r} * {what}.capacity"
            for what, margin in margins
            if margin > 0.0
        ]
        parts += [f"({limits.where})"] if limits.where else []
        return " and ".join(parts)

    def _most(self) -> str:
        """Deadline and budget as a condition; what interruptions add can only break them more."""
        limits = self.goal.limits
        parts = []
        if limits.deadline is not None:
            parts.append(f"total_time_s <= {limits.deadline!r}")
        if limits.budget is not None:
            parts.append(f"cost.usd_to_train <= {limits.budget!r}")
        return " and ".join(parts)
