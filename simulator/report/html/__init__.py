"""Reports as self-contained HTML files that load no other files.

Modules here combine sections of a document with drawings, which are plain data (bars with
positions, lanes with slices); the templates write those as SVG, and escape every text. Templates
compute no values.
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
        The prediction with its intervals; the page has a timeline if it has a trace.
    steps : sequence of str
        Recommended actions, one text each.
    near : Neighbourhood, optional
        Measured rows similar to the job.
    made : Made, optional
        The origin of the page.
    """
    if isinstance(prediction, Prediction):
        from simulator.report.html import prediction as job

        return job.as_page(prediction, near, steps, made)
    from simulator.report.html import service
    from simulator.studies.service_sizing import against_load

    return service.as_page(prediction, against_load(prediction), made, steps)
