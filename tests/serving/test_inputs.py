"""Bulk inference that reads its requests from a store."""

from __future__ import annotations

import math

import pytest

from simulator.errors import InputError
from simulator.predict import layout_of, predict, predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.report.document import Format, render
from simulator.report.prediction.service import document
from simulator.results.metrics import service_figures
from simulator.results.serving import ServicePrediction
from simulator.schema.serving import Routing, Service
from simulator.serving.fleet import Fleet, Inputs, with_inputs
from simulator.serving.fleet import run as run_fleet
from simulator.serving.layout import Reading
from simulator.serving.load import Requests
from simulator.studies.service_sizing import worths
from tests.support.serving import MadePass, fleet, settings

BULK = (
    *("load.arrivals=at-once", "load.requests=20000", "slo.end_to_end=1 h"),
    *("load.inputs.store=s3", "load.inputs.bytes=110 kB"),
)


def service(*overrides: str) -> Service:
    """Pictures in an object store, classified on one T4, with some settings."""
    name = "image-classifier-t4"
    return ServiceReader(chain_of(name), name, overrides=(*BULK, *overrides)).read({})


def predicted(*overrides: str) -> ServicePrediction:
    """The same, without intervals."""
    return predict_service(service(*overrides), intervals=False)


def duration(*overrides: str) -> float:
    """How long all of it takes [s]."""
    found = predicted(*overrides).answered
    assert found is not None
    return found.duration


def read(requests: Requests, work: MadePass, rate: float, replicas: int = 1) -> Fleet:
    """Requests that are read at a rate, answered one after the other on each replica."""
    inputs = Inputs(Reading(rate=rate, busy={"storage": 0.5}, limited_by=""))
    made = fleet(requests, work, settings(sequences=1), replicas, Routing.ROUND_ROBIN)
    made.inputs = inputs
    return made


def test_requests_are_read_one_after_the_other() -> None:
    """At ten a second the third comes after 0.3 s, and one that is asked for later 0.1 s after."""
    inputs = Inputs(Reading(rate=10.0, busy={"storage": 0.5}, limited_by=""))
    assert [inputs.read(0.0) for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])
    assert inputs.read(5.0) == pytest.approx(5.1)
    assert inputs.shares(10.0) == {"storage": pytest.approx(0.5 * 0.4 / 10.0)}
    assert with_inputs({"storage": 0.1, "pcie": 0.2}, inputs, 10.0) == {
        "storage": pytest.approx(0.12),
        "pcie": 0.2,
    }
    assert with_inputs({"pcie": 0.2}, None, 10.0) == {"pcie": 0.2}


@pytest.mark.parametrize(
    ("rate", "end"), [(10.0, 100 / 10.0 + 0.01), (1000.0, 1 / 1000.0 + 100 * 0.01)]
)
def test_the_slower_of_reading_and_answering_decides(rate: float, end: float) -> None:
    """A hundred requests of 10 ms: the last is read and answered, or the first, and then all."""
    requests = Requests([1] * 100, [1] * 100, [0.0] * 100)
    made = read(requests, MadePass(fixed=0.01), rate)
    assert run_fleet(made, requests).end == pytest.approx(end)
    reads = [(number + 1) / rate for number in range(100)]
    late = [begun - there for begun, there in zip(requests.scheduled, reads, strict=True)]
    assert min(late) > -1e-9


def test_the_rate_is_that_of_the_job_that_reads() -> None:
    """Few readers wait for an object store; all is read at the rate of training's plant."""
    one = service()
    assert one.reading is not None
    rate = predict(one.reading, intervals=False).timing.throughput
    reading = layout_of(one).reading
    assert reading is not None
    assert reading.rate == pytest.approx(rate)
    assert reading.limited_by == "16 reads at a time on each machine"
    assert duration() == pytest.approx(20_000 / rate, rel=0.02)


def test_utilization_is_bytes_over_rates() -> None:
    """The network carries all pictures in the time of the run, at some nine tenths of its rate."""
    found = predicted()
    told, network = found.answered, found.service.group.host.network
    assert told is not None
    assert network is not None
    expected = 20_000 * 110e3 / told.duration / network.bandwidth
    assert service_figures(found)["utilization.network"] == pytest.approx(expected / 0.9, rel=0.05)
    assert 0.0 < (service_figures(found)["utilization.storage"] or 0.0) < 1.0


def test_more_readers_and_requests_that_are_there_are_never_slower() -> None:
    """Until the device limits, reading more at a time helps."""
    less = "load.requests=2000"
    few, more, many = (duration(less, f"load.inputs.readers={n}") for n in (4, 16, 256))
    base, changes = worths(service(less, "load.inputs.readers=4"))
    there = next(one for one in changes if one.name == "requests that are there already")
    assert few > 1.5 * more
    assert more > many
    assert base.answered is not None
    assert there.prediction.answered is not None
    assert there.prediction.answered.duration <= many * 1.001


