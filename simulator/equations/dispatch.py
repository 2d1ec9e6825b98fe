"""Where tokens go whose experts are spread over ranks."""

from __future__ import annotations

from simulator.units import Real, at_least


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
