"""Convolutional networks against a network counted by its published shape."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import convnet

BLOCKS = ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7))


def resnet50() -> tuple[float, float]:
    """Parameters and multiply-adds of ResNet-50 v1.5, layer by layer."""
    layers = [(112, 3, 64, 49)]
    inputs = 64
    for width, count, edge in BLOCKS:
        for index in range(count):
            first = edge if width == 64 or index else 2 * edge
            layers += [
                (first, inputs, width, 1),
                (edge, width, width, 9),
                (edge, width, 4 * width, 1),
            ]
            if index == 0:
                layers.append((edge, inputs, 4 * width, 1))
            inputs = 4 * width
    parameters = sum(
        convnet.convolution_parameters(i, o, k) + convnet.norm_parameters(o)
        for _, i, o, k in layers
    )
    flops = sum(convnet.convolution_flops(e * e, i, o, k) for e, i, o, k in layers)
    parameters += convnet.convolution_parameters(2048, 1000, 1, bias=1)
    flops += convnet.convolution_flops(1, 2048, 1000, 1)
    return parameters, flops / 2


def test_resnet50() -> None:
    """Torchvision publishes 25,557,032 parameters and 4.089 G multiply-adds."""
    parameters, multiply_adds = resnet50()
    assert parameters == 25_557_032
    assert multiply_adds == pytest.approx(4.089e9, rel=1e-3)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation", "expected"),
    [
        (5, 3, 1, 0, 1, 3),
        (5, 3, 2, 1, 1, 3),
        (6, 3, 2, 1, 1, 3),
        (7, 3, 1, 0, 2, 3),
        (112, 3, 2, 1, 1, 56),
    ],
)
def test_published_sizes(  # noqa: PLR0913, PLR0917 - the figures of one convolution
    size: int, kernel: int, stride: int, padding: int, dilation: int, expected: int
) -> None:
    """The worked cases of the guide to convolution arithmetic."""
    assert convnet.output_size(size, kernel, stride, padding, dilation) == expected


def test_groups_divide_weights_and_work() -> None:
    """A depthwise layer has one window per channel."""
    assert convnet.convolution_parameters(32, 32, 9, groups=32) == 32 * 9
    assert convnet.convolution_flops(10, 32, 32, 9, groups=32) == 2 * 10 * 32 * 9


def test_size_of_a_feature_map() -> None:
    """Pixels times channels times bytes, per candidate."""
    size = convnet.feature_map_bytes(np.array([1.0, 2.0]) * 49, 2048, 2.0)
    assert size == pytest.approx([200_704, 401_408])
