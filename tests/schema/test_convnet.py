"""Convolutional networks against what torchvision says of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from simulator.errors import NotModelled
from simulator.reading.model_library import load_model
from simulator.schema.accelerators import Precision
from simulator.schema.convnets import Block, ConvNet, Tape, efficientnet, resnet, unet
from simulator.schema.models import forward_flops
from simulator.schema.training import Recompute

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
# Multiply-adds in G and parameters: torchvision 0.21.0, weights metadata (_ops, num_params).
RESNETS = {
    18: (11_689_512, 1.814),
    34: (21_797_672, 3.664),
    50: (25_557_032, 4.089),
    101: (44_549_160, 7.801),
    152: (60_192_808, 11.514),
}
EFFICIENTNETS = {
    (1.0, 1.0, 224): (5_288_548, 0.386),
    (1.0, 1.1, 240): (7_794_184, 0.687),
    (1.1, 1.2, 260): (9_109_994, None),
    (1.4, 1.8, 380): (19_341_616, 4.394),
}


def residual(depth: int) -> ConvNet:
    """The residual network of `depth` layers for ImageNet."""
    block = Block.BASIC if depth < 50 else Block.BOTTLENECK
    blocks = BLOCKS.get(depth, (3, 8, 36, 3))
    return resnet(name=f"resnet{depth}", block=block, blocks=blocks, image=224, classes=1000)


@pytest.mark.parametrize("depth", RESNETS)
def test_resnets_have_published_parameters_and_operations(depth: int) -> None:
    """Parameters agree exactly, multiply-adds to the three digits published."""
    parameters, operations = RESNETS[depth]
    model = residual(depth)
    assert model.parameters == parameters
    counted = forward_flops(model, 1.0, Precision.FP32) / 2e9
    assert counted == pytest.approx(operations, abs=0.0006)


@pytest.mark.parametrize("scaling", EFFICIENTNETS)
def test_efficientnets_have_published_parameters_and_operations(
    scaling: tuple[float, float, int],
) -> None:
    """Width and depth scaling give the published counts."""
    width, depth, image = scaling
    parameters, operations = EFFICIENTNETS[scaling]
    model = efficientnet(name="e", width=width, depth=depth, image=image, classes=1000)
    assert model.parameters == parameters
    if operations is not None:
        counted = forward_flops(model, 1.0, Precision.FP32) / 2e9
        assert counted == pytest.approx(operations, abs=0.0006)


def test_unet_has_23_convolutions_and_the_published_output() -> None:
    """The network of the paper: 572 pixels in, 388 out, 23 convolutional layers."""
    model = unet(name="u", image=572, image_channels=1, width=64, depth=4, classes=2)
    convolutions = [layer for layer in model.layers if "convolution" in layer.name]
    assert len(convolutions) == 23
    assert model.output_bytes == 388 * 388
    assert model.parameters == 31_030_658


def test_a_convolution_is_counted_by_hand() -> None:
    """64 channels of 56 x 56 to 128 of 28 x 28 by 3 x 3: tensor sizes and products."""
    tape = Tape(channels=3, size=56)
    tape.convolution(64, 1)
    tape.convolution(128, 3, stride=2)
    layer = tape.layers[-1]
    before, after, weights = 64 * 56 * 56, 128 * 28 * 28, 128 * 64 * 9
    assert layer.macs == after * 64 * 9
    assert layer.moved == before + after
    assert layer.moved_back == 2 * (before + after)
    assert layer.parameters == layer.weights == weights
    operator = layer.operator(4.0, Precision.FP16)
    assert operator.traffic == 2 * (4 * (before + after) + weights)
    assert operator.backward_flops == 2 * operator.flops


def test_the_first_convolution_needs_no_gradient_of_the_image() -> None:
    """Its backward pass is one product, not two."""
    stem = residual(50).layers[0]
    assert stem.backward == 1.0
    assert stem.backward_kernels == 1.0


def test_a_depthwise_convolution_is_no_matrix_product() -> None:
    """It has a window's worth of products per output, and reads each input once going forward."""
    tape = Tape(channels=32, size=10)
    tape.convolution(32, 3)
    tape.convolution(32, 5, depthwise=True)
    layer = tape.layers[-1]
    assert not layer.matrix
    assert layer.macs == 32 * 100 * 25
    assert layer.moved == 2 * 32 * 100
    assert layer.moved_back == 32 * 100 * (2 * 25 + 2)
    assert layer.parameters == 32 * 25


