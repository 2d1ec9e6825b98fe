"""What stores cost over a run, against bills worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import InputError
from simulator.pipeline.run_length import lengths
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.units import DAY, MONTH

NAME = "imagenet-object-store-g5"
IMAGES = 1_281_167
IN_FILES = "imagenet-page-cache-g4dn"
AS_OBJECTS = "hardware.storage=storage/s3"


def found(*settings: str, name: str = NAME) -> Prediction:
    """A prediction with some keys set, without intervals."""
    return predict(load_scenario(name, overrides=settings), intervals=False)


def parts(prediction: Prediction) -> dict[str, float | None]:
    """The parts of the bill of stores."""
    bill: Any = prediction.storage
    return {name: getattr(bill, name) for name in ("rent", "provisioned", "requests", "egress")}


def test_rent_is_for_the_time_that_data_lie_there() -> None:
    """Size x price x the run with its provisioning; a longer stay where the file says so."""
    one = found("cost.provisioning=1 h")
    size = one.scenario.job.stored_total
    time = one.timing.total_time + 3600.0
    assert one.storage.rent == pytest.approx(size * 0.023 / 1e9 / MONTH * time)
    kept = found("store.kept=2190 h")  # three months of 730 h
    assert kept.storage.rent == pytest.approx(size * 0.023 / 1e9 * 3.0)
    # Machines are billed no longer for it.
    assert kept.cost.for_machines == pytest.approx(found().cost.for_machines)


def test_every_image_is_a_request_in_every_epoch_that_reads_it() -> None:
    """Without a cache each sample of each epoch is one object fetched, at $0.0004 a thousand."""
    one = found(AS_OBJECTS, "data.cache=none", "train.epochs=2", name=IN_FILES)
    assert one.storage.requests == pytest.approx(2 * IMAGES * 4e-7, rel=1e-3)


def test_shards_take_fewer_requests() -> None:
    """A shard of 100 MB read front to back is fetched in 6 ranges of 16 MiB."""
    one = found("data.shard_size=100 MB", "data.cache=none", "train.epochs=1")
    shards = one.scenario.job.stored_total / 100e6
    assert one.storage.requests == pytest.approx(6.0 * shards * 4e-7, rel=1e-3)


def test_bytes_that_leave_a_region_are_paid_for() -> None:
    """All that is read leaves once an epoch; nothing is paid where nothing is said."""
    settings = ("data.cache=none", "train.epochs=1")
    size = found(*settings).scenario.job.stored_total
    assert found(*settings).storage.egress == 0.0
    away = found(*settings, "store.location=other-region")
    assert away.storage.egress == pytest.approx(size * 0.02 / 1e9, rel=1e-3)
    elsewhere = found(*settings, "store.location=other-cloud")
    assert elsewhere.storage.egress == pytest.approx(size * 0.09 / 1e9, rel=1e-3)


def test_data_that_stay_longer_leave_while_the_run_reads_them() -> None:
    """Many bytes leave in dearer and cheaper tiers of the months of the run, however long they lie.

    The tiers of a year would hold all of them in the dearest one.
    """
    reads = ("data.cache=none", "data.samples=200M", "train.epochs=1")
    run = found(*reads, "store.location=other-cloud")
    assert run.scenario.job.stored_total > 11e12
    kept = found(*reads, "store.location=other-cloud", "store.kept=365 d")
    assert kept.storage.egress == pytest.approx(run.storage.egress)
    assert run.storage.egress is not None
    assert run.storage.egress < run.scenario.job.stored_total * 9e-11 * 0.999


GOOGLE = "hardware.machine=instance/gcp/a2-highgpu-1g"


def test_a_machine_of_another_cloud_pays_for_the_bytes_that_it_reads() -> None:
    """Both clouds are known: nothing has to be said, and what is said wins."""
    settings = (GOOGLE, "data.cache=none", "train.epochs=1")
    one = found(*settings)
    stated = found(*settings, "store.location=other-cloud")
    assert one.storage.egress == stated.storage.egress
    assert one.storage.egress == pytest.approx(one.scenario.job.stored_total * 9e-11, rel=1e-3)
    told = next(text for text in one.warnings if "belongs to aws, the machines to gcp" in text)
    assert "$0.09/GB at first" in told
    assert not any("belongs to aws" in text for text in stated.warnings)
    assert found(*settings, "store.location=same-region").storage.egress == 0.0


def test_a_store_of_another_cloud_without_a_price_for_egress_is_named() -> None:
    """The bill is the least it can be, and a warning says what it leaves out."""
    one = found(GOOGLE, "hardware.storage=storage/azure-blob")
    assert one.storage.total is None
    assert any("what leaving its cloud costs" in text for text in one.warnings)


def test_a_volume_of_another_cloud_is_no_store_of_its_machines() -> None:
    """It is reached from its own cloud alone: nothing leaves, and its figures only stand in."""
    one = found(GOOGLE, "hardware.storage=storage/ebs-gp3")
    assert one.storage.egress == 0.0
    assert any("cannot reach it" in text for text in one.warnings)


def test_bytes_written_to_another_region_are_paid_for() -> None:
    """All checkpoints leave the region of the machines, as many as are kept or more."""
    away = ("data.cache=none", "train.epochs=1", "store.location=other-region")
    plain = found(*away)
    every = int(lengths(plain.scenario).total_steps) // 4
    one = found(*away, f"train.checkpoint_every_steps={every}", "store.checkpoints=1")
    size = one.storage.terms["rent"].inputs["size"]
    each = float(size) - one.scenario.job.stored_total  # type: ignore[arg-type]
    assert each > 0.0
    more = (one.storage.egress or 0.0) - (plain.storage.egress or 0.0)
    assert more == pytest.approx(4 * each * 0.02 / 1e9)


def test_evaluation_reads_its_samples_again_in_every_pass() -> None:
    """Four passes over 50,000 samples are as many requests more."""
    store = (AS_OBJECTS, "data.cache=none", "train.epochs=4")
    plain = found(*store, name=IN_FILES).storage.requests
    passes = found(*store, "train.evaluation.samples=50000", name=IN_FILES).storage.requests
    assert plain is not None
    assert passes is not None
    assert passes - plain == pytest.approx(4 * 50_000 * 4e-7)


def test_rates_held_ready_are_paid_by_time() -> None:
    """gp3 at its maximum: 13,000 operations and 875 MiB/s above what is free, $100 a month."""
    one = found("hardware.storage=storage/ebs-gp3-max")
    time = one.timing.total_time
    assert one.storage.provisioned == pytest.approx(100.0 * time / MONTH)
    assert one.storage.requests == 0.0
    assert found("hardware.storage=storage/ebs-gp3").storage.provisioned == 0.0
    stated = ("hardware.storage_operations=4000 IOPS", "hardware.storage_bandwidth=225 MiB/s")
    more = found("hardware.storage=storage/ebs-gp3", *stated)
    month = 1000 * 0.005 + 100 * 0.04
    assert more.storage.provisioned == pytest.approx(month * more.timing.total_time / MONTH)


def test_an_unknown_price_is_named_and_never_nothing() -> None:
    """A store without prices leaves its bill unknown; the whole bill has what is known."""
    one = found("hardware.storage=storage/wekapod")
    assert one.storage.total is None
    assert one.in_all == one.cost.for_machines
    assert any("rent of wekapod" in text for text in one.storage.missing)


def test_elastic_throughput_is_paid_by_the_byte() -> None:
    """Ten epochs of 1,281,167 x 114.66 kB at $0.03/GB: $44, and nothing is written."""
    one = found("hardware.storage=storage/efs-elastic", "data.cache=none", "train.epochs=10")
    assert one.storage.total is not None
    assert one.storage.requests == pytest.approx(10 * 1281167 * 114.66e3 / 1e9 * 0.03, rel=1e-3)


def test_drives_of_the_machine_cost_nothing_more() -> None:
    """Data on drives inside are paid with the machine."""
    one = found(name="resnet50-imagenet-p4d")
    assert (one.storage.total, one.storage.missing) == (0.0, ())
    assert one.in_all == one.cost.for_machines


def test_the_parts_are_the_total() -> None:
    """Rent, rates, requests and egress add up, and the machines' bill to the whole."""
    one = found("store.location=other-region", "train.checkpoint_every_steps=1000")
    known = [part for part in parts(one).values() if part is not None]
    assert len(known) == 4
    assert one.storage.total == pytest.approx(sum(known))
    assert number_at(one, "cost.usd_to_train") == pytest.approx(
        sum(known) + (one.cost.for_machines or 0.0)
    )
    for term in one.storage.terms.values():
        assert term.value == term.again()


