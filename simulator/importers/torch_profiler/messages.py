"""Collectives of a trace: what each moved, and how long it would take among other numbers of ranks.

Sizes are those of the larger buffer, as nccl-tests counts them. Kineto writes elements of one
rank's input and output, and the type by its c10 name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from simulator import units
from simulator.equations import collectives
from simulator.importers.torch_profiler.trace_file import Event, Kind, Trace
from simulator.units import Bytes, BytesPerSecond, Seconds

_NAMES: Final = (
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("alltoall", re.compile(r"all_?to_?all", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("sendrecv", re.compile(r"send|recv", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
)
"""Operation: how libraries and versions write it; the first that fits."""
_ELEMENT: Final[Mapping[str, float]] = {
    "double": 8.0,
    "long": 8.0,
    "float": 4.0,
    "int": 4.0,
    "half": 2.0,
    "bfloat16": 2.0,
    "short": 2.0,
    "byte": 1.0,
    "char": 1.0,
    "bool": 1.0,
}
_ACTIVATIONS: Final = frozenset({"alltoall", "sendrecv"})
_SHARDS: Final = frozenset({"all_gather", "reduce_scatter"})
_RECORD: Final = "record_param_comms"
_FASTEST: Final = units.parse("1 PB/s", units.BYTE_PER_SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Bytes moved by one collective among `ranks`; `element` is the size of a value [B].

    `tree` says that its kernel is named after one; all others are taken to be rings.
    """

    operation: str
    size: Bytes
    ranks: int
    element: Bytes
    tree: bool = False

    @property
    def grows_with_batch(self) -> bool:
        """True if it carries activations; the others carry gradients or parameters."""
        return self.operation in _ACTIVATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Latency of a ring's step and bandwidth of a rank that fit a trace's collectives."""

    latency: Seconds
    bandwidth: BytesPerSecond

    def time(self, message: Message, size: Bytes, ranks: int) -> Seconds:
        """Return the time of a collective of `message`'s kind [s]: its steps and its bytes.

        A ring all-reduce takes ``2 (n - 1) latency + 2 (n - 1) / n * size / bandwidth`` and a ring
        gather or scatter half of that (Thakur, Rabenseifner, Gropp 2005,
        https://doi.org/10.1177/1094342005051521); a double binary tree goes up and down again,
        ``2 log2(n) latency + 2 size / bandwidth`` (Sanders, Speck, Träff 2009,
        https://doi.org/10.1016/j.parco.2009.09.001).
        """
        if ranks <= 1:
            return 0.0
        asked = replace(message, size=size, ranks=ranks)
        return _steps(asked) * self.latency + _moved(asked) / self.bandwidth

    def time_over_machines(
        self, size: Bytes, local: int, machines: float, network: BytesPerSecond
    ) -> Seconds:
        """Time of an all-reduce inside machines of `local` ranks first, then between them [s].

        Reduce-scatter inside, all-reduce of the parts between the machines over their `network`,
        all ranks at once, and all-gather inside (Jia et al. 2018, section 3.4,
        https://arxiv.org/abs/1807.11205).
        """
        steps = 2.0 * (local - 1.0) + 2.0 * (machines - 1.0)
        inside = 2.0 * collectives.shard_bytes(size, local) / self.bandwidth
        between = collectives.ring_wire_bytes(size, machines) / network
        return float(steps * self.latency + inside + between)


def messages(trace: Trace) -> dict[int, Message]:
    """Return the bytes that each collective of a trace moved, where known, by the event's id."""
    records = {
        event.external: event.about
        for event in trace.of(Kind.OPERATOR)
        if event.name == _RECORD and event.external is not None
    }
    found = {}
    for event in trace.of(Kind.COLLECTIVE):
        about = event.about if "In msg nelems" in event.about else None
        message = _message(event, about or records.get(event.external or 0, {}))
        if message is not None:
            found[id(event)] = message
    return found


def _message(event: Event, about: Mapping[str, Any]) -> Message | None:
    said = f"{about.get('Collective name', '')}"
    operation = next((name for name, mark in _NAMES if mark.search(said or event.name)), "")
    counts = [_count(about.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    element = element_size(str(about.get("dtype", "")))
    ranks = _count(about.get("Group size"))
    if not operation or element is None or not ranks or not any(counts):
        return None
    return Message(
        operation=operation,
        size=max(counts) * element,
        ranks=int(ranks),
        element=element,
        tree=operation == "all_reduce" and "TREE" in event.name.upper(),
    )


def element_size(name: str) -> Bytes | None:
    """Return bytes of a value of a c10 type such as ``BFloat16``.

    None for one that is not known.
    """
    plain = name.lower().removeprefix("c10::")
    return 1.0 if plain.startswith("float8") else _ELEMENT.get(plain)


def _count(value: object) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) if good else 0.0  # type: ignore[arg-type] # checked on the line above


def fit_wire(events: Iterable[Event], found: Mapping[int, Message]) -> Wire | None:
    """Return the wire that fits a trace's collectives; None if none says what it moved.

    The shortest of equal ones counts: the others waited for their peers. With one size alone,
    all of the time is bandwidth.
    """
    least: dict[Message, float] = {}
    for event in events:
        message = found.get(id(event))
        if message is not None and message.ranks > 1 and event.duration > 0.0:
            least[message] = min(least.get(message, event.duration), event.duration)
    if not least:
        return None
    rows = np.array([(_steps(message), _moved(message)) for message in least])
    times = np.array(list(least.values()))
    return _solved(rows / times[:, None])


def _solved(rows: np.ndarray[Any, np.dtype[np.float64]]) -> Wire:
    """Return the pair that brings both columns' sum closest to one, neither below zero."""
    lengths = np.linalg.norm(rows, axis=0)
    latency = per_byte = 0.0
    if len(rows) > 1 and np.all(lengths > 0.0):
        solution = np.linalg.lstsq(rows / lengths, np.ones(len(rows)), rcond=None)[0] / lengths
        latency, per_byte = float(solution[0]), float(solution[1])
    if latency <= 0.0 or per_byte <= 0.0:
        moving = rows[:, 1]
        latency, per_byte = 0.0, float(moving.sum() / (moving @ moving))
    return Wire(latency=latency, bandwidth=min(_FASTEST, 1.0 / per_byte))


def _steps(message: Message) -> float:
    """Return steps of its ring or tree one after another."""
    if message.tree:
        return float(2.0 * np.log2(message.ranks))
    if message.operation == "all_reduce":
        return 2.0 * (message.ranks - 1.0)
    ring = message.operation in _SHARDS or message.operation == "alltoall"
    return message.ranks - 1.0 if ring else 1.0


def _moved(message: Message) -> float:
    """Return bytes each rank sends [B]."""
    if message.tree:
        return 2.0 * message.size
    if message.operation == "all_reduce":
        return float(collectives.ring_wire_bytes(message.size, message.ranks))
    ring = message.operation in _SHARDS or message.operation == "alltoall"
    return float(collectives.shard_bytes(message.size, message.ranks)) if ring else message.size


def gradient_values(events: Sequence[Event], found: Mapping[int, Message]) -> float:
    """Return values that are reduced over the ranks: what every rank has a gradient for, once."""
    reduced = [found[id(event)] for event in events if id(event) in found]
    whole = sum(m.size / m.element for m in reduced if m.operation == "all_reduce")
    parts = sum(m.size / m.element for m in reduced if m.operation == "reduce_scatter")
    return max(whole, parts)
