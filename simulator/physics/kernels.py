"""Times of what is no plain matrix product: attention, norms, activations, casts, the update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from simulator.equations.gemm import throttled
from simulator.equations.pipeline import device_work
from simulator.physics import adapters
from simulator.physics.description import Description, Redone
from simulator.physics.shapes import (
    attended,
    layer_parameters,
    padded_vocabulary,
    scored_tokens,
    sharers,
    tokens,
)
from simulator.schema.workload.kernels import SMALL_KERNELS, Kernels
from simulator.schema.workload.models.layer import DROPOUT, FUNCTION, GATE, NORM, SUM, TURN
from simulator.terms import Term, term
from simulator.units import Bytes, BytesPerSecond, Real, Seconds, at_least, where

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
class Both:
    """Seconds of a forward and of a backward pass."""

    forward: Seconds | Real
    backward: Seconds | Real

    def __add__(self, other: Both) -> Both:
        """Both together."""
        return Both(self.forward + other.forward, self.backward + other.backward)

    def times(self, factor: Real) -> Both:
        """Both, a factor longer."""
        return Both(self.forward * factor, self.backward * factor)


NOTHING: Final = Both(0.0, 0.0)
"""Passes that take no time."""
_NO_TIME: Final = 1e-300
"""Stands for a pass that takes no time [s]: nothing is busy in it."""


class Terms(NamedTuple):
    """A forward and a backward pass, as values of the equations that gave them."""

    forward: Term
    backward: Term

    @property
    def seconds(self) -> Both:
        """What they take."""
        return Both(self.forward.value, self.backward.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Work of a layer, or of a whole model, by kind of kernel, and the host's time to launch it.

    `products` are at the whole clock, `passes` kernels that only move memory, `starts` what kernels
    take to start on the device.
    """

    products: Both
    attention: Both
    passes: Both
    starts: Both
    host: Both


def launched(host: Both, redone: Redone) -> Both:
    """Launches, with those that the backward pass does again: their time or their number."""
    return Both(host.forward, host.backward + redone.layers * redone.launches * host.forward)


