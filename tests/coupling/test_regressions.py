"""Couplings that were once wrong, each held to the figure a pencil gives."""

from __future__ import annotations

import math
from dataclasses import astuple, replace

import pytest
from coupling.build import (
    helpers,
    in_step,
    model,
    networked,
    remote_store,
    with_data,
    with_group,
    with_helpers,
    with_job,
    with_train,
    with_work,
    without_device,
)
from coupling.on_network import batches_from_helpers, two_trainers
from coupling.on_ranks import four_ranks, sharing_a_store
from coupling.on_storage import placed, prepared_beforehand
from support.scenarios import host, inputs_of, link, scenario, simulate, store

from simulator.engine.closed_form import bounds
from simulator.physics.footprint import Verdict, host_ram, memory_fit
from simulator.pipeline.program import demand_table
from simulator.pipeline.run_length import placement_time, preparation, preparation_time
from simulator.pipeline.stages.base import Path, Phase
from simulator.pipeline.stages.input import hit_ratio
from simulator.pipeline.topology import build
from simulator.predict import predict
from simulator.results.assumptions import warnings
from simulator.results.metrics import samples_per_step
from simulator.schema.data_loading import (
    CachePolicy,
    LoaderKind,
    Placement,
    Preparation,
    Remote,
    Straggler,
)
from simulator.schema.machines import LinkKind, PcieSwitch
from simulator.schema.scenario import Memory, Scenario
from simulator.schema.storage import Scope
from simulator.schema.training import Mode

LOOSE = 1e-9
"""Rounding of a sum of some thousand times."""


def step(job: Scenario) -> float:
    """Mean step [s]."""
    return predict(job).timing.step_time.mean


def total(job: Scenario) -> float:
    """The whole run [s]."""
    return predict(job).timing.total_time


def reading(**figures: object) -> Scenario:
    """Four workers read 32 samples of 1 MB a batch, nothing is cached, and a step takes 1 ms."""
    usual = {"cache": CachePolicy.NONE, "sample_bytes": 1e6, "workers": 4, "compute": 0.001}
    return scenario(**usual | figures)  # type: ignore[arg-type]


def below_a_switch(job: Scenario, rate: float) -> Scenario:
    """The job on machines whose network card hangs below a switch of so many bytes a second."""
    switch = PcieSwitch(socket=0, uplink=link(rate), nics=(0,))
    return with_group(job, host=replace(job.cluster.trainers.host, switches=(switch,)))


def test_machines_of_one_device_reduce_over_the_network() -> None:
    """Two machines exchange 100 MB each way: 40 ms compute + 100 MB / 3.125 GB/s = 72 ms."""
    machine = networked(host(gpus=1), 3.125e9)
    base = reading(machine=machine, storage=remote_store(), sample_bytes=1e5, compute=0.04)
    many = with_group(with_job(base, model=model(25e6)), count=2)
    timing = predict(with_data(many, samples=2 * base.job.dataset.samples)).timing
    assert timing.step_time.mean == pytest.approx(0.04 + 100e6 / 3.125e9, rel=1e-3)
    assert timing.split.communication == pytest.approx(100e6 / 3.125e9, rel=0.02)


def test_rings_cross_sockets_both_ways_at_once() -> None:
    """Of four devices in two sockets each passes on 2 x 3/4 x 400 MB: 37.5 ms at 16 GB/s.

    Devices 1 and 3 send across the sockets in opposite directions, so the duplex link of 20 GB/s
    takes 30 ms and is not the limit.
    """
    machine = replace(
        host(gpus=4, nvlink=None),
        gpu_sockets=(0, 0, 1, 1),
        socket_link=link(20e9, LinkKind.SOCKET),
    )
    job = with_job(scenario(compute=0.001, machine=machine), model=model(100e6))
    assert step(job) == pytest.approx(0.001 + 2 * 3 / 4 * 400e6 / 16e9, rel=1e-3)


def test_finished_batches_pass_the_uplink_of_the_card() -> None:
    """A card below a switch of 1.5 GB/s takes in 100 MB a batch in 66.7 ms."""
    job = batches_from_helpers(output_bytes=100e6 / 32, compute=0.005, batch_cpu=0.01)
    assert step(below_a_switch(job, 1.5e9)) == pytest.approx(100e6 / 1.5e9, rel=5e-3)


