"""Which parameters the measurements can tell apart, read from the Jacobian of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]

ALIKE: Final = 0.95
"""Correlation of two estimates above which the rows can't tell the parameters apart."""
FAINT: Final = 0.02
"""Mean effect on the log errors, per log parameter, below which the rows hardly see a direction."""
NAMED: Final = 0.3
"""Part of a direction's length from which on a parameter is named as belonging to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two parameters whose estimates go together, by `correlation` (-1 to 1)."""

    first: str
    second: str
    correlation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A combination of parameters (`weights` by key, of the logarithms) and its `effect`.

    The effect is the root mean square change of the log errors per unit along the direction.
    """

    weights: dict[str, float]
    effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiability:
    """What the rows know: `effects` are the singular values over the root of the observations.

    `alike` are pairs that cannot be told apart, `faint` directions that the rows hardly see.
    """

    effects: tuple[float, ...]
    correlations: tuple[tuple[float, ...], ...]
    alike: tuple[Pair, ...]
    faint: tuple[Direction, ...]


def identifiability(names: Sequence[str], jacobian: Vector, prior: Vector) -> Identifiability:
    """What a Jacobian says about the parameters.

    Parameters
    ----------
    names : sequence of str
        Keys of the parameters, n of them.
    jacobian : numpy.ndarray
        Change of each log error per log parameter, shape (m, n).
    prior : numpy.ndarray
        Weight of the prior on each parameter, shape (n,); keeps what nothing is known of finite.
    """
    _, singular, directions = np.linalg.svd(jacobian, full_matrices=True)
    effects = np.zeros(len(names))
    effects[: len(singular)] = singular / np.sqrt(len(jacobian))
    information = jacobian.T @ jacobian + np.diag(prior**2)
    covariance = np.linalg.inv(information)
    deviation = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(deviation, deviation)
    return Identifiability(
        effects=tuple(float(effect) for effect in effects),
        correlations=tuple(tuple(float(c) for c in row) for row in correlations),
        alike=tuple(
            Pair(first=names[i], second=names[j], correlation=float(correlations[i, j]))
            for i in range(len(names))
            for j in range(i)
            if abs(correlations[i, j]) > ALIKE
        ),
        faint=tuple(
            Direction(weights=_weights(names, directions[k]), effect=float(effects[k]))
            for k in range(len(names))
            if effects[k] < FAINT
        ),
    )


def _weights(names: Sequence[str], direction: Vector) -> dict[str, float]:
    """The parts of a direction that matter, its largest one positive."""
    largest = direction[int(np.argmax(np.abs(direction)))]
    turned = direction * np.sign(largest)
    pairs = zip(names, turned, strict=True)
    return {name: float(weight) for name, weight in pairs if abs(weight) > NAMED}
