"""Equal ranks reduction into few: the answer of all of them, at the price of few."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from coupling.build import helpers, with_helpers
from coupling.on_network import CARD, batches_from_helpers
from simpy import Environment
from support.clocks import counted
from support.scenarios import host, inputs_of, link, scenario, simulate, store

from simulator.engine import epoch
from simulator.engine.rank import Barrier, expected_maximum
from simulator.engine.run import Options, solve
from simulator.engine.symmetry import (
    MAX_MACHINES,
    SAMPLED,
    SymmetryReduction,
    everyone,
    reduce_symmetry,
)
from simulator.pipeline.stages.base import Phase
from simulator.results.prediction import Timing
from simulator.schema.accelerators import EMULATED
from simulator.schema.data_loading import CachePolicy, LoaderKind, Straggler
from simulator.schema.fields import Shape, Spread
from simulator.schema.machines import Host, PcieSwitch
from simulator.schema.scenario import Scenario


def played(ranks: int, cores: float = 16.0) -> Host:
    """A machine whose accelerators are emulated: none has a link of its own."""
    node = host(gpus=ranks, cores=cores, nvlink=None)
    return replace(node, gpu=EMULATED, host_link=None, gpu_count=ranks)


def shared(ranks: int, rate: float = 1e9, **changes: object) -> Scenario:
    """Ranks with four workers each that read 32 x 1 MB a batch from one store."""
    common: dict[str, object] = {
        "machine": played(ranks),
        "storage": store(rate=rate),
        "sample_bytes": 1e6,
        "cache": CachePolicy.NONE,
        "workers": 4,
        "batch_cpu": 0.02,
        "compute": 0.1,
        "receive_per_batch": 0.002,
    }
    return scenario(**(common | changes))  # type: ignore[arg-type] # arguments by name


def folds(job: Scenario) -> SymmetryReduction:
    """How a job is reduction, with cold caches."""
    asked = inputs_of(job)
    return reduce_symmetry(job, asked.topology, asked.demands[Phase.COLD])


def unfolded(job: Scenario, monkeypatch: pytest.MonkeyPatch) -> Timing:
    """The same with every rank simulated."""
    with monkeypatch.context() as patch:
        patch.setattr(
            epoch, "reduce_symmetry", lambda _, topology, __: everyone(topology, topology.ranks)
        )
        return simulate(job)


@pytest.mark.parametrize("kind", [LoaderKind.PYTORCH, LoaderKind.DALI])
@pytest.mark.parametrize("rate", [1e9, 4e9, 1e12])
def test_one_of_many_equal_ranks_says_what_all_say(
    rate: float, kind: LoaderKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without randomness the reduced run equals the whole run: step, epoch, stall, utilization."""
    job = shared(20, rate=rate, loader=kind)
    one, all_of_them = simulate(job), unfolded(job, monkeypatch)
    assert folds(job).counts == (20.0,)
    assert_same(one, all_of_them)


def assert_same(one: Timing, all_of_them: Timing) -> None:
    """Whether two runs say the same about everything but the last digits."""
    assert one.step_time.mean == pytest.approx(all_of_them.step_time.mean, rel=1e-9)
    assert one.first_step == pytest.approx(all_of_them.first_step, rel=1e-9)
    assert one.first_steps == pytest.approx(all_of_them.first_steps, rel=1e-9)
    assert one.epoch_time == pytest.approx(all_of_them.epoch_time, rel=1e-9)
    assert one.total_time == pytest.approx(all_of_them.total_time, rel=1e-9)
    assert one.throughput == pytest.approx(all_of_them.throughput, rel=1e-9)
    parts, others = astuple(one.split), astuple(all_of_them.split)
    assert parts == pytest.approx(others, abs=1e-9 * one.step_time.mean + 1e-12)
    assert one.usage.keys() == all_of_them.usage.keys()
    for name, usage in all_of_them.usage.items():
        assert one.usage[name].mean == pytest.approx(usage.mean, rel=1e-6, abs=1e-9), name
        assert one.usage[name].busiest == pytest.approx(usage.busiest, rel=1e-6, abs=1e-9), name
        assert one.usage[name].units == usage.units


def test_eight_random_ranks_stand_for_forty(monkeypatch: pytest.MonkeyPatch) -> None:
    """With samples that differ, the reduction epoch is within 2% of all ranks simulated."""
    spread = Spread(shape=Shape.GAMMA, relative_deviation=1.0)
    job = shared(40, rate=40 * 32e6 / 0.098, size_spread=spread)
    few, all_of_them = simulate(job), unfolded(job, monkeypatch)
    assert len(folds(job).ranks) == SAMPLED
    assert few.epoch_time == pytest.approx(all_of_them.epoch_time, rel=0.02)


def test_cost_does_not_grow_with_equal_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand ranks take about as many events as forty."""
    few, many = (events_of(shared(n, rate=n * 1e8), monkeypatch) for n in (40, 2000))
    assert 0 < many < 1.1 * few


def events_of(job: Scenario, monkeypatch: pytest.MonkeyPatch) -> int:
    """Events of a job's simulated epochs, without those kept from an earlier test."""
    clocks = counted(monkeypatch)
    solve(inputs_of(job), Options())
    return sum(clock.events for clock in clocks)


SPREAD = Spread(shape=Shape.GAMMA, relative_deviation=1.0)


@pytest.mark.parametrize(
    "job",
    [
        shared(20, size_spread=SPREAD, stragglers=(Straggler(factor=2.0, rank=3),)),
        scenario(machine=host(gpus=20), workers=2, size_spread=SPREAD),
        shared(8, size_spread=SPREAD),
    ],
    ids=["one rank is slow", "links of their own", "few"],
)
def test_random_ranks_that_differ_are_all_simulated(job: Scenario) -> None:
    """Random samples and a slow rank, a link to each accelerator, or few ranks: not reduction."""
    assert folds(job).ranks == tuple(range(inputs_of(job).topology.ranks))


