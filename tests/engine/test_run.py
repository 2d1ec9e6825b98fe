"""The simulated run: loops, overlap, epochs, folding of what repeats."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from support.scenarios import host, inputs_of, link, scenario, simulate, step_ends, store

from simulator.engine.closed_form import bounds
from simulator.engine.epoch import run_epoch
from simulator.engine.recorder import PRECISION
from simulator.engine.run import Options, mean_step, plan_of, solve
from simulator.pipeline.checkpoints import checkpoint_times
from simulator.pipeline.loads import least_step, pressures
from simulator.pipeline.run_length import checkpoint_loads
from simulator.pipeline.stages.base import Phase, Resource
from simulator.predict import simulation_input
from simulator.reading.scenario import load_scenario
from simulator.schema.data_loading import CachePolicy, LoaderKind, Straggler
from simulator.schema.fields import Shape, Spread
from simulator.schema.machines import PcieSwitch
from simulator.schema.models import CustomModel
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode

ACTORS = LoaderKind.ACTORS


def test_without_workers_a_synchronous_loop_takes_the_plain_sum() -> None:
    """Loading and computing alternate when the program waits for the device each step."""
    timing = simulate(
        scenario(read_time=0.342 / 32, batch_cpu=0.038, compute=0.055, cache=CachePolicy.NONE)
    )
    assert timing.step_time.mean == pytest.approx(0.435, rel=1e-9)
    assert timing.split.data_stall == pytest.approx(0.38, rel=1e-9)
    assert timing.accelerator_utilization == pytest.approx(0.055 / 0.435, rel=1e-9)


def test_without_workers_an_asynchronous_loop_loads_while_the_device_computes() -> None:
    """The main thread makes the next batch while the device works on what it launched."""
    loop = partial(scenario, batch_cpu=0.04, compute=0.055, sync=False, pin_memory=True)
    at_once, within, longer = (simulate(loop(launch=time)) for time in (0.0, 0.015, 0.035))
    assert at_once.step_time.mean == pytest.approx(0.055, rel=1e-9)
    assert within.step_time.mean == pytest.approx(0.055, rel=1e-9)
    assert longer.step_time.mean == pytest.approx(0.04 + 0.035, rel=1e-9)


def test_without_workers_one_thread_loads_copies_and_launches_in_turn() -> None:
    """Nobody said how long it launches: as long as the device works, as if nothing overlapped.

    20 MB of a pageable batch take 10 ms at 2 GB/s.
    """
    loop = partial(
        scenario,
        batch_cpu=0.04,
        compute=0.055,
        output_bytes=20e6 / 32,
        machine=host(pageable=2e9),
    )
    in_turn = 0.04 + 0.01 + 0.055
    assert simulate(loop(sync=False)).step_time.mean == pytest.approx(in_turn, rel=1e-3)
    assert simulate(loop(sync=True)).step_time.mean == pytest.approx(in_turn, rel=1e-3)
    # A blocking copy waits for the device, so that only loading hides behind what was launched.
    ahead = simulate(loop(sync=False, launch=0.0))
    assert ahead.step_time.mean == pytest.approx(0.055 + 0.01, rel=1e-3)


def test_pinned_copies_wait_on_the_compute_stream_unless_something_prefetches() -> None:
    """20 MB take 10 ms at 2 GB/s: before the 55 ms of compute, or while they go on."""
    job = partial(
        scenario,
        workers=4,
        compute=0.055,
        output_bytes=20e6 / 32,
        machine=host(pcie=2e9),
        sync=False,
        pin_memory=True,
    )
    in_line, ahead = (simulate(job(overlap_copies=overlaps)) for overlaps in (False, True))
    assert in_line.step_time.mean == pytest.approx(0.065, rel=1e-6)
    assert in_line.split.h2d == pytest.approx(0.01, rel=1e-6)
    assert ahead.step_time.mean == pytest.approx(0.055, rel=1e-6)
    # Without workers the thread loads 30 ms while such a copy waits, as it does not block.
    alone = simulate(job(overlap_copies=False, workers=0, batch_cpu=0.03, launch=0.0))
    assert alone.step_time.mean == pytest.approx(0.065, rel=1e-6)


def test_a_thread_without_workers_makes_a_batch_before_it_waits_for_room_to_launch() -> None:
    """Copies of 30 ms hide all else if the batch behind them is made meanwhile.

    The batch is made in 20 ms while two others wait for their copies.
    """
    job = scenario(
        batch_cpu=0.02,
        compute=0.01,
        output_bytes=30e6 / 32,
        machine=host(pcie=1e9),
        sync=False,
        launch=0.0,
        pin_memory=True,
        overlap_copies=True,
    )
    assert simulate(job).step_time.mean == pytest.approx(0.03, rel=1e-3)


def test_a_machine_without_a_device_trains_in_the_thread_that_loads() -> None:
    """Its processor does one or the other: 40 ms of loading, and a step of 55 ms."""
    job = scenario(batch_cpu=0.04, compute=0.055, sync=False, machine=host(gpus=0))
    assert simulate(job).step_time.mean == pytest.approx(0.095, rel=1e-9)


def test_workers_share_the_cores_they_have() -> None:
    """Four workers on two cores make batches half as fast as on four."""
    two = simulate(scenario(batch_cpu=0.4, compute=0.0, workers=4, machine=host(cores=2)))
    four = simulate(scenario(batch_cpu=0.4, compute=0.0, workers=4, machine=host(cores=4)))
    assert two.step_time.mean == pytest.approx(0.2, rel=1e-9)
    assert four.step_time.mean == pytest.approx(0.1, rel=1e-9)


def test_threads_of_one_batch_make_it_sooner_than_processes_of_many() -> None:
    """With the same rate, threads that split a batch deliver the first one earlier."""
    common = {"batch_cpu": 0.4, "compute": 0.01, "workers": 4, "batches": 200}
    processes = simulate(scenario(**common))
    threads = simulate(scenario(**common, loader=LoaderKind.DALI))
    assert processes.step_time.mean == pytest.approx(threads.step_time.mean, rel=1e-6)
    assert threads.first_step < processes.first_step / 3


def test_pinned_copies_run_beside_compute_and_pageable_ones_do_not() -> None:
    """A pageable copy of 32 x 10 MB at 4 GB/s stands in the step; a pinned one is hidden."""
    machine = host(pcie=16e9, pageable=4e9)
    common = {"output_bytes": 10e6, "workers": 2, "compute": 0.05, "machine": machine}
    pageable = simulate(scenario(**common))
    pinned = simulate(scenario(**common, pin_memory=True, sync=False))
    assert pageable.step_time.mean == pytest.approx(0.05 + 0.32 / 4, rel=1e-9)
    assert pageable.split.h2d == pytest.approx(0.08, rel=1e-9)
    assert pinned.step_time.mean == pytest.approx(0.05, rel=1e-9)


def test_two_devices_under_one_switch_share_its_uplink() -> None:
    """Two copies through one uplink take twice as long; compute and copy alternate here."""
    switch = PcieSwitch(socket=0, uplink=link(16e9), gpus=(0, 1))
    alone = host(gpus=2, pageable=16e9)
    shared = host(gpus=2, pageable=16e9, switches=(switch,))
    common = {"output_bytes": 10e6, "workers": 2, "compute": 0.01}
    free = simulate(scenario(**common, machine=alone))
    tight = simulate(scenario(**common, machine=shared))
    assert free.step_time.mean == pytest.approx(0.01 + 0.02, rel=1e-9)
    assert tight.step_time.mean == pytest.approx(0.01 + 0.04, rel=1e-9)


def test_unified_memory_needs_no_copy() -> None:
    """Where device and host share memory nothing crosses a link."""
    timing = simulate(scenario(output_bytes=10e6, compute=0.05, machine=host(unified=True)))
    assert timing.split.h2d == 0.0
    assert Resource.PCIE not in timing.usage


def test_eight_ranks_share_one_store() -> None:
    """Eight ranks that read 32 x 1 MB a step from 2 GB/s take 128 ms."""
    timing = simulate(
        scenario(
            machine=host(gpus=8),
            storage=store(rate=2e9),
            sample_bytes=1e6,
            cache=CachePolicy.NONE,
            workers=4,
            compute=0.01,
        )
    )
    assert timing.step_time.mean == pytest.approx(8 * 32e6 / 2e9, rel=1e-6)
    assert timing.usage[Resource.STORAGE].mean == pytest.approx(1.0, rel=1e-6)
    assert timing.bottleneck == Resource.STORAGE


def test_small_reads_meet_the_operations_cap_before_the_bandwidth() -> None:
    """32 reads of 4 kB at 1,000 reads a second take 32 ms, however wide the store is."""
    timing = simulate(
        scenario(
            storage=store(rate=10e9, operations=1000.0),
            sample_bytes=4e3,
            cache=CachePolicy.NONE,
            workers=8,
            compute=0.001,
        )
    )
    assert timing.step_time.mean == pytest.approx(0.032, rel=1e-6)


def test_latency_is_paid_by_each_reader_and_hidden_by_more_of_them() -> None:
    """With 10 ms a read one worker makes 3.1 batches a second and eight make eight times that."""
    common = {"storage": store(rate=1e12, latency=0.01), "cache": CachePolicy.NONE, "compute": 0.0}
    one = simulate(scenario(**common, workers=1))
    eight = simulate(scenario(**common, workers=8))
    assert one.step_time.mean == pytest.approx(0.32, rel=1e-4)
    assert one.step_time.mean / eight.step_time.mean == pytest.approx(8.0, rel=1e-4)


def test_the_first_epoch_is_cold() -> None:
    """The first epoch reads everything from the store, later ones what is not cached."""
    timing = simulate(
        scenario(
            storage=store(rate=1e8),
            cache=CachePolicy.IDEAL,
            epochs=3,
            workers=4,
            compute=0.001,
            batches=200,
        )
    )
    assert timing.first_epoch_time == pytest.approx(200 * 32e5 / 1e8, rel=0.01)
    assert timing.epoch_time == pytest.approx(200 * 0.001, rel=0.1)
    assert timing.total_time == pytest.approx(
        timing.first_epoch_time + 2 * timing.epoch_time, rel=1e-12
    )


@pytest.mark.parametrize("batches", [97, 400, 1003])
@pytest.mark.parametrize("last", [1.0, 0.25])
def test_a_composed_epoch_takes_what_a_replayed_one_takes(batches: int, last: float) -> None:
    """Stopping when steady and composing the rest gives the time of simulating every step."""
    job = scenario(
        batches=batches, batch_cpu=0.21, workers=6, machine=host(gpus=2), last_share=last
    )
    short, full = simulate(job), simulate(job, replay=True)
    assert short.simulated_steps < 97
    assert short.epoch_time == pytest.approx(full.epoch_time, rel=1e-6)


def test_workers_that_restart_cost_every_epoch_their_start() -> None:
    """Persistent workers start once; others before every epoch."""
    common = {"batch_cpu": 0.1, "workers": 4, "epochs": 10, "worker_start": 0.5}
    restarting = simulate(scenario(**common))
    staying = simulate(scenario(**common, persistent_workers=True))
    assert restarting.total_time - staying.total_time == pytest.approx(9 * 2.0, rel=1e-9)


def test_accumulation_takes_several_batches_a_step() -> None:
    """A step of four accumulated batches takes four times one batch's compute."""
    timing = simulate(scenario(accumulation=4, workers=2, compute=0.02, batches=400))
    assert timing.step_time.mean == pytest.approx(0.08, rel=1e-9)
    assert timing.throughput == pytest.approx(4 * 32 / 0.08, rel=1e-9)


