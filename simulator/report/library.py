"""Lists of shipped data: models, scenarios, metrics, and the keys of scenario files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, fields
from typing import Any, Final

from simulator.reading.hardware.catalogue import asked_for
from simulator.reading.model_library import model_names, read_model
from simulator.reading.shipped import scenario_names, scenario_path, service_names
from simulator.records import dataclass
from simulator.report.document import Code, Document, Table, grid, notes, section
from simulator.report.markdown import as_markdown
from simulator.results.metrics import METRICS
from simulator.schema.accelerators import Precision
from simulator.schema.models import forward_flops
from simulator.units import FLOP, show

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Fact:
    """A model of the library; field names are column names and JSON keys."""

    model: str
    family: str
    parameters: float
    forward_flop_per_sample: float
    measured_step_times: int
    title: str
    source: str
    date: str


def facts(wanted: str = "") -> Iterator[Fact]:
    """Yield the models of the library whose names match `wanted`; all if it is empty.

    Raises
    ------
    UnknownName
        If no name matches.
    """
    for name in asked_for("model", wanted, model_names()):
        file = read_model(name)
        model, about = file.model(), file.about
        yield Fact(
            name,
            about.family,
            float(model.parameters),
            float(forward_flops(model, 1.0, Precision.FP32)),
            sum(len(row.seconds) for row in about.step_time),
            about.title,
            file.shape.source,
            file.shape.date,
        )


def models_document(wanted: str = "") -> Document:
    """Return the models of the library whose names match `wanted` as a document."""
    found = list(facts(wanted))
    rows = [
        (
            fact.model,
            f"{fact.parameters:,.0f}",
            show(fact.forward_flop_per_sample, FLOP) if fact.forward_flop_per_sample else "none",
            f"{fact.measured_step_times} steps" if fact.measured_step_times else "-",
            fact.title,
        )
        for fact in found
    ]
    head = ("model", "parameters", "forward/sample", "measured", "title")
    return Document(
        sections=section("", grid(head, rows, "<>>><")),
        data=lambda: {"schema": SCHEMA, "models": [asdict(fact) for fact in found]},
        table=lambda: Table(
            head=tuple(field.name for field in fields(Fact)),
            rows=tuple(astuple(fact) for fact in found),
        ),
    )


def scenarios_document(wanted: str = "") -> Document:
    """Return the shipped scenarios whose names match `wanted` as a document, with their titles.

    Raises
    ------
    UnknownName
        If no name matches.
    """
    rows = list(_scenarios(wanted))
    return Document(
        sections=(
            *section("", grid(("scenario", "question"), rows, "<<")),
            *section("Copy one to change it", Code(lines=(_COPY,))),
        ),
        data=lambda: [{"name": name, "title": title} for name, title in rows],
        table=lambda: Table(head=("scenario", "title"), rows=tuple(rows)),
    )


_COPY: Final = "plan init --from SCENARIO -o mine.toml"


def _scenarios(wanted: str) -> Iterator[tuple[str, str]]:
    for name in asked_for("shipped scenario", wanted, (*scenario_names(), *service_names())):
        path = scenario_path(name)
        if path is not None:
            text = path.read_text(encoding="utf-8")
            yield name, str(tomllib.loads(text).get("title", ""))


_BETTER: Final = {"high": "higher", "low": "lower", None: ""}


def metrics_document(wanted: str = "") -> Document:
    """Return the metrics whose names match `wanted` as a document.

    Raises
    ------
    UnknownName
        If no name matches.
    """
    names = asked_for("metric", wanted, list(dict.fromkeys(metric.name for metric in METRICS)))
    head = ("metric", "unit", "better", "of", "meaning")
    rows = tuple(
        (
            metric.name,
            "" if metric.unit is None else metric.unit.symbol,
            _BETTER[metric.better],
            f"{metric.kind}s",
            metric.doc,
        )
        for metric in METRICS
        if metric.name in names
    )
    texts = []
    for name, unit, better, kind, doc in rows:
        parts = (unit, f"{better} is better" if better else "", kind)
        said = ", ".join(part for part in parts if part)
        texts.append(f"{name}{f'  [{said}]' if said else ''}: {doc}")
    table = Table(head=head, rows=rows)
    return Document(
        sections=section("", notes(texts)),
        data=lambda: [dict(zip(head, row, strict=True)) for row in rows],
        table=lambda: table,
    )


KEYS_HEAD: Final = ("key", "value", "default", "meaning")


def keys_document(schema: Mapping[str, Any]) -> Document:
    """Return every key of a scenario file as a document, from its JSON Schema, in order."""
    table = Table(head=KEYS_HEAD, rows=tuple(_keys(schema, schema, "", ())))
    short = [row[:3] for row in table.rows]
    return Document(
        sections=section("", grid(KEYS_HEAD[:3], short, "<<<")),
        data=lambda: schema,
        table=lambda: table,
    )


def keys_markdown(schema: Mapping[str, Any]) -> str:
    """Return the keys of a scenario file as Markdown: heading, sentence and table per section."""
    parts = [as_markdown(_own(schema, schema))]
    for name, node in schema["properties"].items():
        found = _resolved(schema, node)
        if "properties" in found:
            text = found.get("description", "")
            table = Table(head=KEYS_HEAD, rows=tuple(_keys(schema, found, "", ())))
            parts.append(f"## [{name}]\n\n{text}\n\n{as_markdown(table)}")
    return "\n\n".join(parts)


def _own(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Table:
    """Return the keys of a schema node that are not tables themselves."""
    kept = {
        name: part
        for name, part in node["properties"].items()
        if "properties" not in _resolved(schema, part)
    }
    rows = _keys(schema, {**node, "properties": kept}, "", ())
    return Table(head=KEYS_HEAD, rows=tuple(rows))


def _keys(
    schema: Mapping[str, Any], node: Mapping[str, Any], before: str, seen: tuple[str, ...]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each key of a schema node and of its nested tables.

    `before` is the prefix of the keys, `seen` the titles of enclosing tables, against recursion.
    """
    required = node.get("required", ())
    for name, raw in node.get("properties", {}).items():
        part = _resolved(schema, raw)
        default = "required" if name in required else _default(part)
        yield f"{before}{name}", _values(schema, part), default, _meaning(part)
        inner = _resolved(schema, part.get("items", {})) if part.get("type") == "array" else part
        mark = "[]" if part.get("type") == "array" else ""
        title = str(inner.get("title", ""))
        if "properties" in inner and title not in seen:
            yield from _keys(schema, inner, f"{before}{name}{mark}.", (*seen, title))


def _resolved(schema: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema node with its reference resolved; its own keys take precedence."""
    if "$ref" not in node:
        return dict(node)
    name = str(node["$ref"]).rpartition("/")[2]
    own = {key: value for key, value in node.items() if key != "$ref"}
    return {**_resolved(schema, schema["$defs"][name]), **own}


_KINDS: Final = {
    "string": "text",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "table",
}


def _values(schema: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """Describe the values of a key: choices, an example with its unit, or a type."""
    choices = part.get("enum", [part["const"]] if "const" in part else [])
    if choices:
        return ", ".join(str(choice) for choice in choices)
    if "anyOf" in part:
        found = (_values(schema, _resolved(schema, option)) for option in part["anyOf"])
        return " or ".join(dict.fromkeys(found))
    if part.get("examples"):
        return f"such as {part['examples'][0]}"
    kind = str(part.get("type", ""))
    if kind == "array":
        return f"list of {_values(schema, _resolved(schema, part.get('items', {})))}"
    return _KINDS.get(kind, kind)


def _default(part: Mapping[str, Any]) -> str:
    default = part.get("default")
    if default is None or default == []:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _meaning(part: Mapping[str, Any]) -> str:
    return " ".join(str(part.get("description", "")).split())
