"""Reports of predictions: jobs and services, explanations, timelines, recommended actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simulator.report.document import Document
from simulator.results.prediction import Prediction

if TYPE_CHECKING:
    from simulator.calibration.observed import Explained
    from simulator.results.serving import ServicePrediction


def document(
    prediction: Prediction | ServicePrediction,
    actions: Sequence[Any] | None = None,
    *,
    full: bool = False,
    observed: Explained | None = None,
    every: int | None = None,
) -> Document:
    """Return the prediction of a job or a service as a document.

    Parameters
    ----------
    prediction : Prediction or ServicePrediction
        The prediction with its intervals.
    actions : sequence of Action or ServiceAction, optional
        Recommended changes, best first; if None, the section is left out.
    full : bool
        Include all details instead of one screen.
    observed : Explained, optional
        A measurement of the real job, and the inputs that would explain it.
    every : int, optional
        Include the training log of a job, with one line per `every` steps.
    """
    if isinstance(prediction, Prediction):
        from simulator.report.prediction import job

        return job.document(prediction, actions, full=full, observed=observed, every=every)
    from simulator.report.prediction import service

    return service.document(prediction, actions, full=full)


def summary(prediction: Prediction | ServicePrediction) -> str:
    """Return the verdict in one or two sentences."""
    if isinstance(prediction, Prediction):
        from simulator.report.prediction import verdict as job

        return job.verdict(prediction)
    from simulator.report.prediction import service

    return service.verdict(prediction)


def explanation(prediction: Prediction | ServicePrediction, metric: str | None = None) -> Document:
    """Return the equations of a metric of a job, or an iteration of a service, as a document."""
    if isinstance(prediction, Prediction):
        from simulator.report.prediction import explain

        return explain.document(prediction, metric)
    from simulator.report.prediction import iterations

    return iterations.document(prediction)
