"""Copies of the data that a choice needs first, with their time and bill."""

from __future__ import annotations

import pytest

from simulator.reading.scenario import load_scenario
from simulator.studies.data_migration import Move, moves, with_copies
from simulator.units import MONTH

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


def test_requests_of_both_stores_are_paid() -> None:
    """Every sample is an object that is read once there, or written once here."""
    now, chosen = load_scenario(HERE), load_scenario(HERE, overrides=("hardware.storage=s3",))
    (up,), (down,) = moves(now, chosen, elsewhere=False), moves(chosen, now, elsewhere=False)
    charges, samples = chosen.cluster.trainers.storage.charges, now.job.dataset.samples
    assert charges is not None
    assert charges.writes is not None
    assert charges.reads is not None
    assert up.requests == pytest.approx(samples * charges.writes)
    assert down.requests == pytest.approx(samples * charges.reads)


def test_a_copy_counts_once_in_time_and_bill() -> None:
    """Machines wait for it, stores charge for it, and as many samples cost that much more."""
    copy = Move(
        source="a", target="b", size=1e12, least=1800.0, requests=5.0, per_month=MONTH, egress=10.0
    )
    before = {
        "total_time_s": 3600.0,
        "cost.usd_to_train": 80.0,
        "cost.usd_per_h": 8.0,
        "cost.samples_per_usd": 100.0,
        "step_time_s.mean": 0.5,
    }
    after = with_copies(before, (copy,))
    # Half an hour at $8, as long of a store at $1 a second, and what is charged for bytes.
    paid = 4.0 + 1800.0 + 5.0 + 10.0
    assert after["total_time_s"] == pytest.approx(5400.0)
    assert after["cost.usd_to_train"] == pytest.approx(80.0 + paid)
    assert after["cost.samples_per_usd"] == pytest.approx(100.0 * 80.0 / (80.0 + paid))
    assert after["step_time_s.mean"] == before["step_time_s.mean"]
    assert with_copies(before, ()) == before


def test_what_nobody_states_costs_nothing() -> None:
    """A figure that is not known is said to be missing, and no guess stands in for it."""
    unknown = Move(source="a", target="b", size=1e12, requests=None, leaves=True)
    assert unknown.bill(1.0) == 0.0
    assert with_copies({"cost.usd_to_train": 1.0}, (unknown,)) == {"cost.usd_to_train": 1.0}
