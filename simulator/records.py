"""Frozen dataclasses that are quick to define.

The standard decorator compiles six functions for each frozen class, which took a fifth of the CPU
time of `plan simulate`. This one compiles `__init__` alone, when the first instance is made; all
classes share the other methods. Fields, defaults, `replace`, `fields` and `asdict` are those of the
standard library.
"""

from __future__ import annotations

import dataclasses
from dataclasses import FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exports it
else:

    def dataclass(cls=None, /, *, eq=True, frozen=False, slots=False, kw_only=False):
        """Return the class as a dataclass; see `dataclasses.dataclass` for the arguments.

        `InitVar` is not supported in frozen classes.
        """
        if cls is None:
            return lambda cls: dataclass(cls, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)
        if not frozen:
            return dataclasses.dataclass(cls, eq=eq, slots=slots, kw_only=kw_only)
        defined = frozenset(cls.__dict__)
        explicit_hash = cls.__dict__.get("__hash__") is not None
        cls = dataclasses.dataclass(
            cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )
        methods = {
            "__init__": _init_once(cls),
            "__repr__": _repr,
            "__setattr__": _refuse_change,
            "__delattr__": _refuse_change,
            "__getstate__": _state,
            "__setstate__": _set_state,
        }
        if eq:
            every = dataclasses.fields(cls)
            cls._compared = _values(field.name for field in every if field.compare)
            cls._hashed = _values(
                field.name
                for field in every
                if (field.compare if field.hash is None else field.hash)
            )
            methods["__eq__"] = _equal
        for name, method in methods.items():
            if name not in defined:
                setattr(cls, name, method)
        if eq and not explicit_hash:
            cls.__hash__ = _hash
        return cls


def _init_once(cls: type) -> Callable[..., None]:
    """Return an `__init__` that compiles the one of the class, and puts it in its place."""

    def __init__(self: Any, /, *args: Any, **named: Any) -> None:
        compiled = _compiled_init(cls)
        setattr(cls, "__init__", compiled)  # noqa: B010 - a method cannot be assigned to
        compiled(self, *args, **named)

    return __init__


def _compiled_init(cls: type) -> Callable[..., None]:
    """Return `__init__` of a frozen dataclass: one assignment per field, then `__post_init__`."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    positional: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(cls):
        name, value = field.name, field.name
        argument = name
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            argument = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            argument = f"{name}=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}"
        if field.init:
            (named if field.kw_only else positional).append(argument)
        elif argument == name:
            continue
        else:
            value = f"_default_{name}" if f"_default_{name}" in scope else f"_make_{name}()"
        body.append(f" _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    arguments = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    text = "\n".join([f"def __init__({arguments}):", *(body or [" pass"])])
    exec(text, scope)  # noqa: S102 - names of fields alone, as the standard library does
    init: Callable[..., None] = scope["__init__"]
    return init


def _values(names: Any) -> Callable[[object], tuple[object, ...]]:
    """Return a function that returns the values of some attributes of an object as a tuple."""
    names = tuple(names)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f for f in dataclasses.fields(self) if f.repr)
    inside = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in shown)
    return f"{type(self).__qualname__}({inside})"


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = self.__class__._compared
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(self.__class__._hashed(self))


def _refuse_change(self: Any, name: str, value: object = None) -> None:  # noqa: ARG001 - of methods
    raise FrozenInstanceError(name)


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
