"""The search itself: which candidates are predicted, by whom, and what is kept of each.

Every candidate is read and bounded. Those that could still be wanted are predicted in rounds; what
a round takes depends on the results of earlier rounds alone, never on time or on who worked, so
the outcomes are the same to the last bit wherever they were worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from simulator.goal import Objective, Sense
from simulator.studies.evaluate import Assignment, Bounded, Chunk, Reader, bound, evaluate
from simulator.studies.outcome import Candidate, Outcome, Status
from simulator.studies.store import Store
from simulator.studies.workers import Lost, Workers

READ_AT_ONCE: Final = 64
"""Candidates that a worker reads as one task."""
PREDICTED_AT_ONCE: Final = 4
"""Candidates that a worker predicts as one task; what it has finished is stored then."""
READING: Final = 0.05
"""Reading a candidate, in predictions."""

TIME_AND_COST: Final = (
    Objective(metric="total_time_s", sense=Sense.MINIMIZE),
    Objective(metric="cost.usd_to_train", sense=Sense.MINIMIZE),
)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a search.

    Parameters
    ----------
    reader : Reader
        Reads the candidates' scenarios.
    candidates : tuple of Candidate
        In the order in which outcomes come back.
    objectives : tuple of Objective
        What the Pareto front is over.
    top : int, optional
        Also be sure of so many that are best by the first objective.
    margin : float
        Also be sure of those that are so much worse than the front, as a share.
    exhaustive : bool
        Predict every candidate.
    where : str
        An expression over metrics and keys that a candidate must meet.
    seed : int
        Of all random draws.
    doubts : bool
        Work out intervals too.
    """

    reader: Reader
    candidates: tuple[Candidate, ...]
    objectives: tuple[Objective, ...] = TIME_AND_COST
    top: int | None = None
    margin: float = 0.0
    exhaustive: bool = False
    where: str = ""
    seed: int = 0
    doubts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a search is: candidates by what is known of them, and the share of work done."""

    done: float
    read: int = 0
    predicted: int = 0
    stored: int = 0
    possible: int = 0


def explore(
    request: Request,
    *,
    workers: Workers,
    store: Store | None = None,
    progress: Callable[[Standing], None] | None = None,
) -> tuple[Outcome, ...]:
    """What is known of every candidate, in their order.

    Parameters
    ----------
    request : Request
        What is looked for, and among what.
    workers : Workers
        Who does it.
    store : Store, optional
        Answers what it has, and is given what is finished, as it comes.
    progress : callable, optional
        Told how far the search is.

    Raises
    ------
    StoreError
        If the store cannot be used; what was finished is in it.
    """
    search = _Search(request, workers, store, progress or (lambda _: None))
    bounded = search.read()
    search.predict([b for b in bounded if b.outcome is None])
    return tuple(search.found[candidate.index] for candidate in request.candidates)


class _Search:
    """What is known so far, and the ways to know more."""

    def __init__(
        self,
        request: Request,
        workers: Workers,
        store: Store | None,
        tell: Callable[[Standing], None],
    ) -> None:
        self.found: dict[int, Outcome] = {}
        self._workers = workers
        self._store = store
        self._tell = tell
        self._all = request.candidates
        self._assignment = Assignment.of(request.reader, seed=request.seed, doubts=request.doubts)
        self._read = 0
        self._stored = 0

    def read(self) -> list[Bounded]:
        """Every candidate's key and best case; those refused are found already."""
        bounded: list[Bounded] = []
        for part in self._answers(bound, self._all, READ_AT_ONCE, READING, _unread):
            bounded += part
            self._read += len(part)
            self._show()
        bounded.sort(key=lambda b: b.candidate.index)
        self.found |= {b.candidate.index: b.outcome for b in bounded if b.outcome is not None}
        return bounded

    def predict(self, chosen: Sequence[Bounded]) -> None:
        """Predict some candidates; equal contents once, and none that the store has."""
        by_key: dict[str, list[Candidate]] = {}
        for one in chosen:
            by_key.setdefault(one.key, []).append(one.candidate)
        known = {} if self._store is None else self._store.found(by_key)
        self._stored += len(known)
        for outcome in known.values():
            self._keep(outcome, by_key[outcome.key])
        keys = {same[0].index: key for key, same in by_key.items()}
        new = tuple(same[0] for key, same in by_key.items() if key not in known)
        for part in self._answers(evaluate, new, PREDICTED_AT_ONCE, 1.0, _died):
            told = [replace(o, key=keys[o.candidate.index]) for o in part]
            if self._store is not None:
                self._store.add([o for o in told if o.status is not Status.FAILED])
            for outcome in told:
                self._keep(outcome, by_key[outcome.key])
            self._show()

    def _keep(self, outcome: Outcome, same: Sequence[Candidate]) -> None:
        for candidate in same:
            self.found[candidate.index] = replace(outcome, candidate=candidate)

    def _show(self) -> None:
        possible = len(self._all) - len(self.found)
        worked = READING * self._read + len(self.found)
        whole = worked + READING * (len(self._all) - self._read) + possible
        self._tell(
            Standing(
                done=worked / whole,
                read=self._read,
                predicted=len(self.found),
                stored=self._stored,
                possible=possible,
            )
        )

    def _answers(
        self,
        function: Callable[[Chunk], tuple[Answer, ...]],
        candidates: Sequence[Candidate],
        at_once: int,
        weight: float,
        lost: Callable[[Candidate, int], Answer],
    ) -> Iterator[tuple[Answer, ...]]:
        """Answers chunk by chunk; candidates of a chunk that kills its workers go one by one."""
        chunks = [
            Chunk(
                assignment=self._assignment, candidates=tuple(candidates[start : start + at_once])
            )
            for start in range(0, len(candidates), at_once)
        ]
        alone: list[Candidate] = []
        whole = weight * len(candidates)
        for number, answer in self._workers.answers(function, chunks, weight=whole):
            if not isinstance(answer, Lost):
                yield answer
            elif len(chunks[number].candidates) > 1:
                alone += chunks[number].candidates
            else:
                yield (lost(chunks[number].candidates[0], answer.deaths),)
        if alone:
            alone.sort(key=lambda candidate: candidate.index)
            yield from self._answers(function, alone, 1, weight, lost)


def _died(candidate: Candidate, deaths: int) -> Outcome:
    reason = f"{deaths} processes died over it, one after another"
    return Outcome(candidate=candidate, status=Status.FAILED, reason=reason)


def _unread(candidate: Candidate, deaths: int) -> Bounded:
    return Bounded(candidate=candidate, outcome=_died(candidate, deaths))
