"""Roofline, measured step times and FLOPs against published figures."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.roofline import (
    carried_over_time,
    computed_flops,
    effective_waves,
    flops_rate,
    flops_utilization,
    interpolated_step_time,
    memory_time,
    occupied_flops,
    product_time,
    product_traffic,
    roofline_time,
    throttled,
    tile_rate,
    tiled_time,
    trained_flops,
)

SIZES, SECONDS = (32.0, 64.0, 128.0), (0.010, 0.018, 0.034)


def test_the_slower_of_arithmetic_and_memory_counts() -> None:
    """Work is held by arithmetic on one side of the ridge and by memory on the other."""
    assert roofline_time(1e12, 1e9, 100e12, 2e12) == pytest.approx(0.01)
    assert roofline_time(1e12, 40e9, 100e12, 2e12) == pytest.approx(0.02)


def test_measured_points_are_returned() -> None:
    """At a measured batch size the answer is the measurement."""
    times = interpolated_step_time(np.array(SIZES), SIZES, SECONDS)
    assert times == pytest.approx(SECONDS, rel=1e-12)


def test_between_and_beyond_points_lines_go_on() -> None:
    """2 ms and a quarter of a millisecond a sample hold inside and outside the points."""
    batch = np.array([8.0, 48.0, 100.0, 512.0])
    times = interpolated_step_time(batch, SIZES, SECONDS)
    assert times == pytest.approx(0.002 + 0.00025 * batch)


def test_points_may_be_arrays() -> None:
    """Measured points are accepted as numpy arrays too."""
    time = interpolated_step_time(48.0, np.array(SIZES), np.array(SECONDS))
    assert time == pytest.approx(0.014)


def test_one_point_is_proportional() -> None:
    """One measurement says nothing of a fixed part: throughput stays as measured."""
    assert interpolated_step_time(128.0, (64.0,), (0.02,)) == pytest.approx(0.04)
    assert interpolated_step_time(16.0, (64.0,), (0.02,)) == pytest.approx(0.005)


def test_one_point_with_a_known_fixed_part() -> None:
    """The fixed part stays when the batch halves."""
    assert interpolated_step_time(32.0, (64.0,), (0.02,), fixed=0.004) == pytest.approx(0.012)


def test_a_falling_last_segment_does_not_make_steps_shorter() -> None:
    """Noise between the last points cannot make a larger batch faster than the last one."""
    assert interpolated_step_time(1000.0, (32.0, 64.0), (0.020, 0.019)) == pytest.approx(0.019)


def test_a_steep_last_segment_does_not_make_samples_dearer() -> None:
    """Beyond the last point a sample costs at most what it cost there."""
    steep = interpolated_step_time(128.0, (32.0, 64.0), (0.005, 0.020))
    assert steep == pytest.approx(0.040)


def test_a_steep_first_segment_does_not_make_samples_cheaper() -> None:
    """Below the first point a sample costs at least what it cost there, and time stays positive."""
    assert interpolated_step_time(8.0, (32.0, 64.0), (0.005, 0.020)) == pytest.approx(0.00125)


def test_time_rises_with_the_batch() -> None:
    """Over measured, rising points the step time never falls as the batch grows."""
    batch = np.linspace(1.0, 1000.0, 500)
    times = interpolated_step_time(batch, (16.0, 64.0, 96.0, 256.0), (0.01, 0.013, 0.03, 0.05))
    assert np.all(np.diff(times) >= 0.0)


def test_a_measurement_carries_over() -> None:
    """A device with twice the roofline takes half of the measured time."""
    assert carried_over_time(0.3, reference=0.2, own=0.1) == pytest.approx(0.15)


H100 = 989.4e12
MPT_70B, WIDTH, LAYERS, POSITIONS = 64.8624e9, 8192, 80, 2048


@pytest.mark.parametrize(
    ("tokens", "mfu", "hfu"),
    [(1007.1, 0.4125, 0.55), (1035.74, 0.4242, 0.5656), (1058.52, 0.4336, 0.5781)],
)
def test_published_utilizations(tokens: float, mfu: float, hfu: float) -> None:
    """MPT-70b on 512, 256, 128 H100: mosaicml/llm-foundry scripts/train/benchmarking @8c8dd48."""
    forward = 2.0 * MPT_70B + 4.0 * LAYERS * WIDTH * POSITIONS
    model = trained_flops(2.0 * MPT_70B, 4.0 * LAYERS * WIDTH * POSITIONS)
    again = computed_flops(model, forward)
    found = flops_utilization(flops_rate(model, tokens, 1.0), H100)
    assert found == pytest.approx(mfu, abs=2e-4)
    assert flops_utilization(flops_rate(again, tokens, 1.0), H100) == pytest.approx(hfu, abs=3e-4)


def test_inference_is_one_pass() -> None:
    """Without a backward pass a third is left."""
    assert trained_flops(3.0, 1.0, 1.0) == trained_flops(3.0, 1.0) / 3.0


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