def test_reads_and_gradients_pass_the_uplink_of_the_card() -> None:
    """2 x 100 MB of samples and 100 MB of gradients through 2 GB/s take 150 ms, not 96."""
    assert step(below_a_switch(two_trainers(), 2e9)) == pytest.approx(300e6 / 2e9, rel=1e-3)


def test_only_drives_below_the_switch_pass_it() -> None:
    """Of four drives two lie below a switch of 1 GB/s: half of 32 MB, 16 ms."""
    switch = PcieSwitch(socket=0, uplink=link(1e9), drives=(0, 1))
    drive = store(rate=5e9)
    machine = replace(host(switches=(switch,)), local_storage=drive, drive_count=4)
    job = reading(machine=machine, storage=drive)
    assert step(job) == pytest.approx(16e6 / 1e9, rel=1e-3)


def test_reads_by_a_card_of_the_other_socket_cross_between_sockets() -> None:
    """A card of socket 1 fills batches on socket 0: 32 MB over 1 GB/s, 32 ms."""
    switch = PcieSwitch(socket=1, uplink=link(16e9), nics=(0,))
    machine = replace(
        networked(host(switches=(switch,)), 12.5e9),
        gpu_sockets=(0,),
        socket_link=link(1e9, LinkKind.SOCKET),
    )
    job = reading(machine=machine, storage=remote_store(), socket=0)
    assert step(job) == pytest.approx(32e6 / 1e9, rel=1e-3)


def test_local_and_remote_workers_share_one_store() -> None:
    """All read 3.2 MB a batch from one store of 100 MB/s: 32 ms, and 25.6 s for 800 batches."""
    shared = remote_store(1e8)
    base = scenario(
        batches=800,
        batch_cpu=0.001,
        compute=0.001,
        workers=8,
        sample_bytes=1e5,
        cache=CachePolicy.NONE,
        storage=shared,
        machine=networked(host(), 3.125e9),
        pin_memory=True,
        sync=False,
    )
    grouped = with_helpers(base, helpers(2, 8.0, 3.125e9, shared))
    job = with_job(grouped, remote=Remote(name="data", workers=8))
    assert simulate(job).step_time.mean == pytest.approx(3.2e6 / 1e8, rel=1e-3)
    for replay in (False, True):
        assert simulate(job, replay=replay).total_time == pytest.approx(800 * 0.032, rel=1e-3)


@pytest.mark.parametrize("workers", [2, 10, 12])
def test_remote_workers_are_as_many_as_asked_whatever_the_ranks(workers: int) -> None:
    """Eight ranks take 8 x 80 ms of work a step, done by just so many workers.

    Two take 320 ms, ten 64 ms, twelve 53.3 ms: not rounded to a multiple of the ranks.
    """
    base = scenario(
        batches=400,
        batch_cpu=0.08,
        compute=0.001,
        machine=networked(host(gpus=8), 1e11),
        pin_memory=True,
    )
    grouped = with_helpers(base, helpers(1, 64.0, 1e11))
    job = with_job(grouped, remote=Remote(name="data", workers=workers))
    assert step(job) == pytest.approx(8 * 0.08 / workers, rel=1e-3)


@pytest.mark.parametrize(("readers", "rounds"), [(1, 32), (4, 8), (32, 1)])
def test_readers_of_a_worker_wait_at_the_same_time(readers: int, rounds: int) -> None:
    """An object of 1 MB takes 100 ms + 1 MB / 30 MB/s = 133.3 ms, so many at a time.

    A batch of 32 takes 32, 8 or 1 rounds; four workers deliver one every fourth of that.
    """
    bucket = remote_store(12.5e9, Scope.OBJECT, read_latency=0.1, request_rate=30e6)
    base = reading(machine=networked(host(), 12.5e9), storage=bucket)
    job = with_data(base, readers=float(readers))
    assert step(job) == pytest.approx(rounds * (0.1 + 1 / 30) / 4, rel=1e-3)


