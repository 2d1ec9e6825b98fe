"""Object stores: requests that each go at a rate of their own."""

from __future__ import annotations

from simulator.units import Bytes, Real

_FRAME = 38.0
"""Bytes of an Ethernet frame around its packet: preamble 8, header 14, checksum 4, gap 12."""
_HEADERS = 52.0
"""Bytes of IPv4 (20) and TCP (20, and 12 for its timestamps) in a packet."""


def reader_ceiling(readers: Real, request_rate: Real) -> Real:
    """Fastest that one worker can read, however wide the store.

    Parameters
    ----------
    readers : float or array
        Requests the worker keeps open [1].
    request_rate : float or array
        Fastest that one request goes [B/s]; ``inf`` where nothing limits it.

    Returns
    -------
    float or array
        Ceiling of the worker's flow [B/s].

    Notes
    -----
    ``readers * request_rate``.

    References
    ----------
    .. [1] Amazon S3, "Best practices design patterns": throughput scales with parallel requests,
       https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance-design-patterns.html

    Examples
    --------
    >>> reader_ceiling(4, 30e6)
    120000000.0
    """
    return readers * request_rate


def request_throughput(size: Real, latency: Real, request_rate: Real) -> Real:
    """Rate of one reader that asks again when the last answer is in.

    Parameters
    ----------
    size : float or array
        Bytes a request brings [B].
    latency : float or array
        Time to the first byte [s].
    request_rate : float or array
        Rate after the first byte [B/s].

    Returns
    -------
    float or array
        Mean rate over the whole request [B/s].

    Notes
    -----
    ``size / (latency + size / request_rate)``: the half-performance size is
    ``latency * request_rate`` [1]_.

    References
    ----------
    .. [1] Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", 1994,
       https://doi.org/10.1016/S0167-8191(06)80021-9 (n-half of a latency and a rate).

    Examples
    --------
    8 MB after 100 ms at 80 MB/s takes 0.2 s:

    >>> round(request_throughput(8e6, 0.1, 80e6))
    40000000
    """
    return size / (latency + size / request_rate)


def frame_payload(packet: Bytes | Real = 1500.0) -> Real:
    """Share of a network's bits that are an object's bytes.

    Parameters
    ----------
    packet : float or array
        Largest packet [B]; 1500 on ways that leave a private network, as those to object stores.

    Returns
    -------
    float or array
        Share [1].

    Notes
    -----
    ``(packet - 52) / (packet + 38)``.

    References
    ----------
    .. [1] "IEEE Standard for Ethernet", 802.3: 38 bytes of frame and gap around a packet.
    .. [2] RFC 9293 and RFC 7323, https://www.rfc-editor.org/rfc/rfc9293: 20 bytes of TCP and 12 of
       its timestamps in a packet, beside 20 of IPv4.
    .. [3] Amazon EC2 User Guide, "Network maximum transmission unit (MTU) for your EC2 instance":
       packets of 1500 bytes over an internet gateway.

    Examples
    --------
    >>> round(frame_payload(), 4), round(frame_payload(9001.0), 4)
    (0.9415, 0.99)
    """
    return (packet - _HEADERS) / (packet + _FRAME)