def test_kept_checkpoints_lie_beside_the_data() -> None:
    """Two by default, as many as are kept else, and never more than are written."""
    every = "train.checkpoint_every_steps=10000"
    sizes = [
        float(held.terms["rent"].inputs["size"])  # type: ignore[arg-type]
        for held in (
            found().storage,
            found(every).storage,
            found(every, "store.checkpoints=3").storage,
            found(every, "store.checkpoints=100000").storage,
        )
    ]
    one = sizes[1] - sizes[0]
    assert one > 0.0
    assert sizes[2] - sizes[0] == pytest.approx(1.5 * one)
    written = (sizes[3] - sizes[0]) / (0.5 * one)
    assert 3.0 < written < 100.0


def test_a_file_system_is_paid_by_its_capacity() -> None:
    """9.6 TiB are rented for the few gigabytes that lie there, and said to be priced elsewhere."""
    one = found("hardware.storage=storage/fsx-lustre-persistent2-1000")
    time = one.timing.total_time
    assert one.storage.rent == pytest.approx(9.6 * 2**40 * 0.8456 / 1e9 / MONTH * time)
    assert any("ap-northeast-1" in text for text in one.storage.notes)


def test_a_volume_is_paid_by_the_size_that_is_stated() -> None:
    """A terabyte of gp3 costs $80 a month, with less than that on it."""
    one = found("hardware.storage=storage/ebs-gp3", "hardware.storage_capacity=1 TB")
    assert one.storage.rent == pytest.approx(80.0 * one.timing.total_time / MONTH)


