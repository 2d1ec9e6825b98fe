"""Tornado and Sobol indices, against functions whose answer is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from simulator.schema.scenario import Scenario
from simulator.studies.changes.sensitivity import Share, deviations, indices, sobol, tornado
from simulator.uncertainty.doubts import P90, Doubt, Rate
from tests.support.scenarios import SOURCE
from tests.support.what_if import made_up, reader

SPREAD = {Rate.DEVICE: 0.1, Rate.WORKERS: 0.2, Rate.STORAGE: 0.3}
Speeds = Mapping[Rate, NDArray[np.float64]]


def by_rate(shares: tuple[Share, ...]) -> dict[Rate, tuple[float, float]]:
    """First and total index by rate."""
    return {share.rate: (share.first, share.total) for share in shares}


def doubtful(**doubts: float) -> Scenario:
    """Two workers of 0.1 s a batch, a device of 0.021 s, and doubts by name of the rate."""
    found = tuple(
        Doubt(name=name, rate=Rate[name.upper()], log_sd=sd, source=SOURCE)
        for name, sd in doubts.items()
    )
    return replace(made_up()({}), doubts=found)


def test_indices_of_a_sum() -> None:
    """A sum of logarithms: each rate has its own variance of the whole, and nothing more."""
    weights = {Rate.DEVICE: 3.0, Rate.WORKERS: 2.0, Rate.STORAGE: 1.0}

    def model(speeds: Speeds) -> NDArray[np.float64]:
        return sum((w * np.log(speeds[rate]) for rate, w in weights.items()), np.zeros(1))

    found = by_rate(indices(model, SPREAD))
    parts = {rate: (w * SPREAD[rate]) ** 2 for rate, w in weights.items()}
    whole = sum(parts.values())
    for rate, part in parts.items():
        assert found[rate] == pytest.approx((part / whole, part / whole), abs=0.02)


def test_indices_of_a_product() -> None:
    """A product of centred factors is all interaction: nothing alone, everything together."""

    def model(speeds: Speeds) -> NDArray[np.float64]:
        product: NDArray[np.float64] = np.log(speeds[Rate.DEVICE]) * np.log(speeds[Rate.WORKERS])
        return product

    found = by_rate(indices(model, {Rate.DEVICE: 0.1, Rate.WORKERS: 0.2}))
    assert found[Rate.DEVICE] == pytest.approx((0.0, 1.0), abs=0.05)
    assert found[Rate.WORKERS] == pytest.approx((0.0, 1.0), abs=0.05)


def test_what_does_not_vary_has_no_indices() -> None:
    """A constant has no variance to share, and without rates there is nothing to vary."""
    assert indices(lambda speeds: np.ones(np.size(speeds[Rate.DEVICE])), {Rate.DEVICE: 0.1}) == ()
    assert indices(lambda _: np.ones(1), {}) == ()


def test_the_rate_that_limits_has_all_of_the_variance() -> None:
    """With the workers as the limit by far, the device's doubt counts for nothing."""
    found = sobol(doubtful(workers=0.1, device=0.1), "step_time_s.mean")
    assert found is not None
    shares = by_rate(found.shares)
    assert shares[Rate.WORKERS] == pytest.approx((1.0, 1.0), abs=0.02)
    assert shares[Rate.DEVICE] == pytest.approx((0.0, 0.0), abs=0.02)


@pytest.mark.parametrize("name", ["resnet50-imagenet-p4d", "svm-cpu-only", "megatron-1t"])
def test_indices_sum_sensibly(name: str) -> None:
    """First-order indices leave room for interaction only, and no total is below its first."""
    found = sobol(reader(name)({}), "step_time_s.mean")
    assert found is not None
    assert sum(share.first for share in found.shares) == pytest.approx(1.0, abs=0.1)
    for share in found.shares:
        assert -0.02 < share.first < share.total + 0.02


def test_tornado_of_the_rate_that_limits() -> None:
    """The step is as many times as long or short as its workers are slow or fast."""
    found = tornado(doubtful(workers=0.1, device=0.1), "step_time_s.mean")
    assert found is not None
    widest, other = found.bars
    assert (widest.rate, other.rate) == (Rate.WORKERS, Rate.DEVICE)
    assert widest.slow / found.base == pytest.approx(math.exp(0.1 * P90), rel=1e-3)
    assert widest.fast / found.base == pytest.approx(math.exp(-0.1 * P90), rel=1e-3)
    assert other.width == pytest.approx(0.0, abs=1e-6)


def test_tornado_simulates_what_closed_forms_leave_out() -> None:
    """A device so slow that it becomes the limit shows in the simulated end."""
    found = tornado(doubtful(device=1.0), "step_time_s.mean")
    assert found is not None
    assert found.bars[0].slow == pytest.approx(0.021 * math.exp(P90), rel=1e-2)


def test_the_step_as_a_whole_stretches() -> None:
    """What no rate explains multiplies the step by itself."""
    found = tornado(doubtful(step=0.1), "step_time_s.mean")
    assert found is not None
    (whole,) = found.bars
    assert whole.slow / found.base == pytest.approx(math.exp(0.1 * P90))


def test_doubts_about_one_rate_add_up() -> None:
    """Two doubts of 3% and 4% about a rate are one of 5%."""
    doubts = [
        Doubt(name=str(sd), rate=Rate.DEVICE, log_sd=sd, source=SOURCE) for sd in (0.03, 0.04, 0.0)
    ]
    assert deviations(doubts) == {Rate.DEVICE: pytest.approx(0.05)}
    assert deviations([]) == {}


def test_a_metric_without_a_value_has_no_sensitivity() -> None:
    """What the job has no figure for cannot depend on anything."""
    assert tornado(doubtful(workers=0.1), "cost.usd_to_train") is None
    assert sobol(doubtful(workers=0.1), "cost.usd_to_train") is None
