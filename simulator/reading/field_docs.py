"""The meaning of the keys of tables: the text under each field in the source.

Sources are read only for a schema, a reference or a message about a missing key: it takes longer
than most predictions.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import ModuleType

from simulator.reading.tables import FileTable


def meaning(table: type[FileTable], name: str) -> str:
    """Return what a key of a table means; empty where nothing is written under it."""
    return _texts(table).get(name, "")


@cache
def _texts(table: type[FileTable]) -> Mapping[str, str]:
    """Return the texts of a table's fields, with those of the tables it extends."""
    found: dict[str, str] = {}
    for owner in reversed(table.__mro__):
        module = sys.modules.get(owner.__module__)
        if module is not None and owner is not object:
            found |= _of_module(module).get(owner.__name__, {})
    return found


@cache
def _of_module(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Texts under annotated names of a module's classes, by class and name."""
    tree = ast.parse(inspect.getsource(module))
    return {
        node.name: dict(_under_names(node.body))
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def _under_names(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, under in pairwise(body):
        match field, under:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
            case _:
                continue
