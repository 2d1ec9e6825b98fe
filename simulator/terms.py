"""Recorded calls of equations: values that know which equation gave them, and what it was given.

What a prediction shows as "this number = that equation of these inputs" is one object made by one
call, so that the three cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from simulator.units import Real

Points: TypeAlias = tuple[float, ...]
"""Measured points, which an equation interpolates."""


@dataclass(frozen=True, slots=True)
class Term:
    """The value of an equation, the equation, and what it was given by the names of its parameters.

    An input may be a term itself: then its value was given.
    """

    value: Real
    equation: Callable[..., Real]
    inputs: Mapping[str, Given]

    @property
    def name(self) -> str:
        """The equation's module and name, as in the formula sheet."""
        module = self.equation.__module__.rpartition(".")[2]
        return f"{module}.{self.equation.__name__}"

    def again(self) -> Real:
        """The value, worked out once more from the inputs."""
        return self.equation(**{name: plain(given) for name, given in self.inputs.items()})

    def within(self) -> Iterator[Term]:
        """The term itself, and all that went into it."""
        yield self
        for given in self.inputs.values():
            if isinstance(given, Term):
                yield from given.within()


Given: TypeAlias = Term | Real | Points | str
"""What an equation is given."""


def plain(given: Given) -> Real | Points | str:
    """What an input is to the equation."""
    return given.value if isinstance(given, Term) else given


def term(equation: Callable[..., Real], **inputs: Given) -> Term:
    """Call an equation and keep the call.

    Parameters
    ----------
    equation : callable
        A function of the formula sheet.
    **inputs
        What it is given; terms count as their values.

    Examples
    --------
    >>> from simulator.equations.collectives import ring_wire_bytes
    >>> sent = term(ring_wire_bytes, size=100e6, ranks=4)
    >>> sent.name, float(sent.value), float(sent.again())
    ('collectives.ring_wire_bytes', 150000000.0, 150000000.0)
    """
    for given in inputs.values():
        if isinstance(given, Term):
            plainly = {name: plain(one) for name, one in inputs.items()}
            return Term(equation(**plainly), equation, inputs)
    return Term(equation(**inputs), equation, inputs)
