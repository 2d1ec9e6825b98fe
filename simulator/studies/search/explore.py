"""Search of candidates: bound all, predict the most promising in rounds, exclude beaten ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import chain, compress
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator.errors import PlanError
from simulator.reading.search.candidates import CandidateReader
from simulator.records import dataclass
from simulator.results.metrics import Value
from simulator.schema.goal import Objective, Sense
from simulator.studies.search.evaluate import (
    Bounded,
    Chunk,
    bound,
    closer_key,
    evaluate,
    look_closer,
)
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.studies.search.scoring import (
    Criteria,
    Mask,
    beats,
    comparable,
    exact,
    front,
    may_beat,
)
from simulator.studies.search.store import Store
from simulator.studies.search.workers import Lost, Workers, borrowed_workers

FIRST_ROUND: Final = 16
"""Candidates of the usual first round; each later one takes twice as many, up to `MAX_ROUND`."""
MAX_ROUND: Final = 128
"""Maximum number of candidates of a round.

With more, workers are better used; with fewer, fewer candidates are predicted that a result of the
same round would have excluded.
"""
NEAR_MISSES: Final = 2
"""Number of candidates of a round that are predicted before the others are compared with them."""


class Rounds:
    """Rounds of one search: which candidates to predict next, by their bounds and results so far.

    Parameters
    ----------
    least : array
        Best case of each candidate, one row each, less is better; minus infinity if unbounded.
    top : int, optional
        Also predict candidates that could be among this number of best by the first objective.
    margin : float
        Relative distance from the front up to which candidates are predicted too; if negative,
        candidates that could be better by no more than this share are excluded.
    first : int
        Number of candidates of the first round.
    """

    def __init__(
        self,
        least: NDArray[np.float64],
        *,
        top: int | None = None,
        margin: float = 0.0,
        first: int = FIRST_ROUND,
    ) -> None:
        self.possible: Mask = np.ones(len(least), dtype=bool)
        self._chosen: Mask = np.zeros(len(least), dtype=bool)
        self.least = np.array(least, dtype=float)
        self._top = top
        self._margin = margin
        self._found = np.empty((0, least.shape[1]))
        self.taken = 0
        self._size = first
        # Where nothing can be ruled out, rounds would only make workers wait for one another.
        hopeless = not len(least) or bool(np.isneginf(least).any(axis=1).all())
        self._whole = hopeless and not top

    def next(self) -> tuple[int, ...]:
        """Return the candidates of the next round, in their order; empty if none is left."""
        left = np.flatnonzero(self.possible)
        if not len(left):
            return ()
        size = len(left) if self._whole else self._size
        self._size = min(2 * self._size, MAX_ROUND)
        chosen = sorted(self._promising(left, size))
        self.possible[chosen] = False
        self._chosen[chosen] = True
        self.taken += len(chosen)
        return tuple(chosen)

    @property
    def compares(self) -> bool:
        """True if tighter bounds of the round's candidates may save predictions.

        Those of the first round are predicted before any is excluded.
        """
        return len(self._found) > 0 and not self._whole

    def know(self, rows: Sequence[int], least: Sequence[Sequence[float]]) -> None:
        """Tighten the bounds of the candidates `rows` to `least`."""
        nearer = np.array(least, dtype=float).reshape(-1, self.least.shape[1])
        chosen = list(rows)
        self.least[chosen] = np.maximum(self.least[chosen], nearer)

    def closest(self) -> tuple[int, ...]:
        """Return the round's candidates to predict now, in their order; empty if none is left.

        The others are first compared with the results of these.
        """
        chosen = np.flatnonzero(self._chosen)
        left = chosen[self._wanted(self.least[chosen])]
        self._chosen[:] = False
        if not self.compares:
            return tuple(left.tolist())
        now = sorted(self._promising(left, NEAR_MISSES))
        self._chosen[left] = True
        self._chosen[now] = False
        return tuple(now)

    def tell(self, scores: Sequence[Sequence[float]]) -> None:
        """Add the objectives of predicted candidates, one row each; exclude beaten ones."""
        found = np.array(scores, dtype=float).reshape(-1, self.least.shape[1])
        self._found = np.vstack([self._found, found])
        self.possible &= self._wanted(self.least)

    def _wanted(self, least: NDArray[np.float64]) -> Mask:
        return may_beat(least, self._found, top=self._top, margin=self._margin)

    def _promising(self, left: NDArray[np.intp], size: int) -> list[int]:
        """Return the best candidates by their bounds: their front, then the next front."""
        chosen: list[int] = []
        while len(left) and len(chosen) < size:
            on_front = front(self.least[left])
            layer, room = left[on_front], size - len(chosen)
            if len(layer) > room:
                layer = self._spread(layer, room)
            chosen += layer.tolist()
            left = left[~on_front]
        return chosen

    def _spread(self, layer: NDArray[np.intp], room: int) -> NDArray[np.intp]:
        order = np.lexsort((layer, self.least[layer, 0]))
        places = np.linspace(0, len(layer) - 1, room).round().astype(int)
        return np.asarray(layer[order[places]])


def beaten_by(least: NDArray[np.float64], scores: Mapping[int, Sequence[float]]) -> tuple[int, ...]:
    """Return for every row of `least` the first index in `scores` that beats it, or -1."""
    names = np.array(sorted(scores), dtype=int)
    points = np.array([scores[name] for name in names], dtype=float)
    first = np.full(len(least), -1)
    if len(names):
        kept = front(points)
        for name, point in zip(names[kept][::-1], points[kept][::-1], strict=True):
            first[beats(point, least)] = name
    return tuple(first.tolist())


READ_AT_ONCE: Final = 2500
"""Maximum number of candidates that a worker reads and bounds as one task."""
READ_IN_PARTS: Final = 8
"""Minimum number of tasks to read all candidates, so that all workers are used."""
READ_FIRST: Final = 16
"""Number of candidates read before workers have started, for first predictions to store."""
EARLY_ROUNDS: Final = 2
"""Number of these candidates, the best by their bounds, that are predicted at once."""
PREDICTED_AT_ONCE: Final = 4
"""Maximum number of candidates that a worker predicts as one task; its results are then stored."""
ALIKE_AT_ONCE: Final = 8
"""Maximum number of similar candidates of one task, as they may differ after all."""
TASKS_OF_A_ROUND: Final = 16
"""Minimum number of tasks of a round.

