"""Rates of interruptions and periods of capacity."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import reliability
from simulator.equations.reliability import interruption_rate, short_branch


def _segment(rng: np.random.Generator, rate: float, length: float, restart: float) -> float:
    """Time until one segment is done; an interruption loses it, and restarts fail too."""
    spent, needed = 0.0, length
    while (until := rng.exponential(1.0 / rate)) < needed:
        spent += until
        needed = restart + length
    return spent + needed


DAY, HOUR = 86400.0, 3600.0


@pytest.mark.parametrize(("machines", "hours"), [(16, 10.4), (128, 7.9), (1024, 2.7), (2048, 1.55)])
def test_machines_and_the_job_itself_fail(machines: int, hours: float) -> None:
    """With 6.5 per 1,000 machine-days and one per 10.9 h of the job, as worked out by hand."""
    rate = interruption_rate(machines, 6.5e-3 / DAY, 1.0 / (10.9 * HOUR))
    assert pytest.approx(hours, rel=0.01) == 1.0 / rate / HOUR


def test_the_machines_alone() -> None:
    """Without a rate of the job: 1.80 h on 2,048 machines, as projected for RSC-1."""
    assert 1.0 / interruption_rate(2048, 6.5e-3 / DAY, 0.0) / HOUR == pytest.approx(1.803, rel=1e-3)


def test_balanced_branches_have_the_variation() -> None:
    """Mean 1 and the second moment that belongs to the variation."""
    for variation in (1.0, 2.0, 3.5):
        short = short_branch(variation)
        square = 0.5 / short + 0.5 / (1.0 - short) if short < 1.0 else np.inf
        assert square - 1.0 == pytest.approx(variation**2)


def test_rare_interruptions_cost_checkpoints_only() -> None:
    """Almost never interrupted, a run takes its work and one checkpoint an interval."""
    time = reliability.time_with_interruptions(36_000.0, 1e-12, 3600.0, 60.0, 600.0)
    assert time == pytest.approx(36_000.0 + 10 * 60.0, rel=1e-6)


def test_expected_time_is_that_of_simulated_runs() -> None:
    """Runs interrupted at random, segment by segment, take in the mean what the formula says."""
    rng = np.random.default_rng(7)
    rate, interval, write, restart = 1 / 7200.0, 1800.0, 120.0, 300.0
    drawn = [_segment(rng, rate, interval + write, restart) for _ in range(40_000)]
    told = reliability.time_with_interruptions(interval, rate, interval, write, restart)
    assert np.mean(drawn) == pytest.approx(told, rel=0.02)


@pytest.mark.parametrize("write", [5.0, 60.0, 900.0])
def test_no_other_interval_is_clearly_better(write: float) -> None:
    """Half and twice the best interval take longer; the best of many is within 0.1%."""
    rate = 1 / 36_000.0
    best = float(reliability.best_checkpoint_interval(rate, write))
    took = reliability.time_with_interruptions(1e6, rate, best, write, 300.0)
    others = reliability.time_with_interruptions(
        1e6, rate, best * np.geomspace(0.1, 10, 400), write, 300
    )
    assert took < reliability.time_with_interruptions(1e6, rate, best * 2, write, 300.0)
    assert took < reliability.time_with_interruptions(1e6, rate, best / 2, write, 300.0)
    assert took <= 1.001 * np.min(others)


def test_a_checkpoint_longer_than_the_peace_is_written_once_in_it() -> None:
    """Beyond twice the mean time between interruptions the interval is that time."""
    assert reliability.best_checkpoint_interval(1 / 60.0, 600.0) == pytest.approx(60.0)
