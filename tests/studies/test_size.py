"""The least of a resource that is enough."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.stages import sampled

from simulator.errors import PlanError
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.starter import defaults, starter_text
from simulator.results.prediction import Prediction
from simulator.schema.goal import Plain
from simulator.studies import size
from simulator.studies.levers.catalogue import Resource, knobs
from simulator.studies.size import Sized, offers, run_speed, sized

LOSS = 0.05
SHORTER: dict[str, dict[str, Plain]] = {"offline-preparation": {"data.samples": 24_576}}
"""Of what takes long to simulate, eight batches for each worker."""


def least(name: str, resource: Resource, *counts: int) -> tuple[Sized, ...]:
    """What is enough for a shipped scenario."""
    reader, own = CandidateReader(name), SHORTER.get(name, {})
    return sized(
        lambda given: reader.read({**own, **given}).scenario, resource, LOSS, counts=counts
    )


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("llama3-8b-fsdp", Resource.NETWORK),
        *sampled(
            [
                ("imagenet-object-store-g5", Resource.STORAGE),
                ("offline-preparation", Resource.STORAGE),
                ("resnet50-imagenet-p4d", Resource.CPU),
            ],
            0,
        ),
    ],
)
def test_so_much_is_enough_and_less_is_not(name: str, resource: Resource) -> None:
    """The sizes lose what was allowed; a tenth less of all of them loses more."""
    counts = (8,) if resource is Resource.NETWORK else ()
    (found,) = least(name, resource, *counts)
    assert 0.0 < found.loss <= LOSS * 1.001
    reader = CandidateReader(name)
    smaller: dict[str, Plain] = {
        **SHORTER.get(name, {}),
        **({"hardware.count": 8} if counts else {}),
    }
    for one in found.sizes:
        assert one.value is not None
        assert one.knob.settings is not None
        assert one.value == one.knob.available(one.value)
        smaller |= one.knob.settings(0.9 * one.value)
    scenario = reader.read(smaller).scenario
    assert run_speed(predict(scenario, intervals=False)) < found.ample * (1.0 - LOSS) * 1.001


def test_ram_that_does_not_fit_is_not_enough() -> None:
    """The least RAM is about what the job needs."""
    (found,) = least("resnet50-imagenet-p4d", Resource.RAM)
    value = found.sizes[0].value
    assert value is not None
    enough = CandidateReader("resnet50-imagenet-p4d").read({"hardware.ram": f"{value!r} B"})
    assert predict(enough.scenario, intervals=False).fits


def test_sizes_that_cannot_be_enough_are_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed forms say what is too small, and all above a size that is enough is enough."""
    asked: list[object] = []

    def counted(*given: object, **named: object) -> Prediction:
        asked.append(given)
        return predict(*given, **named)  # type: ignore[arg-type] # as they were given

    monkeypatch.setattr(size, "predict", counted)
    (network,) = least("llama3-8b-fsdp", Resource.NETWORK, 8)
    assert network.sizes[0].value is not None
    assert len(asked) <= 10
    asked.clear()
    (ram,) = least("resnet50-imagenet-p4d", Resource.RAM)
    assert ram.sizes[0].value is not None
    assert len(asked) <= 10


def test_a_store_that_hardly_counts() -> None:
    """A job that waits for its CPUs is content with a ten-thousandth of its store."""
    (found,) = least("cpu-starved-p4d", Resource.STORAGE)
    assert [size.value for size in found.sizes] == [None, None]


def test_a_store_that_ram_hides_later_is_still_read_once() -> None:
    """The speed of a run counts its first epoch, which a slow store draws out."""
    reader = CandidateReader("resnet50-imagenet-p4d")
    slow: dict[str, Plain] = {"hardware.storage_bandwidth": "1 MB/s"}
    fast, slow_run = (predict(reader.read(s).scenario, intervals=False) for s in ({}, slow))
    assert slow_run.timing.throughput == pytest.approx(fast.timing.throughput, rel=0.02)
    assert run_speed(slow_run) < 0.2 * run_speed(fast)


def test_more_machines_need_more_network() -> None:
    """Gathers over more ranks leave less time beside compute."""
    few, many = least("llama3-8b-fsdp", Resource.NETWORK, 2, 16)
    assert (few.machines, many.machines) == (2, 16)
    assert (many.sizes[0].value or 0.0) > (few.sizes[0].value or 0.0)


def test_nothing_to_size() -> None:
    """A machine without a network has none to size."""
    with pytest.raises(PlanError, match="no network"):
        least("unet-m1-max", Resource.NETWORK)


@pytest.mark.slow
def test_plenty_is_never_slower_than_what_is_there(tmp_path: Path) -> None:
    """64 times the workers of a short job would start for longer than they work."""
    job = {"hardware.count": "8", "hardware.storage": "s3", "input.workers": "64"}
    files = {"data.samples": "40000", "data.bytes_per_sample": "256 MB", "input.decode": "1.4 s"}
    machine = "instance/aws/m7i.16xlarge"
    usual = defaults(Catalogue.default().host(machine), sample="256 MB")
    file = tmp_path / "job.toml"
    answers = {**usual, "hardware.machine": machine, **job, **files}
    file.write_text(starter_text("job", "job", answers))
    reader = CandidateReader(str(file))
    (found,) = sized(lambda given: reader.read(given).scenario, Resource.CPU, LOSS)
    assert found.ample >= found.now
    assert found.speed >= found.ample * (1.0 - LOSS) * 0.999


def test_offers_are_large_enough_and_sorted() -> None:
    """Machines with the same accelerators and enough RAM, the cheapest first."""
    (found,) = least("resnet50-imagenet-p4d", Resource.RAM)
    scenario = CandidateReader("resnet50-imagenet-p4d").read({}).scenario
    catalogue = Catalogue.default()
    known = offers(found, Resource.RAM, scenario, catalogue)
    prices = [one.per_second for one in known if one.per_second is not None]
    assert prices == sorted(prices)
    for one in known:
        host = catalogue.host(one.name)
        assert host.gpu is not None
        assert host.gpu.name == "gpu/a100-sxm4-40gb"
        assert host.ram >= (found.sizes[0].value or 0.0)


def test_machines_have_all_else_that_the_job_has() -> None:
    """Little RAM is enough for a preparation, but not on an eighth of its cores."""
    (found,) = least("offline-preparation", Resource.RAM)
    shorter = CandidateReader("offline-preparation").read(SHORTER["offline-preparation"])
    catalogue = Catalogue.default()
    known = offers(found, Resource.RAM, shorter.scenario, catalogue)
    there = shorter.scenario.cluster.trainers.host.cpu.threads
    assert known
    assert all(catalogue.host(one.name).cpu.threads >= there for one in known)


def test_processors_come_in_whole_cores() -> None:
    """96 vCPUs of 48 cores: 9.2 are not on offer, 10 of 5 cores are."""
    scenario = CandidateReader("resnet50-imagenet-p4d").read({}).scenario
    (knob,) = (one for one in knobs(scenario) if one.name == "vCPUs")
    assert [knob.available(value) for value in (9.2, 10.0)] == [10.0, 10.0]
    assert knob.settings is not None
    assert knob.settings(knob.available(9.2)) == {"hardware.vcpus": 10.0, "hardware.cores": 5.0}
