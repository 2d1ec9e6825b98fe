"""The ``[sweep]`` section of a scenario as the axes of a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from simulator.errors import InputError, Problem
from simulator.reading.document import Document, examine
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.lines import KeyPath
from simulator.reading.reading import dotted
from simulator.reading.search.axes import axis_of, lost_pattern
from simulator.reading.settings import possible_names, setting_units
from simulator.results.expression import Expression, ExpressionError, parse_expression
from simulator.schema.goal import Axes, Axis, Sampling

_SECTION: Final[KeyPath] = ("sweep",)


def axes_of(document: Document, catalogue: Catalogue) -> Axes | None:
    """Return the axes of the document's ``[sweep]`` section; None if it has none.

    Raises
    ------
    InputError
        With all mistakes of the section.
    """
    if "sweep" not in document.data:
        return None
    section, problems = examine(Axes, document, at=_SECTION)
    if section is None:
        raise InputError(problems)
    axes, wrong = table_of_axes(document, (*_SECTION, "over"), catalogue)
    wrong += _points(document, section)
    if section.where:
        wrong += read_condition(document, (*_SECTION, "where"), section.where)[1]
    if wrong:
        raise InputError(tuple(wrong))
    return replace(section, axes=axes)


def _points(document: Document, section: Axes) -> list[Problem]:
    is_grid = section.sample is Sampling.GRID
    if is_grid and section.points is not None:
        hint = 'leave it out, or draw points: sample = "sobol"'
        message = "is given, but a grid takes every combination"
        return [document.problem((*_SECTION, "points"), message, hint=hint)]
    if not is_grid and section.points is None:
        message, hint = "is missing", "say how many points to draw, such as points = 200"
        return [document.problem((*_SECTION, "points"), message, hint=hint)]
    return []


def table_of_axes(
    document: Document, at: KeyPath, catalogue: Catalogue
) -> tuple[tuple[Axis, ...], list[Problem]]:
    """Return the axes of the table at a path, and all mistakes in it.

    A key may be quoted (``"input.workers" = ...``) or not (``input.workers = ...``).
    """
    table = document.value(at)
    axes, problems, seen = [], list[Problem](), set[str]()
    for path, names in flat_keys(table if isinstance(table, dict) else {}, at):
        try:
            axis = _axis(document, path, names)
        except InputError as error:
            problems += error.problems
            continue
        twice = seen.intersection(axis.keys)
        seen.update(axis.keys)
        if twice:
            message = f"varies {min(twice)}, which another axis varies too"
            problems.append(document.problem(path, message, hint="give each key once", show=False))
        lost = lost_pattern(axis, lambda key: possible_names(key, catalogue))
        if lost is not None:
            problems.append(document.problem(path, lost.message, hint=lost.hint))
        axes.append(axis)
    return tuple(axes), problems


def _axis(document: Document, path: KeyPath, names: str) -> Axis:
    origin, line = document.where(path)
    return axis_of(names, document.value(path), origin=origin, line=line, key=dotted(path))


def flat_keys(table: Mapping[str, Any], at: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the paths of the values in a table of settings, each with its dotted key."""
    for name, value in table.items():
        path = (*at, name)
        if isinstance(value, dict) and value:
            for inner, rest in flat_keys(value, path):
                yield inner, f"{name}.{rest}"
        else:
            yield path, name


def read_condition(
    document: Document, path: KeyPath, text: str
) -> tuple[Expression | None, list[Problem]]:
    """Parse a condition over metrics and keys of the scenario; return it and its problems."""
    expression, problems = read_expression(document, path, text, settings=True)
    if expression is None or expression.is_condition:
        return expression, problems
    hint = "compare it with something"
    return None, [document.problem(path, "is a number where a condition is needed", hint=hint)]


def read_expression(
    document: Document, path: KeyPath, text: str, *, settings: bool
) -> tuple[Expression | None, list[Problem]]:
    """Parse an expression over metrics, and with `settings` over keys of the scenario too.

    Return it and its problems; None if it is invalid.
    """
    try:
        extra = setting_units() if settings else {}
        return parse_expression(text, extra_names=extra), []
    except ExpressionError as error:
        return None, [document.problem(path, error.message, hint=error.hint)]
