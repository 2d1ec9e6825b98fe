"""What can be asked and answered, as tables: the metrics, and the keys of a scenario file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from simulator.reading.names import asked_for
from simulator.report.format.table import Table, as_markdown
from simulator.report.text import columns, wrapped
from simulator.results.metrics import METRICS

_BETTER: Final = {"high": "higher", "low": "lower", None: ""}


def metrics(wanted: str = "") -> Table:
    """Return metrics by dotted name: unit, better direction, what they are of, meaning.

    Raises
    ------
    UnknownName
        If no metric's name begins with `wanted`, holds or matches it.
    """
    names = asked_for("metric", wanted, list(dict.fromkeys(metric.name for metric in METRICS)))
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
    return Table(head=("metric", "unit", "better", "of", "meaning"), rows=rows)


def metrics_text(wanted: str = "") -> str:
    """The metrics for a terminal, each with its meaning below it."""
    lines = []
    for name, unit, better, kind, doc in metrics(wanted).rows:
        facts = ", ".join(
            str(fact) for fact in (unit, f"{better} is better" if better else "", kind) if fact
        )
        lines.append(f"{name}  [{facts}]" if facts else str(name))
        lines += [f"    {line}" for line in wrapped(str(doc), hang="", width=90)]
    return "\n".join(lines)


def keys(schema: Mapping[str, Any]) -> Table:
    """Every key of a scenario file as its JSON Schema describes it, in order."""
    head = ("key", "value", "default", "meaning")
    return Table(head=head, rows=tuple(_keys(schema, schema, "", ())))


def keys_text(schema: Mapping[str, Any]) -> str:
    """The keys for a terminal."""
    found = keys(schema)
    rows = [tuple(str(cell) for cell in row[:3]) for row in (found.head, *found.rows)]
    return "\n".join(columns(rows, "<<<"))


def keys_markdown(schema: Mapping[str, Any]) -> str:
    """The keys as Markdown: a heading, a sentence and a table for each section."""
    parts = [as_markdown(_own(schema, schema))]
    for name, node in schema["properties"].items():
        found = _resolved(schema, node)
        if "properties" in found:
            text = found.get("description", "")
            table = Table(head=keys(schema).head, rows=tuple(_keys(schema, found, "", ())))
            parts.append(f"## [{name}]\n\n{text}\n\n{as_markdown(table)}")
    return "\n\n".join(parts)


def _own(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Table:
    """The keys of a table that hold no table of keys."""
    kept = {
        name: part
        for name, part in node["properties"].items()
        if "properties" not in _resolved(schema, part)
    }
    rows = _keys(schema, {**node, "properties": kept}, "", ())
    return Table(head=("key", "value", "default", "meaning"), rows=tuple(rows))


def _keys(
    schema: Mapping[str, Any], node: Mapping[str, Any], before: str, seen: tuple[str, ...]
) -> Iterator[tuple[str, str, str, str]]:
    """The rows of a table's keys and of the tables in it."""
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
    """The node with what it refers to put in; its own words win."""
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
    """What a key may hold: choices, an example with its unit, or a kind of value."""
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
