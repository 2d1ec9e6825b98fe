"""Residual networks, version 1.5: the 3x3 convolution of a bottleneck takes the stride.

References
----------
.. [1] He et al., "Deep Residual Learning for Image Recognition", table 1,
       https://arxiv.org/abs/1512.03385
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.tape import WIDE, Tape

_STEM: Final = 64
_EXPANSION: Final = 4


class Block(StrEnum):
    """Two 3x3 convolutions, or 1x1, 3x3, 1x1 to four times the width."""

    BASIC = "basic"
    BOTTLENECK = "bottleneck"


def resnet(
    *, name: str, block: Block, blocks: tuple[int, ...], image: int, classes: int
) -> ConvNet:
    """A residual network of `blocks` blocks in each stage, for square images of `image` pixels.

    Input and scores are fp32.
    """
    tape = Tape(channels=3, size=image)
    tape.convolution(_STEM, 7, stride=2)
    tape.normalization()
    tape.activation()
    tape.max_pool(3, stride=2, padding=1)
    for stage, count in enumerate(blocks):
        for index in range(count):
            _residual(tape, block, _STEM * 2**stage, 2 if stage > 0 and index == 0 else 1)
    tape.average()
    tape.linear(classes)
    return tape.network(name, output_bytes=classes * WIDE)


def _residual(tape: Tape, block: Block, width: int, stride: int) -> None:
    channels = width * (_EXPANSION if block is Block.BOTTLENECK else 1)
    tape.fork()
    if stride > 1 or tape.channels != channels:
        _shortcut(tape, channels, stride)
    if block is Block.BOTTLENECK:
        _normalized(tape, width, 1)
        _normalized(tape, width, 3, stride=stride)
        tape.convolution(channels, 1)
    else:
        _normalized(tape, width, 3, stride=stride)
        tape.convolution(channels, 3)
    tape.normalization()
    tape.residual_sum()
    tape.join()
    tape.activation()


def _normalized(tape: Tape, channels: int, kernel: int, *, stride: int = 1) -> None:
    tape.convolution(channels, kernel, stride=stride)
    tape.normalization()
    tape.activation()


def _shortcut(tape: Tape, channels: int, stride: int) -> None:
    """The projection beside a block, laid from the same tensor as the block itself."""
    fork = (tape.channels, tape.size)
    tape.convolution(channels, 1, stride=stride)
    tape.normalization()
    tape.channels, tape.size = fork
