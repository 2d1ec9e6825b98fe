"""Operations of windowed reads, by hand."""

from __future__ import annotations

import pytest

from simulator.physics.footprint import host_ram
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource
from simulator.pipeline.stages.input import Read, chunks, helpers_alone, most_samples
from simulator.reading.scenario import load_scenario


def operations(*overrides: str) -> float:
    """Store operations that a cold batch of four crops asks for."""
    scenario = load_scenario("windowed-volumes", overrides=overrides)
    return sum(float(demand.operations) for demand in Read().demands(scenario, Phase.COLD))


def test_each_chunk_of_a_window_is_an_operation_of_its_own() -> None:
    """A crop over 8 chunks of 524,288 bytes touches 9 of them; halved chunks make it 17."""
    scenario = load_scenario("windowed-volumes")
    assert float(chunks(scenario.job.dataset)) == pytest.approx(9.0)
    small = operations("data.chunk_size=262144 B")
    assert operations() >= 4 * 9
    assert small / operations() == pytest.approx(17.0 / 9.0)


def test_a_store_delivers_no_more_samples_than_its_bytes_and_operations_allow() -> None:
    """3,000 operations of a sample each, or 125 MiB/s of samples of a megabyte."""
    for size, most in (("1 KB", 3000.0), ("1 MB", 125 * 2**20 / 1e6)):
        settings = ("hardware.storage=storage/ebs-gp3", f"data.bytes_per_sample={size}")
        scenario = load_scenario("imagenet-page-cache-g4dn", overrides=settings)
        assert float(most_samples(scenario)) == pytest.approx(most)


def test_a_helper_machine_holds_batches_and_no_model() -> None:
    """A model of 70 billion parameters on the trainer takes none of a helper's RAM."""
    large = load_scenario("remote-workers-mnist", overrides=("model.parameters=70e9",))
    small = load_scenario("remote-workers-mnist")
    rams = []
    for scenario in (large, small):
        remote = scenario.job.remote
        assert remote is not None
        rams.append(host_ram(helpers_alone(scenario, remote)))
    assert rams[0].items == rams[1].items
    assert not rams[0].items.get("model")
    assert rams[0].items["batches_in_flight"] > 0.0


OBJECTS = ("hardware.storage=storage/s3", "data.cache=none", "train.batch_size=64")
FILES = "imagenet-page-cache-g4dn"


def asked(*overrides: str) -> tuple[Demand, Demand]:
    """The demands of a batch of 64 objects on the store, and of their client on the cores."""
    scenario = load_scenario(FILES, overrides=(*OBJECTS, *overrides))
    found = Read().demands(scenario, Phase.COLD)
    read = next(one for one in found if one.path is Path.STORE_TO_HOST)
    return read, next(one for one in found if one.path is Path.CORES)


def alone(read: Demand, work: Demand) -> float:
    """The time of a batch of one reader alone [s]."""
    assert read.ceiling is not None
    moved = float(read.latency) + float(read.amount) / float(read.ceiling)
    return moved + float(work.amount) / work.threads


def test_one_reader_is_as_fast_as_its_client_was_measured() -> None:
    """boto3: 10 + 5 ms to the first byte, then 51.9 MB/s, of both the work of a core a part.

    64 objects of 1 MB: 64 x (15 ms + 1 MB / 51.9 MB/s) = 2.19 s, of it 64 x (2.86 ms + 1 MB / 604
    MB/s) = 0.289 s on a core.
    """
    read, work = asked("data.client=boto3", "data.bytes_per_sample=1 MB")
    assert work.resource is Resource.CPU
    assert float(work.amount) == pytest.approx(64 * (2.86e-3 + 1e6 / 604e6))
    assert alone(read, work) == pytest.approx(64 * (15e-3 + 1e6 / 51.9e6), rel=1e-6)


def test_small_objects_are_bound_by_their_work() -> None:
    """64 readers of one process of boto3: 2.86 ms of one core for each, and next to no waiting.

    That is 350 objects a second, less 0.03 ms for 20 kB: 346.
    """
    read, work = asked("data.client=boto3", "data.bytes_per_sample=20 kB", "data.readers=64")
    assert 64 / alone(read, work) == pytest.approx(1.0 / (2.86e-3 + 20e3 / 604e6), rel=0.01)
    assert work.threads == 1.0


def test_parts_of_a_large_object_come_at_once() -> None:
    """Mountpoint fetches 5 MiB files by one request each: 27.8 ms + 5.24 MB / 96 MB/s, 64 MB/s.

    Measured were 58.6 (50.3 to 64.1). A file of 1 GB comes in parts, at 1,485 MB/s.
    """
    for size, rate in (("5 MiB", 5.243e6 / (27.8e-3 + 5.243e6 / 96e6)), ("1 GB", 1485e6)):
        read, work = asked("data.client=mountpoint", f"data.bytes_per_sample={size}")
        assert float(read.amount) / alone(read, work) == pytest.approx(rate, rel=0.05)


def test_a_stated_latency_and_rate_are_those_through_the_client() -> None:
    """30 ms and 1.1 GB/s as measured: the client adds nothing, and works on cores meanwhile."""
    stated = ("hardware.storage_latency=30 ms", "hardware.storage_request_rate=1.1 GB/s")
    read, work = asked(*stated, "data.bytes_per_sample=100 MB")
    assert alone(read, work) == pytest.approx(64 * (30e-3 + 100e6 / 1.1e9), rel=1e-6)
    assert work.threads > 1.0


def test_the_client_of_the_file_system_is_no_client() -> None:
    """Only object stores are read through one."""
    scenario = load_scenario(
        FILES,
        overrides=(*OBJECTS, "hardware.storage=storage/ebs-gp3", "data.client=boto3"),
    )
    assert all(one.path is not Path.CORES for one in Read().demands(scenario, Phase.COLD))


@pytest.mark.parametrize("store", ["s3", "gcs"])
def test_clients_span_a_factor_of_ten_and_more(store: str) -> None:
    """The time of a small object through s3fs-fuse is ten times that of a plain GET."""
    here = f"hardware.storage=storage/{store}"
    slow, fast = (
        alone(*asked(here, f"data.client={name}", "data.bytes_per_sample=20 kB"))
        for name in ("s3fs-fuse", "go-sdk")
    )
    assert slow > 10.0 * fast
