"""Forecasts of rows whose constants were fitted to anchors know how far those are."""

from __future__ import annotations

import pytest

from simulator.schema.measurement import Row
from simulator.schema.uncertainty import Axis
from simulator.validation.forecast import Case, forecast, noise

METRIC = "step_time_s.mean"


def width(*anchors: float, spread: float = 0.0) -> float:
    """Relative width of the interval where decoding was fitted to anchors with so many workers."""
    found = forecast(
        Case(
            base="resnet50-imagenet-p4d",
            overrides=(),
            metrics=(METRIC,),
            fitted=("input.decode",) if anchors else (),
            anchors=tuple(((Axis.WORKERS, workers),) for workers in anchors),
            noise=spread,
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


def test_noisy_anchors_widen() -> None:
    """What was measured to 10% cannot be the source of a tighter figure."""
    assert width(12.0, spread=0.1) > 2.0 * 1.2816 * 0.1 * 0.98
    assert width(12.0, spread=0.1) > width(12.0)


def test_repeats_of_anchors_average_out() -> None:
    """Four anchors of 10% each are off by 5% together over two: their range is two deviations."""
    rows = [
        Row(id=str(i), base="", overrides=(), measured={}, family="", spread={METRIC: 0.1})
        for i in range(4)
    ]
    assert noise(rows[:1]) == pytest.approx(0.05)
    assert noise(rows) == pytest.approx(0.025)