def test_channels_first_adds_the_transposes_of_every_convolution() -> None:
    """Matrix units compute channels-last: inputs and outputs are moved once more each way."""
    model = load_model("resnet50")
    assert isinstance(model, ConvNet)
    first = replace(model, channels_last=False)
    last, other = (
        sum(op.traffic for op in each.operators(8.0, Precision.FP16)) for each in (model, first)
    )
    moved = sum(layer.moved for layer in model.layers if layer.macs and "linear" not in layer.name)
    assert other - last == pytest.approx(2.0 * 2.0 * moved * 8.0)
    plain = [replace(op, blocks=math.inf) for op in first.operators(8.0, Precision.FP32)]
    assert plain == list(model.operators(8.0, Precision.FP32))


def test_each_channel_is_one_block_of_threads_where_channels_come_first() -> None:
    """Of batch normalisation alone; the first of ResNet-50 has 64 channels."""
    model = load_model("resnet50")
    assert isinstance(model, ConvNet)
    first = replace(model, channels_last=False)
    few = [op for op in first.operators(8.0, Precision.FP16) if math.isfinite(op.blocks)]
    assert {op.blocks for op in few} == {64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0}
    assert all("normalization" in op.name for op in few)
    assert all(math.isinf(op.blocks) for op in model.operators(8.0, Precision.FP16))


def test_statistics_of_a_batch_are_for_training_alone() -> None:
    """Batch normalisation reads its input a second time for them."""
    tape = Tape(channels=8, size=4)
    tape.normalization()
    operator = tape.layers[0].operator(2.0, Precision.FP16)
    assert operator.training_traffic == 2.0 * 2.0 * 128
    assert operator.training_traffic == operator.traffic / 3.0


def test_batch_normalization_moves_memory_and_computes_nothing_on_matrix_units() -> None:
    """It passes three times over its tensor forward and five times backward."""
    tape = Tape(channels=8, size=4)
    tape.normalization()
    (layer,) = tape.layers
    assert (layer.macs, layer.matrix) == (0.0, False)
    assert (layer.moved, layer.moved_back) == (3 * 128, 5 * 128)


def test_tf32_pays_for_changes_of_layout() -> None:
    """TF32 moves more bytes than fp32, by passes that need no arithmetic."""
    model = residual(50)
    plain = model.operators(8.0, Precision.FP32)
    turned = model.operators(8.0, Precision.TF32)
    assert [op.name for op in turned] == [*(op.name for op in plain), "change of layout"]
    assert turned[-1].flops == 0.0


def test_resnet50_keeps_about_what_it_is_known_to() -> None:
    """Kept tensors by hand for the stem; the whole network keeps 85 MB an image in fp32."""
    tape = Tape(channels=3, size=224)
    tape.convolution(64, 7, stride=2)
    tape.normalization()
    tape.activation()
    tape.max_pool(3, stride=2, padding=1)
    stem = tape.network("stem", output_bytes=0.0)
    large, small = 64 * 112 * 112, 64 * 56 * 56
    kept = stem.activation_bytes(1.0, Precision.FP32, Recompute.NONE)
    assert kept == 4 * (2 * large + small) + 8 * small
    whole = residual(50).activation_bytes(1.0, Precision.FP32, Recompute.NONE)
    assert whole == pytest.approx(85.3e6, rel=0.01)


def test_recomputing_a_convnet_is_refused() -> None:
    """What recomputation saves depends on cuts that nobody stated."""
    with pytest.raises(NotModelled, match="resnet18"):
        residual(18).activation_bytes(1.0, Precision.FP16, Recompute.FULL)


def test_a_convnet_lowers_to_some_tens_of_operators() -> None:
    """Layers of one shape are merged, and nothing is lost by it."""
    model = residual(152)
    operators = model.operators(2.0, Precision.FP16)
    assert len(operators) < 60
    whole = sum(layer.operator(2.0, Precision.FP16).traffic for layer in model.layers)
    assert sum(op.traffic for op in operators) == pytest.approx(whole)
    assert sum(op.kernels for op in operators) == len(model.layers)


def test_arrays_of_batches_equal_one_batch_at_a_time() -> None:
    """The same counts come out of an array and of floats."""
    model, sizes = residual(18), np.array([1.0, 32.0, 100.0])
    together = model.operators(sizes, Precision.BF16)
    for index, size in enumerate(sizes):
        alone = model.operators(float(size), Precision.BF16)
        for one, many in zip(alone, together, strict=True):
            assert np.broadcast_to(many.flops, 3)[index] == one.flops
            assert np.broadcast_to(many.backward_traffic, 3)[index] == one.backward_traffic


def test_an_image_of_which_no_layer_leaves_anything_is_refused() -> None:
    """A U-Net halves its input four times and cuts its edges: 60 pixels are too few."""
    with pytest.raises(NotModelled, match=r"model\.image: the image is too small"):
        unet(name="small", image=60, image_channels=1, width=64, depth=4, classes=2)
