"""The launch hint: arguments and resources of what was recommended."""

from __future__ import annotations

import pytest
import yaml

from simulator.reading.scenario import load_scenario
from simulator.report.launch import launch_of

CLOUDS = ("aws", "gcp")


def test_two_machines_meet() -> None:
    """The command knows both machines and where they meet, inside the task too."""
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=("hardware.count=2",))
    launch = launch_of(scenario, CLOUDS)
    task = yaml.safe_load(launch.resources)
    assert launch.command.startswith("torchrun --nnodes=2 --nproc-per-node=8 --node-rank")
    assert task["num_nodes"] == 2
    assert task["resources"] == {"cloud": "aws", "instance_type": "p4d.24xlarge"}
    assert "SKYPILOT_NODE_IPS" in task["run"]


def test_spot_only_where_it_was_bought() -> None:
    """use_spot stands there for spot capacity, with how often to write checkpoints."""
    options = ("cost.purchase=spot",)
    launch = launch_of(load_scenario("resnet50-imagenet-p4d", overrides=options), CLOUDS, 600.0)
    assert yaml.safe_load(launch.resources)["resources"]["use_spot"] is True
    assert any("checkpoint every 10 min" in note for note in launch.notes)


def test_accelerators_put_into_a_machine() -> None:
    """A machine rented with accelerators beside it names both."""
    options = (
        "hardware.machine=instance/gcp/n1-highmem-8-1xT4",
        "input.measured_on=instance/gcp/n1-highmem-8-1xT4",
        "hardware.storage=storage/gcs",
    )
    task = yaml.safe_load(
        launch_of(load_scenario("resnet50-imagenet-p4d", overrides=options), CLOUDS).resources
    )
    assert task["resources"]["instance_type"] == "n1-highmem-8"
    assert task["resources"]["accelerators"] == "T4:1"


def test_a_sharded_model_goes_through_accelerate() -> None:
    """FSDP over one machine of eight; a machine of one's own has no resources to rent."""
    launch = launch_of(load_scenario("llama3-8b-fsdp"), CLOUDS)
    assert "accelerate launch" in launch.command
    assert "--num_processes 8" in launch.command
    assert "FULL_SHARD" in launch.command
    assert launch.resources == ""


@pytest.mark.parametrize("name", ["svm-cpu-only", "offline-preparation"])
def test_no_torchrun_without_accelerators(name: str) -> None:
    """A job on processors is a plain program."""
    assert launch_of(load_scenario(name), CLOUDS).command == "python train.py"


def test_no_cuda_launch_line_without_cuda() -> None:
    """On an accelerator with other software: no torchrun, no pinning, and that it is another."""
    options = (
        "hardware.machine=instance/aws/trn1.32xlarge",
        "input.measured_on=instance/aws/trn1.32xlarge",
        "train.precision=bf16",
        "hardware.storage=storage/ebs-gp3",
    )
    launch = launch_of(load_scenario("resnet50-imagenet-p4d", overrides=options), CLOUDS)
    assert launch.command == "python train.py"
    assert "torchrun" not in launch.resources
    assert "pin_memory" not in launch.loader
    assert any("written for neuron" in note for note in launch.notes)
