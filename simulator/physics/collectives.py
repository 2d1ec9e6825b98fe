"""Time of collectives over ranks of a job, from measured curves if available, else from links.

A *team* is a set of ranks that communicate; where it spans machines, it has the same number on
each. Inside a machine time follows from the link between accelerators, between machines from the
machine's network. Inside and between overlap, since large messages are cut in chunks: the slower of
them counts.

A measured curve holds for its own number of ranks. It is carried over to other numbers by its bus
bandwidth, which does not depend on them inside a machine, and by the bytes that have to pass a
machine's network between machines. Training of any kind reads the same curves: the all-reduce of
data-parallel ranks for one team (`pace_inside`), sharded language models for arrays of teams
(`in_machine`).

Latency grows with the hops of the operation over machines. A gather or a scatter passes each rank's
part on to the next rank, which takes a step for each other rank; an all-reduce may go up and down a
tree over the machines instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from simulator.equations.collectives import ring_wire_bytes, shard_bytes
from simulator.records import dataclass
from simulator.schema.machines import Collective, Curve, Host, Link, PeerTopology, Regime
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
    where,
)

HOP: Final = parse("2 us", SECOND)
"""Time of a hop of a ring inside a machine."""
HOP_REMOTE: Final = parse("15 us", SECOND)
"""Time of a hop between machines where no collective over the network was measured; a guess."""


def between_latency(
    operation: Collective, machines: Real, far: Seconds | Real = HOP_REMOTE
) -> Seconds | Real:
    """Return the latency of a collective over machines with one rank on each [s].

    Examples
    --------
    Up and down a tree over 8 machines, and round a ring of them:

    >>> operations = (Collective.ALL_REDUCE, Collective.ALL_GATHER)
    >>> [round(between_latency(operation, 8.0), 9) for operation in operations]
    [9e-05, 0.000105]
    """
    if operation is Collective.ALL_REDUCE:
        return all_reduce_latency(machines, machines, 0.0, far)
    if operation in _IN_TURN:
        return ring_latency(machines, machines, 0.0, far)
    return where(machines > 1, far, 0.0)


_IN_TURN: Final = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
"""Operations that pass each rank's part on to the next one."""


def ring_latency(
    ranks: Real, machines: Real, near: Seconds | Real, far: Seconds | Real
) -> Seconds | Real:
    """Return the latency of a ring all-gather or reduce-scatter [s].

    Parameters
    ----------
    ranks, machines : float or array
        Number of ranks in the ring, and of machines that host them.
    near, far : float or array
        Latency of a hop inside a machine, and of one to another machine [s]. All ranks send at the
        same time, so that the slowest hop counts.

    Examples
    --------
    >>> ring_latency(8.0, 1.0, 2e-6, 5e-6), ring_latency(101.0, 13.0, 2e-6, 5e-6)
    (1.4e-05, 0.0005)
    """
    return at_least(ranks - 1.0, 0.0) * where(machines > 1, far, near)


def all_reduce_latency(
    ranks: Real, machines: Real, near: Seconds | Real, far: Seconds | Real
) -> Seconds | Real:
    """Return the latency of an all-reduce over a ring or a tree, whichever is lower [s].

    Examples
    --------
    On 64 machines of 8, 2 x (7 x 2 us + 6 x 5 us):

    >>> round(all_reduce_latency(512.0, 64.0, 2e-6, 5e-6), 9)
    8.8e-05
    """
    local = ranks / at_least(machines, 1.0)
    depth = plain(np.log2(at_least(machines, 1.0)))
    tree = at_least(local - 1.0, 0.0) * near + depth * far
    return 2.0 * at_most(ring_latency(ranks, machines, near, far), tree)


EFFICIENCY: Final = 0.8
"""Share of a datasheet's rate that collectives reach where nothing was measured: 235 of 300 GB/s
over NVLink 3, 366 of 450 over NVLink 4, 682 of 900 over NVLink 5 (ml-engineering, network)."""
LOCAL_LATENCY: Final = parse("10 us", SECOND)
"""What an empty collective inside a machine takes where nothing was measured; a guess."""
HYBRID_MESH: Final = ((2.0, 1.0 / 6.0), (4.0, 4.0 / 6.0), (8.0, 1.0))
"""Share of a device's links that join the first n of the 8 devices of a hybrid cube mesh: GPU 0 of
a DGX-1V has 1 of its 6 links to GPU 1 and 4 to GPUs 1 to 3 (``nvidia-smi topo -m``)."""
Pace: TypeAlias = tuple[Real, Real]
"""What an empty message takes [s], and the rate that large ones near [B/s]."""


