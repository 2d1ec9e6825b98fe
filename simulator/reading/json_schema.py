"""JSON Schemas of job and service files, generated from the tables."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from simulator.reading.document import SCHEMA
from simulator.reading.sections import ScenarioFile
from simulator.reading.service.sections import ServiceFile
from simulator.reading.tables import FileTable, TableKey, table_keys, without_none
from simulator.schema.fields import Length

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, for editors and ``plan schema``.

    Returns
    -------
    dict
        Draft 2020-12. Titles, descriptions and examples come from the tables; a file that extends
        another may leave out required sections.
    """
    return _schema(ScenarioFile, "plan scenario")


def service_schema() -> dict[str, Any]:
    """Return the JSON Schema of a service file (``mode = "serve"``), like `scenario_schema`."""
    return _schema(ServiceFile, "plan service")


def _schema(table: type[FileTable], title: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    body = _of_table(table, definitions)
    number = {
        "const": SCHEMA,
        "description": "Version of the file format.",
        "title": "Schema",
        "type": "integer",
    }
    whole = {"required": body.pop("required")}
    return {
        "$schema": _DIALECT,
        **body,
        "title": title,
        "properties": {"schema": number, **body["properties"]},
        "required": ["schema"],
        "anyOf": [{"required": ["extends"]}, whole],
        "$defs": dict(sorted(definitions.items())),
    }


def _of_table(table: type[FileTable], definitions: dict[str, Any]) -> dict[str, Any]:
    keys = table_keys(table)
    properties = {name: _of_key(table, key, definitions) for name, key in keys.items()}
    required = [name for name, key in keys.items() if key.required]
    return {
        "additionalProperties": False,
        "description": inspect.cleandoc(table.__doc__ or ""),
        "properties": properties,
        **({"required": required} if required else {}),
        "title": table.__name__,
        "type": "object",
    }


def _of_key(table: type[FileTable], key: TableKey, definitions: dict[str, Any]) -> dict[str, Any]:
    node = dict(_of_kind(key.kind, definitions))
    if text := meaning(table, key.name):
        node["description"] = text
    if "$ref" not in node:
        node["title"] = key.name.replace("_", " ").title()
    default = key.default.value if isinstance(key.default, Enum) else key.default
    if not (key.required or key.depends) and isinstance(default, str | int | float):
        whole = node.get("type") == "integer" and isinstance(default, float)
        node["default"] = int(default) if whole else default
    return dict(sorted(node.items()))


def _of_kind(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - an annotation
    kind, origin = without_none(kind), get_origin(without_none(kind))
    if origin is Annotated:
        return _of_annotated(kind, definitions)
    if origin in (list, tuple):
        return {"items": _of_kind(get_args(kind)[0], definitions), "type": "array"}
    if origin in (dict, Mapping):
        entry = _of_kind(get_args(kind)[1], definitions)
        return {"additionalProperties": entry or True, "type": "object"}
    if origin is Literal:
        return {"enum": list(get_args(kind)), "type": "string"}
    if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__"):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            definitions[kind.__name__] = _of_table(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return {"type": _PLAIN[kind]} if kind in _PLAIN else {}


def _of_annotated(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - an annotation
    for mark in kind.__metadata__:
        if hasattr(mark, "json_schema"):
            return dict(mark.json_schema())
        if isinstance(mark, Length):
            most = {} if mark.high is None else {"maxItems": mark.high}
            return {**_of_kind(kind.__origin__, definitions), "minItems": mark.low, **most}
    return _of_kind(kind.__origin__, definitions)


def meaning(table: type[FileTable], name: str) -> str:
    """Return the documentation of a key of a table; empty if it has none."""
    return _texts(table).get(name, "")


@cache
def _texts(table: type[FileTable]) -> Mapping[str, str]:
    """Return the documentation of a table's fields, including inherited ones."""
    found: dict[str, str] = {}
    for owner in reversed(table.__mro__):
        module = sys.modules.get(owner.__module__)
        if module is not None and owner is not object:
            found |= _of_module(module).get(owner.__name__, {})
    return found


@cache
def _of_module(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Return the texts under the fields of a module's classes, by class and field."""
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
