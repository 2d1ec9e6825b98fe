"""Several machines that train, and one group of machines that makes batches for all of them."""

from __future__ import annotations

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction

BESIDE, ALONE = "heterogeneous-tfdata", "remote-workers-mnist"


def step(name: str, trainers: int, helpers: int, *settings: str) -> float:
    """Time of a step of a shipped job on so many machines [s]."""
    return predicted(name, trainers, helpers, *settings).timing.step_time.mean


def predicted(name: str, trainers: int, helpers: int, *settings: str) -> Prediction:
    """A shipped job on so many machines."""
    counts = (f"hardware.count={trainers}", f"remote.count={helpers}")
    return predict(load_scenario(name, overrides=(*counts, *settings)), intervals=False)


@pytest.mark.parametrize("trainers", [2, 4])
def test_as_many_helpers_for_each_keep_the_step(trainers: int) -> None:
    """All of both grows alike: each machine is served as before."""
    assert step(ALONE, trainers, trainers) == pytest.approx(step(ALONE, 1, 1), rel=1e-3)


def test_helpers_make_batches_for_all_trainers() -> None:
    """By hand: all batches come from one machine, so three trainers wait three times as long."""
    assert step(ALONE, 3, 1) == pytest.approx(3.0 * step(ALONE, 1, 1), rel=0.01)


def test_helpers_beside_own_workers() -> None:
    """By hand: 8,192 samples of 2.25 ms on 96 vCPUs and half of 2 x 72, each 0.956 as fast."""
    own, other = 1_593_361 / 96, 1_142_358 / 72
    vcpus = 96.0 + 72.0 * other / own
    assert step(BESIDE, 2, 2) == pytest.approx(8192 * 2.25e-3 / vcpus, rel=0.03)


def test_the_network_of_a_helper_is_shared_out() -> None:
    """By hand: four trainers on one helper of 12 Gb/s, which sends 25.7 MB to each for a step."""
    network = "remote.speed=100"
    found = predicted(ALONE, 4, 1, network)
    assert found.timing.bottleneck == "data.network"
    assert found.timing.step_time.mean == pytest.approx(4 * 25_690_112 / 1.5e9, rel=0.05)


def test_the_bill_has_every_machine_once() -> None:
    """Two trainers and three helpers."""
    one, more = predicted(ALONE, 1, 1).cost.per_second, predicted(ALONE, 2, 3).cost.per_second
    fewer = predicted(ALONE, 2, 1).cost.per_second
    assert one is not None
    assert more is not None
    assert fewer is not None
    trainer = fewer - one
    assert more == pytest.approx(2.0 * trainer + 3.0 * (one - trainer))
