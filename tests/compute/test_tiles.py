"""Matrix products on units that compute a tile each, and cuts of their inner dimension."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.compute.tiles import product_time

PLAIN = (0.0, 1.0, 0.0)
"""Tiles that all reach the same rate, full waves, no pipeline to fill."""


def seconds(m: float, n: float, inner: float, *, bandwidth: float = 1e30) -> float:
    """Time on 100 units of 1 TFLOP/s in all."""
    sides = (np.array([m]), np.array([n]), np.array([inner]), np.array([1.0]))
    return float(product_time(sides, 1e12, bandwidth, 100.0, PLAIN)[0])


def test_a_full_product_takes_its_arithmetic() -> None:
    """Many tiles on all units: two operations for each step of each value."""
    assert seconds(128.0 * 1000, 128.0 * 100, 512.0) == pytest.approx(
        2.0 * 128000 * 12800 * 512 / 1e12, rel=1e-3
    )


def test_a_long_inner_dimension_is_cut_for_idle_units() -> None:
    """One tile on 100 units: 64 parts of at least 1,024 steps make it 64 times as fast."""
    whole = 2.0 * 64 * 64 * 65536 / (1e12 / 100)
    assert seconds(64.0, 64.0, 65536.0) == pytest.approx(whole / 64)
    assert seconds(64.0, 64.0, 1024.0) == pytest.approx(whole / 64)


def test_partial_sums_cost_the_memorys_time() -> None:
    """A slow memory makes cuts not worth it, so the product takes as long as uncut."""
    assert seconds(64.0, 64.0, 65536.0, bandwidth=1.0) == pytest.approx(
        2.0 * 64 * 64 * 65536 / (1e12 / 100)
    )
