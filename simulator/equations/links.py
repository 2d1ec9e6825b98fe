"""Links: what a PCIe generation carries, and how long a transfer takes."""

from __future__ import annotations

from typing import Final

from simulator.units import BITS_PER_BYTE, Real

ENCODING_128_OF_130: Final = 128.0 / 130.0
"""Payload of PCIe 3 to 5 after line encoding."""

FLIT_242_OF_256: Final = 242.0 / 256.0
"""Payload of a PCIe 6 flit: 242 of 256 bytes reach the transaction layer with its headers."""


def lane_bandwidth(transfers: Real, lanes: Real, encoding: Real = 1.0) -> Real:
    """Rate of a link of several lanes in one direction.

    Parameters
    ----------
    transfers : float or array
        Bits each lane carries [/s].
    lanes : float or array
        Lanes [1].
    encoding : float or array
        Payload as a part of what is sent [1].

    Returns
    -------
    float or array
        Rate of one direction [B/s].

    Notes
    -----
    ``transfers * lanes * encoding / 8``.

    References
    ----------
    .. [1] PCI-SIG, PCI Express Base Specification, revisions 4.0 to 6.0 (16, 32 and 64 GT/s a
       lane; 128b/130b up to 5.0), https://pcisig.com/specifications
    .. [2] "A Hitchhiker's Guide to ML Training Infrastructure", SEI Blog, Carnegie Mellon
       University, 2022 (32, 63 and 121 GB/s; it calls the last one gen 5 once more).

    Examples
    --------
    PCIe 4 without and with its encoding, 5 and 6, sixteen lanes, in GB/s:

    >>> [round(lane_bandwidth(16e9, 16, e) / 1e9, 1) for e in (1, ENCODING_128_OF_130)]
    [32.0, 31.5]
    >>> round(lane_bandwidth(32e9, 16, ENCODING_128_OF_130) / 1e9, 1)
    63.0
    >>> round(lane_bandwidth(64e9, 16, FLIT_242_OF_256) / 1e9, 1)
    121.0
    """
    return transfers * lanes * encoding / BITS_PER_BYTE


def transfer_time(size: Real, bandwidth: Real, latency: Real = 0.0) -> Real:
    """Time of one transfer that has the link to itself.

    Parameters
    ----------
    size : float or array
        Bytes moved [B].
    bandwidth : float or array
        Rate of the link in this direction [B/s].
    latency : float or array
        Time before the first byte arrives [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``latency + size / bandwidth``.

    References
    ----------
    .. [1] Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", 1994,
       https://doi.org/10.1016/S0167-8191(06)80021-9

    Examples
    --------
    1 GB over PCIe 4 with sixteen lanes, nominal:

    >>> transfer_time(1e9, 32e9)
    0.03125
    """
    return latency + size / bandwidth
