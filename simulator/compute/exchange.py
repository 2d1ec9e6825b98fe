"""Communication of a spread model: inside layers, between stages, of gradients and parameters."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.compute.description import Description
from simulator.compute.traffic import placed
from simulator.equations.dispatch import distinct_places
from simulator.scenario.workload.kernels import Kernels
from simulator.units import (
    SECOND,
    Bytes,
    BytesPerSecond,
    Real,
    Seconds,
    at_least,
    at_most,
    parse,
    plain,
    rounded_up,
    where,
)

_HOP_SMALL: Final = parse("1 us", SECOND)
_HOP: Final = parse("2 us", SECOND)
"""Time of a hop of a ring inside a machine, by the protocol for small messages and that for large
ones, which waits twice for the start."""
_SMALL: Final = 0.35
"""Rate of the protocol for small messages: it sends a flag with every word."""


def inside(size: Bytes | Real, ranks: Real, d: Description, k: Kernels) -> Seconds | Real:
    """All-reduce over ranks of one machine by the better of two protocols [s]."""
    hops, rate = 2.0 * (ranks - 1.0), d.device.link * k.exchange.link
    moved = hops / ranks * size
    small = k.exchange.latency + hops * _HOP_SMALL + moved / (_SMALL * rate)
    large = 2.0 * k.exchange.latency + hops * _HOP + moved / rate
    return where(ranks > 1, at_most(small, large), 0.0)


def tensor_all_reduce(size: Bytes | Real, d: Description, k: Kernels) -> Seconds | Real:
    """All-reduce of a tensor-parallel group; over machines all their cards take part [s]."""
    machines = rounded_up(d.layout.tensor / d.layout.domain)
    local = inside(size, at_most(d.layout.tensor, d.layout.domain), d, k)
    moved = 2.0 * (machines - 1.0) / machines * size
    latency = 2.0 * (machines - 1.0) * k.exchange.network_latency
    between = moved / (d.device.network * k.exchange.network) + latency
    return local + where(machines > 1, between, 0.0)


def ring(
    size: Bytes | Real, ranks: Real, d: Description, k: Kernels, *, apart: Real = 1.0
) -> Seconds | Real:
    """Gather or scatter of `size` bytes in all over data-parallel ranks, `apart` replicas each [s].

    The groups of a machine share its network; one that holds a part of its devices does not reach
    all of its cards.
    """
    local, machines = placed(ranks, d, apart=apart)
    groups = d.layout.domain / local
    link = (ranks - 1.0) / ranks * size / (d.device.link * k.exchange.link_gradients)
    partly = (local > 1) & (local < d.layout.domain)
    reached = k.exchange.network_gradients * where(partly, k.exchange.part, 1.0)
    crossing = at_least(machines - 1.0, 0.0) / at_least(machines, 1.0) * size * groups
    network = crossing / (d.device.network * reached)
    latency = k.exchange.network_latency * plain(np.log2(at_least(ranks, 1.0)))
    return where(ranks > 1, at_least(link, network) + latency, 0.0)


def send(size: Bytes | Real, d: Description, k: Kernels) -> Seconds | Real:
    """Send to the next stage; between machines all devices of one send at once [s]."""
    layout, link = d.layout, d.device.link * k.exchange.link
    scattered = layout.scattered_sends > 0
    part = size / where(scattered, layout.tensor, 1.0)
    stage = layout.tensor * layout.context * layout.replicas
    crosses = (stage >= layout.domain) & (layout.devices > layout.domain)
    together = part * at_most(layout.domain, layout.devices)
    network = together / (d.device.network * k.exchange.network_sends)
    gathered = where(scattered, size / link, 0.0)
    time = where(crosses, network + gathered, part / link) + k.exchange.network_latency
    return where(layout.pipeline > 1, time, 0.0)


def all_to_all(rows: Real, width: Bytes | Real, d: Description, k: Kernels) -> Seconds | Real:
    """Tokens to the ranks of their experts [s].

    Parameters
    ----------
    rows : float or array
        Tokens a device sends, each to `top_k` experts: a copy for each, or one for each rank inside
        the machine and each machine beyond it.
    width : float or array
        Bytes of a token [B].
    """
    ranks, choices, once = d.layout.expert, d.shape.top_k, d.layout.deduplicated > 0
    local = at_most(ranks, d.layout.domain)
    machines = ranks / local
    near = where(once, distinct_places(ranks, choices), choices) * (1.0 - 1.0 / local)
    far = where(once, distinct_places(machines, choices), choices) * (1.0 - 1.0 / machines)
    here = where(machines > 1, near / machines, near)
    link = rows * width * here / (d.device.link * k.exchange.link_experts)
    network = rows * width * far / (_own_network(d) * k.exchange.network_experts)
    return where(ranks > 1, link + network + k.exchange.network_latency, 0.0)


def _own_network(d: Description) -> BytesPerSecond | Real:
    """A device's part of its machine's network [B/s]."""
    return d.device.network / d.layout.domain
