"""Sequences of unequal lengths, of which only as many positions are computed as they have."""

from __future__ import annotations

from simulator.units import Real, at_most


def mean_square_length(mean: Real) -> Real:
    """Mean of the squares of lengths that spread evenly about their mean.

    Work on pairs of positions, as in attention, grows with the square of a sequence's length, so a
    few long sequences among short ones cost more than as many of the mean length.

    Parameters
    ----------
    mean : float or array
        Mean length over the greatest possible one [1].

    Returns
    -------
    float or array
        Mean square over the square of the greatest possible length [1].

    Notes
    -----
    ``mean^2 + w^2 / 3``: the second moment of a uniform distribution that reaches `w` to both
    sides, with ``w`` the lesser of ``mean`` and ``1 - mean``. It is the widest one of that mean.

    References
    ----------
    .. [1] Krell et al., "Efficient Sequence Packing without Cross-contamination", 2021,
           https://arxiv.org/abs/2107.02027 (how lengths differ; own derivation).

    Examples
    --------
    All lengths equally frequent; all of them full:

    >>> round(float(mean_square_length(0.5)), 4)
    0.3333
    >>> float(mean_square_length(1.0))
    1.0
    """
    reach = at_most(mean, 1.0 - mean)
    square: Real = mean**2 + reach**2 / 3.0
    return square
