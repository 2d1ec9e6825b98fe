"""What people call the things of a report."""

from __future__ import annotations

from simulator.report.format import named
from simulator.uncertainty.components import Grade


def test_every_grade_of_evidence_has_words() -> None:
    """A report never meets a grade that it has no words for."""
    assert set(named._GRADES) == set(Grade)  # noqa: SLF001 - the table of words