@dataclass(frozen=True, slots=True)
class Protocols:
    """Latency [s] and bus bandwidth [B/s] of the protocols for small and for large messages."""

    small_latency: Seconds | Real
    small_rate: BytesPerSecond | Real
    large_latency: Seconds | Real
    large_rate: BytesPerSecond | Real

    def time(self, moved: Bytes | Real, share: Real = 1.0) -> Seconds | Real:
        """Return the time to send `moved` bytes by the faster protocol [s].

        `share` scales the bandwidth of both.
        """
        return at_most(
            self.small_latency + moved / (self.small_rate * share),
            self.large_latency + moved / (self.large_rate * share),
        )


@dataclass(frozen=True, slots=True)
class InMachine:
    """Protocols of a collective over 2, 4 and 8 accelerators of one machine."""

    two: Protocols
    four: Protocols
    eight: Protocols

    def over(self, ranks: Real) -> Protocols:
        """Return the protocols over `ranks`: interpolated linearly, clamped outside 2 to 8."""
        past_two = at_most(at_least(0.5 * ranks - 1.0, 0.0), 1.0)
        past_four = at_most(at_least(0.25 * ranks - 1.0, 0.0), 1.0)
        pairs = (
            (getattr(self.two, name), getattr(self.four, name), getattr(self.eight, name))
            for name in Protocols.__slots__
        )
        return Protocols(
            *(
                two + past_two * _difference(two, four) + past_four * _difference(four, eight)
                for two, four, eight in pairs
            )
        )


