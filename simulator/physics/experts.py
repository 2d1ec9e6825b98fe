"""Layers of experts beside their products: permutation, activation, casts, exchange."""

from __future__ import annotations

from simulator.physics.description import Description
from simulator.physics.exchange import all_to_all
from simulator.physics.kernels import Both, bandwidth, cast_bytes
from simulator.physics.shapes import tokens
from simulator.schema.workload.kernels import Kernels
from simulator.units import Real, Seconds, where


def passes(d: Description, k: Kernels) -> Both:
    """Permutation there and back, activation functions and casts, on average over the layers."""
    s, sent, size = d.shape, tokens(d) / d.layout.tensor, d.work.element
    rows = sent * s.top_k
    fused = where(d.work.fused_experts > 0, k.expert.fused, 1.0)
    eager = where(d.work.eager_activation > 0, k.expert.eager, 1.0) * fused
    cast = cast_bytes(d, k) * fused
    inside, shared = rows * s.expert_ffn * eager, sent * s.shared_ffn
    moved = rows * s.hidden * size * 8.0 + (inside + shared) * 3.0 * size
    moved = moved + cast * rows * (s.hidden + s.expert_ffn)
    back = rows * s.hidden * size * 10.0 + (inside + shared) * 5.0 * size
    back = back + cast * rows * (s.hidden + 2.0 * s.expert_ffn)
    factor = where(s.gated > 0, k.kernel.gated, k.kernel.plain) / bandwidth(d, k)
    return Both(moved, back).times(factor * s.routed)


def exchange(d: Description, k: Kernels) -> Seconds | Real:
    """Dispatch and combination of tokens in one pass, on average over the layers [s]."""
    rows, width = tokens(d) / d.layout.tensor, d.work.element * d.shape.hidden
    both: Real = 2.0 * all_to_all(rows, width, d, k) * d.shape.routed
    return both
