"""Waiting for the slowest rank: what it costs, and whom."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.scenarios import host, scenario, simulate

from simulator.calibration import Calibration, Factor
from simulator.provenance import Source
from simulator.scenario import Scenario
from simulator.stages.base import Phase
from simulator.stages.slowest import Slowest
from simulator.workload.train import Mode


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
    (one,) = Slowest().demands(late(ranks=4), Phase.COLD)
    (two,) = Slowest().demands(late(ranks=2, machines=2), Phase.COLD)
    assert two.latency == one.latency


@pytest.mark.parametrize(
    "job", [late(share=0.0), late(mode=Mode.INFER)], ids=["never late", "nobody meets"]
)
def test_nobody_waits(job: Scenario) -> None:
    """Without delays, or without a barrier, nothing is asked for."""
    assert Slowest().demands(job, Phase.COLD) == ()


def test_one_rank_waits_for_nobody() -> None:
    """A rank alone takes what it computes."""
    assert simulate(late(ranks=1)).step_time.mean == pytest.approx(0.1, rel=1e-6)


def test_a_factor_shortens_the_delays() -> None:
    """Ranks half as late wait half as long."""
    source = Source(reference="made up", date="2026-11-21")
    half = Calibration(factors=(Factor(name="straggling", value=2.0, source=source),))
    (wait,) = Slowest().demands(late(), Phase.COLD)
    (less,) = Slowest().demands(replace(late(), calibration=half), Phase.COLD)
    assert less.latency == pytest.approx(wait.latency / 2.0, rel=1e-12)
