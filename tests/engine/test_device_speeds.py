"""Devices that differ in speed: one that stands for all against each with a speed of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from unittest.mock import patch

import numpy as np
import pytest
from simpy import Event
from support.scenarios import host, scenario, simulate

from simulator.engine import epoch
from simulator.engine.loader import Draws
from simulator.engine.machine import Machine, Task
from simulator.engine.symmetry import everyone
from simulator.pipeline.stages.base import Demand, Path
from simulator.pipeline.stages.communication import bucket_shares
from simulator.pipeline.stages.waiting import slowest_factor
from simulator.pipeline.topology import Location
from simulator.results.prediction import Timing
from simulator.schema.data_loading import Straggler
from simulator.schema.fields import CONSTANT, Shape, Spread
from simulator.schema.models import CustomModel
from simulator.schema.scenario import Scenario

COMPUTE = 0.02
RUNS = 30
DEVICE = Spread(shape=Shape.LOGNORMAL, relative_deviation=0.03)
JITTER = Spread(shape=Shape.GAMMA, relative_deviation=0.06)
UNEQUAL = Spread(shape=Shape.GAMMA, relative_deviation=0.8)


def job(ranks: int, **figures: object) -> Scenario:
    """Ranks that meet after 20 ms of compute; the machine slows none of them."""
    machine = replace(host(gpus=ranks, cores=4.0 * ranks, nvlink=None), host_link=None)
    return scenario(machine=machine, compute=COMPUTE, **figures)  # type: ignore[arg-type] # by name


def spread(made: Scenario, device: Spread = DEVICE, jitter: Spread = JITTER) -> Scenario:
    """The job on devices whose speeds differ."""
    train = replace(made.job.train, device_spread=device, step_jitter=jitter)
    return replace(made, jobs=(replace(made.job, train=train),))


class Uneven(Machine):
    """A machine whose devices have drawn speeds, and draw again at each step."""

    generator = np.random.default_rng(0)

    def task(self, demand: Demand, place: Location) -> Task | None:
        """How to carry out a demand; forward and backward pass of a step take equally longer."""
        found = super().task(demand, place)
        if found is None or demand.path is not Path.COMPUTE:
            return found
        speeds = self.__dict__.setdefault("speeds", {})
        if place.rank not in speeds:
            own, each = (Draws(one, 1, self.generator) for one in (DEVICE, JITTER))
            speeds[place.rank] = partial(_factor, own.of(0), each, count(), [])
        return partial(_longer, found, speeds[place.rank])


def _factor(own: float, each: Draws, steps: Iterator[int], left: list[float]) -> float:
    if not left:
        left.extend([own * each.of(next(steps))] * 2)
    return left.pop()


def _longer(task: Task, factor: Callable[[], float], scale: float) -> Event:
    return task(scale * factor())


def expanded(made: Scenario, runs: int = RUNS) -> tuple[float, float]:
    """Mean step of runs in which every device is simulated [s], and its standard error."""
    Uneven.generator = np.random.default_rng(18)
    steps = [_expanded(made, seed).step_time.mean for seed in range(runs)]
    return float(np.mean(steps)), float(np.std(steps, ddof=1) / np.sqrt(runs))


def _expanded(made: Scenario, seed: int = 0) -> Timing:
    every = patch.object(
        epoch, "reduce_symmetry", lambda _, topology, __: everyone(topology, topology.ranks)
    )
    with every, patch.object(epoch, "Machine", Uneven):
        return simulate(replace(made, name="every device"), replay=True, seed=seed)


@pytest.fixture(autouse=True)
def events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything goes through events, where devices can be told apart."""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_one_device_stands_for_all(ranks: int) -> None:
    """A step of the reduction run is the mean of runs with drawn speeds, within three errors."""
    made = job(ranks, batches=8)
    mean, error = expanded(made)
    reduction = simulate(spread(made), replay=True).step_time.mean
    assert reduction == pytest.approx(COMPUTE * slowest_factor(DEVICE, JITTER, ranks), rel=1e-9)
    assert abs(reduction - mean) < 3.0 * error
    assert mean > COMPUTE + 3.0 * error


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_late_batches_hide_slow_devices(ranks: int) -> None:
    """Batches made when needed, unequal ones: the slowest device rarely has the latest batch."""
    made = job(ranks, batches=15, batch_cpu=0.02, cost_spread=UNEQUAL)
    mean, error = expanded(made, runs=RUNS if ranks < 64 else 8)
    reduction = np.mean(
        [simulate(spread(made), replay=True, seed=s).step_time.mean for s in range(8)]
    )
    equal = np.mean([simulate(made, replay=True, seed=s).step_time.mean for s in range(8)])
    alone = COMPUTE * (slowest_factor(DEVICE, JITTER, ranks) - 1.0)
    assert abs(reduction - mean) < 3.0 * error + 0.01 * mean
    assert reduction - equal < 0.75 * alone


