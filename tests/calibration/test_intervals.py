"""Intervals of fitted parameters hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.calibration.calibrate import Estimate, estimates
from simulator.calibration.fitting import knob
from simulator.schema.measurement import Parameter

KNOB = knob(Parameter(key="calibration.cpu", start="1", low="0.001", high="1000"))


def fitted(errors: np.ndarray, slopes: np.ndarray, configurations: int) -> Estimate:
    """The estimate of a parameter whose truth is 1, from log errors at the truth."""
    x = -np.linalg.lstsq(slopes, errors, rcond=None)[0]
    (one,), _ = estimates((KNOB,), x, errors + slopes @ x, slopes, configurations)
    return one


@pytest.mark.parametrize("repeats", [1, 4])
def test_eight_in_ten_hold_the_truth(repeats: int) -> None:
    """With independent rows, and where all rows of a configuration have equal errors."""
    draw = np.random.default_rng(3)
    configurations, held = 8, 0
    for _ in range(600):
        errors = np.repeat(draw.normal(0.0, 0.05, configurations), repeats)
        slopes = np.repeat(draw.uniform(0.5, 1.5, configurations), repeats)[:, None]
        one = fitted(errors, slopes, configurations)
        assert one.p10 is not None
        assert one.p90 is not None
        held += float(one.p10) <= 1.0 <= float(one.p90)
    assert 0.76 < held / 600 < 0.84


def test_nothing_is_known_from_one_configuration() -> None:
    """However many rows it has."""
    one = fitted(np.full(9, 0.1), np.ones((9, 1)), 1)
    assert (one.log_sd, one.p10, one.p90) == (None, None, None)


def test_an_interval_stays_between_the_bounds() -> None:
    """Wild rows cannot push it outside."""
    narrow = knob(Parameter(key="calibration.cpu", start="1", low="0.9", high="1.1"))
    errors, slopes = np.array([1.0, -1.0, 0.0]), np.ones((3, 1))
    (one,), _ = estimates((narrow,), np.array([0.0]), errors, slopes, 3)
    assert (one.p10, one.p90) == ("0.9", "1.1")
