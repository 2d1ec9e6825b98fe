"""Machines on offer: what their own drives are worth beside a volume."""

from __future__ import annotations

from dataclasses import replace

from simulator.files.catalogue import Catalogue
from simulator.studies.recommend.machines import holds_better, machine_of

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
