"""Say which keys that a user gave are without effect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.results.prediction import Prediction


def with_idle_keys(prediction: Prediction, reader: CandidateReader) -> Prediction:
    """The prediction with one more warning where keys of its scenario change nothing."""
    from simulator.studies.changes.idle_keys import idle_keys

    idle = idle_keys(reader)
    if not idle:
        return prediction
    them = "it" if len(idle) == 1 else "them"
    warning = f"without effect here: {', '.join(idle)} (nothing in this job depends on {them})"
    return replace(prediction, warnings=(*prediction.warnings, warning))
