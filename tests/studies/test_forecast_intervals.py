"""Forecasts of rows whose constants were fitted to anchors know how far those are."""

from __future__ import annotations

from simulator.studies.forecast import Case, forecast
from simulator.uncertainty import Axis

METRIC = "step_time_s.mean"


def width(*anchors: float) -> float:
    """Relative width of the interval where decoding was fitted to anchors with so many workers."""
    found = forecast(
        Case(
            base="resnet50-imagenet-p4d",
            overrides=(),
            metrics=(METRIC,),
            fitted=("input.decode",) if anchors else (),
            anchors=tuple(((Axis.WORKERS, workers),) for workers in anchors),
        )
    )
    low, high = found.intervals[METRIC]
    return (high - low) / found.figures[METRIC]


def test_anchors_narrow_and_distance_widens() -> None:
    """A rate fitted at twelve workers is known best there, one fitted at one worker less well."""
    assert width(12.0) < width(1.0) < width()


def test_the_nearest_end_of_the_anchors_counts() -> None:
    """Between anchors nothing is extrapolated."""
    assert width(1.0, 24.0) == width(12.0)
