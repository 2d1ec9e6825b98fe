"""What must hold whatever the scenario: bounds, monotony, scale, conservation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import demand_table, host, inputs_of, link, scenario, simulate, store

from simulator.engine.closed_form import bounds
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import build
from simulator.schema.data_loading import CachePolicy, LoaderKind, Straggler
from simulator.schema.fields import CONSTANT, Shape, Spread
from simulator.schema.machines import PcieSwitch
from simulator.schema.scenario import Scenario

pytestmark = pytest.mark.slow

FEW = settings(max_examples=60, deadline=None, derandomize=True)
SLOWER = Spread(shape=Shape.LOGNORMAL, relative_deviation=0.1)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Jobs of all loaders on machines of many shapes, deterministic service."""
    gpus = draw(st.sampled_from([1, 2, 4]))
    kind = draw(st.sampled_from(list(LoaderKind)))
    workers = draw(st.integers(0, 6)) if kind is LoaderKind.PYTORCH else draw(st.integers(1, 6))
    cores = draw(st.sampled_from([1.0, 2.0, 5.0, 16.0]))
    rate = draw(st.sampled_from([5e7, 1e9, 1e10]))
    operations = draw(st.sampled_from([None, 500.0, 20000.0]))
    latency = draw(st.sampled_from([0.0, 2e-4]))
    straggler = draw(
        st.sampled_from([(), (Straggler(factor=3.0, every=5),), (Straggler(factor=2.0, worker=0),)])
    )
    uplink = link(draw(st.sampled_from([2e9, 16e9])))
    machine = host(
        gpus=gpus,
        cores=cores,
        threads=2 * cores,
        smt_worth=draw(st.sampled_from([0.0, 0.3, 1.0])),
        contention=draw(st.sampled_from([0.0, 0.5])),
        pageable=draw(st.sampled_from([None, 3e9])),
        switches=(PcieSwitch(socket=0, uplink=uplink, gpus=tuple(range(gpus))),),
        memory_bandwidth=draw(st.sampled_from([None, 5e9, 1e11])),
    )
    return scenario(
        batches=draw(st.integers(1, 60)),
        batch_cpu=draw(st.sampled_from([0.0, 0.01, 0.2])),
        compute=draw(st.sampled_from([0.001, 0.02, 0.1])),
        workers=workers,
        prefetch=draw(st.integers(1, 3)),
        epochs=draw(st.sampled_from([1.0, 3.0])),
        machine=machine,
        storage=store(rate=rate, latency=latency, operations=operations),
        cache=draw(st.sampled_from(list(CachePolicy))),
        output_bytes=draw(st.sampled_from([0.0, 1e6])),
        stragglers=straggler,
        sync=draw(st.booleans()),
        accumulation=draw(st.sampled_from([1, 3])),
        loader=kind,
        pin_memory=draw(st.booleans()),
        in_order=draw(st.booleans()),
        persistent_workers=draw(st.booleans()),
        worker_start=draw(st.sampled_from([0.0, 0.05])),
        last_share=draw(st.sampled_from([1.0, 0.5])),
        device_spread=draw(st.sampled_from([CONSTANT, SLOWER])),
        step_jitter=draw(st.sampled_from([CONSTANT, SLOWER])),
    )


@FEW
@given(scenarios())
def test_total_time_lies_between_the_bounds(job: Scenario) -> None:
    """No run beats its busiest unit, and none is slower than doing everything in turn."""
    asked = inputs_of(job)
    limits = bounds(job, asked.topology, asked.demands, asked.lengths, asked.extras)
    per_step = simulate(job).total_time / asked.lengths.total_steps
    assert per_step >= limits.lower * (1 - 1e-9)
    assert per_step <= limits.upper * (1 + 1e-9)


@FEW
@given(scenarios())
def test_the_split_adds_up_and_nothing_is_negative(job: Scenario) -> None:
    """The parts of the step sum to its mean, and no resource is above 100%."""
    timing = simulate(job)
    split = timing.split
    parts = [split.data_stall, split.h2d, split.compute, split.communication, split.other]
    assert sum(parts) + split.checkpoint == pytest.approx(timing.step_time.mean, rel=1e-9)
    assert min(parts) >= -1e-9
    assert all(0.0 <= usage.busiest <= 1.0 + 1e-9 for usage in timing.usage.values())


@FEW
@given(scenarios())
def test_a_composed_run_takes_what_a_replayed_one_takes(job: Scenario) -> None:
    """Stopping at the steady state changes the time of an epoch by less than 2%."""
    assert simulate(job).total_time == pytest.approx(
        simulate(job, replay=True).total_time, rel=0.02
    )


def most(job: Scenario) -> float:
    """Longest that a run on faster hardware may take [s]: as long as before, and one step alone.

    Where workers share disk and cores, being early can bring them into step, so that one of the
    two rests while all need the other.
    """
    asked = inputs_of(job)
    limits = bounds(job, asked.topology, asked.demands, asked.lengths, asked.extras)
    return simulate(job, replay=True).total_time * (1 + 1e-9) + limits.upper


