"""What an expression can come to where figures are only known to lie within ranges.

Interval arithmetic over the tree of an expression: each operation is carried out with the ends of
its parts. Rounding keeps order, so what comes out holds for the figures that are rounded alike. A
name that occurs twice is taken to vary twice, so a range may be wider than it need be, never
narrower.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from simulator.results.expression.tree import (
    OPERATIONS,
    Comparison,
    Constant,
    Kind,
    Logical,
    Name,
    Negated,
    Node,
    Operation,
    Opposite,
)

Range: TypeAlias = tuple[float, float]
"""The least and the most that a figure can be."""


class Extent(NamedTuple):
    """The least and the most that a number can be; `sure`: there is a number in any case."""

    low: float
    high: float
    sure: bool


class Outlook(NamedTuple):
    """Whether a condition may turn out true, and whether it may turn out false."""

    true: bool
    false: bool


_ANYTHING: Final = Extent(-math.inf, math.inf, sure=False)
_EITHER: Final = Outlook(true=True, false=True)


def extent(node: Node, ranges: Mapping[str, Range]) -> Extent:
    """Between which ends a number lies.

    Parameters
    ----------
    node : Node
        A number.
    ranges : mapping of str to range
        Of figures that there are; one that is not in it may be anything, or not be there.
    """
    match node:
        case Constant(value) if node.kind is Kind.NUMBER:
            return Extent(float(value), float(value), sure=True)
        case Name(name) if name in ranges:
            return Extent(*ranges[name], sure=True)
        case Opposite(part):
            low, high, sure = extent(part, ranges)
            return Extent(-high, -low, sure)
        case Operation(sign, left, right):
            return _combined(sign, extent(left, ranges), extent(right, ranges))
        case _:
            return _ANYTHING


def _combined(sign: str, left: Extent, right: Extent) -> Extent:
    if sign == "/" and right.low <= 0.0 <= right.high:
        return _ANYTHING
    operate = OPERATIONS[sign]
    ends = [operate(a, b) for a, b in product(left[:2], right[:2])]
    if any(math.isnan(end) for end in ends):  # infinity by zero, or less infinity
        return _ANYTHING
    return Extent(min(ends), max(ends), left.sure and right.sure)


def outlook(node: Node, ranges: Mapping[str, Range]) -> Outlook:
    """Whether a condition may hold, and whether it may not.

    Parameters
    ----------
    node : Node
        A condition.
    ranges : mapping of str to range
        Of figures that there are; one that is not in it may be anything, or not be there.
    """
    match node:
        case Constant(bool(value)):
            return Outlook(true=value, false=not value)
        case Negated(part):
            found = outlook(part, ranges)
            return Outlook(true=found.false, false=found.true)
        case Logical(word, parts):
            every = [outlook(part, ranges) for part in parts]
            join, other = (all, any) if word == "and" else (any, all)
            return Outlook(
                true=join(one.true for one in every), false=other(one.false for one in every)
            )
        case Comparison(sign, left, right) if Kind.TEXT not in (left.kind, right.kind):
            return _compared(sign, extent(left, ranges), extent(right, ranges))
        case _:
            return _EITHER


def _compared(sign: str, left: Extent, right: Extent) -> Outlook:
    if sign in (">", ">="):
        return _compared({">": "<", ">=": "<="}[sign], right, left)
    sure = left.sure and right.sure
    if sign == "<":
        return Outlook(true=left.low < right.high, false=not sure or left.high >= right.low)
    if sign == "<=":
        return Outlook(true=left.low <= right.high, false=not sure or left.high > right.low)
    meet = left.low <= right.high and right.low <= left.high
    one = left.low == left.high == right.low == right.high
    if sign == "==":
        return Outlook(true=meet, false=not sure or not one)
    return Outlook(true=not sure or not one, false=not sure or meet)
