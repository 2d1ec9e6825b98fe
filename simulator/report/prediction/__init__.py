"""Reports of predictions: jobs and services, explanations, timelines, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simulator.report.document import Document
from simulator.results.prediction import Prediction

if TYPE_CHECKING:
    from simulator.results.serving import ServicePrediction


def document(
    prediction: Prediction | ServicePrediction,
    found: Sequence[Any] | None = None,
    *,
    full: bool = False,
) -> Document:
    """Return the answer about a job or a service.

    Parameters
    ----------
    prediction : Prediction or ServicePrediction
        With its intervals.
    found : sequence of Action or ServiceAction, optional
        Changes that help, best first; without it nothing is said of them.
    full : bool
        Show everything rather than one screen.
    """
    if not isinstance(prediction, Prediction):
        from simulator.report.prediction import service

        return service.document(prediction, found, full=full)
    from simulator.report.prediction import job

    return job.document(prediction, found, full=full)