def test_what_reading_limits_is_told_and_doubted() -> None:
    """The warning names what binds, and the interval is that of the store."""
    found = predict_service(service("load.inputs.readers=4"))
    shares = [
        found.interval[name] for name in service_figures(found) if name.startswith("utilization.")
    ]
    assert all((one["p90"] or 0.0) <= 1.0 for one in shares)
    band = found.interval["requests_per_s"]
    assert any("reading requests limits the rate" in text for text in found.warnings)
    assert "each reads 110 kB from s3" in render(document(found), Format.TABLE)
    assert (band["p90"] or math.inf) > 1.2 * (band["p10"] or 0.0)


def test_a_store_of_another_cloud_is_told() -> None:
    """Its rates are others, and what leaves it is paid, which nobody may miss."""
    told = predicted("hardware.machine=instance/lambda/gpu_1x_h100_sxm5").warnings
    assert any("s3 belongs to aws, the machines to lambda" in text for text in told)
    assert not any("belongs to" in text for text in predicted().warnings)


AWS = "hardware.machine=instance/aws/p4d.24xlarge"


def summaries(*overrides: str) -> ServicePrediction:
    """Documents in an object store, summarised on machines of its cloud, with some settings."""
    name, few = (
        "nightly-summaries",
        ("load.requests=400", "load.inputs.store=s3", "load.prompt.tokens=600", AWS),
    )
    found = ServiceReader(chain_of(name), name, overrides=(*few, *overrides)).read({})
    return predict_service(found, intervals=False)


def test_a_store_charges_a_request_for_each_document_and_each_answer() -> None:
    """Four hundred are read at $0.40 a million and written at $5 a million; none of it leaves."""
    both, reads = summaries(), summaries("load.inputs.answers=0 B")
    known, alone = both.cost.stores, reads.cost.stores
    assert known is not None
    assert alone is not None
    assert known.requests == pytest.approx(400 * (0.4e-6 + 5e-6))
    assert alone.requests == pytest.approx(400 * 0.4e-6)
    assert known.egress == 0.0
    assert service_figures(both)["cost.storage.requests_usd"] == known.requests
    each = (known.known - alone.known) / 400
    paid = [one.cost.per_thousand_requests or 0.0 for one in (both, reads)]
    times = [one.answered.duration for one in (both, reads) if one.answered is not None]
    machines = (both.cost.per_second or 0.0) * (times[0] - times[1]) / 400
    assert (paid[0] - paid[1]) / 1000 == pytest.approx(each + machines, rel=1e-6)


def test_what_leaves_its_cloud_is_paid() -> None:
    """Four hundred documents of 24 kB leave at $0.09 a GB; what writing costs nobody states."""
    far = summaries("hardware.machine=instance/lambda/gpu_1x_h100_sxm5", "load.inputs.answers=0 B")
    bill = far.cost.stores
    assert bill is not None
    assert bill.egress == pytest.approx(400 * 24e3 * 0.09e-9)
    assert "requests $" in render(document(far), Format.TABLE)
    told = summaries("hardware.machine=instance/lambda/gpu_1x_h100_sxm5")
    assert told.cost.stores is not None
    assert told.cost.stores.total is None
    assert "egress unknown" in render(document(told), Format.TABLE)


def test_answers_are_written_by_those_that_read() -> None:
    """Large answers make the store slower, and are by default the text of their tokens."""
    job = ServiceReader(chain_of("nightly-summaries"), "x").read({}).reading
    assert job is not None
    assert job.job.input.output_bytes_per_sample == pytest.approx(4 * 300)
    few, many = (summaries(f"load.inputs.answers={size}") for size in ("1 kB", "20 GB"))
    assert few.answered is not None
    assert many.answered is not None
    assert many.answered.duration > 2.0 * few.answered.duration


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("load.inputs.store=s4", "load.inputs.store"),
        ("load.inputs.readers=0", "load.inputs.readers"),
        ("load.inputs.bytes=0 B", "load.inputs.bytes"),
    ],
)
def test_mistakes_name_their_key(setting: str, said: str) -> None:
    """No store, no readers, nothing to read."""
    with pytest.raises(InputError, match=said):
        service(setting)


def test_only_requests_that_wait_from_the_start_lie_in_a_store() -> None:
    """Others come from clients."""
    reader = ServiceReader(
        chain_of("image-classifier-t4"), "x", overrides=("load.inputs={store='s3', bytes='1 kB'}",)
    )
    with pytest.raises(InputError, match="means nothing with poisson arrivals"):
        reader.read({})
