"""Collectives: bytes on the wire.

`size` is the size of the whole buffer as nccl-tests counts it: what every rank ends up with for
all-gather, what every rank starts with for reduce-scatter and all-reduce. With one rank nothing is
sent.
"""

from __future__ import annotations

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