@FEW
@given(scenarios(), st.sampled_from([1.5, 4.0]))
def test_a_faster_store_is_never_slower(job: Scenario, times: float) -> None:
    """More read bandwidth, operations and less latency don't lengthen the run, but for a step."""
    group = job.cluster.groups[0]
    slow = group.storage
    fast = replace(
        slow,
        read_bandwidth=slow.read_bandwidth * times,
        read_operations=None if slow.read_operations is None else slow.read_operations * times,
        read_latency=slow.read_latency / times,
    )
    better = replace(job, cluster=replace(job.cluster, groups=(replace(group, storage=fast),)))
    assert simulate(better, replay=True).total_time <= most(job)


@FEW
@given(scenarios(), st.sampled_from([1.5, 4.0]))
def test_a_faster_device_is_never_slower(job: Scenario, times: float) -> None:
    """Less compute time doesn't lengthen the run, but for a step."""
    only = job.jobs[0]
    assert only.step_times is not None
    quick = replace(only.step_times, seconds=tuple(s / times for s in only.step_times.seconds))
    better = replace(job, jobs=(replace(only, step_times=quick),))
    assert simulate(better, replay=True).total_time <= most(job)


def test_a_faster_device_may_cost_a_little() -> None:
    """The exception: batches taken sooner bring workers into step, so that disk and cores rest."""
    machine = host(cores=1.0, threads=2.0, smt_worth=0.0)
    slow, quick = (
        scenario(
            batches=10,
            batch_cpu=0.01,
            compute=compute,
            workers=3,
            prefetch=1,
            machine=machine,
            storage=store(rate=5e7),
            cache=CachePolicy.NONE,
        )
        for compute in (0.001, 0.0005)
    )
    before, after = (simulate(job, replay=True).total_time for job in (slow, quick))
    assert before < after < 1.03 * before


@FEW
@given(scenarios())
def test_the_same_scenario_gives_the_same_run(job: Scenario) -> None:
    """Nothing but the scenario and the seed decides."""
    assert simulate(job) == simulate(job)


@FEW
@given(scenarios(), st.lists(st.integers(1, 512), min_size=2, max_size=5))
def test_demands_of_a_batch_of_candidates_are_those_of_each(
    job: Scenario, sizes: list[int]
) -> None:
    """Arrays in the scenario give arrays in the demands, equal to one candidate at a time."""

    def with_batch(size: object) -> Scenario:
        only = job.jobs[0]
        train = replace(only.train, batch_size=size)  # type: ignore[arg-type]
        times = replace(only.step_times, batch_sizes=(8.0, 64.0), seconds=(0.01, 0.07))  # type: ignore[type-var]
        return replace(job, jobs=(replace(only, train=train, step_times=times),))

    together = demand_table(with_batch(np.asarray(sizes, dtype=float)))
    alone = [demand_table(with_batch(float(size))) for size in sizes]
    for phase in Phase:
        for number, stage in enumerate(together[phase]):
            for place, demand in enumerate(stage.demands):
                singles = [table[phase][number].demands[place] for table in alone]
                amounts = np.broadcast_to(demand.amount, len(sizes))
                np.testing.assert_allclose(amounts, [s.amount for s in singles], rtol=1e-12)
                latencies = np.broadcast_to(demand.latency, len(sizes))
                np.testing.assert_allclose(latencies, [s.latency for s in singles], rtol=1e-12)


@FEW
@given(st.floats(1e-3, 1e3), st.integers(1, 4))
def test_time_scales_with_the_unit_of_time(scale: float, workers: int) -> None:
    """All times a thousand times longer make the run a thousand times longer."""

    def run(factor: float) -> float:
        return simulate(
            scenario(
                batch_cpu=0.07 * factor,
                compute=0.02 * factor,
                workers=workers,
                worker_start=0.1 * factor,
            )
        ).total_time

    assert run(scale) == pytest.approx(scale * run(1.0), rel=1e-9)


def test_workers_beyond_cores_can_be_slower() -> None:
    """A listed exception: in-order round robin with too many workers delays the first batches."""
    few = simulate(scenario(batch_cpu=0.4, workers=2, machine=host(cores=2), batches=8))
    many = simulate(scenario(batch_cpu=0.4, workers=8, machine=host(cores=2), batches=8))
    assert many.first_step > few.first_step


def test_one_more_slow_worker_can_be_slower_in_order() -> None:
    """A listed exception: a worker three times slower sets the pace of all in round robin."""
    without = simulate(scenario(batch_cpu=0.1, compute=0.0, workers=3))
    slow = (Straggler(factor=3.0, worker=3),)
    added = simulate(scenario(batch_cpu=0.1, compute=0.0, workers=4, stragglers=slow))
    assert added.step_time.mean > without.step_time.mean


def test_plant_shares_what_is_shared() -> None:
    """Two GPUs under a switch go through one uplink, both ways."""
    switch = PcieSwitch(socket=0, uplink=link(16e9), gpus=(0, 1))
    topology = build(scenario(machine=host(gpus=2, switches=(switch,))))
    assert {"pcie switch0 up", "pcie switch0 down"} <= set(topology.units)