def test_the_split_adds_up_to_the_step() -> None:
    """All parts of the step, exposed time only, sum to its mean."""
    timing = simulate(
        scenario(
            batch_cpu=0.3, output_bytes=1e6, workers=3, machine=host(gpus=4, cores=8, pageable=3e9)
        )
    )
    split = timing.split
    parts = (
        split.data_stall,
        split.h2d,
        split.compute,
        split.communication,
        split.bubble,
        split.checkpoint,
        split.other,
    )
    assert sum(parts) == pytest.approx(timing.step_time.mean, rel=1e-12)
    assert min(parts) > -1e-12


def test_random_costs_repeat_with_the_seed_and_differ_without() -> None:
    """The same seed gives the same run to the last bit, another seed another run."""
    job = scenario(
        batch_cpu=0.1, workers=4, cost_spread=Spread(shape=Shape.GAMMA, relative_deviation=2.0)
    )
    assert simulate(job, seed=1) == simulate(job, seed=1)
    assert simulate(job, seed=1).step_time != simulate(job, seed=2).step_time


def test_a_mean_that_is_not_known_well_says_so() -> None:
    """A short run with wild costs reports the half-width of its mean."""
    job = scenario(
        batch_cpu=0.2,
        workers=4,
        batches=150,
        cost_spread=Spread(shape=Shape.LOGNORMAL, relative_deviation=5.0),
    )
    timing = simulate(job)
    assert timing.half_width > 0.0


