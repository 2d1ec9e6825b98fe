"""Chakra execution traces: sound ones as time, bytes and longest path of a step; others refused.

A trace is refused with the list of its defects unless `repair` is asked for and all of them can
be mended; what was mended is said. `chakra_nodes` says what is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.importers.chakra.nodes import COLLECTIVE, COMPUTE, Graph, Node, read_graph
from simulator.importers.reading import changed
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import comment, quantity
from simulator.units import Seconds

_NAMED: Final = {
    "COMP_NODE": "compute",
    "COMM_COLL_NODE": "collectives",
    "COMM_SEND_NODE": "sends",
    "COMM_RECV_NODE": "receives",
    "MEM_LOAD_NODE": "loads",
    "MEM_STORE_NODE": "stores",
    "METADATA_NODE": "metadata",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is known beside the traces: samples and steps in each. `repair`: mend what can be."""

    batch: int | None = None
    steps: int = 1
    repair: bool = False


def read(paths: Sequence[Path], request: Request) -> Fragment:
    """The step that one trace (of one rank), or several of one job, describe.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Traces, one a rank.
    request : Request
        What is known, and whether to mend.

    Returns
    -------
    Fragment
        Section [model] if the batch is known; the tables in comments and summary.

    Raises
    ------
    InputError
        For what is no Chakra trace, and with all defects that are not to be mended.
    """
    graphs = [read_graph(path) for path in paths]
    problems = [problem for graph in graphs for problem in _refused(graph, request)]
    problems += _unequal(graphs) if not problems else []
    if problems:
        raise InputError(tuple(problems))
    summary = tuple(_summary(graphs, request))
    warnings = [f"mended {line}" for graph in graphs for line in graph.defects.lines(mended=True)]
    time = max(_time(graph, _is_work) for graph in graphs) / request.steps
    files = ", ".join(path.name for path in paths)
    text = [comment("\n".join([f"From {files} (Chakra trace, {changed(paths[0])}).", *summary]))]
    if request.batch is None:
        warnings.append("no --batch: the samples of a step are not in a trace; no section")
    elif time <= 0.0:
        warnings.append("no work on a device takes any time: no section is written")
    else:
        table = f"{{ batch_size = {request.batch}, time = {quantity(time, units.SECOND)} }}"
        text += ["[model]", f"step_times = [{table}]"]
    return Fragment(
        kind=Kind.SCENARIO,
        text="\n".join(text) + "\n",
        summary=summary,
        warnings=tuple(warnings),
    )


def _refused(graph: Graph, request: Request) -> Iterator[Problem]:
    """The defects that are not to be, or cannot be, mended."""
    for line in graph.defects.lines(mended=False):
        yield Problem(origin=graph.origin, message=line)
    if not request.repair:
        for line in graph.defects.lines(mended=True):
            yield Problem(origin=graph.origin, message=line, hint="--repair mends this")


def _unequal(graphs: Sequence[Graph]) -> list[Problem]:
    """Ranks whose collectives are not those of the first."""
    first = _collectives(graphs[0])
    return [
        Problem(
            origin=graph.origin,
            message=f"has other collectives than {graphs[0].origin}",
            found=_counted(_collectives(graph)),
            hint=_counted(first),
        )
        for graph in graphs[1:]
        if _collectives(graph) != first
    ]


def _collectives(graph: Graph) -> dict[tuple[str, float], int]:
    """How often each collective of each size occurs."""
    found: dict[tuple[str, float], int] = {}
    for node in graph.nodes:
        if node.kind == COLLECTIVE:
            key = (node.operation, node.size)
            found[key] = found.get(key, 0) + 1
    return found


def _counted(found: dict[tuple[str, float], int]) -> str:
    size = sum(count * size for (_, size), count in found.items())
    return f"{sum(found.values())} of {units.show(size, units.BYTE)}"


def _is_work(node: Node) -> bool:
    """Whether a node is compute of a device."""
    return node.kind == COMPUTE and not node.on_cpu


def _time(graph: Graph, counts: Callable[[Node], bool]) -> Seconds:
    return sum(node.duration for node in graph.nodes if counts(node))


def _summary(graphs: Sequence[Graph], request: Request) -> Iterator[str]:
    first = graphs[0]
    version = f" {first.version}" if first.version else ""
    ranks = f", {len(graphs)} ranks, the first:" if len(graphs) > 1 else ""
    yield f"Chakra{version} ({first.form}): {len(first.nodes)} nodes{ranks}"
    for kind, name in _NAMED.items():
        for on_cpu in (False, True):
            chosen = [n for n in first.nodes if n.kind == kind and n.on_cpu is on_cpu]
            if chosen:
                time = sum(node.duration for node in chosen) / request.steps
                place = " on the CPU" if on_cpu else ""
                yield f"  {len(chosen)} {name}{place}: {units.show(time, units.SECOND)} a step"
    for (operation, size), count in sorted(_collectives(first).items()):
        yield f"  {count} x {operation} of {units.show(size, units.BYTE)}"
    whole, silent = _longest(first, lambda _: True), _longest(first, _is_no_talk)
    steps = request.steps
    yield f"longest path: {units.show(whole / steps, units.SECOND)} a step"
    yield f"without communication: {units.show(silent / steps, units.SECOND)} a step"


def _is_no_talk(node: Node) -> bool:
    return not node.kind.startswith("COMM")


def _longest(graph: Graph, counts: Callable[[Node], bool]) -> Seconds:
    """The longest chain of nodes that wait for each other, of those that count [s]."""
    ends: dict[int, float] = {}
    for node in graph.nodes:
        before = max((ends.get(need, 0.0) for need in node.needs), default=0.0)
        ends[node.number] = before + (node.duration if counts(node) else 0.0)
    return max(ends.values(), default=0.0)
