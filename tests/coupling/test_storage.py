"""How data get in: requests, caches, placement, windows, preparation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coupling.build import VARIED, with_data, with_group, with_job, with_work
from coupling.on_storage import behind_drives, placed, prepared_beforehand, windows
from support.scenarios import host, scenario, store

from simulator.pipeline.program import demand_table
from simulator.pipeline.run_length import placement_time, preparation_time
from simulator.pipeline.stages.base import Demand, Path, Phase
from simulator.pipeline.topology import build
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.data_loading import Access, CachePolicy, Layout, Placement, Preparation
from simulator.schema.scenario import Memory, Scenario
from simulator.schema.storage import Storage

IMAGE = 114_660.0
"""A JPEG of common size [B]."""


def images(storage: Storage, cache: CachePolicy = CachePolicy.NONE) -> Scenario:
    """Shuffled batches of 32 images, four workers, and hardly any compute."""
    return scenario(
        batches=800,
        workers=4,
        compute=1e-6,
        storage=storage,
        sample_bytes=IMAGE,
        cache=cache,
        machine=host(memory_bandwidth=100e9),
        size_spread=VARIED,
    )


def in_shards(job: Scenario) -> Scenario:
    """The same images in shards of 100 MB that are read front to back."""
    return with_data(job, layout=Layout.SHARDS, shard_size=100e6, access=Access.SEQUENTIAL)


def read(job: Scenario) -> Demand:
    """What a batch asks of the store."""
    (found,) = (
        demand
        for stage in demand_table(job, Phase.COLD)
        for demand in stage.demands
        if demand.path is Path.STORE_TO_HOST
    )
    return found


def step(job: Scenario) -> float:
    """Mean step [s]."""
    return predict(job).timing.step_time.mean


def test_random_reads_of_disk_flash_and_memory_are_orders_of_magnitude_apart() -> None:
    """32 random reads a batch: 800 ms from a disk, under a millisecond from flash, then memory.

    The disk answers 100 requests a second, and to open a file takes 1.5 of them: 32 * 2.5 / 100 =
    800 ms, its bytes would take 18 ms. Flash
    answers after 91 us: 32 of them in four workers 0.7 ms, beside 3.7 MB / 6.73 GB/s = 0.5 ms.
    Memory takes 3.7 MB / 100 GB/s = 0.04 ms and no request at all.
    """
    catalogue = Catalogue.default()
    disk, flash = (
        images(catalogue.storage(name)) for name in ("storage/hdd-7200rpm", "storage/nvme-gen4")
    )
    memory = images(catalogue.storage("storage/hdd-7200rpm"), CachePolicy.PRELOADED)
    requests = [read(job).operations for job in (disk, flash, memory)]
    assert requests == pytest.approx([80.0, 32.0, 0.0])
    assert step(disk) == pytest.approx(32 * 2.5 / 100, rel=0.1)
    assert step(flash) == pytest.approx((32 * 91e-6 + 32 * IMAGE / 6.73e9) / 4, rel=0.2)
    assert step(memory) == pytest.approx(32 * IMAGE / 100e9, rel=0.1)
    assert step(disk) > 300 * step(flash) > 300 * 10 * step(memory)


def test_shards_take_a_hundredth_of_the_requests_of_files() -> None:
    """A shard of 100 MB holds 872 images: 6 requests of 16 MiB instead of 872."""
    bucket = Catalogue.default().storage("storage/s3")
    files, shards = images(bucket), in_shards(images(bucket))
    assert read(files).operations == pytest.approx(32.0)
    assert read(shards).operations == pytest.approx(32 * 6 * IMAGE / 100e6)


def test_small_files_on_an_object_store_wait_for_each_request() -> None:
    """32 x 10 ms in four workers are 90 ms a batch; in shards at 50 MB/s a worker, 18 ms."""
    bucket = Catalogue.default().storage("storage/s3")
    files = images(bucket)
    assert step(files) == pytest.approx((32 * 0.01 + 32 * IMAGE / 96e6) / 4, rel=0.02)
    shards = in_shards(images(replace(bucket, request_rate=50e6)))
    opens = 32 * IMAGE / 100e6 * 0.01
    assert step(shards) == pytest.approx((opens + 32 * IMAGE / 50e6) / 4, rel=0.02)


def test_shards_on_a_disk_are_read_at_its_bandwidth() -> None:
    """Front to back the disk gives 200 MB/s: 3.7 MB in 18.3 ms instead of 320."""
    disk = Catalogue.default().storage("storage/hdd-7200rpm")
    assert step(in_shards(images(disk))) == pytest.approx(32 * IMAGE / 2e8, rel=0.02)


@pytest.mark.parametrize(
    ("share", "warm"), [(0.25, 24e6 / 2e8), (0.5, 16e6 / 2e8), (1.0, 0.01), (4.0, 0.01)]
)
def test_drives_in_front_of_a_store(share: float, warm: float) -> None:
    """What the drives lack comes from the store; once all fits they set the pace, 10 ms.

    The first epoch reads everything from the store, 32 MB / 200 MB/s = 160 ms a step.
    """
    timing = predict(behind_drives(share)).timing
    assert timing.step_time.mean == pytest.approx(warm, rel=0.02)
    assert timing.first_epoch_time == pytest.approx(1200 * 0.16, rel=0.02)


def test_data_larger_than_ram_and_drives_come_over_the_network() -> None:
    """38.4 GB, 9.6 GB in the page cache and 19.2 GB in the drives: the rest from the store.

    An ideal page cache answers 1/4 of the reads and the drives 1/2 of the others: 3/8 of 32 MB
    are 12 MB from the store, 60 ms.
    """
    job = behind_drives(0.5)
    size = job.job.dataset.total_bytes
    cached = with_data(job, cache=CachePolicy.IDEAL)
    memory = Memory(operating_system=2e9, application=2e9, page_cache=size / 4)
    assert size == pytest.approx(38.4e9)
    assert step(with_job(cached, memory=memory)) == pytest.approx(0.06, rel=0.02)


@pytest.mark.parametrize(
    ("placement", "slowest"), [(Placement.STAGE, 5e8), (Placement.PRELOAD, 5e8)]
)
def test_placing_takes_what_the_slowest_part_of_the_way_takes(
    placement: Placement, slowest: float
) -> None:
    """12.8 GB from a store of 500 MB/s take 25.6 s, by either way."""
    job = placed(placement)
    assert placement_time(job, build(job)) == pytest.approx(12.8e9 / slowest)


def test_placing_over_a_narrow_network_takes_longer() -> None:
    """Over 250 MB/s the 12.8 GB take 51.2 s."""
    job = placed(Placement.STAGE)
    machine = job.cluster.trainers.host
    assert machine.network is not None
    narrow = replace(machine, network=replace(machine.network, bandwidth=2.5e8))
    placed_there = with_group(job, host=narrow)
    assert placement_time(placed_there, build(placed_there)) == pytest.approx(51.2)


def test_placing_on_a_drive_that_writes_slowly_takes_longer() -> None:
    """A drive that writes 100 MB/s takes 128 s."""
    job = placed(Placement.STAGE)
    slow = replace(job.cluster.trainers.storage, write_bandwidth=1e8)
    staged = with_group(job, storage=slow)
    assert placement_time(staged, build(staged)) == pytest.approx(128.0)


@pytest.mark.parametrize("placement", [Placement.STAGE, Placement.PRELOAD])
def test_placing_is_billed_once(placement: Placement) -> None:
    """Ten epochs instead of one add nine epochs and nothing of the placing."""
    one, ten = (predict(placed(placement, epochs)).timing for epochs in (1.0, 10.0))
    assert ten.total_time - one.total_time == pytest.approx(9 * ten.epoch_time, rel=1e-6)
    assert one.total_time == pytest.approx(25.6 + one.epoch_time, rel=1e-6)


@pytest.mark.parametrize("placement", [Placement.STAGE, Placement.PRELOAD])
def test_placing_pays_after_the_epochs_it_takes_to_win_its_time_back(placement: Placement) -> None:
    """Streaming takes 400 x 64 ms = 25.6 s an epoch, placed data 12 s: 25.6 / 13.6 = 1.88.

    With one epoch streaming is quicker, with two placing is.
    """
    prediction = predict(placed(placement))
    assert prediction.break_even_epochs == pytest.approx(25.6 / (25.6 - 12.0), rel=0.02)
    for epochs in (1.0, 2.0):
        stream = with_group(
            placed(Placement.STREAM, epochs), storage=placed(placement).cluster.trainers.origin
        )
        faster = predict(placed(placement, epochs)).timing.total_time
        assert (faster < predict(stream).timing.total_time) == (epochs > 1.88)


def test_placing_hardly_ever_pays_where_the_device_is_the_limit() -> None:
    """With 200 ms of compute only the first batches of an epoch come sooner."""
    job = placed(Placement.STAGE)
    times = job.job.step_times
    assert times is not None
    slow = with_job(job, step_times=replace(times, seconds=(0.2,)))
    epochs = predict(slow).break_even_epochs
    assert epochs is not None
    assert epochs > 100


def test_windows_read_whole_chunks_and_no_more_than_the_sample() -> None:
    """3 MB of chunks of 1 MB are 4 MB; of chunks of 64 MB the whole sample of 100 MB."""
    job = windows().job
    assert read(job).amount == pytest.approx(32 * 4e6)
    coarse = with_data(job, chunk_size=64e6)
    assert read(coarse).amount == pytest.approx(32 * 67e6)
    assert read(with_data(job, chunk_size=100e6)).amount == pytest.approx(32 * 100e6)
    assert read(with_data(job, window=None)).amount == pytest.approx(32 * 100e6)


@pytest.mark.parametrize(
    ("decode", "longest"), [(0.05, 64.0), (0.1, 84.0)], ids=["the drive", "the workers"]
)
def test_preparation_takes_what_its_slowest_part_takes(decode: float, longest: float) -> None:
    """12,800 samples: 12.8 + 51.2 GB through a drive of 1 GB/s, or 16 workers in turn.

    Each of them reads, works 100 ms and writes: (12.8 + 1,280 + 51.2) s / 16.
    """
    job = with_work(prepared_beforehand().job, decode=decode)
    assert preparation_time(job, build(job)) == pytest.approx(longest)


def test_prepared_data_are_read_and_not_decoded_again() -> None:
    """An epoch of prepared samples asks for 4 MB a sample and no core."""
    job = prepared_beforehand().job
    assert read(job).amount == pytest.approx(32 * 4e6)
    assert predict(job).timing.usage["cpu"].mean == 0.0
    raw = with_work(job, where=Preparation.CPU)
    assert read(raw).amount == pytest.approx(32 * 1e6)


def test_preparing_beforehand_pays_over_many_epochs() -> None:
    """100 ms of CPU a step against 128 ms of reading: never here; with a quick drive after some.

    On a drive of 4 GB/s preparing takes 40 s of CPU once, and 32 ms instead of 100 ms a step.
    """
    quick = replace(store(rate=4e9), write_bandwidth=4e9)

    def total(where: Preparation, epochs: float) -> float:
        job = with_work(prepared_beforehand().job, where=where)
        train = replace(job.job.train, epochs=epochs)
        return predict(with_group(with_job(job, train=train), storage=quick)).timing.total_time

    assert total(Preparation.BEFOREHAND, 1) > total(Preparation.CPU, 1)
    assert total(Preparation.BEFOREHAND, 10) < total(Preparation.CPU, 10)