def test_a_window_asks_for_each_of_its_chunks() -> None:
    """A window of 3 MB touches 4 objects of 1 MB: 32 x 4 requests a batch."""
    bucket = remote_store(1e9, Scope.OBJECT, request_limit=100.0)
    base = reading(machine=networked(host(), 1e10), storage=bucket, sample_bytes=1e8)
    table = demand_table(with_data(base, window=3e6, chunk_size=1e6), Phase.COLD)
    demands = [demand for stage in table for demand in stage.demands]
    (read,) = (demand for demand in demands if demand.path is Path.STORE_TO_HOST)
    assert float(read.operations) == pytest.approx(32 * 4)


def test_writes_meet_the_cap_of_operations() -> None:
    """32 small files a batch on a disk of 100 writes a second take 320 ms."""
    disk = replace(store(rate=1e9), write_bandwidth=1e9, write_operations=100.0)
    base = scenario(
        machine=host(gpus=0),
        storage=disk,
        cache=CachePolicy.PRELOADED,
        output_bytes=1e4,
        workers=4,
        sample_bytes=1e4,
    )
    assert step(with_job(without_device(base), mode=Mode.PREPARE)) == pytest.approx(0.32, rel=1e-3)


def test_every_machine_caches_what_it_reads_itself() -> None:
    """With 75 of 146 GiB of RAM for pages on each of two servers, 39.6% of reads are hits.

    Measured: 45 of 73 GiB were read from the store in a later epoch.
    """
    machine = networked(host(), 1e10)
    base = reading(machine=machine, storage=remote_store(), cache=CachePolicy.RANDOM, epochs=3)
    many = with_group(base, count=2)
    cached = Memory(page_cache=75 / 146 * many.job.dataset.total_bytes)
    job = with_job(many, memory=cached)
    assert float(hit_ratio(job, Phase.WARM)) == pytest.approx(0.396, abs=0.001)


def test_copies_read_shared_data_once_in_a_cold_epoch() -> None:
    """Four jobs read 51.2 GB once at 1 GB/s, 51.2 s: their 1,600 steps of 50 ms take 80 s.

    Were every copy to read for itself the store would take 204.8 s.
    """
    job = with_data(sharing_a_store(4), cache=CachePolicy.IDEAL)
    roomy = with_job(job, memory=Memory(page_cache=1e12))
    assert predict(roomy).timing.first_epoch_time == pytest.approx(1600 * 0.05, rel=5e-3)


def test_a_step_of_copies_takes_a_batch_of_each() -> None:
    """Four jobs with batches of 32 take 128 samples in the time of a step of 128 ms."""
    prediction = predict(sharing_a_store(4))
    timing = prediction.timing
    assert samples_per_step(prediction) == pytest.approx(4 * 32)
    assert timing.throughput * timing.step_time.mean == pytest.approx(4 * 32)


def test_preloaded_data_count_as_ram() -> None:
    """12.8 GB do not fit a machine of 8 GB."""
    job = placed(Placement.PRELOAD)
    ram = host_ram(with_group(job, host=replace(job.cluster.trainers.host, ram=8e9)))
    assert ram.items["dataset"] == pytest.approx(12.8e9)
    assert ram.verdict is Verdict.NO


def test_staging_to_too_small_a_drive_says_so() -> None:
    """12.8 GB do not fit a drive of 1 GB."""
    job = placed(Placement.STAGE)
    trainers = job.cluster.trainers
    small = replace(trainers.storage, capacity=1e9)
    cramped = with_group(job, storage=small, host=replace(trainers.host, local_storage=small))
    assert any("12.8 GB" in line and "do not fit" in line for line in predict(cramped).warnings)


def test_machines_that_stage_share_the_store() -> None:
    """Two machines copy 12.8 GB each from one store of 500 MB/s: 51.2 s."""
    job = with_group(placed(Placement.STAGE), count=2)
    assert placement_time(job, build(job)) == pytest.approx(2 * 12.8e9 / 5e8)


def test_staging_objects_meets_the_limit_of_requests() -> None:
    """12,800 objects from a bucket of 100 requests a second take 128 s."""
    bucket = remote_store(5e9, Scope.OBJECT, request_limit=100.0)
    job = with_group(placed(Placement.STAGE), origin=bucket)
    assert placement_time(job, build(job)) == pytest.approx(12_800 / 100)


