"""Reports of predictions: jobs and services, explanations, timelines, what to do next."""

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
    """Return the answer about a job or a service.

    Parameters
    ----------
    prediction : Prediction or ServicePrediction
        With its intervals.
    actions : sequence of Action or ServiceAction, optional
        Changes that help, best first; without it nothing is said of them.
    full : bool
        Show everything rather than one screen.
    observed : Explained, optional
        What the user observed of the real job, and what explains it.
    every : int, optional
        Also show the training log of a job, with one line per `every` steps.
    """
    if isinstance(prediction, Prediction):
        from simulator.report.prediction import job

        return job.document(prediction, actions, full=full, observed=observed, every=every)
    from simulator.report.prediction import service

    return service.document(prediction, actions, full=full)


def summary(prediction: Prediction | ServicePrediction) -> str:
    """Return the answer in a sentence or two."""
    if isinstance(prediction, Prediction):
        from simulator.report.prediction import verdict as job

        return job.verdict(prediction)
    from simulator.report.prediction import service

    return service.verdict(prediction)


def explanation(prediction: Prediction | ServicePrediction, metric: str | None = None) -> Document:
    """Return the terms behind a figure of a job, or the parts of an iteration of a service."""
    if isinstance(prediction, Prediction):
        from simulator.report.prediction import explain

        return explain.document(prediction, metric)
    from simulator.report.prediction import iterations

    return iterations.document(prediction)
