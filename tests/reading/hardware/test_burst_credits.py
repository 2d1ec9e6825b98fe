"""Stores whose credits run out, and limits of requests by prefix."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.schema.storage import Burst, Storage
from simulator.units import BYTE, parse

FILES = "imagenet-page-cache-g4dn"
SHARDS = "imagenet-object-store-g5"
GP2 = ("hardware.storage=storage/ebs-gp2", "data.cache=none", "data.samples=1000000")


def store(*settings: str, name: str = FILES) -> Storage:
    """The store of a scenario as its run sees it."""
    return load_scenario(name, overrides=settings).cluster.trainers.storage


def test_operations_fall_to_what_credits_leave() -> None:
    """10 million reads of 100 GiB of gp2: 5.4 million credits, 300 a second for the rest."""
    found = store(*GP2, "hardware.storage_capacity=100 GiB")
    assert found.read_operations == pytest.approx(10e6 * 300.0 / (10e6 - 5.4e6), rel=1e-3)


def test_a_short_run_never_runs_out_of_credits() -> None:
    """A million reads are within the credits: 3,000 a second."""
    found = store(*GP2, "train.epochs=1", "hardware.storage_capacity=100 GiB")
    assert found.read_operations == pytest.approx(3000.0)


def test_a_large_volume_needs_no_credits() -> None:
    """Above 1,000 GiB the baseline is more than the burst, up to the most a volume does."""
    assert store(*GP2, "hardware.storage_capacity=2000 GiB").read_operations == 6000.0
    assert store(*GP2, "hardware.storage_capacity=20 TiB").read_operations == 16000.0


def test_without_a_size_the_profile_holds() -> None:
    """A volume of which nobody says how large it is does what its profile says."""
    assert store(*GP2).read_operations == 16000.0


def told(*settings: str) -> str:
    """All warnings of a job."""
    return "\n".join(predict(load_scenario(FILES, overrides=settings), intervals=False).warnings)


def test_a_volume_without_a_size_is_said_to_be_a_large_one() -> None:
    """16,000 operations a second are those of 5,334 GiB, at three for each."""
    assert "ebs-gp2 is taken to be one of 5.727 TB or more" in told(*GP2)
    st1 = ("hardware.storage=storage/ebs-st1", *GP2[1:])
    assert "ebs-st1 is taken to be one of 13.74 TB or more" in told(*st1)


@pytest.mark.parametrize(
    "said",
    [
        ("hardware.storage_capacity=100 GiB",),
        ("hardware.storage_operations=2000 IOPS", "hardware.storage_bandwidth=200 MB/s"),
        ("hardware.storage=storage/efs-bursting",),
        ("hardware.storage=storage/ebs-gp3",),
    ],
)
def test_a_volume_of_known_size_or_rate_has_no_such_warning(said: tuple[str, ...]) -> None:
    """It is as large, or as fast, as the file says; a metered store goes by what lies there."""
    assert "is taken to be one of" not in told(*GP2, *said)


def test_a_metered_store_goes_by_what_lies_there() -> None:
    """EFS: 150 MiB/s of reads for each TiB, 6.3 TiB beyond that at first, over the whole run."""
    settings = ("hardware.storage=storage/efs-bursting", "data.cache=none", "train.epochs=90")
    scenario = load_scenario(FILES, overrides=settings)
    size = scenario.job.stored_total
    asked, tebibyte = 90 * size, parse("1 TiB", BYTE)
    baseline = 150 * 2**20 * size / tebibyte
    mean = asked * baseline / (asked - 6.3 * tebibyte)
    assert scenario.cluster.trainers.storage.read_rate == pytest.approx(mean, rel=1e-3)
    assert any("credits counted" in note.what for note in scenario.notes)


def test_a_store_in_one_zone_bursts_like_the_others() -> None:
    """141 GB earn 50 MiB/s of metered traffic a TiB: 6.7 MB/s, or 20.2 MB/s of reads.

    400 epochs read 56 TB, 6.9 TB of them from credits: 20.2 x 56.4 / (56.4 - 6.9) = 23 MB/s.
    """
    settings = ("hardware.storage=storage/efs-one-zone", "data.cache=none", "train.epochs=400")
    scenario = load_scenario(
        FILES, overrides=(*settings, "data.samples=1410000", "data.bytes_per_sample=100 kB")
    )
    rate = scenario.cluster.trainers.storage.read_rate
    earned = 150 * 2**20 * 141e9 / 2**40
    assert earned / 3.0 == pytest.approx(6.7e6, rel=0.01)
    assert rate == pytest.approx(earned * 56.4 / (56.4 - 6.3 * 2**40 / 1e12), rel=1e-3)


def test_a_store_in_one_zone_bursts_at_300_mebibytes() -> None:
    """A short run lives on the credits of a new file system: 314.6 MB/s, and never 434."""
    settings = ("hardware.storage=storage/efs-one-zone", "data.cache=none", "train.epochs=1")
    assert store(*settings).read_rate == pytest.approx(300 * 2**20)


def test_the_answer_says_how_long_a_burst_lasts() -> None:
    """6.3 TiB beyond what is earned last 6.3 TiB / (300 MiB/s - 20.2 MB/s of 141 GB) = 6.5 h."""
    bucket = store("hardware.storage=storage/efs-bursting").burst_bandwidth
    assert bucket is not None
    beyond = 300 * 2**20 - 150 * 2**20 * 141e9 / 2**40
    assert bucket.lasts(141e9) == pytest.approx(6.3 * 2**40 / beyond)
    assert bucket.lasts(141e9) / 3600.0 == pytest.approx(6.5, rel=0.01)


def test_a_small_volume_carries_less() -> None:
    """gp2: 128 MiB/s up to 170 GiB, 250 MiB/s from 334 GiB on."""
    for size, rate in ((100, 128), (334, 250), (1000, 250)):
        found = store(*GP2, f"hardware.storage_capacity={size} GiB")
        assert found.read_rate == pytest.approx(rate * 2**20)


def test_a_rate_needs_a_size() -> None:
    """st1 earns 40 MiB/s a TiB: 80 MiB/s without credits need two; EFS takes any size."""
    st1 = store("hardware.storage=storage/ebs-st1", *GP2[1:])
    assert st1.size_for(80 * 2**20, 0.0) == pytest.approx(2 * 2**40)
    assert store("hardware.storage=storage/efs-bursting").size_for(1e9, 1e4) == 0.0


def test_a_stated_rate_is_meant() -> None:
    """Who states what the store does, means it with its credits."""
    found = store(
        *GP2, "hardware.storage_capacity=100 GiB", "hardware.storage_operations=2000 IOPS"
    )
    assert found.read_operations == 2000.0


def test_a_run_is_as_long_as_its_bucket_allows() -> None:
    """Bound by operations, a run takes (reads - credits) / baseline, and 3% at most beyond it."""
    fast = ("input.workers=64", "input.decode=0.01 ms")
    settings = (*GP2, *fast, "hardware.storage_capacity=40 GiB")
    found = predict(load_scenario(FILES, overrides=settings), intervals=False)
    least = (10e6 - 5.4e6) / 120.0
    assert least <= found.timing.total_time * 1.001
    assert found.timing.total_time == pytest.approx(least, rel=0.03)


@pytest.mark.parametrize("asked", [0.0, 1.0, 1e6, 1e15])
def test_the_mean_lies_between_baseline_and_burst(asked: float) -> None:
    """However much is asked, and of however small a store."""
    bucket = Burst(per=1e12, baseline=100.0, burst=1000.0, credits=1e6, least_baseline=1.0)
    for size in (1.0, 1e12, 1e15):
        baseline = max(1.0, 100.0 * size / 1e12)
        burst = max(baseline, 1000.0 * size / 1e12)
        assert baseline * (1 - 1e-9) <= bucket.mean_rate(size, asked) <= burst * (1 + 1e-9)


def test_each_prefix_has_a_limit_of_its_own() -> None:
    """Four prefixes answer four times as many requests, of both kinds."""
    one, four = store(name=SHARDS), store("hardware.storage_prefixes=4", name=SHARDS)
    assert one.request_limit == 5500.0
    assert (four.request_limit, four.write_request_limit) == (22000.0, 14000.0)


@pytest.mark.parametrize(
    ("name", "said"), [("azure-blob", "is that of an account"), ("ebs-gp3", "states none")]
)
def test_prefixes_raise_no_other_limit(name: str, said: str) -> None:
    """A limit by account, or none at all, has nothing to do with prefixes."""
    with pytest.raises(InputError, match=said):
        store(f"hardware.storage=storage/{name}", "hardware.storage_prefixes=4")


@pytest.mark.slow
def test_small_objects_are_written_at_the_limit_of_writes() -> None:
    """One prefix answers 5,500 reads or 3,500 writes a second: both for each sample at 2,139."""
    settings = (
        *("hardware.storage=storage/s3", "hardware.vcpus=10000", "hardware.cores=5000"),
        *("input.workers=2000", "hardware.network_bandwidth=100 GB/s"),
    )
    found = predict(load_scenario("offline-preparation", overrides=settings), intervals=False)
    assert found.timing.throughput == pytest.approx(1.0 / (1 / 5500.0 + 1 / 3500.0), rel=0.01)
