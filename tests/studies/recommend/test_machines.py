"""Machines on offer: what their own drives are worth beside a volume, and stores that are tried."""

from __future__ import annotations

from dataclasses import replace

from simulator.reading.hardware.catalogue import Catalogue
from simulator.studies.baseline import as_fast, holds_better, machine_of, worth_renting

CATALOGUE = Catalogue.default()
P4D = machine_of(CATALOGUE.host("instance/aws/p4d.24xlarge"))
VOLUME = CATALOGUE.storage("storage/ebs-gp3-max")


def test_drives_that_hold_the_data_beat_a_volume() -> None:
    """Eight fast drives against one volume: faster in everything, and free of rent."""
    assert P4D.drives
    assert holds_better(P4D, VOLUME, 150e9)


def test_drives_that_are_too_small_beat_nothing() -> None:
    """What doesn't fit is read from elsewhere; so it is without drives."""
    assert not holds_better(P4D, VOLUME, 1e15)
    assert not holds_better(replace(P4D, drive=None), VOLUME, 150e9)


def test_a_store_that_is_better_in_something_is_looked_at() -> None:
    """More operations than the drives, or shorter latency; object stores are another matter."""
    drive = P4D.drive
    assert drive is not None
    quick = replace(VOLUME, read_latency=drive.read_latency / 2.0)
    assert not holds_better(P4D, quick, 150e9)
    assert not holds_better(P4D, replace(VOLUME, read_bandwidth=1e12), 150e9)
    assert not holds_better(P4D, CATALOGUE.storage("storage/s3"), 150e9)


S3, SHARED = CATALOGUE.storage("storage/s3"), CATALOGUE.storage("storage/fsx-lustre-scratch2")


def test_a_store_that_costs_much_is_not_looked_at_as_if_it_were_free() -> None:
    """A petabyte in a file system costs more than the machine; the cheapest store stays."""
    assert [one.name for one in worth_renting(P4D, (SHARED, S3), 1e15)] == [S3.name]
    small = worth_renting(P4D, (SHARED, S3), 1e9)
    assert S3 in small


def test_of_stores_that_cost_little_the_slower_ones_go() -> None:
    """Half a volume at the same latency is beaten; of equal ones the cheaper stays."""
    half = replace(VOLUME, name="half", read_bandwidth=0.5 * VOLUME.read_rate)
    half = replace(half, achievable_read_bandwidth=None)
    dear = replace(VOLUME, name="dear", price=1.1 * (VOLUME.price or 0.0))
    assert as_fast(VOLUME, half)
    assert not as_fast(half, VOLUME)
    assert worth_renting(P4D, (half, dear, VOLUME), 1e11) == [VOLUME]


def test_without_prices_all_stores_are_looked_at() -> None:
    """Nothing says then which is dear."""
    bare = replace(VOLUME, price=None)
    assert worth_renting(P4D, (bare,), 1e11) == [bare]
    assert worth_renting(replace(P4D, rent=None), (S3, VOLUME), 1e11) == [S3, VOLUME]
