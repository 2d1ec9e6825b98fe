"""Sets of time as sorted, disjoint intervals: union, intersection, difference, length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.units import Seconds

Intervals: TypeAlias = NDArray[np.float64]
"""Rows of start and end [s], sorted, without overlap."""


def union(pairs: Iterable[tuple[float, float]]) -> Intervals:
    """The times that lie in any of `pairs`.

    Examples
    --------
    >>> union([(3.0, 4.0), (0.0, 2.0), (1.0, 2.5)]).tolist()
    [[0.0, 2.5], [3.0, 4.0]]
    """
    rows = np.array(list(pairs), dtype=np.float64).reshape(-1, 2)
    rows = rows[rows[:, 1] > rows[:, 0]]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if not len(rows):
        return rows
    reach = np.maximum.accumulate(rows[:, 1])
    begins = np.concatenate(([True], rows[1:, 0] > reach[:-1]))
    firsts = np.flatnonzero(begins)
    lasts = np.concatenate((firsts[1:] - 1, [len(rows) - 1]))
    return np.column_stack((rows[firsts, 0], reach[lasts]))


def both(left: Intervals, right: Intervals) -> Intervals:
    """The times that lie in both.

    Examples
    --------
    >>> both(union([(0.0, 2.0), (3.0, 5.0)]), union([(1.0, 4.0)])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    edges = np.unique(np.concatenate((left.ravel(), right.ravel())))
    middles = (edges[1:] + edges[:-1]) / 2.0
    inside = _holds(left, middles) & _holds(right, middles)
    return union(zip(edges[:-1][inside], edges[1:][inside], strict=True))


def without(left: Intervals, right: Intervals) -> Intervals:
    """The times of `left` that lie not in `right`.

    Examples
    --------
    >>> without(union([(0.0, 4.0)]), union([(1.0, 2.0)])).tolist()
    [[0.0, 1.0], [2.0, 4.0]]
    """
    edges = np.unique(np.concatenate((left.ravel(), right.ravel())))
    middles = (edges[1:] + edges[:-1]) / 2.0
    inside = _holds(left, middles) & ~_holds(right, middles)
    return union(zip(edges[:-1][inside], edges[1:][inside], strict=True))


def length(times: Intervals) -> Seconds:
    """How long they are together [s].

    Examples
    --------
    >>> length(union([(0.0, 2.0), (3.0, 5.0)]))
    4.0
    """
    return float(np.sum(times[:, 1] - times[:, 0]))


def _holds(times: Intervals, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points lie inside."""
    if not len(times):
        return np.zeros(len(points), dtype=bool)
    at = np.searchsorted(times[:, 0], points, side="right") - 1
    found: NDArray[np.bool_] = (at >= 0) & (points < times[np.maximum(at, 0), 1])
    return found
