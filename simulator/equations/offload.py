"""An optimizer that runs on the host's processors: bytes it moves, and what of it is waited for."""

from __future__ import annotations

from typing import Final

from simulator.units import Real, at_least

_FULL: Final = 4.0
"""Bytes of a weight or gradient in fp32 [B]."""
_HALF: Final = 2.0
"""Bytes of the weight that goes back to the device [B]."""


def host_update_bytes(parameters: Real, state: Real) -> Real:
    """What an optimizer's step moves through host memory.

    Parameters
    ----------
    parameters : float or array
        Parameters that are updated [1].
    state : float or array
        Bytes the optimizer keeps of each, Adam 8 [B].

    Returns
    -------
    float or array
        Read and written [B].

    Notes
    -----
    ``parameters (4 + 2 (4 + state) + 2)``: the gradient is read, weight and state are read and
    written, all in fp32, and the weight is written once more in 16 bit for the device. Vector
    units of a few cores compute faster than memory delivers, so cores are not counted.

    References
    ----------
    .. [1] Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021, section 5,
       https://arxiv.org/abs/2101.06840

    Examples
    --------
    A billion parameters under Adam:

    >>> host_update_bytes(1e9, 8.0)
    30000000000.0
    """
    return parameters * (_FULL + 2.0 * (_FULL + state) + _HALF)


def late_copies(copies: Real, behind: Real, parts: Real) -> Real:
    """What is waited for of copies that run beside something else, part by part.

    Parameters
    ----------
    copies : float or array
        All of them, alone [s].
    behind : float or array
        Time of what they run beside [s].
    parts : float or array
        Equal parts, the last of which is there only when that has ended [1].

    Returns
    -------
    float or array
        Waited for [s].

    Notes
    -----
    ``max(copies / parts, copies - behind)``: gradients of the last layer that a backward pass
    reaches can hide behind nothing.

    References
    ----------
    .. [1] Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021,
       section 4.2, https://arxiv.org/abs/2101.06840

    Examples
    --------
    >>> float(late_copies(0.4, 1.0, 32.0)), float(late_copies(1.5, 1.0, 32.0))
    (0.0125, 0.5)
    """
    return at_least(copies / parts, copies - behind)