def test_no_resource_is_busier_than_always() -> None:
    """Utilization stays within 0..1 for means, and within the number of units for sums."""
    timing = simulate(
        scenario(batch_cpu=2.0, workers=8, machine=host(gpus=8, cores=16), output_bytes=1e6)
    )
    for usage in timing.usage.values():
        assert 0.0 <= usage.mean <= 1.0 + 1e-12
        assert usage.total <= usage.units * (1 + 1e-12)


def test_most_steps_ends_a_run_that_never_repeats() -> None:
    """The cap on simulated steps holds, and the epoch is still composed to its full length."""
    job = inputs_of(scenario(batches=5000, batch_cpu=0.1, workers=3))
    timing = solve(replace(job), Options(most_steps=16))
    assert timing.simulated_steps < 60
    assert timing.epoch_time == pytest.approx(5000 * 0.1 / 3, rel=0.02)


def test_step_ends_are_those_of_the_slowest_rank() -> None:
    """Steps are counted when every rank has finished them, so times never go back."""
    ends = step_ends(
        simulate(scenario(batch_cpu=0.3, workers=3, machine=host(gpus=4)), replay=True)
    )
    assert all(later >= earlier for earlier, later in pairwise(ends))


def test_what_runs_once_a_step_counts_once_a_step() -> None:
    """With accumulation the lower bound takes all-reduce and optimizer once for all batches."""
    job = scenario(accumulation=8, machine=host(gpus=2, nvlink=1e9), compute=0.001, batches=80)
    model = CustomModel(
        name="large",
        parameters=1e7,
        forward_flops=1e6,
        traffic=1e6,
        activation=1e6,
        input_bytes=1e3,
        output_bytes=4.0,
    )
    asked = inputs_of(replace(job, jobs=(replace(job.jobs[0], model=model),)))
    limits = bounds(asked.scenario, asked.topology, asked.demands, asked.lengths, asked.extras)
    per_step = solve(asked, Options()).total_time / asked.lengths.total_steps
    assert limits.lower <= per_step <= limits.upper


