"""Copies of the data that a choice needs and nothing counts."""

from __future__ import annotations

import pytest

from simulator.files.scenario import load_scenario
from simulator.studies.recommend.moving import moves

HERE = "resnet50-imagenet-p4d"
VOLUME = ("hardware.storage=storage/ebs-gp3-max",)


def test_nothing_moves_where_the_data_are() -> None:
    """The same store on the same machine; a shared one on another machine, too."""
    now = load_scenario(HERE)
    assert moves(now, now, elsewhere=False) == ()
    shared = load_scenario(HERE, overrides=VOLUME)
    assert moves(shared, shared, elsewhere=True) == ()


def test_another_store_takes_a_copy() -> None:
    """All bytes, at the slower of reading there and writing here."""
    now, chosen = load_scenario(HERE), load_scenario(HERE, overrides=VOLUME)
    (move,) = moves(now, chosen, elsewhere=False)
    store = chosen.cluster.trainers.storage
    assert (move.source, move.target) == (now.cluster.trainers.storage.name, store.name)
    assert move.size == now.job.stored_total
    assert store.write_bandwidth is not None
    assert move.least == pytest.approx(move.size / store.write_bandwidth)


def test_the_drives_of_another_machine_begin_empty() -> None:
    """Data on a machine's own drives stay there when the machine is given up."""
    now = load_scenario(HERE)
    assert len(moves(now, now, elsewhere=True)) == 1


def test_staging_is_a_part_of_the_run() -> None:
    """What is staged is read from where the data were: nothing is left out."""
    far = load_scenario(HERE, overrides=VOLUME)
    staged = load_scenario(HERE, overrides=(*VOLUME, "data.placement=stage"))
    assert moves(far, staged, elsewhere=False) == ()


def test_helpers_read_a_copy_of_their_own() -> None:
    """Machines beside that read another store than the trainers do."""
    now = load_scenario(HERE)
    beside = ("remote.machine=instance/aws/c5.18xlarge", "remote.storage=storage/ebs-gp3")
    (move,) = moves(now, load_scenario(HERE, overrides=beside), elsewhere=False)
    assert move.target == "storage/ebs-gp3"
