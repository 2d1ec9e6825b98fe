"""How many accelerators a store keeps busy: the largest count that still passes a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final

GROWTH: Final = 1.3
"""Factor between two counts that are tried while looking for one that fails."""
FAR: Final = 1000
"""Times the first count beyond which nothing is looked for."""
FINE: Final = 50
"""Part of the first count to which the answer is narrowed before it is interpolated."""


def most_accelerators(utilization: Callable[[int], float], threshold: float, first: int) -> float:
    """Largest count whose utilization is at least a threshold.

    Parameters
    ----------
    utilization : callable
        Utilization (0..1) of a number of accelerators; falls, on the whole, with their number.
    threshold : float
        What has to be reached (0..1).
    first : int
        A count near the answer, where the search begins.

    Returns
    -------
    float
        The count, interpolated between one that passes and one that fails; 0 if one alone fails,
        infinite if 1000 times `first` pass.

    Examples
    --------
    >>> round(most_accelerators(lambda n: min(1.0, 90.0 / n), 0.9, 40), 1)
    100.0
    """
    known = cache(utilization)
    if known(first) >= threshold:
        passes, fails = _upwards(known, threshold, first)
    elif known(1) < threshold:
        return 0.0
    else:
        passes, fails = 1, first
    if fails == 0:
        return math.inf
    while fails - passes > max(1, first // FINE):
        middle = (passes + fails) // 2
        passes, fails = (middle, fails) if known(middle) >= threshold else (passes, middle)
    above, below = known(passes), known(fails)
    return passes + (fails - passes) * (above - threshold) / (above - below)


def _upwards(known: Callable[[int], float], threshold: float, first: int) -> tuple[int, int]:
    """The last count that passes on the way up and the first that fails; 0 if none does."""
    passes, tried = first, first
    while tried < FAR * first:
        tried = max(passes + 1, int(passes * GROWTH))
        if known(tried) < threshold:
            return passes, tried
        passes = tried
    return passes, 0