def test_what_a_run_takes_beside_its_epochs_is_shared_out_to_its_steps() -> None:
    """Placing data for 60 s before 80 steps raises both bounds by 0.75 s."""
    asked = inputs_of(scenario(batches=80))
    both = [
        bounds(asked.scenario, asked.topology, asked.demands, asked.lengths, extras)
        for extras in (asked.extras, replace(asked.extras, parts={"placement": 60.0}))
    ]
    assert asked.extras.once == 0.0
    assert both[1].lower - both[0].lower == pytest.approx(0.75)
    assert both[1].upper - both[0].upper == pytest.approx(0.75)


def test_threaded_loaders_read_one_batch_while_they_work_on_another() -> None:
    """Reading 32 ms and working 40 ms a batch give 40 ms a step, not their sum."""
    timing = simulate(
        scenario(
            storage=store(rate=1e8),
            cache=CachePolicy.NONE,
            batch_cpu=0.16,
            workers=4,
            compute=0.001,
            batches=300,
            loader=LoaderKind.TF_DATA,
        )
    )
    assert timing.step_time.mean == pytest.approx(0.04, rel=1e-3)


def test_a_device_that_waits_is_not_the_bottleneck() -> None:
    """Where the device needs longest but still waits for data, its suppliers limit the step."""
    timing = simulate(
        scenario(
            batch_cpu=0.09,
            read_time=0.01,
            compute=0.1,
            workers=2,
            prefetch=1,
            batches=200,
            cache=CachePolicy.NONE,
            stragglers=(Straggler(factor=8.0, every=10),),
        )
    )
    assert timing.split.data_stall > 0.05 * timing.step_time.mean
    assert timing.bottleneck != Resource.GPU


