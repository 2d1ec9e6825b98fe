"""Recorded calls of equations: a value with the equation and the inputs that gave it.

A prediction shows "this number = that equation of these inputs" from one object made by one call,
so that the three cannot disagree. Plain arithmetic needs no equation of the formula sheet:
`stated`, `sum_of`, `product_of`, `quotient_of` and `excess_of` record it with the names of its
operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from simulator.records import dataclass
from simulator.units import Real, Unit, at_least

Points: TypeAlias = tuple[float, ...]
"""Measured points, which an equation interpolates."""


@dataclass(frozen=True, slots=True)
class Term:
    """The value of an equation, the equation, and its inputs by parameter name.

    An input may be a term itself: the equation got its value.
    """

    value: Real
    equation: Callable[..., Real]
    inputs: Mapping[str, Given]

    @property
    def name(self) -> str:
        """Name of the equation in the formula sheet, or the arithmetic written with input names."""
        if self.is_arithmetic:
            return _FORMULAS[self.equation](list(self.inputs))
        module = self.equation.__module__.rpartition(".")[2]
        return f"{module}.{self.equation.__name__}"

    @property
    def is_arithmetic(self) -> bool:
        """True if the equation is plain arithmetic, which the formula sheet does not list."""
        return self.equation in _FORMULAS

    def again(self) -> Real:
        """Recompute the value from the inputs."""
        values = {name: plain(given) for name, given in self.inputs.items()}
        return self.equation(*values.values()) if self.is_arithmetic else self.equation(**values)

    def within(self) -> Iterator[Term]:
        """Yield the term itself and all terms among its inputs."""
        yield self
        for given in self.inputs.values():
            if isinstance(given, Term):
                yield from given.within()


Given: TypeAlias = Term | Real | Points | str
"""An input of an equation."""


def plain(given: Given) -> Real | Points | str:
    """Return the value of an input that may be a term."""
    return given.value if isinstance(given, Term) else given


def term(equation: Callable[..., Real], **inputs: Given) -> Term:
    """Call an equation and record the call; inputs that are terms count as their values.

    >>> from simulator.equations.collectives import ring_wire_bytes
    >>> sent = term(ring_wire_bytes, size=100e6, ranks=4)
    >>> sent.name, float(sent.value), float(sent.again())
    ('collectives.ring_wire_bytes', 150000000.0, 150000000.0)
    """
    values = {
        name: given.value if isinstance(given, Term) else given for name, given in inputs.items()
    }
    return Term(equation(**values), equation, inputs)


def stated(**figure: Real) -> Term:
    """Record a figure as the scenario or its software states it.

    >>> overhead = stated(overhead=0.5)
    >>> overhead.name, overhead.value
    ('overhead', 0.5)
    """
    return _recorded(_sum, figure)


def sum_of(**addends: Term | Real) -> Term:
    """Record a sum.

    >>> both = sum_of(update=0.5, launches=0.25)
    >>> both.name, both.value
    ('update + launches', 0.75)
    """
    return _recorded(_sum, addends)


def product_of(**factors: Term | Real) -> Term:
    """Record a product; the first factor has its unit, the others are numbers.

    >>> product_of(bubble=0.5, slowness=1.5).name
    'bubble x slowness'
    """
    return _recorded(_product, factors)


def quotient_of(**operands: Term | Real) -> Term:
    """Record the first operand divided by the second, which is a number.

    >>> quotient_of(sent=8e6, devices=8.0).value
    1000000.0
    """
    return _recorded(_quotient, operands)


def excess_of(**operands: Term | Real) -> Term:
    """Record how far the first operand exceeds the second, 0 where it does not.

    >>> excess_of(working=3.0, logits=2.0).name, excess_of(working=1.0, logits=2.0).value
    ('max(working - logits, 0)', 0.0)
    """
    return _recorded(_excess, operands)


def _recorded(arithmetic: Callable[..., Real], operands: Mapping[str, Term | Real]) -> Term:
    values = [one.value if isinstance(one, Term) else one for one in operands.values()]
    return Term(arithmetic(*values), arithmetic, operands)


def _sum(first: Real, *others: Real) -> Real:
    for addend in others:
        first = first + addend
    return first


def _product(first: Real, *others: Real) -> Real:
    for factor in others:
        first = first * factor
    return first


def _quotient(dividend: Real, divisor: Real) -> Real:
    return dividend / divisor


def _excess(needed: Real, counted: Real) -> Real:
    return at_least(needed - counted, 0.0)


_FORMULAS: Final[Mapping[Callable[..., Real], Callable[[list[str]], str]]] = {
    _sum: " + ".join,
    _product: " x ".join,
    _quotient: " / ".join,
    _excess: lambda names: f"max({names[0]} - {names[1]}, 0)",
}
"""How the arithmetic of named operands is written."""
SAME_UNIT: Final = frozenset({_sum, _excess})
"""Arithmetic whose operands all have the unit of the value."""


@cache
def units_of(function: Callable[..., Any]) -> Mapping[str, Unit | None]:
    """Return the unit of each parameter and of the result from a function's annotations.

    >>> from simulator.equations.collectives import ring_wire_bytes
    >>> units_of(ring_wire_bytes)["size"].symbol, units_of(ring_wire_bytes)["ranks"]
    ('B', None)
    """
    hints = get_type_hints(function, include_extras=True)
    return {name: unit_in(hint) for name, hint in hints.items()}


def unit_in(hint: object) -> Unit | None:
    """Return the unit of an annotation, also within a union, tuple or mapping."""
    if get_origin(hint) is Annotated:
        return next((mark for mark in get_args(hint)[1:] if isinstance(mark, Unit)), None)
    if get_origin(hint) in {Union, UnionType, Mapping} or hasattr(hint, "__args__"):
        return next((unit for unit in map(unit_in, get_args(hint)) if unit is not None), None)
    return None
