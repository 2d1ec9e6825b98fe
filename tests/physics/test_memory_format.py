"""Order of images in memory: the framework's own, as stated, and carried from what was measured."""

from __future__ import annotations

import pytest

from simulator.physics.device_time import device_time
from simulator.reading.scenario import load_scenario
from simulator.schema.workload.models.convnet import ConvNet

LAST, FIRST = (f"software.memory_format=channels-{order}" for order in ("last", "first"))


def seconds(*overrides: str) -> float:
    """Device time of a batch of ResNet-50 on p4d."""
    found = device_time(load_scenario("resnet50-imagenet-p4d", overrides=overrides))
    assert found is not None
    return float(found.total)


def test_a_step_measured_channels_last_gets_longer_channels_first() -> None:
    """By as much as the computed one: published on a 3090, 1,218 against 826 images/s."""
    assert 1.2 < seconds(FIRST) / seconds(LAST) < 1.7


def on(gpu: str, order: str) -> float:
    """Device time of a large batch of ResNet-50 in fp16 on one accelerator."""
    own = (f"hardware.gpu=gpu/{gpu}", "hardware.gpus=1", "train.batch_size=1280", order)
    return seconds(*own, "train.precision=fp16")


def test_faster_memory_hardly_helps_where_each_channel_is_one_block() -> None:
    """H200 and H100 differ in memory alone: published 3,079 and 2,790 images/s channels-first."""
    gain = on("h100-sxm5-80gb", FIRST) / on("h200-sxm-141gb", FIRST)
    assert 1.05 < gain < 1.2
    assert on("h100-sxm5-80gb", LAST) / on("h200-sxm-141gb", LAST) > gain


@pytest.mark.parametrize(
    ("framework", "last"),
    [("pytorch", False), ("lightning", False), ("tensorflow", True), ("mxnet", True)],
)
def test_the_order_is_the_frameworks_own_where_none_is_given(framework: str, *, last: bool) -> None:
    """PyTorch's tensors have channels first."""
    scenario = load_scenario(
        "imagenet-object-store-g5", overrides=(f"software.framework={framework}",)
    )
    assert isinstance(scenario.job.model, ConvNet)
    assert scenario.job.model.channels_last is last


def test_an_assumed_order_is_told() -> None:
    """A prediction that rests on it says so; one that was given it does not."""
    name, what = "imagenet-object-store-g5", "order of images"
    assumed = load_scenario(name, overrides=("train.precision=fp16",))
    given = load_scenario(name, overrides=("train.precision=fp16", LAST))
    assert any(what in note.what for note in assumed.notes)
    assert not any(what in note.what for note in given.notes)


def test_own_measurements_stay_as_they_are() -> None:
    """A step time that the scenario states was measured with its own order of images."""
    own = 'model.step_times=[{ batch_size = 256, time = "100 ms" }]'
    assert seconds(own, FIRST) == pytest.approx(seconds(own, LAST)) == pytest.approx(0.1)
