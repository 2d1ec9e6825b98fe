"""What binds follows from the parts of the step."""

from __future__ import annotations

import pytest

from simulator.pipeline.stages.base import Resource
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.binding import Part, binding, part_time, starved
from simulator.results.prediction import StepSplit, Timing, Usage

GPU, CPU, PCIE = str(Resource.GPU), str(Resource.CPU), str(Resource.PCIE)
NETWORK, STORAGE = str(Resource.NETWORK), str(Resource.STORAGE)


def used(**shares: float) -> dict[str, Usage]:
    """A machine whose resources are busy so much."""
    return {
        name: Usage(mean=share, total=share, units=1, busiest=share)
        for name, share in {GPU: 0.5, **shares}.items()
    }


@pytest.mark.parametrize(
    ("split", "first"),
    [
        (StepSplit(compute=0.6, communication=0.4), GPU),
        (StepSplit(compute=0.4, communication=0.6), "communication"),
        (StepSplit(compute=0.3, communication=0.2, bubble=0.5), "bubble"),
        (StepSplit(compute=0.06, communication=0.02, checkpoint=0.92), "checkpoint"),
        (StepSplit(compute=0.1, other=0.9), "waiting"),
        (StepSplit(compute=0.4, h2d=0.6), PCIE),
    ],
)
def test_the_longest_part_binds(split: StepSplit, first: str) -> None:
    """Of a device that does not wait for data, what takes most of its time is what binds."""
    assert binding({GPU: 0.4, CPU: 0.1}, split, used(cpu=0.1))[0] == first


@pytest.mark.parametrize(
    ("split", "first"),
    [
        (StepSplit(data_stall=0.4, compute=0.6), CPU),
        (StepSplit(data_stall=0.04, compute=0.96), GPU),
        (StepSplit(data_stall=0.1, compute=0.1, communication=0.8), CPU),
        (StepSplit(data_stall=0.1, compute=0.3, checkpoint=0.6), "checkpoint"),
        (StepSplit(data_stall=0.3, compute=0.3, checkpoint=0.4), CPU),
    ],
)
def test_waiting_for_data_is_bound_by_its_suppliers(split: StepSplit, first: str) -> None:
    """Suppliers take as long as all that their work hides, which is less than checkpoints may."""
    assert binding({CPU: 1.0, GPU: 0.6, STORAGE: 0.1}, split, used(cpu=0.9))[0] == first


def test_copies_beside_compute_bind_where_they_take_longer() -> None:
    """The device waits 20% for copies that run all the time: the link binds, not the device."""
    split = StepSplit(h2d=0.2, compute=0.8)
    assert binding({PCIE: 1.0, GPU: 0.8}, split, used(pcie=1.0))[0] == PCIE
    assert binding({GPU: 1.0, PCIE: 0.2}, split, used(pcie=0.2))[0] == GPU


def test_copies_are_not_carried_by_cores() -> None:
    """A device that computes and copies all the time is not held up by cores that keep up."""
    split = StepSplit(h2d=0.06, compute=0.94)
    assert binding({CPU: 0.97, GPU: 0.94, PCIE: 0.1}, split, used(cpu=0.6))[0] == GPU


def test_a_full_link_stands_for_its_communication() -> None:
    """Only a link that carries all it can is named in place of communication."""
    split = StepSplit(compute=0.2, communication=0.8)
    imposed = {NETWORK: 0.7, GPU: 0.2}
    assert binding(imposed, split, used(network=0.93))[0] == NETWORK
    assert binding(imposed, split, used(network=0.6))[0] == "communication"


def test_without_an_accelerator_the_cores_compute() -> None:
    """Compute of a machine without accelerator is its CPUs' work."""
    usage = {CPU: Usage(mean=0.9, total=9.0, units=10, busiest=0.9)}
    assert binding({CPU: 0.9}, StepSplit(data_stall=0.03, compute=0.97), usage) == (CPU,)


def test_what_comes_next_is_what_takes_longest_then() -> None:
    """Parts and resources are ranked together, each named once."""
    split = StepSplit(compute=0.7, communication=0.2, bubble=0.1)
    found = binding({GPU: 0.7, CPU: 0.15}, split, used(cpu=0.1))
    assert found == (GPU, "communication", CPU, "bubble")


def test_parts_are_those_of_the_split() -> None:
    """Each part reads its own time of the split."""
    split = StepSplit(communication=1.0, bubble=2.0, checkpoint=3.0, other=4.0)
    assert [part_time(part, split) for part in Part] == [1.0, 2.0, 3.0, 4.0]
    assert not starved(split)


def timing(name: str, *overrides: str) -> Timing:
    """What is predicted for a variant of a shipped scenario."""
    return predict(load_scenario(name, overrides=overrides), intervals=False).timing


def test_shards_over_a_slow_network() -> None:
    """Communication takes most of the step of 1,024 accelerators on 100 Gbit/s, so it binds."""
    found = timing("llama3-8b-fsdp", "hardware.count=128", "hardware.network_bandwidth='12.5 GB/s'")
    assert found.split.communication > 0.7 * found.step_time.mean
    assert found.bottleneck == "communication"
    assert found.usage[NETWORK].mean > found.usage["nvlink"].mean > 0.0


def test_a_checkpoint_each_step() -> None:
    """Checkpoints that take most of the time bind, though the CPUs starve the devices too."""
    found = timing(
        "two-nodes-cpu-starved",
        "train.checkpoint_every_steps=1",
        "hardware.storage=storage/ebs-gp3",
    )
    assert found.split.checkpoint > 0.5 * found.step_time.mean
    assert (found.bottleneck, found.next_bottleneck) == ("checkpoint", "cpu")


def test_few_micro_batches() -> None:
    """Eight micro-batches on 64 stages are mostly bubble."""
    assert timing("megatron-1t", "train.accumulation=8").bottleneck == "bubble"
