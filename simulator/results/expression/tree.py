"""What an expression consists of: frozen nodes that know their kind, unit, text and value."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, SupportsFloat, TypeAlias

from simulator.errors import UnitError
from simulator.results.metrics import USD_PER_HOUR, Value
from simulator.units import HOUR, USD_PER_SECOND, Unit, parse

Figures: TypeAlias = Mapping[str, Any]
"""Values by name. Any: besides what metrics may be, settings of a scenario."""

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
OPERATIONS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_EQUALITIES: Final = ("==", "!=")


class Kind(StrEnum):
    """What an expression stands for."""

    TRUTH = "a condition"
    NUMBER = "a number"
    TEXT = "a word"
    ANY = "a setting"
    """Known only once there is a value."""


def in_unit(text: str, unit: Unit) -> float:
    """A quantity as text in the unit that metrics have it in.

    Raises
    ------
    UnitError
        If it measures something else, or nothing of that unit is written as text.
    """
    if unit == USD_PER_HOUR:
        return parse(text, USD_PER_SECOND) * HOUR
    try:
        return parse(text, unit)
    except KeyError:
        msg = f"is text; {unit.name} is compared with a bare number in {unit.symbol}"
        raise UnitError(msg) from None


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a truth, a word, or a quantity whose text was `written`."""

    value: float | bool | str
    written: str = ""

    @property
    def kind(self) -> Kind:
        """What it stands for."""
        if isinstance(self.value, bool):
            return Kind.TRUTH
        return Kind.TEXT if isinstance(self.value, str) else Kind.NUMBER

    @property
    def unit(self) -> Unit | None:
        """None: it takes the unit of what stands beside it."""
        return None

    def parts(self) -> tuple[Node, ...]:
        """Nothing below it."""
        return ()

    def of(self, figures: Figures) -> Value:
        """Itself."""
        del figures
        return self.value

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        text = self.written or self.value
        return quoted(text) if isinstance(text, str) else repr(float(text))


@dataclass(frozen=True, slots=True)
class Name:
    """A figure by its name: a metric, an item of one, or a setting of the scenario."""

    name: str
    kind: Kind
    unit: Unit | None = None

    def parts(self) -> tuple[Node, ...]:
        """Nothing below it."""
        return ()

    def of(self, figures: Figures) -> Value:
        """The figure; a quantity that is text as a number. None where there is none."""
        value = figures.get(self.name)
        if value is None:
            table, _, item = self.name.rpartition(".")
            items = figures.get(table)
            value = items.get(item) if isinstance(items, Mapping) else None
        if isinstance(value, str) and self.unit is not None:
            return _quantity(value, self.unit)
        return value

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Opposite:
    """A number with its sign changed."""

    part: Node

    @property
    def kind(self) -> Kind:
        """A number."""
        return Kind.NUMBER

    @property
    def unit(self) -> Unit | None:
        """That of the number."""
        return self.part.unit

    def parts(self) -> tuple[Node, ...]:
        """The number."""
        return (self.part,)

    def of(self, figures: Figures) -> Value:
        """Minus the number; None where it is unknown."""
        value = number(self.part.of(figures))
        return None if value is None else -value

    def __str__(self) -> str:
        return f"-{_inside(self.part, _TIGHT)}"


@dataclass(frozen=True, slots=True)
class Operation:
    """A sum, difference, product or quotient."""

    sign: str
    left: Node
    right: Node

    @property
    def kind(self) -> Kind:
        """A number."""
        return Kind.NUMBER

    @property
    def unit(self) -> Unit | None:
        """That of both parts of a sum, or of a figure times or by a plain number."""
        left, right = self.left.unit, self.right.unit
        if self.sign in ("+", "-"):
            return left if left == right else None
        if isinstance(self.right, Constant):
            return left
        return right if isinstance(self.left, Constant) and self.sign == "*" else None

    def parts(self) -> tuple[Node, ...]:
        """Both numbers."""
        return (self.left, self.right)

    def of(self, figures: Figures) -> Value:
        """The result; None where a part is unknown, or there is none."""
        left, right = number(self.left.of(figures)), number(self.right.of(figures))
        if left is None or right is None or (self.sign == "/" and right == 0.0):
            return None
        return number(OPERATIONS[self.sign](left, right))

    def __str__(self) -> str:
        own = binding(self)
        return f"{_inside(self.left, own)} {self.sign} {_inside(self.right, own + 1)}"


