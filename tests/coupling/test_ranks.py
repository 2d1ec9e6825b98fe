"""Ranks of one job meet at the barrier; independent jobs only share the machine."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest
from coupling.build import in_step, with_job
from coupling.on_ranks import four_ranks, sharing_a_store
from support.scenarios import inputs_of

from simulator.engine.run import Options, solve
from simulator.physics.footprint import host_ram
from simulator.predict import predict
from simulator.results.prediction import Slice
from simulator.schema.data_loading import Straggler
from simulator.schema.scenario import Scenario

SLOW = (Straggler(factor=2.0, rank=0),)


def slices(job: Scenario, name: str) -> dict[int, list[Slice]]:
    """Every piece of work of that name in a whole epoch, by rank and in order."""
    trace = solve(inputs_of(job), Options(trace=True, replay=True)).trace
    assert trace is not None
    found: dict[int, list[Slice]] = defaultdict(list)
    for piece in sorted(trace.slices, key=lambda piece: piece.start):
        if piece.name == name:
            found[int(piece.track.split()[1])].append(piece)
    return found


def test_a_slow_client_slows_no_other_client() -> None:
    """Reads take 160 ms on the three other ranks with the straggler as without, 320 ms on it."""
    reads = slices(in_step(four_ranks(SLOW)), "read")
    assert {round(read.length, 9) for read in reads[0]} == {0.32}
    for rank in (1, 2, 3):
        assert {round(read.length, 9) for read in reads[rank]} == {0.16}


def test_every_rank_waits_for_the_slow_one_at_the_barrier() -> None:
    """Its two batches every 320 ms make steps of 160 ms, of which those in time wait 60 ms."""
    computing = slices(four_ranks(SLOW), "forward")
    for rank in range(4):
        gaps = [b.start - a.start for a, b in pairwise(computing[rank])]
        pairs = [a + b for a, b in pairwise(gaps[10:-10])]
        assert pairs == pytest.approx([2 * 0.16] * len(pairs), rel=1e-6)
    split = predict(four_ranks(SLOW)).timing.split
    assert split.data_stall == pytest.approx(0.06 / 4, rel=1e-6)
    assert split.other == pytest.approx(0.06 * 3 / 4, rel=1e-6)


def test_without_the_straggler_nobody_waits() -> None:
    """Clients that make a batch every 80 ms keep devices of 100 ms busy."""
    timing = predict(four_ranks(())).timing
    assert timing.step_time.mean == pytest.approx(0.1, rel=1e-6)
    assert timing.accelerator_utilization == pytest.approx(1.0, rel=1e-6)


def test_independent_jobs_do_not_wait_for_a_slow_one() -> None:
    """Without a barrier the three others go on at 100 ms while the slow job takes 160."""
    computing = slices(with_job(four_ranks(SLOW), copies=4), "forward")
    for rank, step in enumerate([0.16, 0.1, 0.1, 0.1]):
        gaps = [b.start - a.start for a, b in pairwise(computing[rank])]
        assert sum(gaps[20:120]) / 100 == pytest.approx(step, rel=1e-3)


def test_independent_jobs_read_the_data_once_each() -> None:
    """Four jobs take four times the steps, and as many bytes a second, as one on four devices."""
    one, four = (predict(sharing_a_store(copies)) for copies in (1, 4))
    assert four.steps_per_epoch == 4 * one.steps_per_epoch
    assert four.timing.step_time.mean == pytest.approx(one.timing.step_time.mean, rel=1e-9)
    assert four.timing.throughput == pytest.approx(one.timing.throughput, rel=1e-9)
    assert four.timing.epoch_time == pytest.approx(4 * one.timing.epoch_time, rel=0.01)


def test_two_jobs_of_two_devices_meet_in_pairs() -> None:
    """A slow first rank holds up the second one of its own job only."""
    computing = slices(with_job(four_ranks(SLOW), copies=2), "forward")
    for rank, step in enumerate([0.16, 0.16, 0.1, 0.1]):
        gaps = [b.start - a.start for a, b in pairwise(computing[rank])]
        assert sum(gaps[20:80]) / 60 == pytest.approx(step, rel=1e-3)


def test_jobs_side_by_side_take_as_much_ram_as_one_on_all_devices() -> None:
    """Four processes with four workers each, whoever they belong to."""
    one, four = (host_ram(sharing_a_store(copies)) for copies in (1, 4))
    assert four.total == pytest.approx(one.total)
