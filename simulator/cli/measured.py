"""Hold a prediction against runs of its very configuration that ship with plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.results.prediction import Prediction
    from simulator.validation.measured_here import Outside


def with_measured(prediction: Prediction, profiles: tuple[Path, ...]) -> Prediction:
    """The prediction with intervals that hold what such runs measured, and a warning that says so.

    Few scenarios have any; what compares them is not imported for the others.
    """
    from simulator.reading.measured.alike import rows_alike

    alike = rows_alike(prediction.scenario) if prediction.interval else ()
    if not alike:
        return prediction
    from simulator.validation.measured_here import holding, runs_of

    wider, outside = holding(prediction, runs_of(prediction.scenario, alike, profiles))
    first = {(one.set, one.id): one for one in reversed(outside)}
    notes = tuple(_note(one) for one in first.values())
    return replace(wider, warnings=(*wider.warnings, *notes))


def _note(one: Outside) -> str:
    from simulator.report.numbers import figure
    from simulator.results.metrics import measurable

    known = measurable(one.metric)
    unit = None if known is None else known.unit
    measured, predicted = (figure(value, unit) for value in (one.measured, one.predicted))
    what = one.metric if unit is None else one.metric.removesuffix("_samples_per_s").split("_s")[0]
    return (
        f"a run of this very configuration measured {measured} ({what.replace('_', ' ')}) where "
        f"this predicts {predicted} ({one.set}: {one.id}); the intervals are widened to hold it"
    )
