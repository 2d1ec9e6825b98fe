"""Where tokens go whose experts are spread over ranks."""

from __future__ import annotations

from simulator.units import Real


def distinct_places(places: Real, draws: Real) -> Real:
    """Expected number of equal places that independent draws hit.

    n (1 - (1 - 1/n)^k): the occupancy of n urns after k balls.

    Parameters
    ----------
    places : float or array
        Places.
    draws : float or array
        Draws, each of any place.

    Examples
    --------
    Two draws from two places hit one or both, at even odds.

    >>> distinct_places(2.0, 2.0)
    1.5
    """
    return places * (1.0 - (1.0 - 1.0 / places) ** draws)
