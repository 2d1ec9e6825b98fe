"""The JSON Schema of files of jobs and of services, made from the file models."""

from __future__ import annotations

from typing import Any, Final

from simulator.reading.document import SCHEMA, FileModel
from simulator.reading.field_docs import with_meanings
from simulator.reading.sections import ScenarioFile
from simulator.reading.service.sections import ServiceFile

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors and ``plan schema``.

    Returns
    -------
    dict
        Draft 2020-12. Titles, descriptions and examples come from the file models; a file that
        extends another may leave out required sections.
    """
    return _schema(ScenarioFile, "plan scenario")


def service_schema() -> dict[str, Any]:
    """The JSON Schema of a file with ``mode = "serve"``, as `scenario_schema` has that of jobs."""
    return _schema(ServiceFile, "plan service")


def _schema(model: type[FileModel], title: str) -> dict[str, Any]:
    raw = with_meanings(model.model_json_schema(by_alias=True), model)
    definitions = {name: _tidy(part) for name, part in raw.pop("$defs").items()}
    body = _tidy(raw)
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
        "$defs": definitions,
    }


def _tidy(node: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Drop the null that stands for a key left out: TOML has none."""
    if isinstance(node, list):
        return [_tidy(part) for part in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _tidy(part) for key, part in node.items()}
    if kept.get("default", ...) is None:
        del kept["default"]
    options = kept.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        others = [option for option in options if option != {"type": "null"}]
        del kept["anyOf"]
        return {**others[0], **kept} if len(others) == 1 else {**kept, "anyOf": others}
    return kept
