"""The 2D U-Net: unpadded 3x3 convolutions down to a fifth of the size and up again.

References
----------
.. [1] Ronneberger, Fischer & Brox, "U-Net: Convolutional Networks for Biomedical Image
       Segmentation", figure 1, https://arxiv.org/abs/1505.04597
"""

from __future__ import annotations

from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.tape import Tape

_CLASS_INDEX_BYTES = 1.0


def unet(  # noqa: PLR0913 - the numbers of the published figure
    *, name: str, image: int, image_channels: int, width: int, depth: int, classes: int
) -> ConvNet:
    """A U-Net of `depth` halvings whose first level has `width` channels.

    `image` is the size of its square input [pixels]; the output is smaller, and each of its pixels
    leaves the device as a class index of one byte.
    """
    tape = Tape(channels=image_channels, size=image)
    skipped: list[int] = []
    for level in range(depth):
        _pair(tape, width * 2**level)
        skipped.append(tape.channels)
        tape.fork()
        tape.max_pool(2, stride=2)
    _pair(tape, width * 2**depth)
    for channels in reversed(skipped):
        tape.transposed_convolution(channels, 2)
        tape.concatenation(channels)
        tape.join()
        _pair(tape, channels)
    tape.convolution(classes, 1, bias=True)
    return tape.network(name, output_bytes=_CLASS_INDEX_BYTES * tape.size * tape.size)


def _pair(tape: Tape, channels: int) -> None:
    for _ in range(2):
        tape.convolution(channels, 3, padding=0, bias=True)
        tape.activation()
