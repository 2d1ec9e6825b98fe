"""Roofline, measured step times and FLOPs against published figures."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.roofline import (
    carried_over_time,
    computed_flops,
    flops_rate,
    flops_utilization,
    interpolated_step_time,
    roofline_time,
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
