"""Rates of interruptions and spells of capacity."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.reliability import interruption_rate, short_branch

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
