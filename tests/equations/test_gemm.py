"""Matrix products tile by tile."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.gemm import (
    effective_waves,
    memory_time,
    occupied_flops,
    product_time,
    product_traffic,
    throttled,
    tile_rate,
    tiled_time,
)

PLAIN = (0.0, 1.0, 0.0)
"""Tiles that all reach the same rate, full waves, no pipeline to fill."""


def test_larger_tiles_are_never_slower() -> None:
    """Rates rise with the tile, up to that of the best one."""
    sides = np.array([32.0, 64.0, 128.0, 256.0])
    rates = tile_rate(sides, sides, 20.0, 128.0)
    assert np.all(np.diff(rates) > 0.0)
    assert rates[-1] == pytest.approx(1.0)


def test_waves_lie_between_the_work_and_whole_waves() -> None:
    """Never fewer than the work needs, never more than whole waves, one at least."""
    tiles = np.arange(1.0, 500.0)
    counted = effective_waves(tiles, 108.0, 0.7)
    assert np.all(counted >= np.maximum(tiles / 108.0, 1.0) - 1e-12)
    assert np.all(counted <= np.ceil(tiles / 108.0) + 1e-12)


def test_a_product_of_full_waves_runs_at_the_peak() -> None:
    """108 tiles of 128 x 128 on 108 units: two operations for each multiply-add at the peak."""
    waves = effective_waves(108.0, 108.0, 1.0)
    time = tiled_time(waves, 2.0 * 128.0**2 * 108.0, 4096.0, 312e12)
    assert time == pytest.approx(2.0 * 108.0 * 128.0**2 * 4096.0 / 312e12)


def test_thin_products_wait_for_memory() -> None:
    """One row against a square matrix moves about the matrix."""
    moved = product_traffic(1.0, 4096.0, 4096.0, 2.0, 2.0)
    assert moved == pytest.approx(2.0 * 4096.0**2, rel=1e-3)
    assert memory_time(moved, 2e12) == pytest.approx(moved / 2e12)


def test_the_best_of_all_tiles_is_taken() -> None:
    """A small product spreads over more units in smaller tiles."""
    busy = occupied_flops(256.0, 128.0, 64.0, 1.0, 108.0, 0.0, 1.0)
    one_tile = 2.0 * 256.0 * 128.0 * 64.0 * 108.0
    assert busy == pytest.approx(one_tile / 8.0)


def test_work_that_fills_all_units_is_done_at_their_rate() -> None:
    """Products side by side fill what one leaves free; never less than the work itself."""
    own = 2.0 * 128.0 * 128.0 * 512.0
    counts = np.array([1.0, 54.0, 108.0, 216.0])
    busy = occupied_flops(128.0, 128.0, 512.0, counts, 108.0, 0.0, 1.0)
    assert np.all(busy >= own * counts * (1.0 - 1e-12))
    np.testing.assert_allclose(busy[2:], own * counts[2:])


def seconds(m: float, n: float, inner: float, *, bandwidth: float = 1e30) -> float:
    """Time on 100 units of 1 TFLOP/s in all."""
    return float(product_time(m, n, inner, 1.0, 1e12, bandwidth, 100.0, *PLAIN))


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


def test_the_clock_sinks_with_the_share_of_time_that_matrix_units_are_busy() -> None:
    """Not at all where they wait, and by all of it where nothing else is done."""
    assert throttled(0.0, 1.0, 0.2) == 1.0
    assert throttled(1.0, 1.0, 0.2) == pytest.approx(1.0 / 0.8)
    assert throttled(1.0, 2.0, 0.2) == pytest.approx(1.0 / 0.9)
