"""Collectives: bytes on the wire and time, latency plus bytes over bandwidth (alpha-beta).

`size` is the size of the whole buffer as nccl-tests counts it: what every rank ends up with for
all-gather, what every rank starts with for reduce-scatter and all-reduce. `bandwidth` is that of
one rank in one direction. With one rank everything takes no time.
"""

from __future__ import annotations

import numpy as np

from simulator.units import Real, at_least, where


def ring_wire_bytes(size: Real, ranks: Real) -> Real:
    """Bytes each rank sends in a ring all-reduce.

    Parameters
    ----------
    size : float or array
        Buffer size [B].
    ranks : float or array
        Ranks [1].

    Returns
    -------
    float or array
        Bytes on the wire per rank [B].

    Notes
    -----
    ``2 (n - 1) / n * size``, which no algorithm without help from switches can beat.

    References
    ----------
    .. [1] Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
       workstations", 2009, https://doi.org/10.1016/j.jpdc.2008.09.002

    Examples
    --------
    >>> ring_wire_bytes(100e6, 8)
    175000000.0
    """
    return 2.0 * (ranks - 1.0) / ranks * size


def shard_bytes(size: Real, ranks: Real) -> Real:
    """Bytes each rank sends in a ring all-gather or reduce-scatter.

    Parameters
    ----------
    size : float or array
        Buffer size [B].
    ranks : float or array
        Ranks [1].

    Returns
    -------
    float or array
        Bytes on the wire per rank [B].

    Notes
    -----
    ``(n - 1) / n * size``, half of an all-reduce.

    References
    ----------
    .. [1] Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
       MPICH", 2005, https://doi.org/10.1177/1094342005051521

    Examples
    --------
    >>> shard_bytes(100e6, 8)
    87500000.0
    """
    return (ranks - 1.0) / ranks * size


def exchanged_bytes(
    layers: Real, tensor: Real, experts: Real, parameters: Real, sends: Real
) -> Real:
    """Bytes a device of a spread model sends for one micro-batch.

    Parameters
    ----------
    layers : float or array
        Layers of its stage [1].
    tensor : float or array
        All-reduces of tensor parallelism, of one layer [B].
    experts : float or array
        Tokens to their experts and back, of one layer [B].
    parameters : float or array
        Gathers of sharded parameters and scatters of their gradients, of one layer [B].
    sends : float or array
        Activations and their gradients to other stages [B].

    Returns
    -------
    float or array
        Bytes sent [B].

    Notes
    -----
    ``layers * (tensor + experts + parameters) + sends``.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 3, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> exchanged_bytes(32.0, 100e6, 0.0, 50e6, 10e6)
    4810000000.0
    """
    return layers * (tensor + experts + parameters) + sends


def part_meanwhile(whole: Real, meanwhile: Real, otherwise: Real) -> Real:
    """Part of some bytes that passes in a part of the time they take.

    Parameters
    ----------
    whole : float or array
        All bytes [B].
    meanwhile : float or array
        The part of the time [s].
    otherwise : float or array
        The rest of it [s].

    Returns
    -------
    float or array
        Bytes of that part [B].

    Notes
    -----
    ``whole * meanwhile / (meanwhile + otherwise)``: they pass at one rate; none where no time does.

    References
    ----------
    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735 (demand: visits times service).

    Examples
    --------
    >>> part_meanwhile(4e9, 0.25, 0.75)
    1000000000.0
    """
    time = meanwhile + otherwise
    return where(time > 0.0, whole * meanwhile / where(time > 0.0, time, 1.0), 0.0)


def ring_all_reduce_time(size: Real, ranks: Real, bandwidth: Real, latency: Real) -> Real:
    """Time of a ring all-reduce.

    Parameters
    ----------
    size : float or array
        Buffer size [B].
    ranks : float or array
        Ranks [1].
    bandwidth : float or array
        Rate of a rank in one direction [B/s].
    latency : float or array
        Time of a step without bytes [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``2 (n - 1) latency + 2 (n - 1) / n * size / bandwidth``.

    References
    ----------
    .. [1] Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
       MPICH", 2005, https://doi.org/10.1177/1094342005051521
    .. [2] Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
       workstations", 2009, https://doi.org/10.1016/j.jpdc.2008.09.002

    Examples
    --------
    100 MB over 8 ranks of 100 GB/s with 5 us a step: 14 * 5 us + 1.75 ms.

    >>> round(ring_all_reduce_time(100e6, 8, 100e9, 5e-6), 9)
    0.00182
    """
    return 2.0 * (ranks - 1.0) * latency + ring_wire_bytes(size, ranks) / bandwidth


