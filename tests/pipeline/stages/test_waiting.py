"""Waiting for the slowest rank: what it costs, and whom."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.scenarios import host, scenario, simulate

from simulator.physics.device_time import device_time
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.waiting import SlowDeviceWait, StragglerWait
from simulator.reading.scenario import load_scenario
from simulator.schema.fields import Shape, Spread
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode, Parallelism
from simulator.uncertainty.calibration import Calibration, Factor
from simulator.uncertainty.provenance import Source


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