def preloaded_and_streamed(latency: float) -> tuple[Scenario, Scenario]:
    """Ten epochs of data that fit RAM, preloaded first or streamed from a store of 500 MB/s."""
    origin = remote_store(5e8, read_latency=latency)
    base = with_group(placed(Placement.PRELOAD), origin=origin)
    preloaded = with_data(base, cache=CachePolicy.IDEAL)
    streamed = with_data(preloaded, placement=Placement.STREAM)
    return in_step(preloaded), in_step(with_group(streamed, storage=origin, origin=None))


def test_preloading_pays_within_a_cold_epoch_of_slow_requests() -> None:
    """Preloading pays for itself after 25.6 / (185.6 - 12) = 0.147 of the first epoch.

    It takes 12.8 GB / 500 MB/s = 25.6 s, then an epoch 400 x 30 ms = 12 s. Streaming, four
    workers wait 32 x 50 ms each and read 4 x 32 MB together: 100 x (1.6 + 0.256) s = 185.6 s.
    """
    preloaded, streamed = preloaded_and_streamed(latency=0.05)
    assert total(preloaded) == pytest.approx(25.6 + 10 * 12.0, rel=1e-3)
    assert total(streamed) == pytest.approx(100 * (1.6 + 0.256) + 9 * 12.0, rel=1e-3)
    assert predict(preloaded).break_even_epochs == pytest.approx(25.6 / 173.6, rel=2e-3)


def test_preloading_never_pays_if_streaming_fills_the_same_ram() -> None:
    """Streamed, a cold epoch takes the 25.6 s preloading takes before its own 12 s.

    Later epochs take 12 s either way, so what was lost never comes back.
    """
    preloaded, streamed = preloaded_and_streamed(latency=0.0)
    assert total(preloaded) == pytest.approx(25.6 + 10 * 12.0, rel=2e-3)
    assert total(streamed) == pytest.approx(25.6 + 9 * 12.0, rel=2e-3)
    assert predict(preloaded).break_even_epochs == math.inf


def test_preparation_is_limited_by_its_workers() -> None:
    """Two workers prepare 12,800 samples in 352 s; 16 cores, mostly idle, would take 40 s.

    A sample takes its worker 50 ms of work, 1 ms to read and 4 ms to write. Simulated, the workers
    drift apart and meet at the drive no more; equal batches that keep both in step have each wait
    twice its 160 ms a batch for the one drive: 200 x (1.6 + 2 x 0.16) s = 384 s.
    """
    job = prepared_beforehand().job
    two = with_job(job, input=replace(job.job.input, workers=2))
    assert preparation_time(two, build(two)) == pytest.approx(12_800 * 0.055 / 2)
    once = with_train(preparation(two), epochs=1.0)
    assert total(once) == pytest.approx(12_800 * 0.055 / 2, rel=3e-3)
    assert total(in_step(once)) == pytest.approx(200 * (1.6 + 2 * 0.16), rel=1e-3)


def test_preparation_reads_the_raw_data_before_they_are_preloaded() -> None:
    """12.8 GB read and 51.2 GB written on one drive of 1 GB/s take 64 s."""
    job = with_data(prepared_beforehand().job, placement=Placement.PRELOAD)
    assert preparation_time(job, build(job)) == pytest.approx((12.8e9 + 51.2e9) / 1e9)


def test_a_custom_model_infers() -> None:
    """32 passes of 1 GFLOP at 10 TFLOP/s take 3.2 ms."""
    job = with_job(without_device(scenario()), mode=Mode.INFER, model=model(1e6))
    assert step(job) == pytest.approx(32 * 1e9 / 1e13, rel=0.01)


def test_decoding_on_the_device_takes_its_memory() -> None:
    """A decoder's 5 GB on the device count in full."""
    base = with_job(scenario(), model=model())
    plain = with_work(base, where=Preparation.DEVICE, device_time=1e-3)
    buffered = with_work(plain, device_memory=5e9)
    more, less = memory_fit(buffered), memory_fit(plain)
    assert more is not None
    assert less is not None
    assert more.total - less.total == pytest.approx(5e9)


