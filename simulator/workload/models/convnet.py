"""Convolutional networks: a list of layers counted from a published shape.

Traffic is counted as an eager framework moves it in training: a convolution reads its input and
writes its output, and its backward pass reads the output's gradient twice (for the input's and the
weights' gradient), the input once, and writes the input's gradient; batch normalisation reads
its input twice (statistics, then values); activations, residual sums and pooling are passes of
their own. Activations kept for the backward pass are each tensor that some later gradient needs,
once, with activations computed in place as torchvision does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.errors import NotModelled
from simulator.precision import Precision
from simulator.provenance import Source
from simulator.units import Bytes, Real, Seconds
from simulator.workload.models import Operator, StepTimes
from simulator.workload.models.layer import Layer, activation_element, merge
from simulator.workload.train import Recompute

_INDEX_BYTES = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvNet:
    """A convolutional network as a list of layers; those of one name are of one shape."""

    name: str
    layers: tuple[Layer, ...]
    input_bytes: Bytes
    output_bytes: Bytes
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def parameters(self) -> float:
        """Trainable parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def dense_parameters(self) -> float:
        """All of them."""
        return self.parameters

    @property
    def cpu_seconds(self) -> Seconds:
        """None: a device does the work [s]."""
        return 0.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """The forward pass over `samples` images, layers of one shape together."""
        return tuple(layer.operator(samples, precision) for layer in merge(self.layers))

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Bytes kept for the backward pass of `samples` images [B].

        Raises
        ------
        NotModelled
            For any recomputation: what it saves depends on where the network is cut.
        """
        if recompute is not Recompute.NONE:
            msg = f"recomputing activations of the convolutional network '{self.name}'"
            raise NotModelled(msg)
        kept = sum(layer.kept for layer in self.layers)
        fixed = sum(layer.kept_bytes for layer in self.layers)
        return (kept * activation_element(precision) + fixed) * samples


class Tape:
    """Lays layers one after another and follows the shape of the tensor between them."""

    def __init__(self, *, channels: int, size: int) -> None:
        self.channels = channels
        self.size = size
        self.layers: list[Layer] = []

    @property
    def elements(self) -> float:
        """Elements of the tensor at this point, per sample."""
        return float(self.channels * self.size * self.size)

    def convolution(
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
        first = not self.layers
        pad = kernel // 2 if padding is None else padding
        size = (self.size + 2 * pad - kernel) // stride + 1
        fan_in = kernel * kernel * (1 if depthwise else self.channels)
        weights = float(channels * fan_in)
        before, after = self.elements, float(channels * size * size)
        kind = "depthwise " if depthwise else ""
        shape = f"{self.channels}x{self.size} to {channels}x{size}"
        self.layers.append(
            Layer(
                name=f"{kind}convolution {kernel}x{kernel} {shape}",
                macs=after * fan_in,
                backward=1.0 if first else 2.0,
                moved=before + after,
                moved_back=before + after if first else 2.0 * (before + after),
                weights=weights,
                parameters=weights + (channels if bias else 0.0),
                matrix=not depthwise,
                backward_kernels=1.0 if first else 2.0,
            )
        )
        self.channels, self.size = channels, size

    def transposed_convolution(self, channels: int, kernel: int) -> None:
        """A convolution that makes the image `kernel` times larger, with bias."""
        weights = float(self.channels * channels * kernel * kernel)
        before, macs = self.elements, weights * self.size * self.size
        self.channels, self.size = channels, self.size * kernel
        self.layers.append(
            Layer(
                name=f"transposed convolution to {channels}x{self.size}",
                macs=macs,
                moved=before + self.elements,
                moved_back=2.0 * (before + self.elements),
                weights=weights,
                parameters=weights + channels,
                backward_kernels=2.0,
            )
        )

    def normalization(self, *, keeps_output: bool = False) -> None:
        """Batch normalisation; keeps its input, and its output where nothing overwrites that."""
        kept = 2.0 if keeps_output else 1.0
        parameters = 2.0 * self.channels
        self._pass("batch normalization", 3.0, 5.0, kept=kept, parameters=parameters)

    def activation(self) -> None:
        """An elementwise function; what it writes is kept."""
        self._pass("activation", 2.0, 3.0, kept=1.0)

    def residual_sum(self) -> None:
        """The sum of two branches, in place; backward, the sum of their gradients."""
        self._pass("residual sum", 3.0, 3.0)

    def max_pool(self, kernel: int, *, stride: int, padding: int = 0) -> None:
        """The largest of a window; keeps the place where it was as 64-bit indices."""
        before = self.elements
        self.size = (self.size + 2 * padding - kernel) // stride + 1
        moved = before + self.elements
        self.layers.append(
            Layer(
                name="pooling",
                moved=moved,
                moved_back=moved,
                kept=self.elements,
                kept_bytes=_INDEX_BYTES * self.elements,
                matrix=False,
            )
        )

    def average(self) -> None:
        """The mean over the whole image."""
        before = self.elements
        self.size = 1
        moved = before + self.elements
        self.layers.append(
            Layer(name="pooling", moved=moved, moved_back=moved, kept=self.elements, matrix=False)
        )

    def concatenation(self, channels: int) -> None:
        """`channels` more channels of this size copied beside the present ones."""
        self.channels += channels
        self._pass("concatenation", 2.0, 2.0, kept=1.0)

    def squeeze_excitation(self, squeezed: int) -> None:
        """A weight for each channel, computed from the channel's mean [1]_.

        Reads the image for the means and again for the product; backward it is read for the
        weights' gradient, and its own gradient passes the product and the mean.

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
                moved_back=6.0 * elements,
                weights=weights,
                parameters=weights + squeezed + self.channels,
                kept=elements,
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
                macs=weights,
                moved=before + features,
                moved_back=2.0 * (before + features),
                weights=weights,
                parameters=weights + features,
                backward_kernels=2.0,
            )
        )
        self.channels, self.size = features, 1

    def _pass(
        self,
        name: str,
        forward: float,
        backward: float,
        *,
        kept: float = 0.0,
        parameters: float = 0.0,
    ) -> None:
        """A kernel that moves the whole tensor `forward` and `backward` times."""
        elements = self.elements
        self.layers.append(
            Layer(
                name=name,
                moved=forward * elements,
                moved_back=backward * elements,
                kept=kept * elements,
                parameters=parameters,
                matrix=False,
            )
        )
