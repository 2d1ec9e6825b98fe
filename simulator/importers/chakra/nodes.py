"""A Chakra execution trace as nodes, from any of its three forms, with every defect noted.

Forms: messages of protocol buffers (``.et``, gzip or not), what ``chakra_jsonizer`` prints (JSON
objects one after another, 64-bit integers as text, zeros left out) and the JSON of its feeder
(``workload_graph``). Source: mlcommons/chakra 21585d8, ``schema/protobuf/et_def.proto``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from simulator import units
from simulator.importers.chakra import wire as chakra_wire
from simulator.importers.chakra.wire import NODE_TYPES
from simulator.importers.entries import Entry
from simulator.importers.reading import parse_json, read_bytes, refuse
from simulator.reading.reading import fail
from simulator.units import Bytes, Seconds

WANTED: Final = "a Chakra trace"
COLLECTIVES: Final = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "alltoall",
    "reduce_scatter",
    "reduce_scatter_block",
    "barrier",
)
"""What a ``comm_type`` stands for, from 0."""
COLLECTIVE: Final = "COMM_COLL_NODE"
COMPUTE: Final = "COMP_NODE"
_MICROSECOND: Final = units.parse("1 us", units.SECOND)
_SLOT: Final = {
    "comm_type": "int64Val",
    "comm_size": "int64Val",
    "num_ops": "int64Val",
    "tensor_size": "uint64Val",
    "is_cpu_op": "boolVal",
}
"""Attribute: the slot that readers of traces look for it in; from another they read 0."""
_FEEDER: Final = tuple(_SLOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node; `kind` is its type, `operation` and `size` those of a collective."""

    number: int
    name: str
    kind: str
    needs: tuple[int, ...]
    duration: Seconds
    on_cpu: bool
    operation: str = ""
    size: Bytes = 0.0


@dataclass(slots=True)
class Defects:
    """What is wrong with a trace, by kind; those that `mendable` names can be repaired."""

    found: dict[str, list[str]] = field(default_factory=dict)
    mendable: set[str] = field(default_factory=set)

    def note(self, what: str, where: object, *, mendable: bool) -> None:
        """Note one case of a defect."""
        self.found.setdefault(what, []).append(str(where))
        if mendable:
            self.mendable.add(what)

    def lines(self, *, mended: bool) -> Iterator[str]:
        """One line for each kind that is, or is not, mendable: how often, and where first."""
        for what, cases in self.found.items():
            if (what in self.mendable) is mended:
                where = ", ".join(cases[:_SHOWN]) + (", ..." if len(cases) > _SHOWN else "")
                yield f"{len(cases)} x {what}: node {where}"


_SHOWN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The nodes of one rank, mended as far as possible, in an order that keeps what they need."""

    origin: str
    form: str
    version: str
    nodes: tuple[Node, ...]
    defects: Defects


def read_graph(path: Path) -> Graph:
    """The nodes of one rank and what is wrong with them.

    Raises
    ------
    InputError
        For what is no Chakra trace, is cut off, or holds impossible values.
    """
    content, origin = read_bytes(path), str(path)
    form, version, raw = _form(content, origin)
    top = Entry(raw, origin)
    if not raw:
        fail(origin, "holds no nodes", hint=f"it should be {WANTED}")
    defects = Defects()
    nodes = [node for entry in top.entries() if (node := _node(entry, defects)) is not None]
    refuse(top.problems)
    return Graph(
        origin=origin,
        form=form,
        version=version,
        nodes=tuple(_ordered(_linked(nodes, defects), defects)),
        defects=defects,
    )


def _form(content: bytes, origin: str) -> tuple[str, str, list[Any]]:
    """Which form it is, the version that it states, and its nodes with the names of the JSON."""
    if content.lstrip()[:1] != b"{":
        version, nodes = chakra_wire.nodes(content, origin)
        return "protocol buffers", version, nodes
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        version, nodes = chakra_wire.nodes(content, origin)
        return "protocol buffers", version, nodes
    objects = list(_objects(text, origin))
    first = objects[0]
    if "workload_graph" in first:
        graph = first["workload_graph"]
        if not isinstance(graph, list):
            fail(origin, "has a 'workload_graph' that is no list")
        return "feeder JSON", "", [_of_feeder(node) for node in graph]
    if "version" not in first and "id" not in first and "type" not in first:
        hint = "known: .et, the output of chakra_jsonizer, a feeder's JSON"
        fail(origin, f"is not {WANTED}", hint=hint)
    whole = objects[1:] if "version" in first else objects
    return "JSON", str(first.get("version", "")), whole


def _objects(text: str, origin: str) -> Iterator[dict[str, Any]]:
    """JSON objects one after another."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # Empty lines in place of what came before keep the line numbers of the message.
            value, end = parse_json("\n" * text.count("\n", 0, at) + text[at:], origin), len(text)
        if not isinstance(value, dict):
            line = text.count("\n", 0, at) + 1
            fail(origin, "holds something that is no object", line=line)
        yield value
        at = end