def test_what_reads_ahead_imposes_the_longer_of_reading_and_working() -> None:
    """Reading 32 ms and working 40 ms a batch impose 40 ms by their actors, not 72."""
    job = scenario(
        storage=store(rate=1e8),
        cache=CachePolicy.NONE,
        batch_cpu=0.16,
        workers=4,
        compute=0.001,
        loader=LoaderKind.TF_DATA,
    )
    asked = inputs_of(job)
    imposed = pressures(job, asked.topology, asked.demands[Phase.COLD])
    assert max(imposed.values()) == pytest.approx(0.04, rel=1e-3)


def bound(job: Scenario) -> float:
    """The least step of a job [s], as `bounds` has it."""
    asked = inputs_of(job)
    return float(least_step(job, asked.topology, asked.demands[Phase.WARM]))


@pytest.mark.parametrize("slow", [Straggler(factor=3.0, every=4), Straggler(factor=3.0, rank=0)])
def test_a_straggler_moves_no_more_bytes(slow: Straggler) -> None:
    """Eight workers read 32 samples of 1 MB from a store of 500 MB/s, which is always busy.

    A slow client leaves it to the others, or is alone as fast as it needs to be: 64 ms a batch.
    """
    job = scenario(
        batches=2000,
        workers=8,
        compute=0.002,
        sample_bytes=1e6,
        cache=CachePolicy.NONE,
        storage=store(rate=5e8),
        stragglers=(slow,),
    )
    timing = simulate(job)
    assert timing.step_time.mean == pytest.approx(0.064, rel=0.01)
    carried = timing.usage["storage"].mean * 5e8 * timing.step_time.mean
    assert carried == pytest.approx(32e6, rel=0.01)


def test_a_straggler_takes_its_factor_where_nobody_else_is() -> None:
    """A single worker reads for 64 ms and decodes for 36: every second batch takes 300 ms."""
    job = scenario(
        batches=400,
        workers=1,
        batch_cpu=0.036,
        compute=0.002,
        sample_bytes=1e6,
        cache=CachePolicy.NONE,
        storage=store(rate=5e8),
        stragglers=(Straggler(factor=3.0, every=2),),
    )
    assert simulate(job).step_time.mean == pytest.approx(0.2, rel=1e-6)


@pytest.mark.parametrize("prefetch", [1, 2])
@pytest.mark.parametrize("workers", [36, 48, 60])
def test_a_wave_of_workers_is_no_steady_state(workers: int, prefetch: int) -> None:
    """However many deliver one after another, steps are as long as a batch over the workers."""
    job = scenario(batches=20_000, batch_cpu=17.2, workers=workers, prefetch=prefetch, compute=0.01)
    timing = solve(inputs_of(job), Options())
    assert timing.step_time.mean == pytest.approx(17.2 / workers, rel=1e-6)
    assert bound(job) == pytest.approx(17.2 / workers, rel=1e-9)
    assert not timing.bounded


def test_workers_that_prepare_take_their_time() -> None:
    """36 of them, of equal samples: the step is not the pause of no length between two batches."""
    job = scenario(batches=10_000, batch_cpu=1.0, workers=36, machine=host(gpus=0))
    job = replace(job, jobs=(replace(job.job, mode=Mode.PREPARE),))
    timing = solve(inputs_of(job), Options())
    assert timing.step_time.mean == pytest.approx(1.0 / 36, rel=1e-6)
    assert timing.total_time >= 10_000 * bound(job)


@pytest.mark.parametrize("workers", [100, 200, 400, 800])
def test_the_wait_for_the_first_batch_is_no_part_of_the_step(workers: int) -> None:
    """However few waves of the workers an epoch has, a step of it is the device's own."""
    machine = host(cores=workers)
    job = scenario(batches=500, batch_cpu=8.0, workers=workers, compute=0.1, machine=machine)
    timing = solve(inputs_of(job), Options())
    assert timing.first_step == pytest.approx(8.1, rel=1e-3)
    assert timing.step_time.mean == pytest.approx(0.1, rel=1e-3)
    assert timing.total_time == pytest.approx(8.0 + 500 * 0.1, rel=1e-2)


