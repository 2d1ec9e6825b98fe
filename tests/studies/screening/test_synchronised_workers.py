"""Workers in step: what they take together is never undercut, and is nearly what is predicted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bounded import better
from support.scenarios import host, link, scenario, store

from simulator.pipeline.program import demand_table
from simulator.pipeline.run_length import lengths
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import build
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.schema.data_loading import CachePolicy, Straggler
from simulator.schema.machines import PcieSwitch
from simulator.schema.scenario import Scenario
from simulator.studies.screening import best_cases
from simulator.studies.screening.synchronised_workers import Crowd

FEW = settings(max_examples=60, deadline=None, derandomize=True)
BUSY_CORES = (
    ("instance/aws/p4d.24xlarge", 12, 256),
    ("instance/aws/p5.48xlarge", 24, 96),
    ("instance/aws/p6-b200.48xlarge", 26, 160),
)
BUSY_DEVICES = (
    ("instance/aws/g5.12xlarge", 8, 128),
    # Half the batch copies while cards exchange gradients over the same PCIe links, and is exposed.
    ("instance/aws/g6e.48xlarge", 16, 192),
    ("instance/aws/g4dn.2xlarge", 6, 64),
)


def on_machine(machine: str, workers: int, batch: int) -> Scenario:
    """ResNet-50 on a machine of the catalogue."""
    asked = (f"hardware.machine={machine}", f"input.workers={workers}", f"train.batch_size={batch}")
    # Light to receive, as samples that are mapped and not copied.
    asked = (*asked, "input.cost_spread={shape='constant'}", "input.receive_per_sample=36 us")
    return load_scenario("resnet50-imagenet-p4d", overrides=asked)


def crowd(job: Scenario) -> Crowd:
    """The workers of a job with warm caches."""
    stages = demand_table(job, Phase.WARM)
    return Crowd(scenario=job, topology=build(job), stages=stages, lengths=lengths(job))


@st.composite
def busy_cores(draw: st.DrawFn) -> Scenario:
    """Jobs whose workers compute for long, on few or many cores, beside a device that is quick."""
    gpus, cores = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1.0, 2.0, 5.0, 48.0]))
    uplink = link(draw(st.sampled_from([2e9, 16e9])))
    machine = host(
        gpus=gpus,
        cores=cores,
        threads=draw(st.sampled_from([1, 2])) * cores,
        smt_worth=draw(st.sampled_from([0.0, 0.3, 1.0])),
        contention=draw(st.sampled_from([0.0, 0.5])),
        switches=(PcieSwitch(socket=0, uplink=uplink, gpus=tuple(range(gpus))),),
        memory_bandwidth=draw(st.sampled_from([None, 5e8, 5e9, 1e11])),
    )
    return scenario(
        batches=draw(st.sampled_from([2, 3, 13, 60, 150])),
        batch_cpu=draw(st.sampled_from([0.05, 0.2, 1.0])),
        compute=draw(st.sampled_from([1e-4, 0.001, 0.01])),
        workers=draw(st.integers(1, 12)),
        prefetch=draw(st.integers(2, 3)),
        epochs=draw(st.sampled_from([1.0, 3.0])),
        machine=machine,
        storage=store(
            rate=draw(st.sampled_from([5e7, 1e9, 1e10])),
            latency=draw(st.sampled_from([0.0, 0.05])),
        ),
        cache=draw(st.sampled_from(list(CachePolicy))),
        output_bytes=draw(st.sampled_from([0.0, 1e5, 1e6])),
        sync=draw(st.booleans()),
        accumulation=draw(st.sampled_from([1, 3])),
        pin_memory=draw(st.booleans()),
        persistent_workers=draw(st.booleans()),
        in_step=draw(st.sampled_from([True, True, False])),
        last_share=draw(st.sampled_from([1.0, 0.5, 0.1])),
        receive_per_batch=draw(st.sampled_from([0.0, 0.001, 0.01])),
    )


@pytest.mark.slow
@FEW
@given(busy_cores())
def test_producers_in_step_are_never_undercut(job: Scenario) -> None:
    """Few batches or many, read, computed and written at whatever rates."""
    assert better(best_cases([job])[0], predict(job, intervals=False)) == []


@pytest.mark.parametrize(("machine", "workers", "batch"), BUSY_CORES)
def test_a_generation_is_nearly_what_producers_take(machine: str, workers: int, batch: int) -> None:
    """Where cores are busy the best case lies within a percent of the prediction, and not above.

    A step is not known as well: an epoch that ends before its steps repeat counts batches that
    stood ready when the counting began.
    """
    job = on_machine(machine, workers, batch)
    prediction, best = predict(job, intervals=False), best_cases([job])[0]
    assert prediction.timing.bottleneck == "cpu"
    assert better(best, prediction) == []
    assert best.figures["step_time_s.mean"] >= 0.965 * prediction.timing.step_time.mean
    assert best.figures["total_time_s"] >= 0.99 * prediction.timing.total_time


@pytest.mark.parametrize(("machine", "workers", "batch"), BUSY_DEVICES)
def test_the_first_batch_is_nearly_when_all_have_made_one(
    machine: str, workers: int, batch: int
) -> None:
    """Where devices are busy, all that remains of an epoch is how it begins."""
    job = on_machine(machine, workers, batch)
    prediction, best = predict(job, intervals=False), best_cases([job])[0]
    assert prediction.timing.bottleneck == "gpu"
    assert better(best, prediction) == []
    assert best.figures["total_time_s"] >= 0.999 * prediction.timing.total_time


def starved(**changes: object) -> Scenario:
    """Four workers on two cores, in front of a quick device."""
    usual: dict[str, object] = {
        "batches": 60,
        "batch_cpu": 0.2,
        "compute": 0.001,
        "workers": 4,
        "in_step": True,
        "machine": host(cores=2.0, threads=4.0, smt_worth=0.3, contention=0.5),
    }
    return scenario(**(usual | changes))  # type: ignore[arg-type] # figures by name


def test_a_generation_by_hand() -> None:
    """Four threads on two cores, the second threads worth 0.3, with a contention of 0.25."""
    rate = (2.0 + 0.3 * 2.0) / (1.0 + 0.5 * (2.0 - 1.0) / 2.0)
    whole = 4 * 0.2 / rate
    assert crowd(starved()).first == pytest.approx(whole)
    assert crowd(starved()).cycle == pytest.approx(whole / 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"compute": 1.0},
        {"prefetch": 1},
        {"in_order": False},
        {"accumulation": 4},
        {"stragglers": (Straggler(factor=2.0, worker=0),)},
        {"in_step": False},
    ],
    ids=["device", "prefetch", "order", "merged", "straggler", "drift"],
)
def test_producers_that_may_wait_are_not_in_step(changes: dict[str, object]) -> None:
    """Nothing is claimed of their pace then."""
    assert crowd(starved(**changes)).cycle == 0.0


def test_a_small_last_batch_may_be_received_first() -> None:
    """A worker is done with it before the others are with theirs, so its receiving is hidden."""
    job = starved(batches=3, workers=6, last_share=0.5, receive_per_batch=0.01)
    assert better(best_cases([job])[0], predict(job, intervals=False)) == []


@pytest.mark.parametrize("batches", [2, 3, 6])
def test_an_epoch_of_few_waves_does_not_count_its_first_wait(batches: int) -> None:
    """Two workers have the next batches ready by then, so steps are shorter than one makes them."""
    job = starved(batches=batches, workers=2)
    assert better(best_cases([job])[0], predict(job, intervals=False)) == []


def test_candidates_in_step_and_not_are_told_apart_together() -> None:
    """As one by one."""
    jobs: Sequence[Scenario] = [starved(), starved(prefetch=1), starved(workers=6), starved()]
    alone = [best_cases([job])[0].figures["total_time_s"] for job in jobs]
    together = [best.figures["total_time_s"] for best in best_cases(jobs)]
    assert together == pytest.approx(alone, rel=1e-12)
