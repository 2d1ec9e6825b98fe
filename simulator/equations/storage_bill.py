"""What a store is paid for beside the rent of what lies there."""

from __future__ import annotations

from typing import TypeAlias

from simulator.units import Real, at_least, at_most, rounded_up, where

Points: TypeAlias = tuple[float, ...]
"""One number for each tier of prices."""


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


def rent(size: Real, price: Real, time: Real) -> Real:
    """Cost of keeping data in a store.

    Parameters
    ----------
    size : float or array
        What is kept, or the capacity where that is paid for [B].
    price : float or array
        Price of keeping a byte for a second [$/B/s].
    time : float or array
        How long it is kept [s].

    Returns
    -------
    float or array
        Cost [$].

    Notes
    -----
    ``size * price * time``.

    References
    ----------
    .. [1] Amazon S3 pricing, https://aws.amazon.com/s3/pricing/ (per GB and month).

    Examples
    --------
    >>> rent(1e9, 1e-14, 1e5)
    1.0
    """
    return size * price * time


def requests_cost(reads: Real, read_price: Real, writes: Real, write_price: Real) -> Real:
    """Cost of the requests to an object store.

    Parameters
    ----------
    reads : float or array
        Requests that read [1].
    read_price : float or array
        Price of one of them [$].
    writes : float or array
        Requests that write or list [1].
    write_price : float or array
        Price of one of them [$].

    Returns
    -------
    float or array
        Cost [$].

    Notes
    -----
    ``reads * read_price + writes * write_price``.

    References
    ----------
    .. [1] Amazon S3 pricing, https://aws.amazon.com/s3/pricing/ (by 1,000 requests).

    Examples
    --------
    ImageNet read once, an object a sample, at $0.0004 for 1,000, and 10 objects written:

    >>> f"{requests_cost(1281167.0, 4e-7, 10.0, 5e-6):.4f}"
    '0.5125'
    """
    return reads * read_price + writes * write_price


def upload_requests(size: Real, part: Real) -> Real:
    """Requests that writing an object takes.

    Parameters
    ----------
    size : float or array
        Size of the object [B].
    part : float or array
        Most bytes that one request carries [B]; ``inf`` where nothing limits it.

    Returns
    -------
    float or array
        Requests [1].

    Notes
    -----
    ``n = max(1, ceil(size / part))`` parts, and ``n + 2`` requests where there are several: one
    begins the upload, another completes it.

    References
    ----------
    .. [1] Amazon S3 User Guide, "Uploading and copying objects using multipart upload",
       https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html

    Examples
    --------
    One small object, and one of 100 MB in parts of 16 MB:

    >>> float(upload_requests(1e6, 16e6)), float(upload_requests(100e6, 16e6))
    (1.0, 9.0)
    """
    parts = at_least(1.0, rounded_up(size / part))
    return parts + where(parts > 1.0, 2.0, 0.0)


def egress_cost(size: Real, months: Real, ends: Points, prices: Points) -> Real:
    """Cost of bytes that leave a cloud, by tiers of the amount of a month.

    Parameters
    ----------
    size : float or array
        All that leaves [B].
    months : float or array
        Months over which it leaves evenly [1]; less than one counts as one.
    ends : Points
        Where tiers end, in amounts of a month, each above the one before [B].
    prices : Points
        Price of a byte in each tier [$/B]; the last one holds beyond the last end too.

    Returns
    -------
    float or array
        Cost [$].

    Notes
    -----
    ``months * sum(price_i * part_i)`` with ``part_i`` what of ``size / months`` lies in tier i.

    References
    ----------
    .. [1] Amazon EC2 on-demand pricing, "Data Transfer OUT From Amazon EC2 To Internet",
       https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer (tiers of a month).

    Examples
    --------
    12 TB in a month, and in two: 10 TB at 9 cents a GB, the rest at 8:

    >>> round(egress_cost(12e12, 1.0, (10e12, 50e12), (9e-11, 8e-11)), 6)
    1060.0
    >>> round(egress_cost(12e12, 2.0, (10e12, 50e12), (9e-11, 8e-11)), 6)
    1080.0
    """
    spread = at_least(1.0, months)
    monthly, paid = size / spread, 0.0 * size
    starts = (0.0, *ends)
    for number, price in enumerate(prices):
        last = number + 1 == len(prices)
        below = monthly if last else at_most(monthly, ends[number])
        paid = paid + at_least(0.0, below - starts[number]) * price
    return spread * paid
