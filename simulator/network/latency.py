"""What an empty collective takes: steps of a ring, or of a tree, over machines and inside of them.

A gather or a scatter passes each rank's part on to the next rank, so it takes as many steps as
there are other ranks. An all-reduce may go up and down a tree over the machines instead.
"""

from __future__ import annotations

import numpy as np

from simulator.units import Real, Seconds, at_least, at_most, plain, where


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
