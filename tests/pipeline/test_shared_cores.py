"""Cores that makers and receivers share: bounds that no simulated run undercuts."""

from __future__ import annotations

import pytest

from simulator.engine.run import Options, solve
from simulator.files.search.candidates import CandidateReader
from simulator.pipeline.loads import least_step
from simulator.pipeline.shared_cores import SharedCores, least_shared_step
from simulator.pipeline.stages.base import Phase
from simulator.predict import question_of
from simulator.scenario.scenario import Scenario


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
    asked = question_of(starved(machine, workers, batch))
    least = least_shared_step(asked.scenario, asked.topology, asked.demands[Phase.WARM])
    assert solve(asked, Options()).step_time.mean >= least * (1.0 - 1e-4)


def test_receivers_among_many_makers_tell_more_than_the_work_alone() -> None:
    """A receiver that gets the share of one thread among many is slower than all work together."""
    asked = question_of(starved("g7e.48xlarge", 32, 384))
    given = asked.scenario, asked.topology, asked.demands[Phase.WARM]
    assert least_shared_step(*given) > 1.005 * least_step(*given)


def test_several_batches_take_as_many_times_as_long_and_what_lies_beside_them() -> None:
    """A span grows with its batches, and with the time in which a receiver has none."""
    asked = question_of(starved("g7e.48xlarge", 32, 384))
    cores = SharedCores(
        scenario=asked.scenario, topology=asked.topology, stages=asked.demands[Phase.WARM]
    )
    assert cores.span(10.0, 0.0) == pytest.approx(10.0 * cores.cycle)
    assert cores.span(10.0, 0.0) < cores.span(10.0, 5.0) < cores.span(10.0, 0.0) + 5.0


def test_makers_on_other_machines_share_no_cores() -> None:
    """Nothing is known of machines that make batches beside."""
    beside = {
        "remote.machine": "instance/aws/c5.18xlarge",
        "remote.count": 2,
        "remote.storage": "storage/s3",
    }
    scenario = CandidateReader("resnet50-imagenet-p4d").read(beside).scenario
    asked = question_of(scenario)
    cores = SharedCores(
        scenario=scenario, topology=asked.topology, stages=asked.demands[Phase.WARM]
    )
    assert cores.cycle == 0.0