def test_a_stall_hides_slow_devices() -> None:
    """Where batches come every 30 ms, slow devices make no step longer, but leave less to stall."""
    made = job(8, batches=60, batch_cpu=0.03, workers=1, sync=False)
    equal, uneven = simulate(made), simulate(spread(made))
    assert uneven.step_time.mean == pytest.approx(equal.step_time.mean, rel=1e-6)
    wait = COMPUTE * (slowest_factor(DEVICE, JITTER, 8) - 1.0)
    assert uneven.split.other == pytest.approx(wait, rel=1e-6)
    assert uneven.split.data_stall == pytest.approx(equal.split.data_stall - wait, rel=1e-5)
    assert _expanded(made).step_time.mean == pytest.approx(equal.step_time.mean, rel=1e-2)


def test_a_slow_loader_counts_the_same_folded_or_not() -> None:
    """One rank's late batches hide slow devices by how many ranks wait for it."""
    late = (Straggler(factor=1.1, rank=1),)
    machine = host(gpus=8, cores=64.0)
    made = spread(
        scenario(machine=machine, compute=COMPUTE, batches=20, batch_cpu=0.02, stragglers=late)
    )
    with patch.object(
        epoch, "reduce_symmetry", lambda _, topology, __: everyone(topology, topology.ranks)
    ):
        every = simulate(made, replay=True)
    reduction = simulate(made, replay=True)
    assert reduction.step_times == pytest.approx(every.step_times, rel=1e-9)
    wait = COMPUTE * (slowest_factor(DEVICE, JITTER, 8) - 1.0)
    lag = 0.002 * 7 / 8
    assert reduction.split.other == pytest.approx(
        np.hypot(wait, lag) - lag + 0.002 * 7 / 8, rel=1e-6
    )


def test_it_costs_no_more_for_more_devices() -> None:
    """Of many devices as few are simulated as of equal ones."""
    few, many = spread(job(2, batches=20)), spread(job(4096, batches=20))
    assert simulate(few).simulated_steps == simulate(many).simulated_steps
    assert simulate(many).step_time.mean > simulate(few).step_time.mean


def test_devices_without_a_spread_are_equal() -> None:
    """A spread of nothing changes nothing, to the last bit."""
    made = job(8, batches=20, batch_cpu=0.01, cost_spread=UNEQUAL)
    assert simulate(spread(made, CONSTANT, CONSTANT)) == simulate(made)


def test_the_latest_of_all_buckets_hides_slow_devices() -> None:
    """Ranks wait for late batches at the first bucket; meanwhile all make the others ready."""
    late = (Straggler(factor=1.1, rank=1),)
    machine = host(gpus=8, cores=64.0, nvlink=20e9)
    made = scenario(machine=machine, compute=COMPUTE, batches=20, batch_cpu=0.02, stragglers=late)
    train = replace(made.job.train, bucket_size=25e6)
    model = CustomModel(name="test", parameters=25e6, forward_flops=1e9)
    in_buckets = spread(replace(made, jobs=(replace(made.job, train=train, model=model),)))
    assert len(bucket_shares(in_buckets)) > 1
    wait = COMPUTE * (slowest_factor(DEVICE, JITTER, 8) - 1.0)
    lag = 0.002 * 7 / 8
    ledger = simulate(in_buckets, replay=True).ledger
    assert ledger["slowest device"] == pytest.approx(np.hypot(wait, lag) - lag, rel=1e-6)