def test_an_epoch_that_waits_for_its_last_batches_says_so() -> None:
    """Helpers that pack a sample for days hold batches at its end, long after its steady steps."""
    job = batches_from_helpers(output_bytes=1e5, compute=0.005, batch_cpu=0.01)
    found = predict(job)
    long = replace(found.timing, epoch_time=3.0 * found.timing.epoch_time)
    told = [warnings(job, one, found.host_ram, found.memory, ()) for one in (found.timing, long)]
    assert [any("an epoch takes" in line for line in lines) for lines in told] == [False, True]
    asked = job.job.remote
    assert asked is not None
    slow = predict(with_job(job, remote=replace(asked, send_per_sample=86_400.0)))
    assert min(astuple(slow.timing.split)) >= 0.0
    assert slow.timing.epoch_time >= 0.5 * slow.timing.step_time.mean * slow.steps_per_epoch


def test_helpers_short_of_ram_say_so() -> None:
    """Eight workers and the system of a helper do not fit 1 GB."""
    job = batches_from_helpers(output_bytes=1e5, compute=0.005, batch_cpu=0.01)
    trainers, group = job.cluster.groups
    cramped = replace(group, host=replace(group.host, ram=1e9))
    changed = replace(job, cluster=replace(job.cluster, groups=(trainers, cramped)))
    assert any("RAM of group 'data' is short" in line for line in predict(changed).warnings)


@pytest.mark.parametrize(
    ("copies", "mode", "batches"), [(4, Mode.TRAIN, 1600), (1, Mode.INFER, 400)]
)
def test_a_slow_rank_without_a_barrier_ends_last(copies: int, mode: Mode, batches: int) -> None:
    """A batch every 160 ms on the slow rank: 1,600 of a copy take 256 s, 400 of a share 64 s.

    The last one adds 100 ms of compute, and so does the one before it.
    """
    ranks = with_data(four_ranks((Straggler(factor=2.0, rank=0),)), samples=4 * 32 * 400)
    job = in_step(with_job(ranks, copies=copies, mode=mode))
    for replay in (False, True):
        time = simulate(job, replay=replay).total_time
        assert time == pytest.approx(batches * 0.16 + 2 * 0.1, rel=1e-4)


def test_epochs_that_cross_keep_the_cores_busy_and_no_busier() -> None:
    """Three epochs of 2 x 34 batches need 204 x 200 ms / 6 cores = 6.8 s, and no less."""
    job = scenario(
        batches=34,
        batch_cpu=0.2,
        compute=0.001,
        workers=5,
        loader=LoaderKind.ACTORS,
        machine=host(gpus=2, cores=6),
        epochs=3.0,
        in_step=True,
    )
    time = simulate(job).total_time
    assert 6.8 * (1 - LOOSE) <= time == pytest.approx(204 * 0.2 / 6, rel=5e-3)


def test_epochs_that_cross_take_no_longer_than_one_thing_after_another() -> None:
    """Three epochs of 4 batches, each read in 0.32 ms and computed in 1 ms: 15.84 ms at most."""
    job = scenario(
        batches=4,
        compute=0.001,
        workers=4,
        loader=LoaderKind.ACTORS,
        accumulation=3,
        epochs=3.0,
        cache=CachePolicy.NONE,
        sample_bytes=1e4,
    )
    time = simulate(job).total_time
    assert 12 * 0.001 <= time <= 12 * (0.00032 + 0.001) * (1 + LOOSE)


def test_a_last_step_of_fewer_batches_reduces_as_much_as_a_whole_one() -> None:
    """Steps of 3 and of 1 batch of 1 ms, each with 400 MB / 16 GB/s of gradients: 54 ms."""
    machine = host(gpus=2, nvlink=None)
    base = scenario(batches=4, compute=0.001, workers=2, accumulation=3, machine=machine)
    job = with_job(base, model=model(100e6))
    asked = inputs_of(job)
    limits = bounds(job, asked.topology, asked.demands, asked.lengths, asked.extras)
    time = simulate(job).total_time
    assert time == pytest.approx(4 * 0.001 + 2 * 400e6 / 16e9, rel=1e-4)
    assert time / asked.lengths.total_steps <= limits.upper * (1 + LOOSE)