One task may take a hundred times as long as another, and all workers should be busy to the end.
"""
NO_BOUNDS: Final[Mapping[int, Mapping[str, float]]] = {}
UNSOUND: Final = frozenset({Status.FAILED, Status.BUG, Status.SCREENED})
"""States of outcomes that are not stored, as another run, version or search may differ."""
READING_SHARE: Final = 0.05
"""Work to read and bound a candidate, relative to a prediction."""
LOOKUP_SHARE: Final = 0.5
"""Work to simulate a later epoch of a candidate, relative to a prediction."""
NOT_STORED: Final = "not predicted in what is stored"
"""Reason of a wanted candidate without metrics if only stored outcomes are used."""

TIME_AND_COST: Final = (
    Objective(metric="total_time_s", sense=Sense.MINIMIZE),
    Objective(metric="cost.usd_to_train", sense=Sense.MINIMIZE),
)

Answer = TypeVar("Answer")
Judge: TypeAlias = Callable[[Candidate, Mapping[str, Value]], Mapping[str, Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request to search candidates.

    Parameters
    ----------
    reader : CandidateReader
        Reads the scenarios of candidates.
    candidates : tuple of Candidate
        Candidates with distinct indices, in the order of the outcomes.
    objectives : tuple of Objective
        Objectives of the Pareto front.
    top : int, optional
        Number of best candidates by the first objective that are predicted in any case.
    margin : float
        Relative distance from the front up to which candidates are predicted too; if negative,
        candidates that could be better by no more than this share are not predicted.
    first : int
        Number of candidates that are predicted before any is excluded.
    exhaustive : bool
        Predict every candidate that can run.
    stored_only : bool
        Predict nothing: candidates that are not in the store get the reason `NOT_STORED`.
    where : str
        Condition on metrics and keys that a candidate must meet.
    seed : int
        Seed of all random draws.
    intervals : bool
        Compute the 80% intervals of metrics.
    judge : callable, optional
        Returns the metrics of a candidate by which objectives and condition are evaluated: never
        better than those predicted, and in the same order.
    bounded : mapping of int to Bounded, optional
        Result of `bounds_of` for the candidates, by their index; they are not read again.
    """

    reader: CandidateReader
    candidates: tuple[Candidate, ...]
    objectives: tuple[Objective, ...] = TIME_AND_COST
    top: int | None = None
    margin: float = 0.0
    exhaustive: bool = False
    stored_only: bool = False
    where: str = ""
    seed: int = 0
    intervals: bool = False
    first: int = FIRST_ROUND
    judge: Judge | None = None
    bounded: Mapping[int, Bounded] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Progress of a search: the finished share of the work `done`, and numbers of candidates.

    `settled` is the number of finished candidates, `predicted` of those predicted now, and `stored`
    of those taken from the store.
    """

    done: float
    candidates: int
    read: int
    settled: int
    predicted: int
    stored: int


def explore(
    request: Request,
    *,
    workers: Workers | None = None,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Callable[[Standing], None] | None = None,
) -> tuple[Outcome, ...]:
    """Return an outcome for every candidate, in their order.

    Parameters
    ----------
    request : Request
        Candidates, objectives and conditions of the search.
    workers : Workers, optional
        Executor of the predictions; this process by default.
    executor : concurrent.futures.Executor, optional
        Used instead of `workers`; its owner shuts it down.
    store : Store, optional
        Store of outcomes: known ones are read from it, finished ones are added.
    progress : callable, optional
        Called with the progress of the search.

    Raises
    ------
    PlanError
        If an objective or the condition is invalid.
    StoreError
        If the store cannot be used; finished outcomes are in it.
    """
    keys = dict.fromkeys(key for c in request.candidates for key in c.settings)
    criteria = Criteria(request.objectives, request.where, tuple(keys))
    team = borrowed_workers(executor) if executor is not None else workers or Workers(None)
    search = _Search(request, criteria, team, store, progress or (lambda _: None))
    left = search.read()
    if request.exhaustive:
        search.predict(left)
    else:
        _in_rounds(search, request, criteria, left)
    return tuple(search.found[candidate.index] for candidate in request.candidates)


def bounds_of(
    request: Request,
    *,
    workers: Workers,
    store: Store | None = None,
    progress: Callable[[Standing], None] | None = None,
) -> dict[int, Bounded]:
    """Return bounds of every candidate of a request by its index, without a prediction.

    They can be used for several requests with some of these candidates. A few promising candidates
    are predicted and stored meanwhile, so that a search that is interrupted early is not lost.
    """
    criteria = Criteria(request.objectives)
    search = _Search(request, criteria, workers, store, progress or (lambda _: None))
    return {one.candidate.index: one for one in search.bounds()}


def _in_rounds(
    search: _Search, request: Request, criteria: Criteria, left: Sequence[Bounded]
) -> None:
    """Predict the candidates that could be wanted; give the others a reason for their exclusion."""
    width = len(request.objectives)
    least = np.array([criteria.least(one.expected) for one in left], dtype=float)
    least = least.reshape(-1, width)
    known = comparable(least)
    for one in compress(left, ~known):
        search.give_up(one, "has no figure for an objective that others have one for")
    left, least = list(compress(left, known)), least[known]
    rounds = Rounds(least, top=request.top, margin=request.margin, first=request.first)
    scores: dict[int, tuple[float, ...]] = {}
    hoped = {row for row, one in enumerate(left) if one.expected != one.best}
    while chosen := rounds.next():
        if rounds.compares:
            nearer = search.look_closer([left[row] for row in chosen])
            rounds.know(chosen, [criteria.least(best) for best in nearer])
            hoped.difference_update(chosen)
        while closest := rounds.closest():
            found = search.predict([left[row] for row in closest])
            new = {
                outcome.candidate.index: criteria.score(search.judged(outcome))
                for outcome in found
                if outcome.status is Status.PREDICTED
            }
            scores |= new
            rounds.tell(tuple(new.values()))
        search.tell(given_up=len(least) - rounds.taken - int(rounds.possible.sum()))
    spared = [row for row, one in enumerate(left) if one.candidate.index not in search.found]
    beaters = beaten_by(rounds.least[spared], scores)
    for row, beater in zip(spared, beaters, strict=True):
        how = "expected to be" if row in hoped else "even at best"
        search.give_up(left[row], f"{how} worse than candidate {beater}")


class _Search:
    """State of a search: known outcomes and bounds, and the workers and store that add more."""

    def __init__(
        self,
        request: Request,
        criteria: Criteria,
        workers: Workers,
        store: Store | None,
        progress: Callable[[Standing], None],
    ) -> None:
        self.found: dict[int, Outcome] = {}
        self._request, self._all = request, request.candidates
        self._criteria, self._workers = criteria, workers
        self._store, self._progress = store, progress
        self._chunk = Chunk.of(request.reader, seed=request.seed, intervals=request.intervals)
        self._by_key: dict[str, Outcome] = {}
        self._read = self._looked = self._predicted = self._stored = self._given_up = 0

    def read(self) -> list[Bounded]:
        """Return the candidates that may run, with their bounds; finish the others."""
        left = []
        for one in self.bounds():
            if one.outcome is not None:
                self.found[one.candidate.index] = one.outcome
            elif self._may_meet(one):
                left.append(one)
            else:
                self.found[one.candidate.index] = self._missed(one.candidate, exact(one.best))
        return left

    def bounds(self) -> list[Bounded]:
        """Return the bounds of all candidates, in their order."""
        known = self._request.bounded
        if known is not None:
            self._read = len(self._all)
            return [known[candidate.index] for candidate in self._all]
        bounded: list[Bounded] = []
        for number, part in enumerate(self._read_parts()):
            bounded += part
            self._read += len(part)
            if number == 0:
                self._predict_early(part)
            self.tell()
        place = {candidate.index: number for number, candidate in enumerate(self._all)}
        return sorted(bounded, key=lambda one: place[one.candidate.index])

    def _read_parts(self) -> Iterator[tuple[Bounded, ...]]:
        """Yield the bounds of candidates in parts: a few read in this process, then the others."""
        few = self._all[:READ_FIRST] if self._begins_early() else ()
        if few:
            yield bound(replace(self._chunk, candidates=few))
        rest = self._all[len(few) :]
        at_once = min(READ_AT_ONCE, -(-len(rest) // READ_IN_PARTS) or 1)
        yield from self._answers(bound, _parts(rest, at_once), READING_SHARE, _unread)

    def _begins_early(self) -> bool:
        return (
            self._store is not None
            and not self._request.stored_only
            and len(self._all) > READ_FIRST
        )

    def _predict_early(self, part: Sequence[Bounded]) -> None:
        """Store predictions of the most promising candidates of the first part.

        Only the first part: few candidates are wanted later, and a prediction takes as long as
        reading hundreds. The candidates wanted do not depend on what is predicted early, or on
        interruptions of the search.
        """
        if self._store is None or not self._begins_early():
            return
        may_run = (one for one in part if one.outcome is None)
        best = sorted(may_run, key=lambda one: self._criteria.least(one.best)[0])[:EARLY_ROUNDS]
        stored = self._store.found(one.key for one in best)
        for one in best:
            if one.key not in stored and one.key not in self._by_key:
                self._work_out((one.candidate,), {one.candidate.index: one.key}, 1)

    def _work_out(
        self, candidates: Sequence[Candidate], keys: Mapping[int, str], at_once: int
    ) -> None:
        """Predict candidates, and store each outcome when it is finished."""
        for part in self._answers(evaluate, _parts(candidates, at_once), 1.0, _died):
            told = [_as_bounded(outcome, keys[outcome.candidate.index]) for outcome in part]
            if self._store is not None:
                self._store.add([o for o in told if o.status not in UNSOUND])
            self._by_key |= {outcome.key: outcome for outcome in told}
            self._predicted += len(told)
            self.tell()

    def judged(self, outcome: Outcome) -> Mapping[str, Value]:
        """Return the metrics of an outcome by which it is evaluated."""
        judge = self._request.judge
        if judge is None or outcome.status is not Status.PREDICTED:
            return outcome.figures
        return judge(outcome.candidate, outcome.figures)

    def look_closer(self, chosen: Sequence[Bounded]) -> list[Mapping[str, float]]:
        """Return tighter best cases of candidates, with known later epochs, in their order."""
        first = {closer_key(one.key): one.candidate for one in reversed(chosen)}
        known = {} if self._store is None else self._store.found(first)
        new = {one.index: key for key, one in first.items() if key not in known}
        if self._request.stored_only:
            new = {}
        parts = alike_together([one for one in chosen if one.candidate.index in new])
        best = {one.candidate.index: one.best for one in chosen}
        for part in self._answers(look_closer, parts, LOOKUP_SHARE, _died, best=best):
            told = [_as_bounded(outcome, new[outcome.candidate.index]) for outcome in part]
            if self._store is not None:
                self._store.add([o for o in told if o.status is Status.SCREENED])
            known |= {outcome.key: outcome for outcome in told}
            self._looked += len(told)
            self.tell()
        closer = [known.get(closer_key(one.key)) for one in chosen]
        return [
            (_numbers(seen.figures) if seen else {}) or one.expected
            for seen, one in zip(closer, chosen, strict=True)
        ]

    def predict(self, chosen: Sequence[Bounded]) -> list[Outcome]:
        """Predict candidates: equal contents only once, and none that is in the store."""
        first = {one.key: one.candidate for one in reversed(chosen) if one.key not in self._by_key}
        if self._store is not None:
            known = self._store.found(first)
            self._by_key |= known
            self._stored += len(known)
        new = {one.index: key for key, one in first.items() if key not in self._by_key}
        if self._request.stored_only:
            self._by_key |= {one.key: _unknown(one) for one in chosen if one.key in new.values()}
            new = {}
        candidates = tuple(one.candidate for one in chosen if one.candidate.index in new)
        self._work_out(candidates, new, _at_once(len(candidates)))
        return [self._settle(one) for one in chosen]

    def give_up(self, one: Bounded, reason: str) -> None:
        """Finish a candidate without a prediction, for the given reason."""
        self.found[one.candidate.index] = Outcome(
            candidate=one.candidate,
            status=Status.SCREENED,
            figures=exact(one.best),
            reason=reason,
            key=one.key,
        )

    def tell(self, given_up: int | None = None) -> None:
        """Report the progress; `given_up`: number of excluded candidates not yet finished."""
        self._given_up = self._given_up if given_up is None else given_up
        settled = len(self.found) + self._given_up
        count = len(self._all)
        worked = READING_SHARE * self._read + LOOKUP_SHARE * self._looked + self._predicted
        open_ = READING_SHARE * (count - self._read) + max(0, count - settled)
        self._progress(
            Standing(
                done=worked / ((worked + open_) or 1.0),
                candidates=count,
                read=self._read,
                settled=settled,
                predicted=self._predicted,
                stored=self._stored,
            )
        )

    def _settle(self, one: Bounded) -> Outcome:
        outcome = replace(self._by_key[one.key], candidate=one.candidate)
        sound = outcome.status is Status.PREDICTED
        if sound and not self._criteria.meets(one.candidate, self.judged(outcome)):
            outcome = self._missed(one.candidate, outcome.figures, one.key)
        self.found[one.candidate.index] = outcome
        return outcome

    def _may_meet(self, one: Bounded) -> bool:
        if self._criteria.misses_early(one.candidate, one.best):
            return False
        return self._request.exhaustive or self._criteria.may_meet(one.candidate, one.best)

    def _missed(self, candidate: Candidate, figures: Mapping[str, Value], key: str = "") -> Outcome:
        return Outcome(
            candidate=candidate,
            status=Status.INFEASIBLE,
            figures=figures,
            reason=f"does not meet: {self._criteria.where}",
            key=key,
        )

    def _answers(
        self,
        function: Callable[[Chunk], tuple[Answer, ...]],
        parts: Sequence[tuple[Candidate, ...]],
        weight: float,
        lost: Callable[[Candidate, int], Answer],
        *,
        best: Mapping[int, Mapping[str, float]] = NO_BOUNDS,
    ) -> Iterator[tuple[Answer, ...]]:
        """Evaluate chunks of candidates on the workers and yield the results.

        If workers die over a chunk, its candidates are retried one by one. `lost` returns the
        result for a candidate that was given up, `weight` is the work of a candidate relative to a
        prediction, and `best` are known best cases by index.
        """
        chunks = [
            replace(
                self._chunk,
                candidates=part,
                best={one.index: best[one.index] for one in part if one.index in best},
            )
            for part in parts
        ]
        alone: list[Candidate] = []
        whole = weight * sum(map(len, parts))
        for number, answer in self._workers.answers(function, chunks, weight=whole):
            if not isinstance(answer, Lost):
                yield answer
            elif len(parts[number]) > 1:
                alone += parts[number]
            else:
                yield (lost(parts[number][0], answer.deaths),)
        if alone:
            yield from self._answers(function, _parts(alone, 1), weight, lost, best=best)


def _parts(candidates: Sequence[Candidate], at_once: int) -> list[tuple[Candidate, ...]]:
    starts = range(0, len(candidates), at_once)
    return [tuple(candidates[start : start + at_once]) for start in starts]


def alike_together(chosen: Sequence[Bounded]) -> list[tuple[Candidate, ...]]:
    """Group candidates whose later epochs are likely equal, so that a worker simulates one epoch.

    Candidates with equal bounds of later epochs are likely to have equal epochs, for example if
    they differ only in the store that the data is copied from.
    """
    alike: dict[float | None, list[Candidate]] = {}
    for one in chosen:
        alike.setdefault(one.best.get("epoch_time_s"), []).append(one.candidate)
    groups = [part for group in alike.values() for part in _parts(group, ALIKE_AT_ONCE)]
    at_once = _at_once(len(groups))
    starts = range(0, len(groups), at_once)
    return [tuple(chain.from_iterable(groups[start : start + at_once])) for start in starts]


def _at_once(candidates: int) -> int:
    return min(PREDICTED_AT_ONCE, -(-candidates // TASKS_OF_A_ROUND) or 1)


def _numbers(figures: Mapping[str, Value]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if isinstance(value, float)}


def _as_bounded(outcome: Outcome, key: str) -> Outcome:
    """Return the outcome with the key of the candidate's bounds.

    Raises
    ------
    PlanError
        If a file has changed since: results must not be stored under the key of other contents.
    """
    if outcome.key not in ("", key):
        msg = (
            "a scenario, a profile or plan itself was changed during the search; run the same "
            "command again, what was finished before is stored"
        )
        raise PlanError(msg)
    return replace(outcome, key=key)


def _unknown(one: Bounded) -> Outcome:
    return Outcome(
        candidate=one.candidate,
        status=Status.SCREENED,
        figures=exact(one.best),
        reason=NOT_STORED,
        key=one.key,
    )


def _died(candidate: Candidate, deaths: int) -> Outcome:
    reason = f"{deaths} processes died over it, one after another"
    return Outcome(candidate=candidate, status=Status.FAILED, reason=reason)


def _unread(candidate: Candidate, deaths: int) -> Bounded:
    return Bounded(candidate=candidate, outcome=_died(candidate, deaths))