def _difference(low: Real, high: Real) -> Real:
    """Return ``high - low``, which is 0 between equal values, infinite ones included."""
    equal = low == high
    return where(equal, 0.0, high) - where(equal, 0.0, low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A group of ranks that communicate: their number, and the number of their machines."""

    ranks: Real
    machines: Real = 1


def wire_bytes(operation: Collective, size: Real, ranks: Real) -> Real:
    """Return the bytes that each rank sends [B]; bus bandwidth is defined over them."""
    if operation is Collective.SEND:
        return size
    whole = operation is Collective.ALL_REDUCE
    return ring_wire_bytes(size, ranks) if whole else shard_bytes(size, ranks)


def pace_inside(operation: Collective, size: Real, ranks: int, host: Host) -> Pace:
    """Return latency [s] and bus bandwidth [B/s] of a collective inside a machine.

    They are those of the fastest measured regime for a buffer of `size` bytes.
    """
    link = host.peer_link or host.host_link
    if link is None:
        return 0.0 * size, np.inf + 0.0 * size
    return _fastest(
        _local_regimes(operation, ranks, link, host), wire_bytes(operation, size, ranks)
    )


def in_machine(operation: Collective, host: Host, share: float = 1.0) -> InMachine:
    """Return the protocols of a collective inside a machine, at a share of the bus bandwidth."""
    link = host.peer_link or host.host_link
    if link is None:
        free = Protocols(0.0, np.inf, 0.0, np.inf)
        return InMachine(free, free, free)
    return InMachine(*(_protocols(operation, ranks, link, host, share) for ranks in (2, 4, 8)))


def _protocols(
    operation: Collective, ranks: int, link: Link, host: Host, share: float
) -> Protocols:
    """Return the regime of lowest latency and the regime of highest bandwidth, as protocols."""
    ways = _local_regimes(operation, ranks, link, host)
    small = min(ways, key=lambda way: way.latency)
    large = max(ways, key=lambda way: way.bandwidth)
    return Protocols(small.latency, small.bandwidth * share, large.latency, large.bandwidth * share)


def _fastest(regimes: Sequence[Regime], moved: Real) -> Pace:
    """Return latency [s] and bandwidth [B/s] of the fastest regime to send `moved` bytes."""
    latency: Real = np.inf + 0.0 * moved
    bandwidth: Real = 1.0 + 0.0 * moved
    for regime in regimes:
        better = regime.latency + moved / regime.bandwidth < latency + moved / bandwidth
        latency = np.where(better, regime.latency, latency)
        bandwidth = np.where(better, regime.bandwidth, bandwidth)
    return latency, bandwidth


def _local_regimes(operation: Collective, ranks: int, link: Link, host: Host) -> list[Regime]:
    """Return the regimes over the links, and those with in-switch reduction if available."""
    local = [curve for curve in link.collective if curve.machines == 1]
    measured = [c for c in local if c.operation is operation]
    plain = [c for c in measured if not c.in_switch] or [
        c for c in local if c.operation is Collective.ALL_REDUCE and not c.in_switch
    ]
    ways = (
        [*_regimes_at(plain, ranks)] if plain else [_datasheet_regime(link, reachable(ranks, host))]
    )
    helped = [c for c in measured if c.in_switch]
    if helped and min(c.ranks for c in helped) <= ranks <= max(c.ranks for c in helped):
        ways += _regimes_at(helped, ranks)
    return ways


def _datasheet_regime(link: Link, share: float) -> Regime:
    rate: BytesPerSecond = share * (link.achievable or EFFICIENCY * link.peak)
    return Regime(latency=link.latency or LOCAL_LATENCY, bandwidth=rate)


def reachable(ranks: int, host: Host) -> float:
    """Return the share of a device's links that lead to the first `ranks` devices of a machine.

    Behind a switch that is 1; in a mesh only the direct links to the other devices of the team
    count.
    """
    if host.peer_topology is not PeerTopology.MESH or host.gpu_count <= int(HYBRID_MESH[0][0]):
        return 1.0
    counts, shares = zip(*HYBRID_MESH, strict=True)
    return float(np.interp(ranks, counts, shares))


def _regimes_at(curves: Sequence[Curve], ranks: int) -> tuple[Regime, ...]:
    """Return the regimes for a number of ranks, interpolated between measured ones."""
    ordered = sorted(curves, key=lambda curve: curve.ranks)
    for low, high in pairwise(ordered):
        if low.ranks <= ranks <= high.ranks:
            share = (ranks - low.ranks) / (high.ranks - low.ranks)
            both = zip(low.regimes, high.regimes, strict=False)
            return tuple(_with_latency(_interpolated(a, b, share)) for a, b in both)
    nearest = ordered[0] if ranks < ordered[0].ranks else ordered[-1]
    return tuple(_with_latency(regime) for regime in nearest.regimes)


def _interpolated(low: Regime, high: Regime, share: float) -> Regime:
    return Regime(
        latency=low.latency + share * (high.latency - low.latency),
        bandwidth=low.bandwidth + share * (high.bandwidth - low.bandwidth),
    )


def _with_latency(regime: Regime) -> Regime:
    return Regime(latency=regime.latency or LOCAL_LATENCY, bandwidth=regime.bandwidth)


def crossing_bytes(operation: Collective, size: Real, machines: Real) -> Real:
    """Return the bytes that each machine of a team sends to other machines [B].

    They are those of a ring over the machines, each of which holds the whole buffer once.
    """
    return wire_bytes(operation, size, machines)


def pace_between(operation: Collective, size: Real, members: Team, host: Host) -> Pace:
    """Return latency [s] and rate through a machine's network [B/s] of a collective.

    They are those of the fastest measured regime for a buffer of `size` bytes, else of the network.
    """
    empty = between_latency(operation, plain(members.machines))
    crossing = crossing_bytes(operation, size, members.machines)
    link = None if host.network is None else host.network.link
    measured = [] if link is None else [c for c in link.collective if c.machines > 1]
    same_operation = [c for c in measured if c.operation is operation]
    if same_operation:
        nearest = min(
            same_operation, key=lambda curve: abs(np.log(curve.machines / members.machines))
        )
        return _fastest(
            [_regime_through_network(r, nearest, empty) for r in nearest.regimes], crossing
        )
    return empty + 0.0 * crossing, network_rate(host) + 0.0 * crossing


def _regime_through_network(regime: Regime, curve: Curve, empty: Seconds | Real) -> Regime:
    """Return a measured regime in terms of network rate, with the latency `empty`.

    Its bandwidth is bus bandwidth; the result is the rate of a machine's network. `empty` is the
    latency of an empty message over the machines of this team [s].
    """
    byte: Bytes = 1.0
    over_links = wire_bytes(curve.operation, byte, curve.ranks)
    over_network = crossing_bytes(curve.operation, byte, curve.machines)
    measured = between_latency(curve.operation, float(curve.machines))
    return Regime(
        latency=regime.latency * float(empty / measured),
        bandwidth=regime.bandwidth * float(over_network / over_links),
    )


def network_rate(host: Host) -> BytesPerSecond:
    """Return the rate of collectives over a machine's network if no curve was measured [B/s]."""
    network = host.network
    if network is None:
        return np.inf
    achieved = None if network.link is None else network.link.achievable
    return achieved or EFFICIENCY * network.bandwidth
