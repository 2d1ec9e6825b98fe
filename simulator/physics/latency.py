"""What an empty collective takes: steps of a ring, or of a tree, over machines and inside of them.

Every kind of training counts them here: data parallelism of any model, and the tensors, parameters
and gradients of spread language models.

A gather or a scatter passes each rank's part on to the next rank, so it takes as many steps as
there are other ranks. An all-reduce may go up and down a tree over the machines instead.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.schema.hardware.link import Collective
from simulator.units import SECOND, Real, Seconds, at_least, at_most, parse, plain, where

HOP: Final = parse("2 us", SECOND)
"""Time of a hop of a ring inside a machine."""
HOP_REMOTE: Final = parse("15 us", SECOND)
"""Time of a hop between machines where no collective over the network was measured; a guess."""


def between_latency(
    operation: Collective, machines: Real, far: Seconds | Real = HOP_REMOTE
) -> Seconds | Real:
    """What an operation over machines takes without bytes, one rank on each [s].

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
    """Steps of a gather or scatter without bytes [s].

    Parameters
    ----------
    ranks, machines : float or array
        Ranks of the ring, and the machines that they lie on.
    near, far : float or array
        A step inside of a machine, and one in which some rank sends to another machine [s]: all
        ranks step together, so that the slowest hop counts.

    Examples
    --------
    >>> ring_latency(8.0, 1.0, 2e-6, 5e-6), ring_latency(101.0, 13.0, 2e-6, 5e-6)
    (1.4e-05, 0.0005)
    """
    return at_least(ranks - 1.0, 0.0) * where(machines > 1, far, near)


def all_reduce_latency(
    ranks: Real, machines: Real, near: Seconds | Real, far: Seconds | Real
) -> Seconds | Real:
    """Steps of an all-reduce without bytes [s]: of a ring twice round, or up a tree and down.

    Parameters
    ----------
    ranks, machines, near, far
        As of `ring_latency`; the tree is over machines, whose ranks form a chain.

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
