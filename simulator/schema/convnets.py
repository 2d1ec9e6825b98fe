"""Convolutional networks, laid layer by layer: ResNet, EfficientNet, U-Net.

Traffic is counted as an eager framework moves it in training. A convolution reads its input and
writes its output; its backward pass reads the output's gradient twice (for the input's gradient
and the weights'), the input once, and writes the input's gradient. A depthwise convolution reads
its input once, windows overlapping in a unit's own memory; its backward kernels, which share little
of their windows, read a value once for each output that needs it. Batch normalisation reads its
input twice in training (statistics, then values) and once in inference; activations, residual sums
and pooling are passes of their own. Activations kept for the backward pass are all tensors that
some later gradient needs, once each, with activations computed in place as torchvision does.

Residual networks [1]_ are of version 1.5: the 3x3 convolution of a bottleneck takes the stride.
EfficientNets [2]_ are inverted bottlenecks with squeeze and excitation, scaled in width and depth.
The 2D U-Net [3]_ has unpadded 3x3 convolutions down to a fifth of the size and up again.

References
----------
.. [1] He et al., "Deep Residual Learning for Image Recognition", table 1,
       https://arxiv.org/abs/1512.03385
.. [2] Tan & Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
       table 1, https://arxiv.org/abs/1905.11946
.. [3] Ronneberger, Fischer & Brox, "U-Net: Convolutional Networks for Biomedical Image
       Segmentation", figure 1, https://arxiv.org/abs/1505.04597
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Final

import numpy as np

from simulator.errors import NotModelled
from simulator.memo import cached
from simulator.records import dataclass
from simulator.schema.accelerators import Precision
from simulator.schema.models import (
    WIDE,
    Forward,
    Layer,
    Operator,
    Product,
    StepTimes,
    activation_element,
    merge,
)
from simulator.schema.provenance import Source
from simulator.schema.training import Recompute
from simulator.units import Bytes, Real, Seconds


@cached(most=64)
def _parameters(layers: tuple[Layer, ...]) -> float:
    return sum(layer.parameters for layer in layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvNet:
    """A convolutional network as a list of layers; layers with the same name have the same shape.

    `transposes` are the passes that bring tensors from channels-first to channels-last order and
    back for matrix units, which compute in channels-last order only. They are counted where tensors
    are channels-first, and always for TF32, for which frameworks do not change the order of fp32
    tensors. Batch normalization of channels-first tensors uses one block of threads for each
    channel (cuDNN's ``bn_fw_tr_1C11_kernel_NCHW``), that of channels-last tensors many.
    """

    name: str
    layers: tuple[Layer, ...]
    transposes: tuple[Layer, ...] = ()
    channels_last: bool = True
    input_bytes: Bytes = 0.0
    output_bytes: Bytes = 0.0
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def parameters(self) -> float:
        """Number of trainable parameters."""
        return _parameters(self.layers)

    @property
    def dense_parameters(self) -> float:
        """Number of parameters with a gradient in every step: all parameters of the network."""
        return self.parameters

    @property
    def head_parameters(self) -> float:
        """Number of parameters of the classifier; 0 if the network has none."""
        return sum(layer.parameters for layer in self.layers if layer.head)

    @property
    def cpu_seconds(self) -> Seconds:
        """CPU time of training per sample, 0: a device does the work [s]."""
        return 0.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return the operators of a forward pass over `samples` images, equal layers merged."""
        as_they_lie = self.channels_last and precision is not Precision.TF32
        on_vector_units = precision in (Precision.FP32, Precision.FP64)
        transposes = () if as_they_lie or on_vector_units else self.transposes
        merged = merge((*self.layers, *transposes))
        own = (layer.operator(samples, precision) for layer in merged)
        return tuple(replace(op, blocks=np.inf) if self.channels_last else op for op in own)

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the size of the activations stored for the backward pass of `samples` images [B].

        Raises
        ------
        NotModelled
            For any recomputation: its saving depends on where the network is cut.
        """
        if recompute is not Recompute.NONE:
            msg = f"recomputing activations of the convolutional network '{self.name}'"
            raise NotModelled(msg)
        kept = sum(layer.kept for layer in self.layers)
        fixed = sum(layer.kept_bytes for layer in self.layers)
        return (kept * activation_element(precision) + fixed) * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the activation memory of the largest layer, with tensors waiting to be joined."""
        live = max((layer.live for layer in self.layers), default=0.0)
        return Forward(live=live * activation_element(precision) * samples)


_INDEX_BYTES: Final = 8.0


class Tape:
    """Builds a network layer by layer and tracks the shape of the current tensor."""

    def __init__(self, *, channels: int, size: int) -> None:
        self.channels = channels
        self.size = size
        self.layers: list[Layer] = []
        self.transposes: list[Layer] = []
        self._waiting: list[tuple[float, int]] = []
        self._input_bytes = self.elements * WIDE

    def network(self, name: str, *, output_bytes: Bytes) -> ConvNet:
        """Return the network built so far; its images enter as fp32."""
        return ConvNet(
            name=name,
            layers=tuple(self.layers),
            transposes=tuple(self.transposes),
            input_bytes=self._input_bytes,
            output_bytes=output_bytes,
        )

    @property
    def elements(self) -> float:
        """Number of elements of the current tensor, per sample."""
        return float(self.channels * self.size * self.size)

    def fork(self) -> None:
        """Store the current tensor as an input of a later layer, until `join`."""
        self._waiting.append((self.elements, len(self.layers)))

    def join(self) -> None:
        """Release the tensor that was stored last."""
        self._waiting.pop()

    def _live(self, before: float, after: float) -> float:
        """Return the number of elements in memory while a layer is computed.

        `before` and `after` are the elements of its input and output. A stored tensor counts in
        addition, unless it is the input of this layer.
        """
        waiting = sum(size for size, since in self._waiting if since < len(self.layers))
        return before + after + waiting

    def convolution(  # noqa: PLR0913 - a convolution is described by as many numbers
        self,
        channels: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int | None = None,
        depthwise: bool = False,
        bias: bool = False,
    ) -> None:
        """Add a square convolution; padded to keep the size (before the stride) by default.

        The first layer's input needs no gradient. A depthwise convolution has too few products
        per element for matrix units.
        """
        pad = kernel // 2 if padding is None else padding
        size = self._size_after(kernel, stride, pad)
        before, after = self.elements, float(channels * size * size)
        kind = "depthwise convolution" if depthwise else "convolution"
        name = f"{kind} {kernel}x{kernel} {self.channels}x{self.size} to {channels}x{size}"
        if depthwise:
            layer = _depthwise(name, before, after, float(kernel * kernel), channels)
        else:
            fan_in = float(kernel * kernel * self.channels)
            layer = self._dense(name, before, after, fan_in, channels)
        parameters = layer.weights + (channels if bias else 0.0)
        live = self._live(before, after)
        self.layers.append(replace(layer, parameters=parameters, live=live))
        self.channels, self.size = channels, size

    def _size_after(self, kernel: int, stride: int, padding: int) -> int:
        """Return the side of the image after a window has passed over it [pixels].

        Raises
        ------
        NotModelled
            If the window is larger than the padded image.
        """
        size = (self.size + 2 * padding - kernel) // stride + 1
        if size < 1:
            msg = (
                f"model.image: the image is too small for this model: {self.size} x {self.size} "
                f"values are left where a layer looks at {kernel} x {kernel}; give larger images"
            )
            raise NotModelled(msg)
        return size

    def _dense(self, name: str, before: float, after: float, fan_in: float, channels: int) -> Layer:
        first = not self.layers
        moved = before + after
        gradients = moved if first else 2.0 * moved
        self._transpose(moved, gradients + (0.0 if first else before - after))
        return Layer(
            name=name,
            macs=after * fan_in,
            backward=1.0 if first else 2.0,
            moved=moved,
            moved_back=gradients,
            weights=channels * fan_in,
            backward_kernels=1.0 if first else 2.0,
            product=Product(rows=after / channels, columns=channels, inner=fan_in),
        )

    def _transpose(self, moved: float, moved_back: float) -> None:
        """Add a read and a write of each tensor that is transposed before or after a kernel."""
        name = "change of layout"
        self.transposes.append(
            Layer(name=name, moved=2.0 * moved, moved_back=2.0 * moved_back, matrix=False)
        )

    def transposed_convolution(self, channels: int, kernel: int) -> None:
        """Add a convolution that makes the image `kernel` times larger, with bias."""
        weights = float(self.channels * channels * kernel * kernel)
        before, macs = self.elements, weights * self.size * self.size
        live = self._live(before, float(channels * (self.size * kernel) ** 2))
        product = Product(
            rows=self.size * self.size, columns=channels * kernel * kernel, inner=self.channels
        )
        self.channels, self.size = channels, self.size * kernel
        self._transpose(before + self.elements, 2.0 * before + self.elements)
        self.layers.append(
            Layer(
                name=f"transposed convolution to {channels}x{self.size}",
                macs=macs,
                moved=before + self.elements,
                moved_back=2.0 * (before + self.elements),
                weights=weights,
                parameters=weights + channels,
                live=live,
                backward_kernels=2.0,
                product=product,
            )
        )

    def normalization(self, *, keeps_output: bool = False) -> None:
        """Add batch normalization, which stores its input and, with `keeps_output`, its output."""
        kept = 2.0 if keeps_output else 1.0
        parameters = 2.0 * self.channels
        name = f"batch normalization of {self.channels}"
        self._pass(name, 3.0, 5.0, kept=kept, parameters=parameters, learning=1.0)
        self.layers[-1] = replace(self.layers[-1], channels=float(self.channels))

    def activation(self) -> None:
        """Add an elementwise activation function, which stores its output."""
        self._pass("activation", 2.0, 3.0, kept=1.0)

    def residual_sum(self) -> None:
        """Add the in-place sum of two branches; backward, the sum of their gradients."""
        self._pass("residual sum", 3.0, 3.0)

    def max_pool(self, kernel: int, *, stride: int, padding: int = 0) -> None:
        """Add max pooling, which stores the position of each maximum as a 64-bit index."""
        self._pool(self._size_after(kernel, stride, padding), _INDEX_BYTES)

    def _pool(self, size: int, index: float) -> None:
        """Add a pooling layer whose output has sides of `size` pixels.

        `index` is the size of the stored position of the maximum, per output value [B].
        """
        before = self.elements
        self.size = size
        moved = before + self.elements
        self.layers.append(
            Layer(
                name="pooling",
                moved=moved,
                moved_back=moved,
                kept=self.elements,
                kept_bytes=index * self.elements,
                live=self._live(before, self.elements),
                matrix=False,
            )
        )

    def average(self) -> None:
        """Add global average pooling."""
        self._pool(1, 0.0)

    def concatenation(self, channels: int) -> None:
        """Add the concatenation of `channels` channels of the same size to the current tensor."""
        self.channels += channels
        self._pass("concatenation", 2.0, 2.0, kept=1.0)

    def squeeze_excitation(self, squeezed: int) -> None:
        """Add squeeze and excitation: a factor per channel, computed from the channel means [1]_.

        The image is read for the means and again for the product. In the backward pass the product
        of image and gradient is written and summed for the factors, the gradient is scaled, and the
        gradient of the means is spread over the image and added.

        References
        ----------
        .. [1] Hu et al., "Squeeze-and-Excitation Networks", https://arxiv.org/abs/1709.01507
        """
        weights = 2.0 * self.channels * squeezed
        elements = self.elements
        self.layers.append(
            Layer(
                name="squeeze and excitation",
                macs=weights,
                moved=3.0 * elements,
                moved_back=10.0 * elements,
                weights=weights,
                parameters=weights + squeezed + self.channels,
                kept=elements,
                live=self._live(elements, elements),
                matrix=False,
                kernels=6.0,
                backward_kernels=10.0,
            )
        )

    def linear(self, features: int) -> None:
        """Add a fully connected layer with bias over the flattened tensor."""
        before, weights = self.elements, self.elements * features
        self.layers.append(
            Layer(
                name="linear",
                head=True,
                macs=weights,
                moved=before + features,
                moved_back=2.0 * (before + features),
                weights=weights,
                parameters=weights + features,
                live=self._live(before, float(features)),
                backward_kernels=2.0,
                product=Product(rows=1.0, columns=features, inner=before),
            )
        )
        self.channels, self.size = features, 1

    def _pass(  # noqa: PLR0913 - what a pass moves, keeps and learns
        self,
        name: str,
        forward: float,
        backward: float,
        *,
        kept: float = 0.0,
        parameters: float = 0.0,
        learning: float = 0.0,
    ) -> None:
        """Add a kernel that moves the whole tensor `forward` and `backward` times.

        `learning` is the number of the `forward` moves that occur in training only; `kept` is the
        number of copies stored for the backward pass.
        """
        elements = self.elements
        self.layers.append(
            Layer(
                name=name,
                moved=forward * elements,
                moved_back=backward * elements,
                learning=learning * elements,
                kept=kept * elements,
                parameters=parameters,
                live=self._live(elements, elements),
                matrix=False,
            )
        )


def _depthwise(name: str, before: float, after: float, window: float, channels: int) -> Layer:
    reads = window * after
    return Layer(
        name=name,
        macs=window * after,
        moved=before + after,
        moved_back=2.0 * reads + before + after,
        weights=window * channels,
        matrix=False,
        backward_kernels=2.0,
    )


_RESNET_STEM: Final = 64
_EXPANSION: Final = 4


class Block(StrEnum):
    """A residual block: two 3x3 convolutions, or 1x1, 3x3, 1x1 to four times the width."""

    BASIC = "basic"
    BOTTLENECK = "bottleneck"


def resnet(
    *, name: str, block: Block, blocks: tuple[int, ...], image: int, classes: int
) -> ConvNet:
    """Return a residual network with `blocks` blocks in each stage, for images of `image` pixels.

    Input and logits are fp32.
    """
    tape = Tape(channels=3, size=image)
    tape.convolution(_RESNET_STEM, 7, stride=2)
    tape.normalization()
    tape.activation()
    tape.max_pool(3, stride=2, padding=1)
    for stage, count in enumerate(blocks):
        for index in range(count):
            _residual(tape, block, _RESNET_STEM * 2**stage, 2 if stage > 0 and index == 0 else 1)
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
    """Add the projection of a shortcut, whose input is the input of the block."""
    fork = (tape.channels, tape.size)
    tape.convolution(channels, 1, stride=stride)
    tape.normalization()
    tape.channels, tape.size = fork


_DIVISOR: Final = 8
_EFFICIENTNET_STEM: Final = 32
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
    """Return an EfficientNet with `width` times the channels and `depth` times the blocks of B0.

    `image` is the side of its square images [pixels]; input and logits are fp32.
    """
    tape = Tape(channels=3, size=image)
    _activated(tape, _scaled(_EFFICIENTNET_STEM, width), 3, stride=2)
    for stage in _STAGES:
        for index in range(math.ceil(stage.blocks * depth)):
            stride = stage.stride if index == 0 else 1
            _inverted_bottleneck(tape, stage, _scaled(stage.channels, width), stride)
    _activated(tape, _HEAD_EXPANSION * tape.channels, 1)
    tape.average()
    tape.linear(classes)
    return tape.network(name, output_bytes=classes * WIDE)


def _scaled(channels: int, width: float) -> int:
    """Return `channels` times `width`, rounded to a multiple of 8 but not down by over 10%."""
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


_CLASS_INDEX_BYTES = 1.0


def unet(  # noqa: PLR0913 - the numbers of the published figure
    *, name: str, image: int, image_channels: int, width: int, depth: int, classes: int
) -> ConvNet:
    """Return a U-Net with `depth` halvings of the image and `width` channels in its first level.

    `image` is the side of its square input [pixels]. The output is smaller; each of its pixels is
    copied to the host as a class index of one byte.
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