def device_terms(
    parts: Parts, throttle: Real, redone: Redone, accumulated: Seconds | Real = 0.0
) -> Terms:
    """Work of a device in a forward and in a backward pass.

    Parameters
    ----------
    parts : Parts
        Its kinds of kernels.
    throttle : float or array
        How far the clock sinks when only matrix units work, as a share of it [1].
    redone : Redone
        What the backward pass does again.
    accumulated : float or array
        Gradients added to those of micro-batches before [s].
    """
    products = parts.products.times(_clock(parts, throttle))
    attention, passes, starts = parts.attention, parts.passes, parts.starts
    again = redone.layers * (
        redone.products * products.forward
        + redone.attention * attention.forward
        + redone.passes * (passes.forward + starts.forward)
    )
    return Terms(
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


def _clock(parts: Parts, throttle: Real) -> Real:
    """How much longer products take: the clock sinks with the time matrix units are busy.

    Where the host takes longer to launch the work than the device to do it, they are busy less.
    """
    busy, host = parts.products.forward + parts.products.backward, parts.host
    rest = parts.attention + parts.passes + parts.starts
    device = busy + rest.forward + rest.backward
    whole = at_least(device, host.forward + host.backward)
    return throttled(busy, at_least(whole, _NO_TIME), throttle)


def bandwidth(d: Description, k: Kernels) -> BytesPerSecond | Real:
    """Device memory bandwidth that kernels reach [B/s]."""
    return d.device.bandwidth * k.kernel.memory


def score_traffic(d: Description, k: Kernels) -> Both:
    """Softmax and dropout over scores that lie in memory."""
    s = d.shape
    scores = d.layout.micro_batch * s.heads / d.layout.tensor * attended(d) ** 2
    seconds = scores / bandwidth(d, k)
    dropped = 2.0 * d.work.element + _MASK
    pairs = zip(_ONE_KERNEL, _MANY_KERNELS, strict=True)
    moved = [where(d.work.fused_softmax > 0, one, many) + dropped for one, many in pairs]
    return Both(seconds * moved[0], seconds * moved[1])


def fused_attention(d: Description, k: Kernels) -> Both:
    """One kernel; a causal one does half of the work and the tiles on the diagonal."""
    s, layout = d.shape, d.layout
    width = s.heads * (s.head_width + s.value_width) / layout.tensor
    length = attended(d)
    work = 2.0 * layout.micro_batch * length**2 / layout.context * width * s.attention_share
    work = work * where(s.causal > 0, 0.5 * (1.0 + _TILE / length), 1.0)
    late = layout.unbalanced_context * k.kernel.unbalanced_context
    work = work * (1.0 + late * (1.0 - 1.0 / layout.context))
    seconds = work / (d.device.peak16 * k.kernel.attention)
    return Both(seconds, _REPEATED * seconds / k.kernel.attention_backward)


def passes(d: Description, k: Kernels) -> Both:
    """Norms, biases, dropout, activation, rotary positions and casts of a layer."""
    whole, split = _whole_bytes(d, k), _split_bytes(d, k)
    along = where(d.layout.sequence_parallel > 0, d.layout.tensor, 1.0)
    factor = where(d.shape.gated > 0, k.kernel.gated, k.kernel.plain) / bandwidth(d, k)
    beside = Both(*adapters.moved_bytes(d)) + Both(*_widened_bytes(d))
    own = whole.times(factor / along) + split.times(factor / d.layout.tensor)
    return own + beside.times(1.0 / bandwidth(d, k))


def _widened_bytes(d: Description) -> tuple[Bytes | Real, Bytes | Real]:
    """Bytes of bringing a layer's frozen weights to the width that they compute in [B]."""
    held, _ = layer_parameters(d)
    moved = d.work.widened * held * (d.work.frozen_bytes + d.work.element)
    return moved, moved


def _whole_bytes(d: Description, k: Kernels) -> Both:
    """Bytes of what tensor parallelism leaves whole: two norms, two residual sums with dropout."""
    values, dropped = tokens(d) * d.shape.hidden, d.shape.dropout
    size = d.work.element
    norms, sums = 2.0 * NORM[0] * size, 2.0 * ((SUM[0] + DROPOUT[0] * dropped) * size + dropped)
    back = 2.0 * NORM[1] * size + 2.0 * (DROPOUT[1] * size + _MASK) * dropped + 2.0 * SUM[1] * size
    cast = 2.0 * cast_bytes(d, k)
    return Both(values * (norms + sums + cast), values * (back + cast))


def _split_bytes(d: Description, k: Kernels) -> Both:
    """Bytes of what tensor-parallel ranks share: activation function, layout of heads."""
    s, rows, cast, size = d.shape, tokens(d), cast_bytes(d, k), d.work.element
    inside = s.ffn * (1.0 - s.routed)
    function = inside * size * where(s.gated > 0, GATE[0], FUNCTION[0])
    derived = inside * size * where(s.gated > 0, GATE[1], FUNCTION[1] + s.bias)
    sides, width = (s.heads + 2.0 * s.kv_heads) * s.head_width, s.heads * s.head_width
    apart = 1.0 - d.work.fused_attention
    moved = (sides + width) * TURN[0] * size * apart + sides * TURN[0] * size * s.rotary
    back = moved + sides * size * s.bias + width * 2.0 * size * d.work.fused_attention
    narrow = cast * (width + inside)
    narrow_back = cast * (sides + inside * (1.0 + s.gated))
    return Both(rows * (function + moved + narrow), rows * (derived + back + narrow_back))


def cast_bytes(d: Description, k: Kernels) -> Bytes | Real:
    """Bytes moved for each value brought to 8 bit or less [B]."""
    return where(d.work.low > 0, k.kernel.cast, 0.0)


def starts(d: Description, k: Kernels) -> Both:
    """Device time of small kernels beside their work."""
    own = adapters.number(d)
    forward, backward = (
        n + more * own for n, more in zip(SMALL_KERNELS, adapters.KERNELS, strict=True)
    )
    return Both(forward * k.kernel.start, backward * k.kernel.start)


def loss(d: Description, k: Kernels) -> Seconds | Real:
    """Softmax and loss over the scores, forward or backward [s]."""
    scores = scored_tokens(d) * padded_vocabulary(d) / d.layout.tensor
    return 0.5 * scores * k.kernel.loss / bandwidth(d, k)


def embedding(d: Description, k: Kernels) -> Seconds | Real:
    """Looking up a micro-batch's tokens [s]."""
    return tokens(d) * d.shape.hidden * _EMBEDDED * d.work.element / bandwidth(d, k)


def update(d: Description, k: Kernels, layers: Real, of_layer: Real) -> Seconds | Real:
    """The optimizer's step over the parameters of a stage, or over this replica's part [s].

    Nothing where the host does it.

    Parameters
    ----------
    layers : float or array
        Layers of the stage.
    of_layer : float or array
        Parameters of one of them on this device that learn.
    """
    split = at_least(d.layout.sharded_optimizer, d.layout.sharded) > 0
    parts = where(split, sharers(d), 1.0)
    own = (of_layer * layers + adapters.learned_table(d)) / parts
    time = own * k.update.traffic / bandwidth(d, k) + layers * k.update.layer
    return (1.0 - d.layout.offloaded) * time
