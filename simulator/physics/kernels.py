"""Time of a transformer's kernels on one device, and of the host that launches them.

Matrix products of any model family are timed at once, as one array. Attention, norms, activations,
casts and the update follow from their arithmetic and traffic at fitted shares of the datasheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.equations.pipeline import device_work, layer_time, overlapped
from simulator.equations.roofline import memory_time, product_time, product_traffic, throttled
from simulator.equations.step import expected_slowest
from simulator.memo import cached
from simulator.physics.parameters import (
    ADAPTER_KERNELS,
    adapter_traffic,
    adapters_per_layer,
    attended,
    layer_parameters,
    learned_table,
    padded_vocabulary,
    scored_tokens,
    sharers,
    tables_held,
    tokens,
)
from simulator.physics.transformer import Device, Recomputation, TransformerStep
from simulator.records import dataclass
from simulator.schema.models import DROPOUT, FUNCTION, GATE, NORM, SUM, TURN, Product
from simulator.schema.software import LAYER_KERNELS, SMALL_KERNELS, Kernels, ProductFigures
from simulator.terms import Term, term
from simulator.units import (
    Bytes,
    BytesPerSecond,
    FlopsPerSecond,
    Real,
    Seconds,
    at_least,
    at_most,
    where,
)

Array = NDArray[np.float64]


class Gemms(NamedTuple):
    """Matrix products as arrays: rows are products, columns candidates.

    Each is `m` x `inner` times `inner` x `n`; `batch` of them run at once, `repeat` times one after
    another. `traffic` is the memory traffic of all repeats [B]. With `three_passes`, arrays have a
    leading dimension for the pass.
    """

    m: Array
    n: Array
    inner: Array
    batch: Array
    repeat: Array | float
    traffic: Array


class Units(NamedTuple):
    """Rates of matrix products that use the best tile on all multiprocessors.

    `rate` is that of all multiprocessors [FLOP/s], `bandwidth` that of device memory [B/s]. `tiles`
    are computed at once, one on each multiprocessor; `figures` are fitted efficiencies.
    """

    rate: FlopsPerSecond | Real
    bandwidth: BytesPerSecond | Real
    tiles: Real
    figures: ProductFigures


def gemm_seconds(gemms: Gemms, units: Units) -> Array:
    """Return the time of products: with the best tile and split, or of their memory traffic [s]."""
    figures = units.figures
    shape = units.tiles, figures.tile_half, figures.wave, figures.fill
    best = product_time(
        gemms.m, gemms.n, gemms.inner, gemms.batch, units.rate, units.bandwidth, *shape
    )
    longest: Array = np.maximum(gemms.repeat * best, memory_time(gemms.traffic, units.bandwidth))
    return longest


def three_passes(m: Array, n: Array, inner: Array) -> tuple[Array, Array, Array]:
    """Return m, n and inner of a product, of its input gradient and its weight gradient."""
    return np.array((m, m, n)), np.array((n, inner, inner)), np.array((inner, n, m))


def forward_and_backward(gemms: Gemms, units: Units) -> tuple[Array, Array]:
    """Return the times of products in the forward pass and of their gradients [s].

    Arrays have the leading dimension of `three_passes`.
    """
    forward, inputs, weights = gemm_seconds(gemms, units)
    return forward, inputs + weights


def stacked(rows: Sequence[Sequence[Real]]) -> Array:
    """Stack rows of values into an array of shape (values, rows, candidates)."""
    if not any(isinstance(value, np.ndarray) for row in rows for value in row):
        return np.array(rows, dtype=float).T[:, :, None]
    alike = np.array(np.broadcast_arrays(*(value for row in rows for value in row)), dtype=float)
    return alike.reshape(len(rows), len(rows[0]), -1).transpose(1, 0, 2)


def product_times(
    products: Sequence[Product], step: TransformerStep, kernels: Kernels
) -> tuple[Array, Array]:
    """Return the time of each product, forward and for those gradients that are needed [s]."""
    return _product_times(
        tuple(products), step.device, (step.work.width, step.work.element), kernels
    )


# Consecutive candidates of a search mostly share the products of a layer.
@cached(most=4096, by_value=(tuple, Device))
def _product_times(
    products: tuple[Product, ...],
    device: Device,
    widths: tuple[Bytes | Real, Bytes | Real],
    kernels: Kernels,
) -> tuple[Array, Array]:
    m, n, inner, batch, share, low, aligned, learned = stacked(products)
    m, n, inner = three_passes(m, n, inner)
    width, result = np.where(low > 0, *widths), widths[1]
    moved = share * batch * product_traffic(m, n, inner, width, result)
    peak = np.where(low > 0, device.peak, device.peak16)
    units = Units(
        rate=peak * (np.where(low > 0, kernels.product.share, kernels.product.share16) * aligned),
        bandwidth=np.asarray(device.bandwidth * kernels.kernel.memory, dtype=float),
        tiles=np.asarray(device.units, dtype=float),
        figures=kernels.product,
    )
    forward, inputs, weights = gemm_seconds(Gemms(m, n, inner, batch, share, moved), units)
    return forward, inputs + learned * weights


_TILE: Final = 128.0
"""Positions a fused attention kernel handles at once; half of a diagonal tile is wasted."""
_REPEATED: Final = 2.5
"""Work of a fused attention's backward pass over that of its forward pass: five products to two."""
_MASK: Final = 1.0
"""Bytes of a value's dropout mask [B]."""
_ONE_KERNEL: Final = (4.0, 6.0)
_MANY_KERNELS: Final = (26.0, 26.0)
"""Bytes of a score that scale, mask and softmax move, forward and backward [B]: in 16 bit for one
kernel, in fp32 in between for many."""
_EMBEDDED: Final = 15.0
"""How often an embedded value moves: looked up, dropped, cast, and its gradient."""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Times of a forward and of a backward pass [s]."""

    forward: Seconds | Real
    backward: Seconds | Real

    def __add__(self, other: PassTimes) -> PassTimes:
        """Return the sums of both passes."""
        return PassTimes(self.forward + other.forward, self.backward + other.backward)

    def times(self, factor: Real) -> PassTimes:
        """Return both passes, multiplied by `factor`."""
        return PassTimes(self.forward * factor, self.backward * factor)


NOTHING: Final = PassTimes(0.0, 0.0)
"""Passes that take no time."""
_NO_TIME: Final = 1e-300
"""A pass that takes no time [s]: nothing is busy in it."""


class PassTerms(NamedTuple):
    """Times of a forward and a backward pass, each with its equation and inputs."""

    forward: Term
    backward: Term

    @property
    def seconds(self) -> PassTimes:
        """Times of both passes [s]."""
        return PassTimes(self.forward.value, self.backward.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTimes:
    """Device time of a layer or a model by kind of kernel, and the host's launch time.

    `products` are matrix products at the full clock, `passes` kernels that only move memory,
    `starts` the start-up times of kernels on the device.
    """

    products: PassTimes
    attention: PassTimes
    passes: PassTimes
    starts: PassTimes
    host: PassTimes


def with_repeated_launches(host: PassTimes, recomputation: Recomputation) -> PassTimes:
    """Return launches (their time, or their number) with those of recomputation added."""
    return PassTimes(
        host.forward, host.backward + recomputation.layers * recomputation.launches * host.forward
    )


def device_terms(
    parts: KernelTimes,
    throttle: Real,
    recomputation: Recomputation,
    accumulated: Seconds | Real = 0.0,
) -> PassTerms:
    """Return the device time of the forward and the backward pass, as equations.

    Parameters
    ----------
    parts : KernelTimes
        Device time by kind of kernel.
    throttle : float or array
        Relative reduction of the clock if only matrix units work.
    recomputation : Recomputation
        Shares of the forward pass that the backward pass repeats.
    accumulated : float or array
        Time to add gradients to those of earlier micro-batches [s].
    """
    products = parts.products.times(_throttling(parts, throttle))
    attention, passes, starts = parts.attention, parts.passes, parts.starts
    again = recomputation.layers * (
        recomputation.products * products.forward
        + recomputation.attention * attention.forward
        + recomputation.passes * (passes.forward + starts.forward)
    )
    return PassTerms(
        term(
            device_work,
            products=products.forward,
            attention=attention.forward,
            passes=passes.forward,
            starts=starts.forward,
            again=0.0,
            accumulated=0.0,
        ),
        term(
            device_work,
            products=products.backward,
            attention=attention.backward,
            passes=passes.backward,
            starts=starts.backward,
            again=again,
            accumulated=accumulated,
        ),
    )


def _throttling(parts: KernelTimes, throttle: Real) -> Real:
    """Return the slowdown of matrix products by the clock at the power limit.

    It is smaller if the host takes longer to launch kernels than the device to run them.
    """
    busy, host = parts.products.forward + parts.products.backward, parts.host
    rest = parts.attention + parts.passes + parts.starts
    device = busy + rest.forward + rest.backward
    whole = at_least(device, host.forward + host.backward)
    return throttled(busy, at_least(whole, _NO_TIME), throttle)


def reached_bandwidth(step: TransformerStep, kernels: Kernels) -> BytesPerSecond | Real:
    """Return the achieved bandwidth of device memory [B/s]."""
    return step.device.bandwidth * kernels.kernel.memory


def score_traffic_time(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the times of softmax and dropout over attention scores in device memory [s]."""
    shape = step.shape
    scores = step.layout.micro_batch * shape.heads / step.layout.tensor * attended(step) ** 2
    seconds = scores / reached_bandwidth(step, kernels)
    dropped = 2.0 * step.work.element + _MASK
    pairs = zip(_ONE_KERNEL, _MANY_KERNELS, strict=True)
    moved = [where(step.work.fused_softmax > 0, fused, many) + dropped for fused, many in pairs]
    return PassTimes(seconds * moved[0], seconds * moved[1])