def test_a_slow_rank_is_a_class_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank with a slow loader and nineteen others are two: every rank's ledger counts."""
    job = shared(20, rate=4e9, stragglers=(Straggler(factor=2.0, rank=3),), batch_cpu=0.2)
    assert folds(job).ranks == (0, 3)
    assert folds(job).counts == (19.0, 1.0)
    assert_same(simulate(job), unfolded(job, monkeypatch))


def test_sockets_tell_ranks_apart_only_where_a_way_crosses() -> None:
    """Batches in one socket's memory split eight devices in near and far; else all are alike."""
    machine = replace(host(gpus=8), gpu_sockets=(0, 0, 0, 0, 1, 1, 1, 1), socket_link=link(20e9))
    near_and_far = scenario(machine=machine, workers=1, output_bytes=1e6, socket=0)
    own = scenario(machine=machine, workers=1, output_bytes=1e6)
    assert folds(near_and_far).members == {0: (0, 1, 2, 3), 4: (4, 5, 6, 7)}
    assert folds(own).counts == (8.0,)


def test_a_switch_with_fewer_devices_is_another_class() -> None:
    """Three devices share one uplink and one has another to itself: it need not wait as long."""
    switches = tuple(PcieSwitch(socket=0, uplink=link(9e9), gpus=g) for g in ((0, 1, 2), (3,)))
    job = scenario(machine=host(gpus=4, switches=switches), workers=1, output_bytes=1e6)
    assert folds(job).counts == (3.0, 1.0)


def test_every_rank_keeps_its_lane_in_a_trace() -> None:
    """Folded ranks stand in the timeline as if each had been simulated."""
    job = scenario(machine=host(gpus=4), workers=1, batch_cpu=0.01, output_bytes=1e6, batches=4)
    trace = solve(inputs_of(job), Options(replay=True, trace=True)).trace
    assert trace is not None
    tracks = {part.track for part in trace.slices}
    assert {f"rank {rank} compute" for rank in range(4)} <= tracks
    assert {f"rank {rank} worker 0" for rank in range(4)} <= tracks
    units = {sample.unit for sample in trace.samples}
    assert {f"gpu{rank}" for rank in range(4)} <= units
    assert {f"pcie gpu{rank} down" for rank in range(4)} <= units


def test_a_barrier_waits_for_those_it_stands_for() -> None:
    """Eight draws, taken for a thousand, open the barrier as late as the latest of a thousand."""
    drawn = np.random.default_rng(3).normal(10.0, 1.0, (2000, 8))
    opened = [_opening(row, 1000) for row in drawn]
    assert np.mean(opened) == pytest.approx(10.0 + expected_maximum(1000), abs=0.1)


def test_a_barrier_for_its_own_parties_opens_with_the_latest() -> None:
    """Nobody else is waited for."""
    assert _opening(np.array([1.0, 3.0, 2.0]), 3) == 3.0


def _opening(arrivals: np.ndarray[tuple[int], np.dtype[np.float64]], standing_for: int) -> float:
    env = Environment()
    barrier = Barrier(env, len(arrivals), standing_for)
    opened: list[float] = []

    def party(when: float) -> object:
        yield env.timeout(when)
        yield barrier.wait()
        opened.append(env.now)

    for when in arrivals:
        env.process(party(float(when)))  # type: ignore[arg-type] # a generator
    env.run()
    assert len(set(opened)) == 1
    return opened[0]


def helped(machines: int, output_bytes: float, compute: float) -> Scenario:
    """So many equal machines with eight workers each make batches of 0.8 s for one device."""
    job = batches_from_helpers(output_bytes=output_bytes, compute=compute, batch_cpu=0.8)
    return with_helpers(
        replace(job, cluster=replace(job.cluster, groups=job.cluster.groups[:1])),
        helpers(count=machines, cores=8.0, network=CARD),
    )


@pytest.mark.parametrize(
    ("output_bytes", "compute"),
    [(1e3, 0.0001), (1e6, 0.0001), (1e3, 0.02)],
    ids=["producers", "card", "device"],
)
def test_equal_machines_that_help_are_taken_together(
    monkeypatch: pytest.MonkeyPatch, output_bytes: float, compute: float
) -> None:
    """Forty are simulated as sixteen, wider ones: steps and utilization within 1% of all forty."""
    job = helped(40, output_bytes, compute)
    reduction = simulate(job)
    monkeypatch.setattr("simulator.engine.symmetry.MAX_MACHINES", 40)
    each = simulate(job)
    assert reduction.step_time.mean == pytest.approx(each.step_time.mean, rel=0.01)
    for resource in ("data.cpu", "data.network", "network"):
        found, expected = reduction.usage[resource], each.usage[resource]
        assert found.mean == pytest.approx(expected.mean, rel=0.02, abs=1e-3)
        assert found.units == expected.units


def test_machines_taken_together_lose_none() -> None:
    """Every machine is in one part, parts differ by one machine at most; few stay as they are."""
    for machines in (17, 40, 1000):
        found = inputs_of(helped(machines, 1e3, 0.02))
        reduction = reduce_symmetry(found.scenario, found.topology, found.demands[Phase.WARM])
        sizes = [reduction.machines(site) for site in set(reduction.sites.values())]
        assert sum(sizes) == machines
        assert len(sizes) == MAX_MACHINES
        assert max(sizes) - min(sizes) <= 1
    few = inputs_of(helped(MAX_MACHINES, 1e3, 0.02))
    assert not reduce_symmetry(few.scenario, few.topology, few.demands[Phase.WARM]).sites
