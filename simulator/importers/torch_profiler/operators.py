"""Which operators a traced step consists of, and how each of them grows with the batch."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from simulator.importers.torch_profiler.intervals import union
from simulator.importers.torch_profiler.kineto import DEVICE, Event, Kind, Trace
from simulator.importers.torch_profiler.messages import Message
from simulator.importers.torch_profiler.steps import Window
from simulator.units import Bytes, Seconds

_SHORT: Final = re.compile(r"^(?:void )?([^<(]*)")
_PARAMETERS: Final = re.compile(
    r"aten::_?(foreach|fused|amp)_|clip_grad|multi_tensor|fused_adam", re.IGNORECASE
)

_VIEWS: Final = re.compile(
    r"aten::_?(as_strided|view|t|transpose|detach|expand|select|slice|unsqueeze|squeeze|reshape"
    r"|permute|narrow|alias|empty|empty_like|empty_strided|resolve_conj|resolve_neg|numpy_T)_?(_unsafe)?$"
)
"""Operators that touch no values."""
_HALF: Final = 0.5
"""Share of an operator's time below which most of it is that of others it calls."""


class Growth(Enum):
    """What the time of an operator follows."""

    BATCH = "batch"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operator: what it takes of a step, on average. `calls` counts kernels, or calls."""

    name: str
    kind: Kind
    growth: Growth
    calls: float
    time: Seconds
    size: Bytes = 0.0

    @property
    def key(self) -> tuple[str, Kind, Growth]:
        """What tells it from others."""
        return self.name, self.kind, self.growth


def rows(trace: Trace, of: Window, found: Mapping[int, Message]) -> tuple[Row, ...]:
    """The operators of a window's steps, the longest first."""
    named = Names.of_trace(trace, of, found)
    work = trace.of(*DEVICE)
    if work:
        pieces = [(event, event.duration, named.growth(event)) for event in work if of.holds(event)]
    else:
        pieces = list(_on_host(trace, of, named))
    sums: dict[tuple[str, Kind, Growth], list[float]] = {}
    for event, time, growth in pieces:
        key = (named.name(event), event.kind, growth)
        total = sums.setdefault(key, [0.0, 0.0, 0.0])
        message = found.get(id(event))
        size = message.size if message else event.about.get("bytes", 0.0)
        total[0] += 1.0
        total[1] += time
        total[2] += size if isinstance(size, int | float) else 0.0
    per = 1.0 / of.steps
    made = (
        Row(name=key[0], kind=key[1], growth=key[2], calls=a * per, time=b * per, size=c * per)
        for key, (a, b, c) in sums.items()
    )
    return tuple(sorted(made, key=lambda row: -row.time))


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What each device event is called and how it grows: its operator, else its kernel."""

    operators: Mapping[int, str]
    updates: Sequence[tuple[float, float]]
    launched: Mapping[int, Seconds]
    messages: Mapping[int, Message]

    @classmethod
    def of_trace(cls, trace: Trace, of: Window, found: Mapping[int, Message]) -> Names:
        """The names of a trace's events."""
        spans = union((event.start, event.end) for event in trace.of(Kind.UPDATE))
        return cls(
            operators={
                event.external: event.name
                for event in trace.of(Kind.OPERATOR)
                if event.external is not None
            },
            updates=[(float(start), float(end)) for start, end in spans],
            launched=of.launched,
            messages=found,
        )

    def key(self, event: Event) -> tuple[str, Kind, Growth]:
        """Name, kind and growth of an event."""
        return self.name(event), event.kind, self.growth(event)

    def name(self, event: Event) -> str:
        """The operator that launched a kernel, or what the event itself is called."""
        if event.kind is Kind.COLLECTIVE:
            message = self.messages.get(id(event))
            return message.operation if message else _short(event.name)
        if event.kind is not Kind.KERNEL:
            return event.name
        return self.operators.get(event.external or 0) or _short(event.name)

    def growth(self, event: Event) -> Growth:
        """Whether its time follows the batch, as stated beside the results."""
        if event.kind is Kind.COLLECTIVE:
            message = self.messages.get(id(event))
            return Growth.BATCH if message and message.grows_with_batch else Growth.FIXED
        if event.kind is Kind.TO_HOST:
            return Growth.FIXED
        if event.kind is Kind.TO_DEVICE:
            return Growth.BATCH
        fixed = self.is_update(event) or _PARAMETERS.search(self.name(event)) is not None
        return Growth.FIXED if fixed else Growth.BATCH

    def is_update(self, event: Event) -> bool:
        """Whether it was launched by the optimizer."""
        at = self.launched.get(id(event), event.start if event.kind is Kind.OPERATOR else None)
        if at is None:
            return False
        index = bisect.bisect_right(self.updates, (at, float("inf"))) - 1
        return index >= 0 and at <= self.updates[index][1]


def _on_host(trace: Trace, of: Window, named: Names) -> Iterator[tuple[Event, Seconds, Growth]]:
    """Operators on the CPU, the time each spends itself, and what that follows.

    To call others and to look at a tensor in another way takes as long for any batch.
    """
    waits = union((event.start, event.end) for event in trace.of(Kind.LOAD))
    lanes: dict[str, list[Event]] = {}
    for event in trace.of(Kind.OPERATOR):
        index = int(waits[:, 0].searchsorted(event.start, side="right")) - 1
        waiting = index >= 0 and event.start < waits[index, 1]
        if of.start <= event.start < of.end and not waiting:
            lanes.setdefault(event.lane, []).append(event)
    pieces = [piece for events in lanes.values() for piece in _unnested(events)]
    shares: dict[str, list[float]] = {}
    for event, own in pieces:
        total = shares.setdefault(event.name, [0.0, 0.0])
        total[0] += own
        total[1] += event.duration
    for event, own in pieces:
        itself, whole = shares[event.name]
        fixed = itself < _HALF * whole or _VIEWS.match(event.name) is not None
        yield event, own, Growth.FIXED if fixed else named.growth(event)


def _unnested(events: Iterable[Event]) -> list[tuple[Event, Seconds]]:
    """Each event of one thread with its duration less that of the events directly inside."""
    own: dict[int, float] = {}
    kept: list[Event] = []
    open_: list[Event] = []
    for event in sorted(events, key=lambda event: (event.start, -event.duration)):
        while open_ and open_[-1].end <= event.start:
            open_.pop()
        if open_:
            own[id(open_[-1])] -= event.duration
        own[id(event)] = event.duration
        kept.append(event)
        open_.append(event)
    return [(event, max(0.0, own[id(event)])) for event in kept]


def _short(name: str) -> str:
    """A kernel's name without the types it is built for."""
    match = _SHORT.match(name)
    return (match[1].strip() if match else "") or name