def test_copies_to_drives_are_read_once() -> None:
    """Staged data are asked of the store once, however many epochs follow."""
    staged = found(AS_OBJECTS, "data.placement=stage", "train.epochs=50", name=IN_FILES)
    assert staged.storage.requests == pytest.approx(IMAGES * 4e-7, rel=1e-3)


def test_a_volume_is_where_its_machine_is() -> None:
    """A block volume in another region is refused."""
    with pytest.raises(InputError, match="block volume is in the region"):
        load_scenario(
            NAME, overrides=("hardware.storage=storage/ebs-gp3", "store.location=other-region")
        )


def test_a_longer_stay_than_the_run_is_the_least() -> None:
    """Data cannot be kept for a shorter time than the run that reads them."""
    assert found("store.kept=1 s").storage.rent == pytest.approx(found().storage.rent)
    assert found().timing.total_time < DAY


@pytest.mark.slow
def test_what_is_prepared_is_written_as_it_is_laid_out() -> None:
    """One object a sample, or a few dozen parts for each shard of results."""
    files = found(AS_OBJECTS, name="offline-preparation")
    shards = found(
        *(AS_OBJECTS, "data.layout=shards", "data.shard_size=256 MB"), name="offline-preparation"
    )
    write = 5e-6
    assert files.storage.requests is not None
    assert shards.storage.requests is not None
    assert files.storage.requests > IMAGES * write
    assert shards.storage.requests < 0.05 * IMAGES * write