def test_beyond_the_cap_the_bound_is_used() -> None:
    """Steps within a wave are no steady ones: the mean is the bound, and the timing says so."""
    job = scenario(batches=2000, batch_cpu=17.2, workers=48, prefetch=1, compute=0.11)
    timing = solve(inputs_of(job), Options(most_steps=40))
    assert timing.bounded
    assert timing.step_time.mean == pytest.approx(bound(job), rel=1e-12)
    assert timing.total_time >= 2000 * bound(job)
    parts = timing.split
    assert min(parts.data_stall, parts.other, parts.compute) >= 0.0
    assert parts.data_stall == pytest.approx(17.2 / 48 - 0.11, rel=1e-3)


def test_epochs_that_run_on_have_the_step_of_their_slowest_resource() -> None:
    """A short epoch lives on what the one before it made: its steps are not those of a long run."""
    job = scenario(
        batches=30, batch_cpu=1.0, workers=4, prefetch=24, compute=0.1, epochs=10, loader=ACTORS
    )
    timing = solve(inputs_of(job), Options())
    assert timing.step_time.mean >= bound(job)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_slow_worker_holds_up_its_turn_alone(in_order: bool) -> None:  # noqa: FBT001 - the case
    """In turn all wait for it; else it makes fewer, and the bound says how many all make."""
    slow = (Straggler(factor=3.0, worker=0),)
    job = scenario(
        batches=2000, batch_cpu=0.4, workers=4, compute=0.0, stragglers=slow, in_order=in_order
    )
    hand = 0.3 if in_order else 0.4 / (3.0 + 1.0 / 3.0)
    assert bound(job) == pytest.approx(hand, rel=1e-9)
    assert simulate(job).step_time.mean == pytest.approx(hand, rel=0.02)


def test_cores_with_a_fraction_are_no_more_than_busy() -> None:
    """8.8 threads are nine units, of which no more than all are busy."""
    machine = host(gpus=1, cores=8.8, threads=8.8)
    cpu = simulate(scenario(batch_cpu=1.0, workers=16, compute=0.01, machine=machine)).usage["cpu"]
    assert cpu.total == pytest.approx(8.8, rel=1e-6)
    assert cpu.total <= cpu.units


def test_more_cores_than_are_needed_change_nothing_by_chance() -> None:
    """48 or 96 cores for eight workers: the same batches are drawn, and the same steps come out."""
    spread = Spread(shape=Shape.EXPONENTIAL, relative_deviation=1.0)
    figures: dict[str, object] = {"batches": 20_000, "batch_cpu": 0.1, "workers": 8}
    few, many = (
        solve(
            inputs_of(
                scenario(
                    **figures,  # type: ignore[arg-type] # figures by name
                    compute=0.011,
                    cost_spread=spread,
                    cache=CachePolicy.NONE,
                    sample_bytes=1e6,
                    machine=host(cores=cores),
                )
            ),
            Options(),
        )
        for cores in (48.0, 96.0)
    )
    assert few.step_time == many.step_time


def test_a_random_mean_is_known_to_a_percent_and_says_how_well() -> None:
    """Of eight seeds all lie within 2% of their mean, and their intervals hold it."""
    spread = Spread(shape=Shape.EXPONENTIAL, relative_deviation=1.0)
    job = inputs_of(
        scenario(batches=10**6, batch_cpu=0.1, workers=3, compute=0.032, cost_spread=spread)
    )
    found = [solve(job, Options(seed=seed)) for seed in range(8)]
    means = [timing.step_time.mean for timing in found]
    middle = sum(means) / len(means)
    assert max(abs(mean / middle - 1.0) for mean in means) < 0.02
    assert all(timing.half_width <= 0.01 * timing.step_time.mean for timing in found)
    inside = [abs(t.step_time.mean - middle) <= t.half_width for t in found]
    assert sum(inside) >= 7


def test_an_epoch_of_three_waves_is_known_as_well_as_its_samples_allow() -> None:
    """Waves say little of how epochs differ; samples do, and all seeds lie within what is said."""
    spread = Spread(shape=Shape.GAMMA, relative_deviation=0.2)
    job = inputs_of(
        scenario(batches=108, batch_cpu=0.1, workers=36, compute=0.001, cost_spread=spread)
    )
    found = [solve(job, Options(seed=seed)) for seed in range(6)]
    middle = sum(timing.epoch_time for timing in found) / len(found)
    shares = [timing.half_width / timing.step_time.mean for timing in found]
    assert max(shares) < 0.25
    for timing, share in zip(found, shares, strict=True):
        assert abs(timing.epoch_time / middle - 1.0) <= share


