"""Uncertainties: how they add up, vary together and grow with distance."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.schema.uncertainty import (
    Axis,
    Rate,
    Reach,
    UncertaintyComponent,
    covariance,
    stretched,
)
from tests.support.scenarios import SOURCE

RATES = (Rate.DEVICE, Rate.STORAGE)


def component(name: str, rate: Rate, log_sd: float, **shared: float) -> UncertaintyComponent:
    """An uncertainty from nowhere."""
    return UncertaintyComponent(name=name, rate=rate, log_sd=log_sd, source=SOURCE, shared=shared)


def test_doubts_about_one_rate_add_in_squares() -> None:
    """Independent uncertainties of 3% and 4% are one of 5%."""
    table = covariance(
        [component("a", Rate.DEVICE, 0.03), component("b", Rate.DEVICE, 0.04)], RATES
    )
    np.testing.assert_allclose(table, [[0.05**2, 0.0], [0.0, 0.0]])


def test_a_correlation_may_be_stated_by_either() -> None:
    """What one says about the other holds for both, once."""
    pair = [component("a", Rate.DEVICE, 0.1, b=-0.5), component("b", Rate.STORAGE, 0.2)]
    expected = [[0.01, -0.01], [-0.01, 0.04]]
    np.testing.assert_allclose(covariance(pair, RATES), expected)
    np.testing.assert_allclose(covariance(pair[::-1], RATES), expected)


def test_opposite_doubts_about_one_rate_cancel() -> None:
    """Two parameters of one rate of which only the sum is known: their sum is known well."""
    pair = [component("a", Rate.DEVICE, 0.3, b=-0.9999), component("b", Rate.DEVICE, 0.3)]
    assert covariance(pair, RATES)[0, 0] == pytest.approx(2 * 0.3**2 * 1e-4)


def test_distance_counts_along_known_axes_only() -> None:
    """Each doubling beyond the range widens; an axis that doesn't apply does not."""
    reaches = (
        Reach(axis=Axis.RANKS, low=1.0, high=8.0, per_doubling=0.04),
        Reach(axis=Axis.BATCH, low=32.0, high=64.0, per_doubling=9.0),
    )
    assert stretched(0.03, reaches, {Axis.RANKS: 16.0}) == pytest.approx(0.05)
    assert stretched(0.03, reaches, {Axis.RANKS: 4.0, Axis.BATCH: 48.0}) == pytest.approx(0.03)
