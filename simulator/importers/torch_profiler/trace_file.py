"""Events and collectives of a PyTorch profiler trace, and operations on time intervals.

Format: Chrome trace JSON as Kineto writes it (pytorch/kineto ``output_json.cpp``,
``CuptiActivity.h``); torch 2.13.0 on CPU was run. ``ts`` and ``dur`` are in us, since 2024 relative
to ``baseTimeNanoseconds``. A kernel names its launch by ``correlation`` and its operator by
``External id``. Categories had other names in 2021.

Sizes of collectives are those of the larger buffer, as nccl-tests counts them. Kineto writes
elements of one rank's input and output, and the type by its c10 name.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum, auto
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator import units
from simulator.equations import collectives
from simulator.errors import MAX_PROBLEMS, Problem
from simulator.importers.foreign import Entry, read_long_list, refuse
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.units import Bytes, BytesPerSecond, Seconds

Intervals: TypeAlias = NDArray[np.float64]
"""Rows of start and end [s], sorted, without overlap."""


def union(pairs: Iterable[tuple[float, float]]) -> Intervals:
    """Return the union of the intervals `pairs` as disjoint intervals in order, shape (n, 2).

    Examples
    --------
    >>> union([(3.0, 4.0), (0.0, 2.0), (1.0, 2.5)]).tolist()
    [[0.0, 2.5], [3.0, 4.0]]
    """
    rows = np.array(list(pairs), dtype=np.float64).reshape(-1, 2)
    rows = rows[rows[:, 1] > rows[:, 0]]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if not len(rows):
        return rows
    reach = np.maximum.accumulate(rows[:, 1])
    begins = np.concatenate(([True], rows[1:, 0] > reach[:-1]))
    firsts = np.flatnonzero(begins)
    lasts = np.concatenate((firsts[1:] - 1, [len(rows) - 1]))
    return np.column_stack((rows[firsts, 0], reach[lasts]))


def both(left: Intervals, right: Intervals) -> Intervals:
    """Return the intersection of two sets of disjoint intervals.

    Examples
    --------
    >>> both(union([(0.0, 2.0), (3.0, 5.0)]), union([(1.0, 4.0)])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    edges = np.unique(np.concatenate((left.ravel(), right.ravel())))
    middles = (edges[1:] + edges[:-1]) / 2.0
    inside = _holds(left, middles) & _holds(right, middles)
    return union(zip(edges[:-1][inside], edges[1:][inside], strict=True))


def without(left: Intervals, right: Intervals) -> Intervals:
    """Return the difference of two sets of disjoint intervals: `left` without `right`.

    Examples
    --------
    >>> without(union([(0.0, 4.0)]), union([(1.0, 2.0)])).tolist()
    [[0.0, 1.0], [2.0, 4.0]]
    """
    edges = np.unique(np.concatenate((left.ravel(), right.ravel())))
    middles = (edges[1:] + edges[:-1]) / 2.0
    inside = _holds(left, middles) & ~_holds(right, middles)
    return union(zip(edges[:-1][inside], edges[1:][inside], strict=True))


def length(times: Intervals) -> Seconds:
    """Return the total length of disjoint time intervals [s].

    Examples
    --------
    >>> length(union([(0.0, 2.0), (3.0, 5.0)]))
    4.0
    """
    return float(np.sum(times[:, 1] - times[:, 0]))


def _holds(times: Intervals, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the `points` that lie inside the intervals."""
    if not len(times):
        return np.zeros(len(points), dtype=bool)
    at = np.searchsorted(times[:, 0], points, side="right") - 1
    found: NDArray[np.bool_] = (at >= 0) & (points < times[np.maximum(at, 0), 1])
    return found


WANTED: Final = "a trace of the PyTorch profiler"

_MICROSECOND: Final = units.parse("1 us", units.SECOND)
_GIGABYTE: Final = units.parse("1 GB", units.BYTE)
_RATE_TOLERANCE: Final = 0.1
_MIN_COPY: Final = 20.0 * _MICROSECOND
"""Duration of a copy from which its rate, size and time are compared [s]."""
_LOADER: Final = re.compile(r"enumerate\(DataLoader\)#.*__next__")
_STEP: Final = re.compile(r"ProfilerStep#(\d+)")
_UPDATE: Final = re.compile(r"Optimizer\.(step|zero_grad)#")
_COLLECTIVE: Final = re.compile(r"nccl|rccl", re.IGNORECASE)
_WAITS: Final = re.compile(r"(cuda|hip|cu)(Device|Stream|Event|Ctx)Synchronize")


class Kind(Enum):
    """Kind of an event: mark, operator, launch, or work on the device."""

    STEP = auto()
    LOAD = auto()
    UPDATE = auto()
    OPERATOR = auto()
    LAUNCH = auto()
    WAIT = auto()
    KERNEL = auto()
    COLLECTIVE = auto()
    TO_DEVICE = auto()
    TO_HOST = auto()


DEVICE: Final = (Kind.KERNEL, Kind.COLLECTIVE, Kind.TO_DEVICE, Kind.TO_HOST)
"""Kinds of device events; copies within the device and fills count as kernels."""

_HOST_CATEGORIES: Final = frozenset({"user_annotation", "cpu_op", "operator"})
_RUNTIME: Final = frozenset(
    {"cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "xpu_runtime"}
)
_KERNELS: Final = frozenset({"kernel", "gpu_memset", "memset"})
_COPIES: Final = frozenset({"gpu_memcpy", "memcpy"})
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_LONGEST: Final = 1e20
"""Largest time in a trace [us], three million years."""
_KEPT_ARGUMENTS: Final = frozenset(
    {"bytes", "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype"}
)


@dataclass(slots=True)
class Event:
    """One event; times in seconds since the trace's first event, `lane` its thread or stream."""

    name: str
    kind: Kind
    start: Seconds
    duration: Seconds
    lane: str
    device: str = ""
    correlation: int | None = None
    external: int | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> Seconds:
        """End time [s]."""
        return self.start + self.duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The events of one rank by kind, in order of start, and properties of device and job.

    `ranks` is the world size if recorded, `left_out` the number of events of other kinds.
    """

    origin: str
    events: Mapping[Kind, tuple[Event, ...]]
    device: str
    memory: Bytes | None
    ranks: int | None
    left_out: int
    warnings: tuple[str, ...] = ()

    def of(self, *kinds: Kind) -> list[Event]:
        """Return all events of the given kinds, in order of start."""
        found = [event for kind in kinds for event in self.events.get(kind, ())]
        return found if len(kinds) == 1 else sorted(found, key=lambda event: event.start)


def read_trace(path: Path, progress: Callable[[float], None] | None = None) -> Trace:
    """Read the profiler trace of one rank.

    Parameters
    ----------
    path : pathlib.Path
        JSON, gzip or not.
    progress : callable, optional
        Called with the share of the file that was read, from 0 to 1.

    Raises
    ------
    InputError
        For files that are not profiler traces or are truncated, and for impossible times.
    """
    origin = str(path)
    problems: list[Problem] = []
    events: list[Event] = []
    others = [0, 0]  # events in all, and of other kinds

    def take(index: int, value: object) -> None:
        others[0] += 1
        is_event = isinstance(value, dict)
        kind = _kind(value) if isinstance(value, dict) and value.get("ph") == "X" else None
        if is_event and kind is None:
            others[1] += 1
            return
        event = _event(value, kind, Entry(value, origin, ("traceEvents", index), problems))
        if event is not None:
            events.append(event)
        elif len(problems) > MAX_PROBLEMS:
            refuse(problems)

    top = read_long_list(path, WANTED, "traceEvents", take, progress)
    if "traceEvents" not in top:
        fail(origin, "has no 'traceEvents'", hint=f"it should be {WANTED}")
    refuse(problems)
    if not events:
        hint = "record with torch.profiler.profile and export_chrome_trace"
        fail(origin, f"has {others[0]} events, none of them of the PyTorch profiler", hint=hint)
    return _trace(origin, events, others[1], top)


def _kind(value: Mapping[str, Any]) -> Kind | None:
    """Return the kind of an event; None for events that are ignored."""
    category, name = str(value.get("cat", "")).lower(), str(value.get("name", ""))
    if category in _HOST_CATEGORIES:
        marks = ((_STEP, Kind.STEP), (_LOADER, Kind.LOAD), (_UPDATE, Kind.UPDATE))
        found = next((kind for mark, kind in marks if mark.match(name)), None)
        return found or (None if category == "user_annotation" else Kind.OPERATOR)
    if category in _RUNTIME:
        return Kind.WAIT if _WAITS.match(name) else Kind.LAUNCH
    if category in _KERNELS:
        return Kind.COLLECTIVE if _COLLECTIVE.search(name) else Kind.KERNEL
    if category in _COPIES:
        return _direction(name)
    return None


def _direction(name: str) -> Kind:
    if "HtoD" in name or "HostToDevice" in name:
        return Kind.TO_DEVICE
    return Kind.TO_HOST if "DtoH" in name or "DeviceToHost" in name else Kind.KERNEL


def _event(value: object, kind: Kind | None, entry: Entry) -> Event | None:
    """Return an event of the trace; report a problem and return None if it has no times."""
    if not isinstance(value, dict) or kind is None:
        entry.fault("is not an event", found=value)
        return None
    begins, takes = value.get("ts"), value.get("dur")
    if not (
        type(begins) is type(takes) is float
        and abs(begins) <= _LONGEST
        and 0.0 <= takes <= _LONGEST
    ):
        # Rare, such as whole numbers, or text: most of a long trace takes the short way.
        begins = _time(entry, "ts", -math.inf)
        takes = _time(entry, "dur", 0.0)
    if begins is None or takes is None:
        return None
    said = value.get("args")
    args: Mapping[str, Any] = said if isinstance(said, dict) else _NOTHING
    event = Event(
        name=sys.intern(str(value.get("name", ""))),
        kind=kind,
        start=begins,
        duration=takes * _MICROSECOND,
        lane=sys.intern(f"{value.get('pid')}/{value.get('tid')}"),
        device=sys.intern(str(args.get("device", ""))) if kind in DEVICE else "",
        correlation=_identity(args, "correlation"),
        external=_identity(args, "External id", "external id"),
        about={key: args[key] for key in _KEPT_ARGUMENTS & args.keys()} or _NOTHING,
    )
    if kind in {Kind.TO_DEVICE, Kind.TO_HOST}:
        _check_copy(entry, event, args)
    return event


def _time(entry: Entry, name: str, least: float) -> float | None:
    found = entry.need(name)
    return None if found is None else found.number(least, _LONGEST)


def _identity(args: Mapping[str, Any], *names: str) -> int | None:
    found = next((args[name] for name in names if name in args), None)
    return found if isinstance(found, int) and found > 0 else None


def _check_copy(entry: Entry, event: Event, args: Mapping[str, Any]) -> None:
    """Report a problem if size and duration of a copy contradict the bandwidth it reports."""
    inside = Entry(args, entry.origin, (*entry.path, "args"), entry.problems)
    size = inside.number_at("bytes")
    rate = args.get("memory bandwidth (GB/s)")
    if size is None or not isinstance(rate, int | float) or event.duration < _MIN_COPY:
        return
    moved = size / event.duration / _GIGABYTE
    if rate > 0.0 and abs(moved / rate - 1.0) > _RATE_TOLERANCE:
        message = f"moves {size:.0f} B in its time, {moved:.4g} GB/s, but says {rate:.4g} GB/s"
        inside.fault(message, hint="'dur' has to be in us")


def _trace(origin: str, events: list[Event], left_out: int, top: Mapping[str, Any]) -> Trace:
    kept, warnings = _of_one_device(events)
    first = min(event.start for event in kept)
    for event in kept:
        # Subtracted before scaling, as large absolute times leave few digits for differences.
        event.start = (event.start - first) * _MICROSECOND
    by_kind: dict[Kind, list[Event]] = {}
    for event in sorted(kept, key=lambda event: event.start):
        by_kind.setdefault(event.kind, []).append(event)
    name, memory = _device(top)
    about = top.get("distributedInfo")
    ranks = about.get("world_size") if isinstance(about, dict) else None
    return Trace(
        origin=origin,
        events={kind: tuple(found) for kind, found in by_kind.items()},
        device=name,
        memory=memory,
        ranks=ranks if isinstance(ranks, int) and ranks > 0 else None,
        left_out=left_out,
        warnings=warnings,
    )


def _of_one_device(events: list[Event]) -> tuple[list[Event], tuple[str, ...]]:
    """Return the host events and the events of the busiest device, and warnings."""
    busy: dict[str, float] = {}
    for event in events:
        if event.kind in DEVICE:
            busy[event.device] = busy.get(event.device, 0.0) + event.duration
    if len(busy) <= 1:
        return events, ()
    chosen = max(busy, key=lambda device: busy[device])
    kept = [event for event in events if event.kind not in DEVICE or event.device == chosen]
    said = f"{len(busy)} devices worked for one process; only device {chosen} is read"
    return kept, (said,)


def _device(top: Mapping[str, Any]) -> tuple[str, Bytes | None]:
    """Return the name and memory [B] of the traced device; an empty name and None on a CPU."""
    listed = top.get("deviceProperties")
    first = listed[0] if isinstance(listed, list) and listed else {}
    if not isinstance(first, dict):
        return "", None
    return str(first.get("name", "")), _count(first.get("totalGlobalMem")) or None


_NAMES: Final = (
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("alltoall", re.compile(r"all_?to_?all", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("sendrecv", re.compile(r"send|recv", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
)
"""Patterns of the names of collectives in libraries and versions; the first match counts."""
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
_MOST: Final = 5e17
"""Largest number of values, ranks or bytes that an event may state."""
_ACTIVATIONS: Final = frozenset({"alltoall", "sendrecv"})
_SHARDS: Final = frozenset({"all_gather", "reduce_scatter"})
_RECORD: Final = "record_param_comms"
_FASTEST: Final = units.parse("1 PB/s", units.BYTE_PER_SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Size and algorithm of one collective among `ranks`.

    `element` is the size of a value [B]; `tree` is true for tree kernels, others are taken as
    rings.
    """

    operation: str
    size: Bytes
    ranks: int
    element: Bytes
    tree: bool = False

    @property
    def grows_with_batch(self) -> bool:
        """True if it carries activations; other collectives carry gradients or parameters."""
        return self.operation in _ACTIVATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Latency of one step of a ring and bandwidth per rank, fitted to a trace's collectives."""

    latency: Seconds
    bandwidth: BytesPerSecond

    def time(self, message: Message, size: Bytes, ranks: int) -> Seconds:
        """Return the time of a collective like `message` for `size` bytes over `ranks` ranks [s].

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
        """Return the time of a hierarchical all-reduce on `machines` machines of `local` ranks [s].

        Reduce-scatter inside, all-reduce of the parts between the machines over their `network`,
        all ranks at once, and all-gather inside (Jia et al. 2018, section 3.4,
        https://arxiv.org/abs/1807.11205).
        """
        steps = 2.0 * (local - 1.0) + 2.0 * (machines - 1.0)
        inside = 2.0 * collectives.shard_bytes(size, local) / self.bandwidth
        between = collectives.ring_wire_bytes(size, machines) / network
        return float(steps * self.latency + inside + between)


def messages(trace: Trace) -> dict[int, Message]:
    """Return size and algorithm of each collective of a trace, if known, by id of the event."""
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
    """Return the size of a value of a c10 type such as ``BFloat16`` [B]; None if unknown."""
    plain = name.lower().removeprefix("c10::")
    return 1.0 if plain.startswith("float8") else _ELEMENT.get(plain)


def _count(value: object) -> float:
    """Return a number of values, ranks or bytes; 0 for anything that is not a possible one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 1 <= value <= _MOST else 0.0


def fit_wire(events: Iterable[Event], found: Mapping[int, Message]) -> Wire | None:
    """Fit interconnect latency and bandwidth to a trace's collectives; None if no size is known.

    The shortest of equal collectives counts, as the others waited for their peers. If all have one
    size, latency is 0.
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
    """Fit latency and time per byte by least squares; neither is negative.

    A row of `rows` holds steps and bytes of a collective, each divided by its time.
    """
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
    """Return the number of sequential steps of the ring or tree algorithm."""
    if message.tree:
        return float(2.0 * np.log2(message.ranks))
    if message.operation == "all_reduce":
        return 2.0 * (message.ranks - 1.0)
    ring = message.operation in _SHARDS or message.operation == "alltoall"
    return message.ranks - 1.0 if ring else 1.0


def _moved(message: Message) -> float:
    """Return the bytes that each rank sends [B]."""
    if message.tree:
        return 2.0 * message.size
    if message.operation == "all_reduce":
        return float(collectives.ring_wire_bytes(message.size, message.ranks))
    ring = message.operation in _SHARDS or message.operation == "alltoall"
    return float(collectives.shard_bytes(message.size, message.ranks)) if ring else message.size


def gradient_values(events: Sequence[Event], found: Mapping[int, Message]) -> float:
    """Return the number of gradient values reduced over the ranks, each counted once."""
    reduced = [found[id(event)] for event in events if id(event) in found]
    whole = sum(m.size / m.element for m in reduced if m.operation == "all_reduce")
    parts = sum(m.size / m.element for m in reduced if m.operation == "reduce_scatter")
    return max(whole, parts)
