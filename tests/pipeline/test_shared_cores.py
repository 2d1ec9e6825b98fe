"""Cores that workers and pin-memory threads share: bounds that no simulated run undercuts."""

from __future__ import annotations

import pytest
from support.scenarios import host, inputs_of, scenario

from simulator.engine.run import Options, SimulationInput, later_epoch, solve
from simulator.pipeline.loads import least_step
from simulator.pipeline.shared_cores import SharedCores, least_shared_step
from simulator.pipeline.stages.base import Phase
from simulator.predict import simulation_input
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.scenario import Scenario


def starved(machine: str, workers: int, batch: int) -> Scenario:
    """ResNet-50 on a machine of AWS whose cores are its limit."""
    settings = {
        "hardware.machine": f"instance/aws/{machine}",
        "input.workers": workers,
        "train.batch_size": batch,
        "train.epochs": 2,
    }
    return CandidateReader("resnet50-imagenet-p4d").read(settings).scenario


@pytest.mark.parametrize(
    ("machine", "workers", "batch"),
    [("g7e.12xlarge", 10, 256), ("g7e.48xlarge", 32, 384), ("p6-b200.48xlarge", 14, 128)],
)
def test_no_run_is_faster_than_its_shared_cores(machine: str, workers: int, batch: int) -> None:
    """Steps that lived on batches made ahead were taken for steady ones, 3% too short."""
    asked = simulation_input(starved(machine, workers, batch))
    least = least_shared_step(asked.scenario, asked.topology, asked.demands[Phase.WARM])
    assert solve(asked, Options()).step_time.mean >= least * (1.0 - 1e-4)


def test_pin_memory_among_many_producers_tell_more_than_the_work_alone() -> None:
    """A pin-memory thread with the share of one thread among many is slower than all work."""
    asked = simulation_input(starved("g7e.48xlarge", 32, 384))
    given = asked.scenario, asked.topology, asked.demands[Phase.WARM]
    assert least_shared_step(*given) > 1.005 * least_step(*given)


@pytest.mark.parametrize("workers", [2, 4, 10])
def test_producers_alone_tell_what_a_device_that_takes_all_gets(workers: int) -> None:
    """All workers are busy then, on fewer cores than with the pin-memory thread among them."""
    machine = host(cores=8, threads=16, smt_worth=0.05, contention=0.5, memory_bandwidth=1e11)
    job = scenario(
        batches=300,
        batch_cpu=1.0,
        compute=0.001,
        workers=workers,
        machine=machine,
        pin_memory=True,
        output_bytes=6e5,
    )
    asked = inputs_of(job)
    least = least_shared_step(job, asked.topology, asked.demands[Phase.WARM])
    assert solve(asked, Options()).step_time.mean == pytest.approx(least, rel=0.002)


def test_several_batches_take_as_many_times_as_long_and_what_lies_beside_them() -> None:
    """A span grows with its batches, and with the time in which a pin-memory thread has none."""
    asked = simulation_input(starved("g7e.48xlarge", 32, 384))
    cores = SharedCores(
        scenario=asked.scenario, topology=asked.topology, stages=asked.demands[Phase.WARM]
    )
    assert cores.span(10.0, 0.0) == pytest.approx(10.0 * cores.cycle)
    assert cores.span(10.0, 0.0) < cores.span(10.0, 5.0) < cores.span(10.0, 0.0) + 5.0


def test_producers_on_other_machines_share_no_cores() -> None:
    """Nothing is known of machines that make batches beside."""
    beside = {
        "remote.machine": "instance/aws/c5.18xlarge",
        "remote.count": 2,
        "remote.storage": "storage/s3",
    }
    scenario = CandidateReader("resnet50-imagenet-p4d").read(beside).scenario
    asked = simulation_input(scenario)
    cores = SharedCores(
        scenario=scenario, topology=asked.topology, stages=asked.demands[Phase.WARM]
    )
    assert cores.cycle == 0.0


def settling(machine: str, workers: int, batch: int) -> tuple[SimulationInput, SharedCores]:
    """A starved machine's inputs, and its shared cores in epochs after the first."""
    asked = simulation_input(starved(machine, workers, batch))
    stages = asked.demands[Phase.WARM]
    return asked, SharedCores(scenario=asked.scenario, topology=asked.topology, stages=stages)


@pytest.mark.parametrize(
    ("machine", "workers", "batch"),
    [("g7e.12xlarge", 24, 256), ("g7e.12xlarge", 10, 256), ("p6-b200.48xlarge", 14, 128)],
)
def test_a_run_settles_to_the_equilibrium(machine: str, workers: int, batch: int) -> None:
    """Pin-memory threads or workers that never rest: 0.5% from the simulated mean step."""
    asked, cores = settling(machine, workers, batch)
    assert cores.equilibrium == pytest.approx(solve(asked, Options()).step_time.mean, rel=0.005)


@pytest.mark.parametrize("workers", [10, 24])
def test_a_later_epoch_takes_what_is_expected_of_it(workers: int) -> None:
    """From the first worker's beginning to the last batch: no longer than the simulated one."""
    asked, cores = settling("g7e.12xlarge", workers, 128)
    later = later_epoch(asked, Options())
    assert later is not None
    assert 0.98 * later <= cores.settled_span(asked.lengths.batches, 0.0, 0.0) <= later


def test_more_workers_change_nothing_where_pin_memory_is_the_limit() -> None:
    """Where pin-memory threads are the limit, more workers do not change the steady state."""
    some, more = (settling("g7e.12xlarge", workers, 256)[1] for workers in (20, 30))
    assert some.equilibrium == pytest.approx(more.equilibrium, rel=1e-12)
    assert some.equilibrium > some.cycle


def test_nothing_is_expected_where_producers_wait_to_be_asked() -> None:
    """With one batch asked for ahead of each worker the begin of an epoch is another one."""
    asked = simulation_input(
        CandidateReader("resnet50-imagenet-p4d").read({"input.prefetch": 1}).scenario
    )
    cores = SharedCores(
        scenario=asked.scenario, topology=asked.topology, stages=asked.demands[Phase.WARM]
    )
    assert cores.settled_span(1000.0, 0.0, 0.0) == 0.0
