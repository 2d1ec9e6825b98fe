"""EfficientNets: inverted bottlenecks with squeeze and excitation, scaled in width and depth.

References
----------
.. [1] Tan & Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
       table 1, https://arxiv.org/abs/1905.11946
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.tape import WIDE, Tape

_DIVISOR: Final = 8
_STEM: Final = 32
_HEAD_EXPANSION: Final = 4
_SQUEEZE: Final = 4


@dataclass(frozen=True, slots=True)
class _Stage:
    expansion: int
    kernel: int
    stride: int
    channels: int
    blocks: int


_STAGES: Final = (
    _Stage(1, 3, 1, 16, 1),
    _Stage(6, 3, 2, 24, 2),
    _Stage(6, 5, 2, 40, 2),
    _Stage(6, 3, 2, 80, 3),
    _Stage(6, 5, 1, 112, 3),
    _Stage(6, 5, 2, 192, 4),
    _Stage(6, 3, 1, 320, 1),
)


def efficientnet(*, name: str, width: float, depth: float, image: int, classes: int) -> ConvNet:
    """The baseline network with `width` times the channels and `depth` times the blocks.

    `image` is the size of its square images [pixels]; input and scores are fp32.
    """
    tape = Tape(channels=3, size=image)
    _activated(tape, _scaled(_STEM, width), 3, stride=2)
    for stage in _STAGES:
        for index in range(math.ceil(stage.blocks * depth)):
            stride = stage.stride if index == 0 else 1
            _inverted_bottleneck(tape, stage, _scaled(stage.channels, width), stride)
    _activated(tape, _HEAD_EXPANSION * tape.channels, 1)
    tape.average()
    tape.linear(classes)
    return tape.network(name, output_bytes=classes * WIDE)


def _scaled(channels: int, width: float) -> int:
    """Channels times `width`, to a multiple of eight that is at least nine tenths of it."""
    wanted = channels * width
    rounded = max(_DIVISOR, int(wanted + _DIVISOR / 2) // _DIVISOR * _DIVISOR)
    return rounded + _DIVISOR if rounded < 0.9 * wanted else rounded


def _activated(
    tape: Tape, channels: int, kernel: int, *, stride: int = 1, depthwise: bool = False
) -> None:
    tape.convolution(channels, kernel, stride=stride, depthwise=depthwise)
    # SiLU needs its input again, so the normalised tensor isn't overwritten
    tape.normalization(keeps_output=True)
    tape.activation()


def _inverted_bottleneck(tape: Tape, stage: _Stage, channels: int, stride: int) -> None:
    before = tape.channels
    summed = stride == 1 and before == channels
    if summed:
        tape.fork()
    if stage.expansion > 1:
        _activated(tape, before * stage.expansion, 1)
    _activated(tape, tape.channels, stage.kernel, stride=stride, depthwise=True)
    tape.squeeze_excitation(max(1, before // _SQUEEZE))
    tape.convolution(channels, 1)
    tape.normalization(keeps_output=True)
    if summed:
        tape.residual_sum()
        tape.join()
