"""Communication of a spread model: inside layers, between stages, of gradients and parameters.

Inside a machine collectives take what NCCL was measured to take there (`network.collectives`), at
a share of its rate and with the framework's part before each; between machines they are rings and
trees at shares of the network's rate.
"""

from __future__ import annotations

from simulator.equations.collectives import ring_wire_bytes, shard_bytes
from simulator.physics.collectives import EFFICIENCY
from simulator.physics.description import Description
from simulator.physics.latency import HOP, all_reduce_latency, ring_latency
from simulator.physics.traffic import dispatched, passed_round, placed, sent_part
from simulator.schema.workload.kernels import Kernels
from simulator.units import (
    Bytes,
    BytesPerSecond,
    Real,
    Seconds,
    at_least,
    at_most,
    rounded_up,
    where,
)


def inside(size: Bytes | Real, ranks: Real, d: Description, k: Kernels) -> Seconds | Real:
    """All-reduce over ranks of one machine [s]; a scatter and a gather with sequence parallelism.

    What NCCL alone takes, and the framework's part of each.
    """
    part, share = k.exchange.latency, k.exchange.link
    shard, whole = shard_bytes(size, ranks), ring_wire_bytes(size, ranks)
    scattered = d.device.scatter.over(ranks).time(shard, share) + part
    gathered = d.device.gather.over(ranks).time(shard, share) + part
    summed = d.device.reduce.over(ranks).time(whole, share) + part
    time = where(d.layout.sequence_parallel > 0, scattered + gathered, summed)
    return where(ranks > 1, time, 0.0)


def tensor_all_reduce(
    size: Bytes | Real, d: Description, k: Kernels
) -> tuple[Seconds | Real, Seconds | Real]:
    """All-reduce of a tensor-parallel group: inside machines, and between them [s].

    Over machines all their cards take part, and the two stages follow each other.
    """
    machines = rounded_up(d.layout.tensor / d.layout.domain)
    local = inside(size, at_most(d.layout.tensor, d.layout.domain), d, k)
    moved = 2.0 * (machines - 1.0) / machines * size
    far = k.exchange.network_latency
    latency = 2.0 * ring_latency(machines, machines, far, far)
    between = moved / (d.device.network * k.exchange.network) + latency
    return local, where(machines > 1, between, 0.0)


def ring(  # noqa: PLR0913 - the group, and what it does
    size: Bytes | Real,
    ranks: Real,
    d: Description,
    k: Kernels,
    *,
    apart: Real = 1.0,
    messages: Real = 1.0,
) -> Seconds | Real:
    """Gather or scatter of `size` bytes in all over data-parallel ranks, `apart` replicas each [s].

    It comes in so many `messages`, each of which passes all ranks in turn.
    """
    _, machines = placed(ranks, d, apart=apart)
    far = k.exchange.network_latency + ring_latency(ranks, machines, HOP, k.exchange.ring)
    near = k.exchange.latency + d.device.gather.over(ranks).large_latency
    bytes_pass = _carried(size, ranks, d, k, apart)
    latency = messages * where(machines > 1, far, near)
    return where(ranks > 1, bytes_pass + latency, 0.0)


def all_reduce(  # noqa: PLR0913 - the group, and what it does
    size: Bytes | Real,
    ranks: Real,
    d: Description,
    k: Kernels,
    *,
    apart: Real = 1.0,
    messages: Real = 1.0,
) -> Seconds | Real:
    """All-reduce of `size` bytes over data-parallel ranks, by rings or a tree over machines [s]."""
    _, machines = placed(ranks, d, apart=apart)
    steps = all_reduce_latency(ranks, machines, HOP, k.exchange.ring)
    far = 2.0 * k.exchange.network_latency + steps
    near = k.exchange.latency + d.device.reduce.over(ranks).large_latency
    bytes_pass = 2.0 * _carried(size, ranks, d, k, apart)
    latency = messages * where(machines > 1, far, near)
    return where(ranks > 1, bytes_pass + latency, 0.0)


def _carried(
    size: Bytes | Real, ranks: Real, d: Description, k: Kernels, apart: Real
) -> Seconds | Real:
    """Bytes of a gather or scatter, in pieces, between machines and inside of them at once [s]."""
    return at_least(*_stages(size, ranks, d, k, apart))


def _stages(
    size: Bytes | Real, ranks: Real, d: Description, k: Kernels, apart: Real
) -> tuple[Seconds | Real, Seconds | Real]:
    """Time of a gather's bytes on links, and on the network [s].

    The groups of a machine share its network; one that holds a part of its devices does not reach
    all of its cards.
    """
    local, _ = placed(ranks, d, apart=apart)
    moved = passed_round(size, ranks, d, apart=apart)
    partly = (local > 1) & (local < d.layout.domain)
    reached = k.exchange.network_gradients * where(partly, k.exchange.part, 1.0)
    network = moved.outside / (_own_network(d) * reached)
    rate = d.device.gather.over(local).large_rate * k.exchange.link
    return moved.inside / rate, network


def channels(size: Bytes | Real, ranks: Real, d: Description, k: Kernels) -> Real:
    """Channels of a gather over those that fill the links between accelerators, at most 1.

    Each channel keeps a multiprocessor busy, and there are no more than the network can feed: all
    of them together are busy no longer than on a network as fast as the links.
    """
    _, network = _stages(size, ranks, d, k, 1.0)
    longer = network * (1.0 - at_most(d.device.network / d.device.link, 1.0))
    whole = ring(size, ranks, d, k)
    return where(whole > 0.0, at_most(1.0, 1.0 - longer / where(whole > 0.0, whole, 1.0)), 1.0)


def send(size: Bytes | Real, d: Description, k: Kernels) -> Seconds | Real:
    """Send of `size` bytes to the next stage [s]: the slowest, out of the machine where one ends.

    Each device sends through its own part of the machine's network.
    """
    layout, link = d.layout, d.device.link * EFFICIENCY * k.exchange.link
    scattered, part = layout.scattered_sends > 0, sent_part(size, d)
    crosses = layout.devices > layout.domain
    network = part / (_own_network(d) * k.exchange.network_sends)
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
    sent = dispatched(rows * width, d)
    local = at_most(d.layout.expert, d.layout.domain)
    rate = d.device.all_to_all.over(local).large_rate * k.exchange.link
    link = sent.inside / rate
    network = sent.outside / (_own_network(d) * k.exchange.network_experts)
    return where(d.layout.expert > 1, link + network + k.exchange.network_latency, 0.0)


def _own_network(d: Description) -> BytesPerSecond | Real:
    """A device's part of its machine's network [B/s]."""
    return d.device.network / d.layout.domain
