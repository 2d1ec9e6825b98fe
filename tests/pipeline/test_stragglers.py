"""The slowest of many devices against closed forms, tables and draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stages import sampled

from simulator.engine.loader import Draws
from simulator.pipeline.stragglers import slowest_factor
from simulator.schema.fields import CONSTANT, Shape, Spread

SHAPES = [shape for shape in Shape if shape is not Shape.CONSTANT]
PRECISE = 1e-3
"""What is promised, as a share of how much longer the slowest takes."""


def spread(shape: Shape, deviation: float = 0.05) -> Spread:
    """A distribution with a mean of 1; exponential ones have only one deviation."""
    return Spread(shape=shape, relative_deviation=1.0 if shape is Shape.EXPONENTIAL else deviation)


def longer(device: Spread, step: Spread, devices: int) -> float:
    """How much longer than the mean device the slowest takes."""
    return slowest_factor(device, step, devices) - 1.0


@pytest.mark.parametrize("devices", [2, 10, 100, 16384])
def test_exponential_factors_add_up_to_harmonic_numbers(devices: int) -> None:
    """The largest of n has the mean 1 + 1/2 + ... + 1/n; a gamma of deviation 1 is the same."""
    harmonic = math.fsum(1.0 / k for k in range(2, devices + 1))
    exponential = longer(CONSTANT, spread(Shape.EXPONENTIAL), devices)
    assert exponential == pytest.approx(harmonic, rel=1e-9)
    gamma = longer(spread(Shape.GAMMA, 1.0), CONSTANT, devices)
    assert gamma == pytest.approx(harmonic, rel=1e-6)


@pytest.mark.parametrize("devices", [2, 10, 100, 16384])
def test_uniform_factors_come_near_the_end(devices: int) -> None:
    """The largest of n lies at n / (n + 1) of the range."""
    found = longer(spread(Shape.UNIFORM, 0.1), CONSTANT, devices)
    assert found == pytest.approx(
        0.1 * math.sqrt(3.0) * (devices - 1) / (devices + 1), rel=PRECISE / 10.0
    )


def test_two_lognormal_factors_have_a_closed_form() -> None:
    """The mean of the larger of two is twice the share of a normal below sigma / sqrt(2)."""
    sigma = math.sqrt(math.log1p(0.3**2))
    larger = 1.0 + math.erf(sigma / 2.0)
    assert slowest_factor(spread(Shape.LOGNORMAL, 0.3), CONSTANT, 2) == pytest.approx(
        larger, rel=1e-9
    )


@pytest.mark.parametrize(("devices", "score"), [(2, 0.56419), (10, 1.53875), (100, 2.50759)])
def test_narrow_factors_are_normal(devices: int, score: float) -> None:
    """Factors that hardly differ: as far up as the largest of n normal draws, from tables."""
    for shape in (Shape.LOGNORMAL, Shape.GAMMA):
        found = longer(spread(shape, 1e-4), CONSTANT, devices)
        assert found == pytest.approx(1e-4 * score, rel=PRECISE)


@pytest.mark.parametrize("devices", [2, 64, 4096])
def test_two_lognormal_spreads_are_one(devices: int) -> None:
    """Constant speeds and jitter multiply: logarithms' variances add up."""
    both = longer(spread(Shape.LOGNORMAL, 0.03), spread(Shape.LOGNORMAL, 0.04), devices)
    together = math.sqrt((1.0 + 0.03**2) * (1.0 + 0.04**2) - 1.0)
    assert both == pytest.approx(
        longer(spread(Shape.LOGNORMAL, together), CONSTANT, devices), rel=1e-9
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("devices", [2, 64, 4096])
def test_a_factor_that_hardly_varies_changes_nothing(shape: Shape, devices: int) -> None:
    """The sum over products gives what the sum over one factor gives."""
    one = spread(shape)
    next_to_nothing = spread(Shape.GAMMA, 1e-5)
    assert longer(one, next_to_nothing, devices) == pytest.approx(
        longer(one, CONSTANT, devices), rel=PRECISE
    )


@pytest.mark.parametrize("step", SHAPES)
@pytest.mark.parametrize("device", sampled(SHAPES, 1))
def test_products_are_as_large_as_drawn_ones(device: Shape, step: Shape) -> None:
    """The mean of the largest of 16 drawn products lies within four standard errors."""
    generator = np.random.default_rng(11)
    one, other = spread(device, 0.1), spread(step, 0.05)
    amounts = (
        Draws(each, 1, its) for each, its in zip((one, other), generator.spawn(2), strict=True)
    )
    drawn = [np.array([its.of(n) for n in range(16 * 20_000)]) for its in amounts]
    largest = (drawn[0] * drawn[1]).reshape(-1, 16).max(axis=1)
    error = largest.std() / math.sqrt(len(largest))
    assert abs(slowest_factor(one, other, 16) - largest.mean()) < 4.0 * error


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from(SHAPES),
    st.integers(1, 5000),
    st.floats(0.001, 0.5),
)
def test_more_devices_are_never_quicker(
    device: Shape, step: Shape, devices: int, deviation: float
) -> None:
    """Nor are devices that differ in one more way."""
    one, other = spread(device, deviation), spread(step, 0.05)
    alone = slowest_factor(one, CONSTANT, devices)
    assert 1.0 <= alone <= slowest_factor(one, CONSTANT, devices + 1) * (1 + 1e-9)
    assert slowest_factor(one, other, devices) >= alone - PRECISE * (alone - 1.0) - 1e-9


def test_nothing_is_waited_for_without_a_spread_or_alone() -> None:
    """One device, or devices that are all alike."""
    assert slowest_factor(CONSTANT, CONSTANT, 1000) == 1.0
    assert slowest_factor(spread(Shape.GAMMA), spread(Shape.UNIFORM), 1) == 1.0
