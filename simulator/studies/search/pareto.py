"""Which of many are on the Pareto front, and which could still be, going by the best they can be.

Points are rows, objectives columns, and less is better throughout; what is to be as large as
possible comes with the other sign. Of points that tie all are kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Mask = NDArray[np.bool_]

TWO = 2
"""Objectives for which one pass over sorted points is enough."""


def front(points: Points) -> Mask:
    """Which points no other beats: strictly better in one objective and no worse in the others.

    Parameters
    ----------
    points : array
        A row for each, finite or infinite.

    Returns
    -------
    array of bool
        Equal points are on the front together.

    Notes
    -----
    A point that beats another comes before it in lexicographic order. So with two objectives a
    point is on the front if its second one is the least so far: n log n. With more each point is
    compared with the front of those before it.

    Examples
    --------
    >>> front(np.array([[1.0, 5.0], [2.0, 2.0], [2.0, 2.0], [3.0, 4.0], [5.0, 1.0]])).tolist()
    [True, True, True, False, True]
    """
    points = np.asarray(points, dtype=float)
    if not len(points):
        return np.zeros(0, dtype=bool)
    unique, place = np.unique(points, axis=0, return_inverse=True)
    best = _of_two(unique) if unique.shape[1] <= TWO else _of_more(unique)
    return np.asarray(best[place.reshape(-1)])


def _of_two(ordered: Points) -> Mask:
    """Of different points in lexicographic order with one or two objectives."""
    last = ordered[:, -1]
    least = np.minimum.accumulate(last)
    return np.concatenate(([True], last[1:] < least[:-1]))


def _of_more(ordered: Points) -> Mask:
    """Of different points in lexicographic order."""
    best = np.zeros(len(ordered), dtype=bool)
    kept = np.empty_like(ordered)
    number = 0
    for i, point in enumerate(ordered):
        if not (kept[:number] <= point).all(axis=1).any():
            best[i], kept[number] = True, point
            number += 1
    return best


def may_beat(
    best_cases: Points, found: Points, *, top: int | None = None, margin: float = 0.0
) -> Mask:
    """Which candidates could still be wanted, whatever they turn out to be.

    Parameters
    ----------
    best_cases : array
        The best each candidate can be; minus infinity where anything is possible.
    found : array
        What others were predicted to be.
    top : int, optional
        Those that could be among so many best by the first objective are wanted too.
    margin : float, optional
        So are those that could come so close to the front, as a share of it. Below zero: only
        those that could be better than what was found by more than that share.

    Returns
    -------
    array of bool
        False only if a point found beats the candidate at its best, so that it beats it whatever
        the candidate turns out to be; with a margin, even when made worse by that share.

    Examples
    --------
    >>> may_beat(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0]]), np.array([[2.0, 2.0]])).tolist()
    [True, True, False]
    """
    best_cases = np.asarray(best_cases, dtype=float)
    found = np.asarray(found, dtype=float).reshape(-1, best_cases.shape[1])
    reach = np.unique(found[front(found)], axis=0)
    if margin:  # without one an infinite figure would be multiplied by zero
        known = np.isfinite(reach)  # an unknown figure stays unknown, however much worse
        reach = np.where(known, reach + margin * np.abs(np.where(known, reach, 0.0)), reach)
    wanted = np.ones(len(best_cases), dtype=bool)
    for point in reach:
        wanted &= ~beats(point, best_cases)
    if top:
        firsts = np.sort(found[:, 0])
        if len(firsts) < top:
            return np.ones_like(wanted)
        last = firsts[top - 1]
        if margin < 0.0 and np.isfinite(last):
            last += margin * abs(last)
        wanted |= best_cases[:, 0] <= last
    return wanted


def within(points: Points, margin: float) -> Mask:
    """Which points are on the front, or worse than it by no more than a share."""
    return may_beat(points, points, margin=margin)


def beats(point: Points, rows: Points) -> Mask:
    """Which rows a point beats: strictly better in one objective and no worse in the others."""
    return np.asarray((point <= rows).all(axis=1) & (point < rows).any(axis=1))


def comparable(points: Points) -> Mask:
    """Which rows have a figure for every objective, if any has; otherwise all of them.

    A machine without a price is on no front of time and cost; where nothing has a price, cost
    tells nothing apart.
    """
    known = np.asarray(~np.isposinf(points).any(axis=1))
    return known if known.any() else np.ones(len(points), dtype=bool)
