"""`fitting/distance.py`: deviations share a factor that is free, and keep how they compare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fitting import distance
from simulator.schema.uncertainty import Grade

NAMES = list(distance.EXPECTED)


def samples(spread: float, *, series: tuple[str, ...] = ("some",)) -> distance.Samples:
    """Steps of fitted kernels that are just like measured ones and off by a normal deviation."""
    from scipy.special import ndtri  # noqa: PLC0415 - as in the package, slow to load

    errors = np.tile(spread * ndtri((np.arange(200) + 0.5) / 200), len(series))
    count = len(errors)
    return distance.Samples(
        family=np.repeat(series, 200),
        series=np.repeat(series, 200),
        what=np.full(count, distance.UNSEEN),
        errors=errors,
        grade=np.full(count, distance.GRADES.index(Grade.FITTED)),
        carried=np.zeros((count, len(distance.CARRIED))),
        case=np.zeros(count, dtype=np.int64),
        different=np.zeros((1, 1, len(distance.KINDS))),
    )


@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_what_steps_are_made_of_shares_a_free_factor(spread: float) -> None:
    """Errors far from what was expected move grades without measurements, not differences."""
    found = dict(zip(NAMES, np.exp(distance.fitted_apart(samples(spread))), strict=True))
    expected = distance.EXPECTED
    assert found[Grade.FITTED] == pytest.approx(spread, rel=0.15)
    factor = found[Grade.EXPERTS] / expected[Grade.EXPERTS]
    assert factor == pytest.approx(spread / expected[Grade.FITTED], rel=0.3)
    assert found[distance.FRAMEWORK] == pytest.approx(expected[distance.FRAMEWORK], rel=0.05)
    assert found[Grade.CARRIED] == pytest.approx(expected[Grade.CARRIED])


def test_a_series_is_judged_by_deviations_that_it_had_no_part_in() -> None:
    """Of two series of which one is far more off, each gets the width of the other."""
    two = samples(0.02, series=("titan", "foundry"))
    errors = np.where(two.series == "titan", 10.0, 1.0) * two.errors
    widths = distance.left_out_deviations(replace(two, errors=errors))
    assert widths[0] == pytest.approx(0.02, rel=0.2)
    assert widths[-1] == pytest.approx(0.2, rel=0.2)
