"""When a random run is steady although no mean is known by its batches."""

from __future__ import annotations

from simulator.engine.watch import LEAST_WINDOW, undisturbed

EQUAL = [0.3] * 200


def test_equal_steps_with_a_reserve_that_holds_are_steady() -> None:
    """Randomness that the loaders hide needs no interval."""
    found = undisturbed(EQUAL, [20.0, 22.0] * 100, in_flight=30)
    assert found is not None
    assert found.half_width == 0.0
    assert found.window == 60


def test_a_reserve_that_shrinks_is_not_steady() -> None:
    """Equal steps say nothing while they eat what was made ahead."""
    assert undisturbed(EQUAL, [30.0 - 0.05 * k for k in range(200)], in_flight=30) is None


def test_one_late_step_is_not_steady() -> None:
    """What randomness reaches is left to the interval."""
    assert undisturbed([*EQUAL, 0.4], [20.0] * 201, in_flight=30) is None


def test_the_start_says_nothing() -> None:
    """Everything in flight is used up once before two windows are looked at."""
    steps = 2 * LEAST_WINDOW + 9
    assert undisturbed(EQUAL[:steps], [5.0] * steps, in_flight=10) is None
    assert undisturbed(EQUAL[: steps + 1], [5.0] * (steps + 1), in_flight=10) is not None