def ring_shard_time(size: Real, ranks: Real, bandwidth: Real, latency: Real) -> Real:
    """Time of a ring all-gather or reduce-scatter.

    Parameters
    ----------
    size : float or array
        Buffer size [B].
    ranks : float or array
        Ranks [1].
    bandwidth : float or array
        Rate of a rank in one direction [B/s].
    latency : float or array
        Time of a step without bytes [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``(n - 1) latency + (n - 1) / n * size / bandwidth``.

    References
    ----------
    .. [1] Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
       MPICH", 2005, https://doi.org/10.1177/1094342005051521

    Examples
    --------
    Half of the all-reduce above, 7 * 5 us + 0.875 ms:

    >>> round(ring_shard_time(100e6, 8, 100e9, 5e-6), 9)
    0.00091
    """
    return (ranks - 1.0) * latency + shard_bytes(size, ranks) / bandwidth


def tree_all_reduce_time(size: Real, ranks: Real, bandwidth: Real, latency: Real) -> Real:
    """Time of a pipelined double binary tree all-reduce.

    Parameters
    ----------
    size : float or array
        Buffer size [B].
    ranks : float or array
        Ranks [1].
    bandwidth : float or array
        Rate of a rank in one direction [B/s].
    latency : float or array
        Time of a step without bytes [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    Up the tree and down again: ``2 log2(n) latency + 2 size / bandwidth``. Two trees, in which an
    inner node of one is a leaf of the other, keep every rank's link full. At one rank nothing
    moves.

    References
    ----------
    .. [1] Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and
       scan", 2009, https://doi.org/10.1016/j.parco.2009.09.001

    Examples
    --------
    1 MB over 8 ranks of 100 GB/s with 5 us a step: 6 * 5 us + 20 us.

    >>> round(float(tree_all_reduce_time(1e6, 8, 100e9, 5e-6)), 9)
    5e-05
    """
    moves = np.where(np.asarray(ranks) > 1.0, 1.0, 0.0)
    time: Real = moves * (2.0 * np.log2(ranks) * latency + 2.0 * size / bandwidth)
    return time


def hierarchical_all_reduce_time(  # noqa: PLR0913 - two levels with their own link each
    size: Real,
    *,
    local_ranks: Real,
    nodes: Real,
    local_bandwidth: Real,
    node_bandwidth: Real,
    local_latency: Real,
    node_latency: Real,
) -> Real:
    """Time of an all-reduce over several machines, inside each first.

    Parameters
    ----------
    size : float or array
        Buffer size [B].
    local_ranks : float or array
        Ranks in a machine [1].
    nodes : float or array
        Machines [1].
    local_bandwidth : float or array
        Rate of a rank inside the machine in one direction [B/s].
    node_bandwidth : float or array
        Rate of a machine's network in one direction, all cards [B/s].
    local_latency : float or array
        Time of a step inside the machine without bytes [s].
    node_latency : float or array
        Time of a step between machines without bytes [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    Reduce-scatter inside, all-reduce of the parts between machines (all local ranks at once, so
    together they move `size` over the machine's network), all-gather inside:
    ``2 ring_shard(size, g, local) + ring_all_reduce(size, nodes, node)``.

    References
    ----------
    .. [1] Jia et al., "Highly Scalable Deep Learning Training System with Mixed-Precision:
       Training ImageNet in Four Minutes", 2018, section 3.4, https://arxiv.org/abs/1807.11205

    Examples
    --------
    100 MB, 2 machines of 8: inside 2 * 0.875 ms at 100 GB/s, between them 2 ms at 50 GB/s.

    >>> links = {"local_bandwidth": 100e9, "node_bandwidth": 50e9}
    >>> round(hierarchical_all_reduce_time(
    ...     100e6, local_ranks=8, nodes=2, local_latency=0.0, node_latency=0.0, **links), 9)
    0.00375
    """
    inside = ring_shard_time(size, local_ranks, local_bandwidth, local_latency)
    between = ring_all_reduce_time(size, nodes, node_bandwidth, node_latency)
    return 2.0 * inside + between


def distinct_places(places: Real, draws: Real) -> Real:
    """Expected number of equal places that independent draws hit.

    Parameters
    ----------
    places : float or array
        Places, one or more [1].
    draws : float or array
        Draws, each of any place [1].

    Returns
    -------
    float or array
        Places hit [1].

    Notes
    -----
    ``n (1 - (1 - 1/n)^k)``: the occupancy of n urns after k balls.

    References
    ----------
    .. [1] Johnson, Kotz, "Urn Models and Their Application", 1977, section 3.1, ISBN 0-471-44630-0

    Examples
    --------
    Two draws from two places hit one or both, at even odds:

    >>> float(distinct_places(2.0, 2.0))
    1.5
    """
    missed: Real = at_least(0.0, 1.0 - 1.0 / places) ** draws
    return places * (1.0 - missed)
