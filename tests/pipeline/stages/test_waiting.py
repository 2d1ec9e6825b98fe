"""Waiting for the slowest rank: what it costs, and whom."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import host, scenario, simulate
from support.stages import sampled

from simulator.engine.loader import Draws
from simulator.equations.step import harmonic
from simulator.physics.device_time import device_time
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.waiting import (
    SlowDeviceWait,
    StragglerWait,
    expected_largest,
    expected_largest_product,
    slowest_factor,
)
from simulator.reading.scenario import load_scenario
from simulator.schema.calibration import Calibration, Factor
from simulator.schema.fields import CONSTANT, Shape, Spread
from simulator.schema.provenance import Source
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode, Parallelism


def late(
    ranks: int = 4, machines: int = 1, share: float = 0.05, mode: Mode = Mode.TRAIN
) -> Scenario:
    """A job whose ranks are late by a share of their 100 ms of compute."""
    job = scenario(machine=host(gpus=ranks), compute=0.1, workers=2)
    train = replace(job.job.train, straggling=share)
    (group,) = job.cluster.groups
    cluster = replace(job.cluster, groups=(replace(group, count=machines),))
    return replace(job, cluster=cluster, jobs=(replace(job.job, train=train, mode=mode),))


def test_four_ranks_wait_for_the_latest_of_four() -> None:
    """With delays of 5 ms in the mean: 5 x (1 + 1/2 + 1/3 + 1/4 - 1) ms a step, as waiting."""
    timing = simulate(late())
    assert timing.step_time.mean == pytest.approx(0.1 + 0.005 * (1 / 2 + 1 / 3 + 1 / 4), rel=1e-5)
    assert timing.split.other == pytest.approx(0.005 * 13 / 12, rel=1e-5)
    assert timing.split.compute == pytest.approx(0.1, rel=1e-9)


def test_all_machines_count() -> None:
    """Two machines of two ranks wait as long as one of four."""
    (one,) = StragglerWait().demands(late(ranks=4), Phase.COLD)
    (two,) = StragglerWait().demands(late(ranks=2, machines=2), Phase.COLD)
    assert two.latency == one.latency


@pytest.mark.parametrize(
    "job", [late(share=0.0), late(mode=Mode.INFER)], ids=["never late", "nobody meets"]
)
def test_nobody_waits(job: Scenario) -> None:
    """Without delays, or without a barrier, nothing is asked for."""
    assert StragglerWait().demands(job, Phase.COLD) == ()


def test_one_rank_waits_for_nobody() -> None:
    """A rank alone takes what it computes."""
    assert simulate(late(ranks=1)).step_time.mean == pytest.approx(0.1, rel=1e-6)


def test_a_factor_shortens_the_delays() -> None:
    """Ranks half as late wait half as long."""
    source = Source(reference="made up", date="2026-11-21")
    half = Calibration(factors=(Factor(name="straggling", value=2.0, source=source),))
    (wait,) = StragglerWait().demands(late(), Phase.COLD)
    (less,) = StragglerWait().demands(replace(late(), calibration=half), Phase.COLD)
    assert less.latency == pytest.approx(wait.latency / 2.0, rel=1e-12)


SPREAD = Spread(shape=Shape.UNIFORM, relative_deviation=0.1)
HALF = 0.1 * 3.0**0.5
"""How much longer than the mean one the slowest of many devices takes."""


def uneven(job: Scenario) -> Scenario:
    """The job on devices of 10% deviation, equally spread between two ends."""
    train = replace(job.job.train, device_spread=SPREAD)
    return replace(job, jobs=(replace(job.job, train=train),))


def test_four_devices_wait_for_the_slowest_of_four() -> None:
    """The largest of four lies at 4/5 of the range: 3/5 of the way from the mean to its end."""
    timing = simulate(uneven(late(share=0.0)))
    assert timing.split.other == pytest.approx(0.1 * HALF * 0.6, rel=1e-5)
    assert timing.split.compute == pytest.approx(0.1, rel=1e-9)
    assert timing.step_time.mean == pytest.approx(0.1 * (1.0 + HALF * 0.6), rel=1e-5)


def test_devices_of_all_machines_count() -> None:
    """Two machines of two wait as long as one of four."""
    (one,) = SlowDeviceWait().demands(uneven(late(ranks=4, share=0.0)), Phase.COLD)
    (two,) = SlowDeviceWait().demands(uneven(late(ranks=2, machines=2, share=0.0)), Phase.COLD)
    assert two.latency == one.latency


def test_devices_of_a_replica_wait_for_each_other() -> None:
    """Layers in parts and stages in series: all eight devices of two replicas count."""
    job = uneven(late(ranks=8, share=0.0))
    degrees = Parallelism(tensor=2, pipeline=2)
    split = replace(job, jobs=(replace(job.job, parallelism=degrees),))
    assert (split.ranks, split.devices) == (2, 8)
    (wait,) = SlowDeviceWait().demands(split, Phase.COLD)
    assert wait.latency == pytest.approx(0.1 * HALF * 7 / 9, rel=1e-5)


def test_the_update_is_part_of_what_the_slowest_device_does() -> None:
    """Uniform speeds of 10% on 8 devices: 7/9 of the range's half over all of a step's compute."""
    spread = ("train.device_spread.shape=uniform", "train.device_spread.relative_deviation=0.1")
    job = load_scenario("llama3-8b-fsdp", overrides=(*spread, "train.step_jitter.shape=constant"))
    time = device_time(job)
    assert time is not None
    assert float(time.optimizer) > 0.0
    whole = job.job.train.accumulation * (time.forward + time.backward) + time.optimizer
    plain = replace(job, jobs=(replace(job.job, train=replace(job.job.train, straggling=0.0)),))
    (wait,) = SlowDeviceWait().demands(plain, Phase.COLD)
    assert float(wait.latency) == pytest.approx(float(whole) * HALF * 7 / 9, rel=1e-5)


def test_late_ranks_and_slow_devices_add_up_in_quadrature() -> None:
    """Each has its own cause, so the latest rank rarely has the slowest device."""
    both, job = uneven(late()), late()
    (rank,), (device,) = (s.demands(both, Phase.COLD) for s in (StragglerWait(), SlowDeviceWait()))
    (alone,) = StragglerWait().demands(job, Phase.COLD)
    assert rank.latency == alone.latency
    assert rank.latency + device.latency == pytest.approx(
        (rank.latency**2 + (0.1 * HALF * 0.6) ** 2) ** 0.5, rel=1e-5
    )


def test_every_accumulated_batch_counts_and_the_factor_shortens_it() -> None:
    """A step of three batches waits three times as long; ranks half as late half as long."""
    job = uneven(late(share=0.0))
    (once,) = SlowDeviceWait().demands(job, Phase.COLD)
    train = replace(job.job.train, accumulation=3)
    more = replace(job, jobs=(replace(job.job, train=train),))
    (thrice,) = SlowDeviceWait().demands(more, Phase.COLD)
    assert thrice.latency == pytest.approx(3.0 * once.latency, rel=1e-12)
    source = Source(reference="made up", date="2026-11-21")
    half = Calibration(factors=(Factor(name="straggling", value=2.0, source=source),))
    (less,) = SlowDeviceWait().demands(replace(job, calibration=half), Phase.COLD)
    assert less.latency == pytest.approx(once.latency / 2.0, rel=1e-12)


@pytest.mark.parametrize(
    "job",
    [late(share=0.0), uneven(late(ranks=1)), uneven(late(mode=Mode.INFER))],
    ids=["equal devices", "one device", "nobody meets"],
)
def test_no_device_is_waited_for(job: Scenario) -> None:
    """Without a spread, alone, or without a barrier, nothing is asked for."""
    assert SlowDeviceWait().demands(job, Phase.COLD) == ()


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


@pytest.mark.parametrize(
    ("draws", "score"),
    [(1, 0.0), (2, 0.564190), (3, 0.846284), (10, 1.538753), (100, 2.507594), (1000, 3.241436)],
)
def test_the_largest_of_normal_draws_is_that_of_tables(draws: int, score: float) -> None:
    """Expected values of the largest normal order statistic, as tabulated (Harter, 1961)."""
    assert expected_largest(lambda scores: scores, draws) == pytest.approx(score, abs=2e-6)


@pytest.mark.parametrize("draws", [1, 2, 50, 100_000])
def test_products_with_one_are_the_other_factor(draws: int) -> None:
    """Exponential factors times 1: harmonic numbers, however many there are."""

    def below(amounts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray:  # type: ignore[type-arg] # as given
        return -np.expm1(-amounts)

    found = expected_largest_product(np.ones_like, below, draws, (1e-6, 80.0))
    assert found == pytest.approx(harmonic(draws), rel=1e-3)
