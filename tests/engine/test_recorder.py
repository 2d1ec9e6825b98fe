"""What stands for an epoch's steps: one meaning of a step, however far the epoch was simulated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.scenarios import BATCH, host, scenario, simulate

from simulator.engine.recorder import (
    MIN_WINDOW,
    batch_means,
    chance_of_an_epoch,
    find_period,
    undisturbed,
)
from simulator.schema.machines import Host

ROUNDING = 0.003
"""Share by which a bound on shared cores may fall short of the steps that it stands for."""

SHORT_AND_LONG = [60, 157]
"""Steps of an epoch in which a reserve is used up late, or not at all."""


def workstation(cores: int) -> Host:
    """A machine whose workers share cores that slow one another down, and receive over memory."""
    return host(
        cores=cores,
        threads=2 * cores,
        smt_worth=0.05,
        contention=0.5,
        memory_bandwidth=1e11,
    )


def rates(steps: Sequence[float], cores: int, workers: int, batches: int) -> list[float]:
    """Samples a second by the time that the device takes for a step [s]."""
    return [
        simulate(
            scenario(
                batches=batches,
                batch_cpu=1.0,
                compute=step,
                workers=workers,
                prefetch=2,
                machine=workstation(cores),
                pin_memory=True,
                output_bytes=6e5,
            ),
            most=400,
        ).throughput
        for step in steps
    ]


@pytest.mark.parametrize("batches", SHORT_AND_LONG)
@given(cores=st.sampled_from([2, 4, 8]), workers=st.integers(1, 12), close=st.floats(0.8, 1.05))
@example(cores=8, workers=4, close=0.96)
@example(cores=8, workers=10, close=0.97)
@settings(max_examples=6, deadline=None, derandomize=True)
def test_a_faster_device_never_takes_fewer_samples(
    cores: int, workers: int, close: float, batches: int
) -> None:
    """Devices a little faster than the workers live on batches made ahead, which no step may be."""
    fast = rates([0.01], cores, workers, batches)[0]
    steps = [close * BATCH / fast * slower for slower in (1.0, 1.005, 1.02, 1.05)]
    found = [fast, *rates(steps, cores, workers, batches)]
    assert all(b <= a * (1.0 + ROUNDING) for a, b in pairwise(found))


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
    steps = 2 * MIN_WINDOW + 9
    assert undisturbed(EQUAL[:steps], [5.0] * steps, in_flight=10) is None
    assert undisturbed(EQUAL[: steps + 1], [5.0] * (steps + 1), in_flight=10) is not None


def waves(producers: int, device: float, batch: float, steps: int) -> list[float]:
    """Steps of workers that begin a batch whenever theirs has been taken, worked out by hand."""
    made, taken = [batch] * producers, [0.0]
    for step in range(steps):
        taken.append(max(taken[-1] + device, made[step % producers]))
        made[step % producers] = taken[-1] + batch
    return [after - before for before, after in pairwise(taken)]


def test_a_burst_of_equal_steps_is_not_a_period() -> None:
    """48 workers deliver one after another and pause: the window holds the pause as well."""
    steps = waves(48, 0.11, 17.2, 300)
    taken = find_period(steps[1:47], [0] * 46)
    assert taken is not None
    assert taken.period == 1
    found = find_period(steps, [0] * len(steps), 96)
    assert found is not None
    assert found.window % 48 == 0
    assert abs(sum(steps[-found.window :]) / found.window - 17.2 / 48) < 0.01 * 17.2 / 48


def test_the_window_holds_what_is_in_flight() -> None:
    """Steps that repeat are steady once as many of them have as batches are on their way."""
    assert find_period([0.1] * 100, [2] * 100, 99) is not None
    assert find_period([0.1] * 99, [2] * 99, 99) is None


def test_steps_of_waves_are_known_by_their_waves() -> None:
    """Twelve equal waves of 36 steps leave nothing open, though each is short steps and a pause."""
    steps = [0.01] * 35 + [1.0]
    assert batch_means(steps * 12, burst=36) == pytest.approx(0.0, abs=1e-12)
    assert batch_means(steps * 12) > 0.005


@pytest.mark.parametrize("producers", [1, 8])
def test_whole_epochs_differ_by_no_more_than_their_samples_allow(producers: int) -> None:
    """Epochs until the last of some workers is done spread as far as is said, and one no less."""
    draws = np.random.default_rng(1).gamma(25.0, 1.0 / 25.0, size=(2000, producers, 60))
    epochs = draws.sum(axis=2).max(axis=1)
    seen = 1.96 * float(epochs.std() / epochs.mean())
    most = chance_of_an_epoch(0.2, 60)
    assert seen <= most * 1.05
    assert producers > 1 or seen > most * 0.95
