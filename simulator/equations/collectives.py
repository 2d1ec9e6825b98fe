"""Collectives: bytes on the wire.

`size` is the size of the whole buffer as nccl-tests counts it: what every rank ends up with for
all-gather, what every rank starts with for reduce-scatter and all-reduce. With one rank nothing is
sent.
"""

from __future__ import annotations

from simulator.units import (
    Bytes,
    Real,
    Seconds,
    at_least,
    where,
)


def ring_wire_bytes(size: Bytes | Real, ranks: Real) -> Bytes | Real:
    """Return the bytes that each rank sends in a ring all-reduce.

    ``2 (n - 1) / n * size``, which no algorithm without help from switches can beat.

    Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    2009, https://doi.org/10.1016/j.jpdc.2008.09.002

    >>> ring_wire_bytes(100e6, 8)
    175000000.0
    """
    return 2.0 * (ranks - 1.0) / ranks * size


def shard_bytes(size: Bytes | Real, ranks: Real) -> Bytes | Real:
    """Return the bytes that each rank sends in a ring all-gather or reduce-scatter.

    ``(n - 1) / n * size``, half of an all-reduce.

    Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", 2005, https://doi.org/10.1177/1094342005051521

    >>> shard_bytes(100e6, 8)
    87500000.0
    """
    return (ranks - 1.0) / ranks * size


def exchanged_bytes(  # noqa: PLR0913 - one per kind of communication
    *,
    layers: Real,
    tensor: Bytes | Real,
    context: Bytes | Real,
    experts: Bytes | Real,
    parameters: Bytes | Real,
    tables: Bytes | Real,
    sends: Bytes | Real,
) -> Bytes | Real:
    """Return the bytes that a device sends for one micro-batch of a sharded model.

    ``layers * (tensor + context + experts + parameters) + tables + sends``. `tensor` (all-reduces
    of tensor parallelism), `context` (keys, values and their gradients between context-parallel
    ranks), `experts` (dispatch and combine) and `parameters` (gathers of sharded parameters,
    scatters of their gradients) are of one of the stage's `layers`; `tables` are the same for
    sharded embedding and head, `sends` are activations and gradients to other stages.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 3, https://arxiv.org/abs/2104.04473; Liu et al., "Ring Attention
    with Blockwise Transformers for Near-Infinite Context", 2023, https://arxiv.org/abs/2310.01889

    >>> each = dict(tensor=100e6, context=0.0, experts=0.0, parameters=50e6)
    >>> exchanged_bytes(layers=32.0, **each, tables=0.0, sends=10e6)
    4810000000.0
    """
    return layers * (tensor + context + experts + parameters) + tables + sends


def part_meanwhile(
    whole: Bytes | Real, meanwhile: Seconds | Real, otherwise: Seconds | Real
) -> Bytes | Real:
    """Return the bytes that pass in one part of the time that all of them take.

    ``whole * meanwhile / (meanwhile + otherwise)``: they pass at one rate; none where no time does.
    `otherwise` is the rest of the time.

    Source: Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
    https://doi.org/10.1145/356733.356735 (demand: visits times service).

    >>> part_meanwhile(4e9, 0.25, 0.75)
    1000000000.0
    """
    time = meanwhile + otherwise
    return where(time > 0.0, whole * meanwhile / where(time > 0.0, time, 1.0), 0.0)


def distinct_places(places: Real, draws: Real) -> Real:
    """Return the expected number of distinct places that independent draws hit.

    ``n (1 - (1 - 1/n)^k)``: the occupancy of n urns after k balls.

    Source: Johnson, Kotz, "Urn Models and Their Application", 1977, section 3.1, ISBN 0-471-44630-0

    Two draws from two places hit one or both, at even odds:

    >>> float(distinct_places(2.0, 2.0))
    1.5
    """
    missed: Real = at_least(0.0, 1.0 - 1.0 / places) ** draws
    return places * (1.0 - missed)