def _of_feeder(node: object) -> object:
    """A node of a feeder's JSON with the names and slots of the other forms."""
    if not isinstance(node, dict):
        return node
    number = node.get("NodeType")
    known = isinstance(number, int) and 0 <= number < len(NODE_TYPES)
    attributes = [
        {"name": name, _SLOT[name]: node[name]} for name in _FEEDER if node.get(name) is not None
    ]
    return {
        "id": node.get("Id"),
        "name": node.get("Name", ""),
        "type": NODE_TYPES[number] if known and isinstance(number, int) else number,
        "dataDeps": node.get("data_deps", []),
        "durationMicros": node.get("runtime", 0),
        "attr": attributes,
    }


def _node(entry: Entry, defects: Defects) -> Node | None:
    """One node; impossible values are noted in the entry, mendable ones as defects."""
    if not entry.is_mapping():
        entry.fault("is no node", found=entry.value)
        return None
    number = entry.number_at("id")
    duration = entry.number_at("durationMicros")
    needs = [*_numbers(entry.get("dataDeps")), *_numbers(entry.get("ctrlDeps"))]
    kind = entry.text_at("type") or NODE_TYPES[0]
    found = int(number or 0.0)
    if kind not in NODE_TYPES or kind == NODE_TYPES[0]:
        entry.fault("has an unknown 'type'", found=kind)
        return None
    values = _attributes(entry, found, defects)
    on_cpu = values.get("is_cpu_op") in {True, "true", "True"}
    operation, size = "", 0.0
    if kind == COLLECTIVE:
        kind, operation, size = _collective(values, found, defects, on_cpu=on_cpu)
    if not duration and kind in {COMPUTE, COLLECTIVE} and not on_cpu:
        defects.note("work on a device that takes no time (kept so)", found, mendable=True)
    return Node(
        number=found,
        name=entry.text_at("name") or "",
        kind=kind,
        needs=tuple(dict.fromkeys(needs)),
        duration=(duration or 0.0) * _MICROSECOND,
        on_cpu=on_cpu,
        operation=operation,
        size=size,
    )


def _numbers(entry: Entry | None) -> list[int]:
    found = [] if entry is None else [each.number() for each in entry.entries()]
    return [int(value) for value in found if value is not None]


def _attributes(entry: Entry, number: int, defects: Defects) -> Mapping[str, Any]:
    """The attributes by name; a value in a slot where readers don't look is a defect."""
    listed = entry.get("attr")
    found: dict[str, Any] = {}
    for each in listed.entries() if listed is not None else ():
        name = each.text_at("name")
        if name is None or not isinstance(each.value, Mapping):
            continue
        slots = [key for key in each.value if key.endswith("Val")]
        if not slots:
            continue
        found[name] = each.value[slots[0]]
        wanted = _SLOT.get(name)
        if wanted is not None and slots[0] != wanted:
            what = f"{name} in the slot {slots[0]}, where {wanted} is read (as 0)"
            defects.note(what, number, mendable=True)
    return found


def _collective(
    values: Mapping[str, Any], number: int, defects: Defects, *, on_cpu: bool
) -> tuple[str, str, Bytes]:
    """Type, operation and bytes of a collective; a CPU's call of one is no collective."""
    said, size = _whole(values.get("comm_type")), _whole(values.get("comm_size"))
    if said is None:
        what = "collective without comm_type"
        if on_cpu:
            what += " on the CPU: the call of one (taken as a CPU operator)"
        defects.note(what, number, mendable=on_cpu)
        return COMPUTE, "", 0.0
    if not 0 <= said < len(COLLECTIVES):
        what = f"collective whose comm_type is none of 0 to {len(COLLECTIVES) - 1}"
        defects.note(what, number, mendable=False)
        return COLLECTIVE, "", 0.0
    operation = COLLECTIVES[said]
    if size is None or size < 0:
        if operation != "barrier":
            defects.note("collective without a comm_size", number, mendable=False)
        size = 0
    return COLLECTIVE, operation, float(size)


def _whole(value: object) -> int | None:
    """A whole number, also as text; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type] # what is no number raises
    except (TypeError, ValueError):
        return None
    return int(number) if math.isfinite(number) else None


def _linked(nodes: Sequence[Node], defects: Defects) -> dict[int, Node]:
    """The nodes by number, without dependencies on nodes that are not there."""
    found: dict[int, Node] = {}
    for node in nodes:
        if node.number in found:
            defects.note("number given twice", node.number, mendable=False)
        found[node.number] = node
    for node in found.values():
        for need in node.needs:
            if need == node.number:
                defects.note("dependency on itself", node.number, mendable=False)
            elif need not in found:
                what = "dependency on a node that is not there (dropped)"
                defects.note(what, node.number, mendable=True)
    return found


def _ordered(found: Mapping[int, Node], defects: Defects) -> Iterator[Node]:
    """The nodes so that each comes after what it needs; those on a circle are a defect."""
    waiting = {
        number: {need for need in node.needs if need in found and need != number}
        for number, node in found.items()
    }
    after: dict[int, list[int]] = {}
    for number, needs in waiting.items():
        for need in needs:
            after.setdefault(need, []).append(number)
    ready = [number for number, needs in waiting.items() if not needs]
    done = 0
    while ready:
        number = ready.pop()
        yield found[number]
        done += 1
        for later in after.get(number, ()):
            waiting[later].discard(number)
            if not waiting[later]:
                ready.append(later)
    if done < len(found):
        for number, needs in waiting.items():
            if needs:
                defects.note("on or behind a circle of dependencies", number, mendable=False)
