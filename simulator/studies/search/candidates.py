"""From the axes of a search to its candidates: every combination, or points drawn evenly.

The same axes and seed always give the same candidates in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simulator.errors import NotModelled, UnknownName
from simulator.reading.search.axes import is_pattern, lost_pattern, matching, with_unit
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Axes, Axis, Plain, Sampling, Span
from simulator.studies.search.outcome import Candidate

MAX_CANDIDATES: Final = 10_000_000
"""Candidates of one search."""


def expand(axes: Axes, reader: CandidateReader) -> tuple[Candidate, ...]:
    """Return all candidates of a search, the last axis changing fastest where it is a grid.

    Parameters
    ----------
    axes : Axes
        Keys that vary, and how their values are combined or sampled.
    reader : CandidateReader
        Provides the names that patterns match.

    Raises
    ------
    NotModelled
        If there are more than `MAX_CANDIDATES`, a grid has a continuous range, or nothing says how
        many points to draw.
    UnknownName
        If a pattern matches no name.
    """
    found = tuple(_without_patterns(axis, reader) for axis in axes.axes)
    rows = _grid(found) if axes.sample is Sampling.GRID else _drawn(axes, found)
    keys = tuple(key for axis in found for key in axis.keys)
    return tuple(
        Candidate(index=index, settings=dict(zip(keys, values, strict=True)))
        for index, values in enumerate(rows)
    )


def _without_patterns(axis: Axis, reader: CandidateReader) -> Axis:
    if not any(is_pattern(value) for values in axis.values for value in values):
        return axis
    lost = lost_pattern(axis, reader.names)
    if lost is not None:
        msg = f"{lost.message}, found '{lost.pattern}'; {lost.hint}"
        raise UnknownName(msg)
    names = reader.names(axis.keys[0])
    found = dict.fromkeys(name for (value,) in axis.values for name in _named(value, names))
    return Axis(keys=axis.keys, values=tuple((name,) for name in found))


def _named(value: Plain, names: Sequence[str]) -> tuple[Plain, ...]:
    if isinstance(value, str) and is_pattern(value):
        return matching(value, names)
    return (value,)


def _grid(axes: Sequence[Axis]) -> Iterator[tuple[Plain, ...]]:
    for axis in axes:
        if axis.span is not None:
            msg = (
                f"{axis.keys[0]} is a continuous range, and a grid needs points; give a step, as "
                "in '1 GB/s..8 GB/s step 1 GB/s', or draw points (latin-hypercube, sobol)"
            )
            raise NotModelled(msg)
    _refuse_many(math.prod(len(axis.values) for axis in axes))
    return (_flat(point) for point in product(*(axis.values for axis in axes)))


def _refuse_many(count: int) -> None:
    if count > MAX_CANDIDATES:
        msg = (
            f"the search has {count:,} candidates, and at most {MAX_CANDIDATES:,} are searched; "
            "take larger steps, or draw points (latin-hypercube, sobol)"
        )
        raise NotModelled(msg)


def _flat(point: Iterable[tuple[Plain, ...]]) -> tuple[Plain, ...]:
    return tuple(value for values in point for value in values)


def _drawn(axes: Axes, found: Sequence[Axis]) -> Iterator[tuple[Plain, ...]]:
    if axes.points is None:
        msg = f"sampling {axes.sample} needs to know how many points to draw"
        raise NotModelled(msg)
    _refuse_many(axes.points)
    if not found:
        return iter([()])
    points = _unit_points(axes, len(found))
    columns = [_values_at(axis, points[:, number]) for number, axis in enumerate(found)]
    rows = dict.fromkeys(_marked(row) for row in zip(*columns, strict=True))
    return (_flat(values for values, _ in row) for row in rows)


def _marked(row: Iterable[tuple[Plain, ...]]) -> tuple[tuple[tuple[Plain, ...], Any], ...]:
    return tuple((values, tuple(type(value) for value in values)) for values in row)


def _unit_points(axes: Axes, dimensions: int) -> NDArray[np.float64]:
    """Return samples in the unit cube, one column for each axis; reproducible by the seed."""
    from scipy.stats import qmc  # noqa: PLC0415 - takes long to import, and a grid needs none

    count, draws = axes.points or 0, np.random.default_rng(axes.seed)
    if axes.sample is Sampling.LATIN_HYPERCUBE:
        drawn = qmc.LatinHypercube(d=dimensions, seed=draws).random(count)
    else:
        exponent = max(0, math.ceil(math.log2(count))) if count else 0
        drawn = qmc.Sobol(d=dimensions, seed=draws).random_base2(exponent)[:count]
    points: NDArray[np.float64] = drawn
    return points


def _values_at(axis: Axis, shares: NDArray[np.float64]) -> list[tuple[Plain, ...]]:
    """Return the values of an axis at relative positions from 0 to 1."""
    if axis.span is None:
        count = len(axis.values)
        return [axis.values[min(int(share * count), count - 1)] for share in shares]
    return [(_between(axis.span, float(share)),) for share in shares]


def _between(span: Span, share: float) -> Plain:
    if span.logarithmic:
        value = float(span.low * (span.high / span.low) ** share)
    else:
        value = span.low + (span.high - span.low) * share
    if span.whole:
        return round(value)
    return with_unit(value, span.unit) if span.unit else value