class _Condition:
    """What is true or false."""

    __slots__ = ()

    @property
    def kind(self) -> Kind:
        """A condition."""
        return Kind.TRUTH

    @property
    def unit(self) -> Unit | None:
        """None: it is true or false."""
        return None


@dataclass(frozen=True, slots=True)
class Comparison(_Condition):
    """Two values compared; false where one of them is unknown."""

    sign: str
    left: Node
    right: Node

    def parts(self) -> tuple[Node, ...]:
        """Both sides."""
        return (self.left, self.right)

    def of(self, figures: Figures) -> Value:
        """Whether it holds."""
        left, right = self.left.of(figures), self.right.of(figures)
        if left is None or right is None:
            return False
        numbers = _plain_number(left), _plain_number(right)
        if numbers[0] is not None and numbers[1] is not None:
            return bool(COMPARISONS[self.sign](*numbers))
        if self.sign not in _EQUALITIES:
            return False
        same = type(left) is bool or type(right) is bool or isinstance(left, str)
        return (left == right if same else False) is (self.sign == "==")

    def __str__(self) -> str:
        above = binding(self) + 1
        return f"{_inside(self.left, above)} {self.sign} {_inside(self.right, above)}"


@dataclass(frozen=True, slots=True)
class Negated(_Condition):
    """A condition that must not hold."""

    part: Node

    def parts(self) -> tuple[Node, ...]:
        """The condition."""
        return (self.part,)

    def of(self, figures: Figures) -> Value:
        """Whether the condition does not hold."""
        return not holds(self.part, figures)

    def __str__(self) -> str:
        return f"not {_inside(self.part, binding(self))}"


@dataclass(frozen=True, slots=True)
class Logical(_Condition):
    """Several conditions joined by ``and`` or by ``or``."""

    word: str
    conditions: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        """All conditions."""
        return self.conditions

    def of(self, figures: Figures) -> Value:
        """Whether all of them hold, or any."""
        every = (holds(part, figures) for part in self.conditions)
        return all(every) if self.word == "and" else any(every)

    def __str__(self) -> str:
        above = binding(self) + 1
        return f" {self.word} ".join(_inside(part, above) for part in self.conditions)


Node: TypeAlias = Constant | Name | Opposite | Operation | Comparison | Negated | Logical


_TIGHT: Final = 7


def binding(node: Node) -> int:
    """How tightly a node holds its parts together in writing; a name or number most."""
    match node:
        case Logical(word):
            return 1 if word == "or" else 2
        case Negated():
            return 3
        case Comparison():
            return 4
        case Operation(sign):
            return 5 if sign in "+-" else 6
        case Opposite():
            return _TIGHT
        case _:
            return _TIGHT + 1


def _inside(node: Node, least: int) -> str:
    """The node's text, in parentheses unless it binds at least so tightly."""
    return str(node) if binding(node) >= least else f"({node})"


def holds(node: Node, figures: Figures) -> bool:
    """Whether a condition is true; what is unknown, or none, is not."""
    return node.of(figures) is True


def number(value: object) -> float | None:
    """A figure as a number; None for what is none, or not a number."""
    return None if isinstance(value, bool) else _plain_number(value)


def _plain_number(value: object) -> float | None:
    if isinstance(value, str | Mapping | bool) or not isinstance(value, SupportsFloat):
        return None
    found = float(value)
    return None if math.isnan(found) else found


def _quantity(text: str, unit: Unit) -> float | None:
    try:
        return in_unit(text, unit)
    except UnitError:
        return None


def quoted(text: str) -> str:
    """Text as an expression has it; never holds both kinds of quotes."""
    return f'"{text}"' if "'" in text else f"'{text}'"


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, from left to right."""
    yield node
    for part in node.parts():
        yield from walk(part)
