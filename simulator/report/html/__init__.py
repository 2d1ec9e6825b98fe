"""A report as one HTML file that loads nothing: it opens from disk, prints, fits a phone.

Modules here put the sections of a document next to drawings, which are plain data (bars with
positions, lanes with slices); the templates write those as SVG, escaping every text. No figure is
worked out in a template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulator.results.prediction import Prediction

if TYPE_CHECKING:
    from simulator.report.html.page import Made
    from simulator.results.serving import ServicePrediction
    from simulator.validation.local_coverage import Neighbourhood


def as_page(
    prediction: Prediction | ServicePrediction,
    steps: Sequence[str] = (),
    *,
    near: Neighbourhood | None = None,
    made: Made | None = None,
) -> str:
    """Return the report on a job or a service as one HTML page.

    Parameters
    ----------
    prediction : Prediction or ServicePrediction
        With its intervals; a job with a trace has a timeline.
    steps : sequence of str
        What to do next, one text each.
    near : Neighbourhood, optional
        Measured rows like a job.
    made : Made, optional
        The origin of the page.
    """
    if isinstance(prediction, Prediction):
        from simulator.report.html import prediction as job

        return job.as_page(prediction, near, steps, made)
    from simulator.report.html import service
    from simulator.studies.service_sizing import against_load

    return service.as_page(prediction, against_load(prediction), made, steps)
