"""What a constant is on a system that nobody measured, from those that others' systems have.

Every maker counts as one, however many systems are theirs. A constant that is about the work of
cores goes with how fast they are, as far as a set names a key that says so (`Parameter.pace`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.reading.fitted.uncertainty import sign_of
from simulator.reading.keys import Key, numeric_key
from simulator.uncertainty.calibration import Elsewhere
from simulator.uncertainty.measurement import MeasurementSet, Parameter, Row

LEAST: Final = 0.05
"""Log deviation that a constant differs by from one system to another, at least."""
_NINETY: Final = 0.9
_NO_BOUNDS: Final = (-math.inf, math.inf)
_AT: Final = 1e-4
"""Log distance within which a constant is at a bound."""
_TWO: Final = 2
"""Makers from which on their constants have a spread."""

Maker: TypeAlias = tuple[str, ...]
Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What was fitted to one group of a maker: texts by key."""

    maker: Maker
    values: Mapping[str, str]


def carried(
    found: MeasurementSet, row: Row, others: Sequence[Constants]
) -> tuple[tuple[str, ...], tuple[Elsewhere, ...]]:
    """Overrides with the middle of other makers' constants for a row, and how far they may be off.

    Parameters
    ----------
    found : MeasurementSet
        The row's set: its `fit` are the constants, `maker` says who measured a row.
    row : Row
        What is to be predicted.
    others : sequence of Constants
        One for each group of another maker; nothing follows from none.
    """
    if not others:
        return (), ()
    weights = _weights(others)
    makers = len({one.maker for one in others})
    logs = {one.key: _logs(found, row, one, others) for one in found.fit}
    bounds = {one.key: _bounds(one) for one in found.fit}
    overrides = tuple(
        f"{one.key}={_text(one, _middle(one, logs[one.key], weights))}" for one in found.fit
    )
    wide = tuple(
        Elsewhere(
            key=key,
            log_sd=max(LEAST, deviation(own, weights, makers, bounds[key])),
            shared=tuple(
                (other, sign_of(key) * sign_of(other) * correlation(own, theirs, weights))
                for other, theirs in logs.items()
                if other != key
            ),
        )
        for key, own in logs.items()
    )
    return overrides, wide


def deviation(
    logs: Vector, weights: Vector, makers: int, bounds: tuple[float, float] = _NO_BOUNDS
) -> float:
    """Log deviation of the next maker's constant, of which 80% of a normal interval are sure.

    Of few makers neither the middle nor the spread is known well: a prediction interval of
    Student's t with one degree of freedom less than makers, written as the normal deviation that
    has the same P10 and P90. With one maker nothing is known of the spread. Constants that a fit
    left at one of its `bounds` lie there or beyond.

    Examples
    --------
    >>> round(deviation(np.array([0.0, 0.2]), np.array([0.5, 0.5]), 2), 3)
    0.416
    """
    if makers < _TWO:
        return 0.0
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415 - slow to load, and rarely needed

    spread = _spread(logs, weights, bounds) * math.sqrt(makers / (makers - 1.0))
    wider = float(stdtrit(makers - 1.0, _NINETY) / ndtri(_NINETY))
    return spread * math.sqrt(1.0 + 1.0 / makers) * wider


def _spread(logs: Vector, weights: Vector, bounds: tuple[float, float]) -> float:
    """Most likely deviation of a normal distribution of which values at a bound are censored."""
    low, high = (np.isclose(logs, bound, atol=_AT) for bound in bounds)
    middle = float(weights @ logs)
    plain = math.sqrt(float(weights @ (logs - middle) ** 2))
    known = ~(low | high)
    if known.all() or np.count_nonzero(known) < _TWO or plain <= 0.0:
        return plain
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to load, and rarely needed
    from scipy.special import log_ndtr  # noqa: PLC0415 - as above

    def unlikely(x: Vector) -> float:
        """Negative logarithm of the weighted likelihood, by middle and log deviation."""
        off = (logs - x[0]) / math.exp(x[1])
        own = np.where(low, -log_ndtr(off), np.where(high, -log_ndtr(-off), 0.5 * off**2 + x[1]))
        return float(weights @ own)

    best = minimize(unlikely, (middle, math.log(plain)), method="Nelder-Mead").x
    return math.exp(float(best[1]))


def _bounds(parameter: Parameter) -> tuple[float, float]:
    """Logarithms of the least and the largest value that a fit may find."""
    kind = numeric_key(parameter.key)
    return math.log(kind.value(parameter.low)), math.log(kind.value(parameter.high))


def correlation(one: Vector, other: Vector, weights: Vector) -> float:
    """Correlation of two constants over systems; 0 where one of them is the same on all."""
    off, beside = one - float(weights @ one), other - float(weights @ other)
    whole = math.sqrt(float(weights @ off**2) * float(weights @ beside**2))
    return float(weights @ (off * beside)) / whole if whole > 0.0 else 0.0


def _weights(others: Sequence[Constants]) -> Vector:
    """Each maker counts as one."""
    groups = Counter(one.maker for one in others)
    return np.array([1.0 / (groups[one.maker] * len(groups)) for one in others])


def _middle(parameter: Parameter, logs: Vector, weights: Vector) -> float:
    """The mean of logarithms; the median where some constants are known as bounds only."""
    start = math.log(numeric_key(parameter.key).value(parameter.start))
    if not np.isin(logs, (start, *_bounds(parameter))).any():
        return float(weights @ logs)
    order = np.argsort(logs)
    half = int(np.searchsorted(np.cumsum(weights[order]), 0.5))
    return float(logs[order][half])


def _text(parameter: Parameter, log: float) -> str:
    kind = numeric_key(parameter.key)
    return kind.text(math.exp(log), parameter.start)


def _logs(
    found: MeasurementSet, row: Row, parameter: Parameter, others: Sequence[Constants]
) -> Vector:
    """Logarithms of the constants that others have, each carried over to the row's system."""
    kind = numeric_key(parameter.key)
    there = [math.log(kind.value(one.values.get(parameter.key, parameter.start))) for one in others]
    if not parameter.pace:
        return np.array(there)
    paces = {maker: dict(_paces(found, parameter.pace, maker)) for maker in _makers(found)}
    own = paces[row.key(found.maker)]
    slower = [_slower(own, paces[one.maker]) for one in others]
    return np.array([log + more for log, more in zip(there, slower, strict=True)])


def _slower(own: Mapping[Maker, float], theirs: Mapping[Maker, float]) -> float:
    """Mean log ratio of what two systems take for what both did; 0 where they did nothing alike."""
    both = own.keys() & theirs.keys()
    return float(np.mean([own[one] - theirs[one] for one in both])) if both else 0.0


def _makers(found: MeasurementSet) -> set[Maker]:
    return {row.key(found.maker) for row in found.rows}


def _paces(found: MeasurementSet, pace: str, maker: Maker) -> Iterator[tuple[Maker, float]]:
    """Logarithms of a key on a maker's rows, by what else their configuration is."""
    rest = tuple(name for name in found.configuration if name not in found.maker)
    kind: Key = numeric_key(pace)
    for row in found.rows:
        stated = dict(override.split("=", 1) for override in row.overrides).get(pace)
        if stated is not None and row.key(found.maker) == maker:
            yield row.key(rest), math.log(kind.value(stated))
