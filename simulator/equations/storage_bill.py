"""What a store is paid for beside the rent of what lies there."""

from __future__ import annotations

from simulator.units import Real, at_least


def provisioned_price(rate: Real, free: Real, price: Real) -> Real:
    """Price of a rate of a volume that is held ready, whether it is used or not.

    Parameters
    ----------
    rate : float or array
        Operations, or bytes, a second that are held ready [/s].
    free : float or array
        Part of it that the rent has in it [/s].
    price : float or array
        Price of one of them a second, by the time it is held ready [$].

    Returns
    -------
    float or array
        Price by time [$/s].

    Notes
    -----
    ``max(0, rate - free) * price``.

    References
    ----------
    .. [1] Amazon EBS pricing, https://aws.amazon.com/ebs/pricing/ (gp3: IOPS above 3,000 and
       throughput above 125 MB/s, by the month).

    Examples
    --------
    4,000 operations a second, 3,000 of them free, at $0.005 a month each:

    >>> month = 30 * 86400.0
    >>> round(float(provisioned_price(4000.0, 3000.0, 0.005 / month)) * month, 9)
    5.0
    """
    return at_least(0.0, rate - free) * price
