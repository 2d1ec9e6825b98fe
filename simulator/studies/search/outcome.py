"""Candidates of a search with their outcomes, and bugs of plan that a study met.

Predictions that contradict themselves are bugs (`invariants`): a study marks the figures that one
spoils, goes on and reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from simulator.errors import BrokenInvariant, InputError, PlanError
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
    """It does not fit into memory, or breaks a limit that needs no simulation."""
    REFUSED = "refused"
    """No sound scenario, or one that the model does not cover."""
    FAILED = "failed"
    """Every worker on it died."""
    BUG = "bug"
    """An internal error: unforeseen, or a prediction that contradicts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One point of a search: dotted keys of the scenario and their values, in order of the axes."""

    index: int
    settings: Mapping[str, Plain]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A candidate and what is known of it.

    `figures` are all metrics by name as `metrics.METRICS` has them; of a candidate that was not
    predicted those known without (price, memory, `bound_s.lower`). `intervals` are P10, P50 and
    P90 by metric. `key` identifies the contents that were predicted, `reason` says why a candidate
    was not, `warnings` what may make the figures wrong.
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
        """The settings of its candidate."""
        return self.candidate.settings


def bug_reason(error: Exception) -> str:
    """Return the text of an internal error as a reason for a missing figure.

    Examples
    --------
    >>> bug_reason(KeyError("gpu"))
    "a bug of ours: KeyError: 'gpu'"
    """
    kind = "" if isinstance(error, BrokenInvariant) else f"{type(error).__name__}: "
    return f"a bug of ours: {kind}{error}"


@dataclass(frozen=True, slots=True)
class BugLog:
    """Bugs that a study met, in its order: `reasons` are as the spoilt places tell them."""

    reasons: list[str] = field(default_factory=list)


def attempt(work: Callable[[], Result], met: BugLog | None) -> Result | str:
    """Return the result of `work`, or the reason why there is no such job.

    Raises
    ------
    BrokenInvariant
        Without a log: a bug must not pass in silence.
    """
    try:
        return work()
    except PlanError as error:
        return reason_of(error)
    except BrokenInvariant as error:
        return log_bug(error, met)


def reason_of(error: PlanError) -> str:
    """Return why there is no such job, in one line."""
    if not isinstance(error, InputError):
        return str(error)
    problem = error.problems[0]
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.key or problem.origin} {problem.message}{hint}"


def tracked(items: Sequence[Item], progress: Progress | None) -> Iterator[Item]:
    """Return items one by one; `progress` takes the share of those that are done."""
    for number, item in enumerate(items, start=1):
        yield item
        if progress is not None:
            progress(number / len(items))


def log_bug(error: BrokenInvariant, met: BugLog | None) -> str:
    """Return the reason for a figure that an internal error spoilt, after logging it in `met`.

    Raises
    ------
    BrokenInvariant
        Without a log: a bug must not pass in silence.
    """
    if met is None:
        raise error
    met.reasons.append(bug_reason(error))
    return met.reasons[-1]
