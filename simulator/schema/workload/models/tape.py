"""Convolutional networks laid layer by layer.

Traffic is counted as an eager framework moves it in training. A convolution reads its input and
writes its output; its backward pass reads the output's gradient twice (for the input's gradient
and the weights'), the input once, and writes the input's gradient. A depthwise convolution reads
its input once, windows overlapping in a unit's own memory; its backward kernels, which share little
of their windows, read a value once for each output that needs it. Batch normalisation reads its
input twice in training (statistics, then values) and once in inference; activations, residual sums
and pooling are passes of their own. Activations kept for the backward pass are all tensors that
some later gradient needs, once each, with activations computed in place as torchvision does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from simulator.errors import NotModelled
from simulator.schema.precision import Precision
from simulator.schema.workload.models import Product
from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.layer import Layer
from simulator.units import Bytes

WIDE: Final = Precision.FP32.bytes_per_element
_INDEX_BYTES: Final = 8.0


class Tape:
    """Lays layers one after another and follows the shape of the tensor between them."""

    def __init__(self, *, channels: int, size: int) -> None:
        self.channels = channels
        self.size = size
        self.layers: list[Layer] = []
        self.transposes: list[Layer] = []
        self._waiting: list[tuple[float, int]] = []
        self._input_bytes = self.elements * WIDE

    def network(self, name: str, *, output_bytes: Bytes) -> ConvNet:
        """The network laid so far; its images enter as fp32."""
        return ConvNet(
            name=name,
            layers=tuple(self.layers),
            transposes=tuple(self.transposes),
            input_bytes=self._input_bytes,
            output_bytes=output_bytes,
        )

    @property
    def elements(self) -> float:
        """Elements of the tensor at this point, per sample."""
        return float(self.channels * self.size * self.size)

    def fork(self) -> None:
        """Keep the tensor at this point for a later layer, which joins it."""
        self._waiting.append((self.elements, len(self.layers)))

    def join(self) -> None:
        """Let go of the tensor that was kept last."""
        self._waiting.pop()

    def _live(self, before: float, after: float) -> float:
        """Elements that exist while a layer is computed; a tensor just forked is its input too."""
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
        """A square convolution; padded to keep the size (before the stride) unless told.

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
        """Pixels of a side after a window has passed over the tensor.

        Raises
        ------
        NotModelled
            If none is left.
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
        """Each tensor read and written once more on its way to a kernel or from it."""
        name = "change of layout"
        self.transposes.append(
            Layer(name=name, moved=2.0 * moved, moved_back=2.0 * moved_back, matrix=False)
        )

    def transposed_convolution(self, channels: int, kernel: int) -> None:
        """A convolution that makes the image `kernel` times larger, with bias."""
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
        """Batch normalisation; keeps its input, and its output where nothing overwrites that."""
        kept = 2.0 if keeps_output else 1.0
        parameters = 2.0 * self.channels
        name = f"batch normalization of {self.channels}"
        self._pass(name, 3.0, 5.0, kept=kept, parameters=parameters, learning=1.0)
        self.layers[-1] = replace(self.layers[-1], channels=float(self.channels))

    def activation(self) -> None:
        """An elementwise function; what it writes is kept."""
        self._pass("activation", 2.0, 3.0, kept=1.0)

    def residual_sum(self) -> None:
        """The sum of two branches, in place; backward, the sum of their gradients."""
        self._pass("residual sum", 3.0, 3.0)

    def max_pool(self, kernel: int, *, stride: int, padding: int = 0) -> None:
        """The largest of a window; keeps the place where it was as 64-bit indices."""
        self._pool(self._size_after(kernel, stride, padding), _INDEX_BYTES)

    def _pool(self, size: int, index: float) -> None:
        """Windows of an image become one value each; `index` bytes say where in one it was."""
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
        """The mean over the whole image."""
        self._pool(1, 0.0)

    def concatenation(self, channels: int) -> None:
        """`channels` more channels of this size copied beside the present ones."""
        self.channels += channels
        self._pass("concatenation", 2.0, 2.0, kept=1.0)

    def squeeze_excitation(self, squeezed: int) -> None:
        """A weight for each channel, computed from the channel's mean [1]_.

        The image is read for the means and again for the product. Backward, the product of image
        and gradient is written and summed for the weights, the gradient is scaled, and the means'
        share is spread over the image and added.

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
        """A matrix product with bias over the flattened tensor."""
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
        """A kernel that moves the whole tensor `forward` and `backward` times.

        `learning` of the `forward` times are for training alone.
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
