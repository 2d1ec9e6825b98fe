"""An axis of a sweep all of whose values give the same figures is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.studies.search.findings import findings
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.studies.search.scoring import objective_of

TIME = objective_of("total_time_s")


def outcome(index: int, settings: dict[str, Any], total: float | None) -> Outcome:
    """A candidate that takes so long; None: it is refused."""
    return Outcome(
        candidate=Candidate(index=index, settings=settings),
        status=Status.REFUSED if total is None else Status.PREDICTED,
        figures={} if total is None else {"total_time_s": total},
    )


def idle(rows: Sequence[tuple[dict[str, Any], float | None]]) -> tuple[str, ...]:
    """Axes without effect among candidates."""
    return findings([outcome(i, *row) for i, row in enumerate(rows)], (TIME,)).idle


def test_an_axis_that_changes_nothing_is_named() -> None:
    """Whatever the other axis says; that one counts."""
    rows = [({"a": a, "b": b}, float(b)) for a in (1, 2) for b in (1, 2)]
    assert idle(rows) == ("a",)


def test_an_axis_that_changes_something_somewhere_is_not() -> None:
    """One pair that differs is enough."""
    rows = [({"a": a, "b": b}, 1.0 if (a, b) != (2, 2) else 3.0) for a in (1, 2) for b in (1, 2)]
    assert idle(rows) == ()


def test_nothing_is_said_of_what_could_not_be_compared() -> None:
    """One value, or one that is not refused."""
    assert idle([({"a": 1}, 1.0)]) == ()
    assert idle([({"a": 1}, 1.0), ({"a": 2}, None)]) == ()
