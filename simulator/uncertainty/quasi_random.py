"""Points that fill a cube evenly, for averages over many uncertain figures at once.

They are those of ``scipy.stats.qmc.Sobol``, to which a test compares them. They are made here
because loading scipy's statistics alone takes longer than most predictions.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

_POLYNOMIALS: Final = (
    (0, (1,)),
    (1, (1, 3)),
    (1, (1, 3, 1)),
    (2, (1, 1, 1)),
    (1, (1, 1, 3, 3)),
    (4, (1, 3, 5, 13)),
    (2, (1, 1, 5, 5, 17)),
    (4, (1, 1, 5, 5, 5)),
    (7, (1, 1, 7, 11, 19)),
    (11, (1, 1, 5, 1, 1)),
    (13, (1, 1, 1, 3, 11)),
)
"""Coefficients and first direction numbers of the dimensions after the first: S. Joe and F. Y. Kuo,
new-joe-kuo-6.21201, https://web.maths.unsw.edu.au/~fkuo/sobol/."""

MOST_DIMENSIONS: Final = len(_POLYNOMIALS) + 1


def sobol(bits: int, dimensions: int) -> NDArray[np.int64]:
    """The first ``2**bits`` points of the Sobol sequence, as integers below ``2**bits``.

    Parameters
    ----------
    bits : int
        Logarithm of the number of points.
    dimensions : int
        At most `MOST_DIMENSIONS`.

    Returns
    -------
    numpy.ndarray
        Shape (points, dimensions); divided by ``2**bits`` they lie in the unit cube. Each column
        holds every integer once.
    """
    numbers = np.arange(2**bits)
    order = numbers ^ (numbers >> 1)
    points = np.zeros((len(numbers), dimensions), dtype=np.int64)
    for column in range(dimensions):
        for bit, direction in enumerate(_directions(column, bits)):
            points[:, column] ^= np.where((order >> bit) & 1, direction, 0)
    return points


def _directions(column: int, bits: int) -> list[int]:
    """Direction numbers of a dimension, as integers of `bits` bits."""
    if column == 0:
        return [1 << (bits - 1 - i) for i in range(bits)]
    coefficients, first = _POLYNOMIALS[column - 1]
    degree = len(first)
    found = list(first[:bits])
    for i in range(degree, bits):
        new = found[i - degree] ^ (found[i - degree] << degree)
        for k in range(1, degree):
            if (coefficients >> (degree - 1 - k)) & 1:
                new ^= found[i - k] << k
        found.append(new)
    return [number << (bits - 1 - i) for i, number in enumerate(found)]


@cache
def _classes(bits: int) -> NDArray[np.float64]:
    normal, count = NormalDist(), 2**bits
    return np.array([normal.inv_cdf((i + 0.5) / count) for i in range(count)])


@cache
def _sobol(bits: int, dimensions: int) -> NDArray[np.int64]:
    return sobol(bits, dimensions)


def normal_points(bits: int, dimensions: int, seed: int) -> NDArray[np.float64]:
    """Standard normal points that fill space evenly, shifted at random.

    Parameters
    ----------
    bits : int
        Logarithm of the number of points.
    dimensions : int
        At most `MOST_DIMENSIONS`.
    seed : int
        Of the shift; the same seed gives the same points.

    Returns
    -------
    numpy.ndarray
        Shape (points, dimensions). In each dimension every one of as many equally likely classes
        of the normal distribution is met once.
    """
    shift = np.random.default_rng(seed).integers(0, 2**bits, size=dimensions)
    points: NDArray[np.float64] = _classes(bits)[_sobol(bits, dimensions) ^ shift]
    return points
