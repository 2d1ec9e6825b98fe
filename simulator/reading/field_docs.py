"""What the fields of file models mean: the text under each of them in the source.

Reading sources takes longer than most predictions, so nothing of it happens until somebody asks
for a schema, a reference or a message about a key that is missing.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, get_args

from pydantic import BaseModel


def meaning(model: type[BaseModel], name: str) -> str:
    """What a field of a model means; empty where nothing is written under it."""
    return model.model_fields[name].description or _texts(model).get(name, "")


def with_meanings(schema: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """A JSON Schema of a model whose properties say what they mean.

    Parameters
    ----------
    schema : dict
        Of the model, with those inside of it under ``$defs``.
    model : type of pydantic.BaseModel
        The model.
    """
    named = {each.__name__: each for each in _inside(model)}
    definitions = {
        name: _described(part, named[name]) if name in named else part
        for name, part in schema["$defs"].items()
    }
    return {**_described(schema, model), "$defs": definitions}


def _described(part: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    properties = dict(part.get("properties", {}))
    for name, info in model.model_fields.items():
        key, text = info.alias or name, meaning(model, name)
        if text and key in properties:
            properties[key] = dict(sorted({**properties[key], "description": text}.items()))
    return {**part, "properties": properties} if properties else part


def _inside(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The model and all that its fields lead to; each may come several times."""
    yield model
    for info in model.model_fields.values():
        yield from _in_annotation(info.annotation)


def _in_annotation(annotation: object) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield from _inside(annotation)
    for part in get_args(annotation):
        yield from _in_annotation(part)


@cache
def _texts(model: type[BaseModel]) -> Mapping[str, str]:
    """Texts of a model's fields, with those of the models it extends."""
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        module = sys.modules.get(owner.__module__)
        if module is not None and issubclass(owner, BaseModel) and owner is not BaseModel:
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