def fused_attention_time(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the times of fused attention [s]; causal kernels do half of the work."""
    shape, layout = step.shape, step.layout
    width = shape.heads * (shape.head_width + shape.value_width) / layout.tensor
    length = attended(step)
    work = 2.0 * layout.micro_batch * length**2 / layout.context * width * shape.attention_share
    work = work * where(shape.causal > 0, 0.5 * (1.0 + _TILE / length), 1.0)
    late = layout.unbalanced_context * kernels.kernel.unbalanced_context
    work = work * (1.0 + late * (1.0 - 1.0 / layout.context))
    seconds = work / (step.device.peak16 * kernels.kernel.attention)
    return PassTimes(seconds, _REPEATED * seconds / kernels.kernel.attention_backward)


def memory_kernels_time(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the times of norms, biases, dropout, activation, rotary embedding and casts [s]."""
    whole, split = _whole_bytes(step, kernels), _split_bytes(step, kernels)
    along = where(step.layout.sequence_parallel > 0, step.layout.tensor, 1.0)
    factor = where(
        step.shape.gated > 0, kernels.kernel.gated, kernels.kernel.plain
    ) / reached_bandwidth(step, kernels)
    beside = PassTimes(*adapter_traffic(step)) + PassTimes(*_widened_bytes(step))
    layer = whole.times(factor / along) + split.times(factor / step.layout.tensor)
    return layer + beside.times(1.0 / reached_bandwidth(step, kernels))


def _widened_bytes(step: TransformerStep) -> tuple[Bytes | Real, Bytes | Real]:
    """Return the memory traffic of dequantizing a layer's frozen weights in each pass [B]."""
    held, _ = layer_parameters(step)
    moved = step.work.widened * held * step.work.widening_bytes
    return moved, moved


def _whole_bytes(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the memory traffic of norms and residual sums in each pass [B].

    Tensor parallelism does not split it.
    """
    values, dropped = tokens(step) * step.shape.hidden, step.shape.dropout
    size = step.work.element
    norms, sums = 2.0 * NORM[0] * size, 2.0 * ((SUM[0] + DROPOUT[0] * dropped) * size + dropped)
    back = 2.0 * NORM[1] * size + 2.0 * (DROPOUT[1] * size + _MASK) * dropped + 2.0 * SUM[1] * size
    cast = 2.0 * cast_bytes(step, kernels)
    return PassTimes(values * (norms + sums + cast), values * (back + cast))


def _split_bytes(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the memory traffic in each pass that tensor-parallel ranks split [B].

    It is that of activation functions, and of transposes of attention heads.
    """
    shape, rows, cast, size = step.shape, tokens(step), cast_bytes(step, kernels), step.work.element
    inside = shape.ffn * (1.0 - shape.routed)
    function = inside * size * where(shape.gated > 0, GATE[0], FUNCTION[0])
    derived = inside * size * where(shape.gated > 0, GATE[1], FUNCTION[1] + shape.bias)
    sides, width = (
        (shape.heads + 2.0 * shape.kv_heads) * shape.head_width,
        shape.heads * shape.head_width,
    )
    apart = 1.0 - step.work.fused_attention
    moved = (sides + width) * TURN[0] * size * apart + sides * TURN[0] * size * shape.rotary
    back = moved + sides * size * shape.bias + width * 2.0 * size * step.work.fused_attention
    narrow = cast * (width + inside)
    narrow_back = cast * (sides + inside * (1.0 + shape.gated))
    return PassTimes(rows * (function + moved + narrow), rows * (derived + back + narrow_back))


def cast_bytes(step: TransformerStep, kernels: Kernels) -> Bytes | Real:
    """Return the memory traffic of casting a value to 8 bit or less [B]."""
    return where(step.work.low > 0, kernels.kernel.cast, 0.0)


def start_times(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the start-up times of small kernels of a layer on the device [s]."""
    adapters = adapters_per_layer(step)
    forward, backward = (
        n + more * adapters for n, more in zip(SMALL_KERNELS, ADAPTER_KERNELS, strict=True)
    )
    return PassTimes(forward * kernels.kernel.start, backward * kernels.kernel.start)


def loss_time(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the time of softmax and loss over the logits in one pass [s]."""
    scores = scored_tokens(step) * padded_vocabulary(step) / step.layout.tensor
    return 0.5 * scores * kernels.kernel.loss / reached_bandwidth(step, kernels)


def embedding_time(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the time of the embedding look-up for a micro-batch [s]."""
    return (
        tokens(step)
        * step.shape.hidden
        * _EMBEDDED
        * step.work.element
        / reached_bandwidth(step, kernels)
    )


def update_time(
    step: TransformerStep, kernels: Kernels, layers: Real, of_layer: Real
) -> Seconds | Real:
    """Return the device time of the optimizer step on a stage, or on its shard [s].

    It is 0 with an optimizer on the host.

    Parameters
    ----------
    layers : float or array
        Layers of the stage.
    of_layer : float or array
        Trainable parameters of a layer on this device.
    """
    split = at_least(step.layout.sharded_optimizer, step.layout.sharded) > 0
    parts = where(split, sharers(step), 1.0)
    updated = (of_layer * layers + learned_table(step) * tables_held(step)) / parts
    time = (
        updated * kernels.update.traffic / reached_bandwidth(step, kernels)
        + layers * kernels.update.layer
    )
    return (1.0 - step.layout.offloaded) * time


_FORWARD_PRODUCTS: Final = LAYER_KERNELS[0] - SMALL_KERNELS[0]
"""Matrix products of a layer's forward pass."""
_OF_WEIGHTS: Final = 2.0
"""Kernels for the gradient of a weight: its product, and its sum with what is there."""


def layer_launches(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the launch times of a layer [s]; tensor-parallel ranks wait for the slowest."""
    together = at_most(step.layout.tensor, step.layout.domain)
    factor = (1.0 + kernels.launch.jitter * expected_slowest(together)) * kernels.launch.factor
    one_kernel = (step.work.fused_attention > 0) | (step.work.fused_softmax > 0)
    scores = where(one_kernel, 0.0, kernels.launch.unfused)
    collective = where(step.layout.tensor > 1, kernels.launch.collective, 0.0)
    host = launch_time(_layer_kernels(step), kernels)
    return PassTimes(
        (host.forward + scores + collective) * factor,
        (host.backward + 0.5 * scores + collective) * factor,
    )


def launch_time(number: PassTimes, kernels: Kernels) -> PassTimes:
    """Return the time to launch `number` kernels in each pass [s]."""
    return PassTimes(
        number.forward * kernels.launch.forward, number.backward * kernels.launch.backward
    )


def _layer_kernels(step: TransformerStep) -> PassTimes:
    """Return the number of kernel launches of a layer in each pass, adapters included.

    Frozen weights need fewer.
    """
    adapters = adapters_per_layer(step)
    frozen = _OF_WEIGHTS * _FORWARD_PRODUCTS * (1.0 - step.work.learned)
    forward, backward = ADAPTER_KERNELS
    return PassTimes(
        LAYER_KERNELS[0] + forward * adapters + _FORWARD_PRODUCTS * step.work.widened,
        LAYER_KERNELS[1] + backward * adapters - frozen + _FORWARD_PRODUCTS * step.work.widened,
    )


def routing_time(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the host time of expert routing and dispatch in a pass, averaged over layers [s]."""
    longer = where(step.layout.overlapped_experts > 0, kernels.launch.overlapped_experts, 1.0)
    return kernels.launch.experts * step.shape.routed * longer


def overlapped_with_launches(kernels: Kernels, device: Term | Real, host: Term | Real) -> Term:
    """Return the time of device work that overlaps with its launches, as an equation."""
    return term(overlapped, one=device, other=host, sharpness=kernels.launch.blend)


def layer_overlapped_with_launches(
    step: TransformerStep, kernels: Kernels, device: Term | Real, host: Real, routing: Real
) -> Term:
    """Return the time of a layer in one pass, device work and launches overlapped.

    Routing is added instead if the host waits for the token counts of experts.
    """
    waits = step.work.waits > 0
    return term(
        layer_time,
        device=device,
        launches=where(waits, host, host + routing),
        sharpness=kernels.launch.blend,
        in_turn=where(waits, routing, 0.0),
    )
