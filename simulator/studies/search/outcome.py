"""Candidates of a search with their outcomes, and bugs of plan that a study met.

Predictions that contradict themselves are bugs (`invariants`): a study marks the figures that one
spoils, goes on and reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from simulator.errors import BrokenInvariant, InputError, PlanError
from simulator.records import dataclass
from simulator.results.metrics import Value
from simulator.schema.goal import Plain

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress: TypeAlias = Callable[[float], None]
"""Takes the finished share, 0 to 1."""


class Status(StrEnum):
    """State of a candidate in a search."""

    PREDICTED = "predicted"
    SCREENED = "screened"
    """Only bounded: even its best case is worse than what others were predicted to reach."""
    INFEASIBLE = "infeasible"
    """It does not fit into memory, or fails the condition of the search."""
    REFUSED = "refused"
    """The scenario is invalid, or not covered by the model."""
    FAILED = "failed"
    """All workers that tried it died."""
    BUG = "bug"
    """An internal error: unforeseen, or a prediction that contradicts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One variant of a scenario: dotted keys and their values, in order of the axes."""

    index: int
    settings: Mapping[str, Plain]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result for one candidate of a search.

    `figures` are all metrics by name; without a prediction, those known in closed form (price,
    memory, `bound_s.lower`). `intervals` are P10, P50 and P90 by metric. `key` identifies the
    contents that were predicted, `reason` says why a candidate was not predicted, `warnings` are
    those of the prediction.
    """

    candidate: Candidate
    status: Status
    figures: Mapping[str, Value] = field(default_factory=dict)
    intervals: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    reason: str = ""
    warnings: tuple[str, ...] = ()
    key: str = ""

    @property
    def settings(self) -> Mapping[str, Plain]:
        """Settings of the candidate."""
        return self.candidate.settings


def bug_reason(error: Exception) -> str:
    """Return the text of an internal error, as the reason for a missing result.

    Examples
    --------
    >>> bug_reason(KeyError("gpu"))
    "a bug of ours: KeyError: 'gpu'"
    """
    kind = "" if isinstance(error, BrokenInvariant) else f"{type(error).__name__}: "
    return f"a bug of ours: {kind}{error}"


@dataclass(frozen=True, slots=True)
class BugLog:
    """Log of the internal errors of a study, as texts in order of their occurrence."""

    reasons: list[str] = field(default_factory=list)


def attempt(work: Callable[[], Result], met: BugLog | None) -> Result | str:
    """Return the result of `work`, or the message of the error that it raised.

    Raises
    ------
    BrokenInvariant
        If `met` is None: without a log, an internal error must not be hidden.
    """
    try:
        return work()
    except PlanError as error:
        return reason_of(error)
    except BrokenInvariant as error:
        return log_bug(error, met)


def reason_of(error: PlanError) -> str:
    """Return the first problem of an error in one line."""
    if not isinstance(error, InputError):
        return str(error)
    problem = error.problems[0]
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.key or problem.origin} {problem.message}{hint}"


def tracked(items: Sequence[Item], progress: Progress | None) -> Iterator[Item]:
    """Yield the items one by one and report the finished share to `progress`."""
    for number, item in enumerate(items, start=1):
        yield item
        if progress is not None:
            progress(number / len(items))


def log_bug(error: BrokenInvariant, met: BugLog | None) -> str:
    """Add an internal error to the log `met` and return its text.

    Raises
    ------
    BrokenInvariant
        If `met` is None: without a log, an internal error must not be hidden.
    """
    if met is None:
        raise error
    met.reasons.append(bug_reason(error))
    return met.reasons[-1]
