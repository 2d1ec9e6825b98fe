"""One candidate at a time, in any process: read it, predict it, return the outcome.

Figures leave as plain numbers, texts and tables, so that an outcome is the same whether it was
worked out here, came from another process or lay in a store.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache, partial
from typing import TypeVar

from simulator.engine.run import Options, later_epoch
from simulator.errors import InputError, PlanError
from simulator.physics.footprint import Verdict
from simulator.pipeline.program import check_modelled
from simulator.predict import predict, simulation_input
from simulator.reading.search.candidates import CandidateReader, Loaded
from simulator.records import dataclass
from simulator.results.metrics import JOB_METRICS, Value
from simulator.results.prediction import Prediction
from simulator.studies.screening import BestCase, best_cases, best_with
from simulator.studies.search.outcome import Candidate, Outcome, Status, bug_reason
from simulator.studies.search.scoring import exact
from simulator.units import BYTE, show

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Candidates evaluated by one worker in one task.

    `reader` is the pickled reader of their scenario, `best` are their known best cases by index.
    """

    reader: bytes
    candidates: tuple[Candidate, ...] = ()
    seed: int = 0
    intervals: bool = False
    best: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

    @staticmethod
    def of(reader: CandidateReader, *, seed: int = 0, intervals: bool = False) -> Chunk:
        """Return a chunk without candidates, with the pickled reader that all chunks share."""
        return Chunk(reader=pickle.dumps(reader), seed=seed, intervals=intervals)

    def key(self, content: str) -> str:
        """Return the key of an outcome in the store, from contents, seed and use of intervals."""
        return f"{content}-{self.seed}{'-intervals' if self.intervals else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A candidate with its bounds, before it is predicted.

    No prediction is better than `best`; `expected` are the same metrics with the expected time of
    later epochs, which is not a bound. `outcome` is set if no prediction is needed: the candidate
    is refused or does not fit.
    """

    candidate: Candidate
    key: str = ""
    best: Mapping[str, float] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    outcome: Outcome | None = None


def bound(chunk: Chunk) -> tuple[Bounded, ...]:
    """Read every candidate of a chunk and return its bounds."""
    reader = _unpacked(chunk.reader)
    read = _read_candidates(reader, chunk.candidates)
    cases = iter(best_cases([one.scenario for one in read if not isinstance(one, Outcome)]))
    return tuple(
        Bounded(candidate=candidate, outcome=one)
        if isinstance(one, Outcome)
        else _bounded(candidate, chunk.key(one.key), next(cases))
        for candidate, one in zip(chunk.candidates, read, strict=True)
    )


def _read_candidates(
    reader: CandidateReader, candidates: Sequence[Candidate]
) -> list[Loaded | Outcome]:
    """Read the scenarios of candidates without uncertainty, one by one if they fail together."""
    try:
        found = reader.read_without_uncertainty([one.settings for one in candidates])
    except Exception:  # noqa: BLE001 - whose it is shows when they are read one by one
        return [settled(one, lambda c: reader.read(c.settings)) for one in candidates]
    return [
        settled(candidate, partial(_raised, one)) if isinstance(one, PlanError) else one
        for candidate, one in zip(candidates, found, strict=True)
    ]


def _raised(error: PlanError, _: Candidate) -> Loaded:
    raise error


def _bounded(candidate: Candidate, key: str, case: BestCase) -> Bounded:
    if not case.infeasible:
        return Bounded(candidate=candidate, key=key, best=case.figures, expected=case.expected)
    outcome = Outcome(
        candidate=candidate,
        status=Status.INFEASIBLE if case.figures else Status.REFUSED,
        figures=exact(case.figures),
        reason=case.infeasible,
        key=key,
    )
    return Bounded(candidate=candidate, key=key, outcome=outcome)


def look_closer(chunk: Chunk) -> tuple[Outcome, ...]:
    """Return tighter best cases of the candidates of a chunk, with one later epoch simulated.

    Later epochs make up most of a run, so this is within 0.1% of a prediction in most searches, for
    less than half of the work. The metrics are empty for runs of one epoch, and for candidates that
    cannot be predicted; their prediction gives the reason.
    """
    reader = _unpacked(chunk.reader)

    def closer(candidate: Candidate) -> Outcome:
        loaded = reader.read(candidate.settings)
        check_modelled(loaded.scenario)
        later = later_epoch(simulation_input(loaded.scenario), Options(seed=chunk.seed))
        best = {} if later is None else best_with(loaded.scenario, later, known(candidate, loaded))
        key = closer_key(chunk.key(loaded.key))
        return Outcome(candidate=candidate, status=Status.SCREENED, figures=best, key=key)

    def known(candidate: Candidate, loaded: Loaded) -> Mapping[str, float]:
        return chunk.best.get(candidate.index) or best_cases([loaded.scenario])[0].figures

    return tuple(settled(candidate, closer) for candidate in chunk.candidates)


def closer_key(key: str) -> str:
    """Return the key of a candidate's tighter best case in the store."""
    return f"{key}-later-epochs"


def evaluate(chunk: Chunk) -> tuple[Outcome, ...]:
    """Predict every candidate of a chunk; failures are outcomes too."""
    reader = _unpacked(chunk.reader)

    def predicted(candidate: Candidate) -> Outcome:
        loaded = reader.read(candidate.settings)
        prediction = predict(loaded.scenario, seed=chunk.seed, intervals=chunk.intervals)
        return _outcome(candidate, prediction, chunk.key(loaded.key))

    return tuple(settled(candidate, predicted) for candidate in chunk.candidates)


def settled(candidate: Candidate, work: Callable[[Candidate], Answer]) -> Answer | Outcome:
    """Return the result of `work` on a candidate, or an outcome with the reason of its failure."""
    try:
        return work(candidate)
    except PlanError as error:
        return Outcome(candidate=candidate, status=Status.REFUSED, reason=_first(error))
    except Exception as error:  # noqa: BLE001 - a bug met by one candidate must not end the others
        return Outcome(candidate=candidate, status=Status.BUG, reason=bug_reason(error))


def _first(error: PlanError) -> str:
    problems = error.problems if isinstance(error, InputError) else (error,)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return " ".join(str(problems[0]).split()) + more


@lru_cache(maxsize=2)
def _unpacked(reader: bytes) -> CandidateReader:
    unpacked: CandidateReader = pickle.loads(reader)  # noqa: S301 - packed by `Chunk.of`, never a file
    return unpacked


def _outcome(candidate: Candidate, prediction: Prediction, key: str) -> Outcome:
    short = shortages(prediction)
    return Outcome(
        candidate=candidate,
        status=Status.INFEASIBLE if short else Status.PREDICTED,
        figures={metric.name: plain(metric.get(prediction)) for metric in JOB_METRICS},
        intervals={
            name: {point: float(value) for point, value in band.items()}
            for name, band in prediction.interval.items()
        },
        reason=short,
        warnings=prediction.warnings,
        key=key,
    )


def shortages(prediction: Prediction) -> str:
    """Describe the memories that the job does not fit into; empty if it fits or may fit."""
    memories = {"host RAM": prediction.host_ram, "accelerator memory": prediction.memory}
    return "; ".join(
        f"{name}: needs {show(float(fit.total), BYTE)} of {show(float(fit.capacity), BYTE)}"
        for name, fit in memories.items()
        if fit is not None and fit.verdict is Verdict.NO
    )


def plain(value: Value) -> Value:
    """Convert a metric to built-in types, which a store returns unchanged."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): float(item) for name, item in value.items()}
    return float(value)
