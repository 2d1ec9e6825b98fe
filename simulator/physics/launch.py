"""Time of the host that launches the kernels of a layer."""

from __future__ import annotations

from typing import Final

from simulator.equations.pipeline import layer_time, overlapped
from simulator.equations.stragglers import expected_slowest
from simulator.physics import adapters
from simulator.physics.description import Description
from simulator.physics.kernels import Both
from simulator.schema.workload.kernels import LAYER_KERNELS, SMALL_KERNELS, Kernels
from simulator.terms import Term, term
from simulator.units import Real, Seconds, at_most, where

_PRODUCTS: Final = LAYER_KERNELS[0] - SMALL_KERNELS[0]
"""Matrix products of a layer's forward pass."""
_OF_WEIGHTS: Final = 2.0
"""Kernels for the gradient of a weight: its product, and its sum with what is there."""


def layer(d: Description, k: Kernels) -> Both:
    """Launches of one layer; ranks that reduce together wait for the slowest."""
    together = at_most(d.layout.tensor, d.layout.domain)
    factor = (1.0 + k.launch.jitter * expected_slowest(together)) * k.launch.factor
    one_kernel = (d.work.fused_attention > 0) | (d.work.fused_softmax > 0)
    scores = where(one_kernel, 0.0, k.launch.unfused)
    collective = where(d.layout.tensor > 1, k.launch.collective, 0.0)
    host = of_kernels(_number(d), k)
    return Both(
        (host.forward + scores + collective) * factor,
        (host.backward + 0.5 * scores + collective) * factor,
    )


def of_kernels(number: Both, k: Kernels) -> Both:
    """Launches of so many kernels, one by one."""
    return Both(number.forward * k.launch.forward, number.backward * k.launch.backward)


def _number(d: Description) -> Both:
    """Kernels of a layer, with those of adapters; frozen weights need fewer."""
    own = adapters.number(d)
    frozen = _OF_WEIGHTS * _PRODUCTS * (1.0 - d.work.learned)
    forward, backward = adapters.KERNELS
    return Both(
        LAYER_KERNELS[0] + forward * own + _PRODUCTS * d.work.widened,
        LAYER_KERNELS[1] + backward * own - frozen + _PRODUCTS * d.work.widened,
    )


def experts(d: Description, k: Kernels) -> Seconds | Real:
    """Routing and dispatch of a pass of a layer, on average over the layers [s]."""
    longer = where(d.layout.overlapped_experts > 0, k.launch.overlapped_experts, 1.0)
    return k.launch.experts * d.shape.routed * longer


def beside(k: Kernels, device: Term | Real, host: Term | Real) -> Term:
    """A piece of work on both timelines; one after the other where launches block."""
    return term(overlapped, one=device, other=host, sharpness=k.launch.blend)


def layer_beside(
    d: Description, k: Kernels, device: Term | Real, host: Real, routing: Real
) -> Term:
    """As `beside` for a layer; the host takes turns where it waits for counts of tokens."""
    waits = d.work.waits > 0
    return term(
        layer_time,
        device=device,
        launches=where(waits, host, host + routing),
        sharpness=k.launch.blend,
        in_turn=where(waits, routing, 0.0),
    )