def test_a_budget_of_events_ends_a_random_run() -> None:
    """It is not longer by more than a few steps' events, and says how badly its mean is known."""
    spread = Spread(shape=Shape.LOGNORMAL, relative_deviation=20.0)
    job = inputs_of(
        scenario(batches=10**6, batch_cpu=0.1, workers=3, compute=0.001, cost_spread=spread)
    )
    short = solve(job, Options(most_events=3000))
    longer = solve(job, Options(most_events=12_000))
    assert short.half_width > 0.01 * short.step_time.mean
    assert 3 * short.simulated_steps < longer.simulated_steps < 6 * short.simulated_steps
    assert solve(job, Options(most_events=3000)) == short


@pytest.mark.parametrize("accumulation", [1, 4])
def test_an_epoch_of_a_part_of_a_step_is_no_longer_than_that_part(accumulation: int) -> None:
    """The bound of a whole step is none of an only step that holds a quarter of it."""
    job = scenario(
        batches=1,
        last_share=0.25 if accumulation == 1 else 1.0,
        accumulation=accumulation,
        batch_cpu=0.4,
        workers=1,
        loader=LoaderKind.DALI,
        compute=0.001,
    )
    timing = simulate(job)
    assert timing.step_time.mean <= timing.epoch_time


def test_equal_batches_that_do_not_repeat_are_watched_until_their_mean_is_known() -> None:
    """96 workers on three machines beside one device: no wave is like another for 2,000 steps."""
    job = simulation_input(load_scenario("remote-workers-mnist", overrides=["remote.count=3"]))
    timing, whole = solve(job, Options()), solve(job, Options(replay=True))
    assert not timing.bounded
    assert timing.half_width <= PRECISION * timing.step_time.mean
    assert timing.epoch_time == pytest.approx(whole.epoch_time, rel=PRECISION)


def test_checkpoints_count_in_how_busy_a_store_is() -> None:
    """It is busy for as long as they are written, which is nearly all of what they take."""
    settings = ("train.checkpoint_every_steps=100", "hardware.storage=storage/nfs-10gbe")
    timing = solve(
        simulation_input(load_scenario("llama3-70b-megatron", overrides=settings)), Options()
    )
    share = timing.split.checkpoint / timing.step_time.mean
    assert share > 0.1
    assert share <= timing.usage[Resource.STORAGE].mean <= 1.05 * share


def test_devices_that_write_a_checkpoint_share_their_links() -> None:
    """Copies to the host count for PCIe as long as they take, and no longer."""
    settings = ("train.checkpoint_every_steps=1", "hardware.storage=storage/nvme-gen3")
    job = simulation_input(load_scenario("resnet50-imagenet-p4d", overrides=settings))
    without = simulation_input(load_scenario("resnet50-imagenet-p4d"))
    saving = checkpoint_times(job.scenario, None, job.topology)
    every_step = float(job.lengths.total_steps)
    loads = checkpoint_loads(job.scenario, job.topology, every_step, saving)
    assert checkpoint_loads(without.scenario, without.topology, 0.0, None) == {}
    links = [seconds for unit, seconds in loads.items() if unit.startswith("pcie")]
    assert 0.0 < max(links) <= job.extras.per_step
    assert max(loads.values()) <= job.extras.per_step


@pytest.mark.parametrize(
    "name", ["resnet18-imagenet-serial", "gpu-decode", "llama3-8b-fsdp", "mixtral-8x7b-megatron"]
)
def test_simulated_compute_takes_what_its_terms_say(name: str) -> None:
    """The ledger of simulated ranks has the compute of a step that the split takes from terms."""
    inputs = simulation_input(load_scenario(name))
    plan = plan_of(inputs, Phase.COLD, Options())
    stages = inputs.demands[Phase.COLD]
    epoch = run_epoch(inputs.scenario, inputs.topology, stages, plan, 0)
    simulated, _ = mean_step(epoch, 0.0)
    works = {stage.stage: stage.compute_time * stage.times for stage in stages}
    batches = inputs.scenario.job.train.accumulation
    assert {stage: simulated[stage] for stage, work in works.items() if work} == pytest.approx(
        {stage: batches * work for stage, work in works.items() if work}, rel=1e-11
    )
