"""Steps of a trace: operators, and time of compute, exposed communication and waiting.

The step time is taken on the device if there is one: from the first work launched by one step to
the first launched by a later one, so that a host that runs ahead does not matter. For a single
step, and on a CPU, it is the host's time.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from simulator import units
from simulator.importers.torch_profiler.trace_file import (
    DEVICE,
    Event,
    Intervals,
    Kind,
    Message,
    Trace,
    both,
    length,
    union,
    without,
)
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.units import Bytes, Seconds

_SHORT: Final = re.compile(r"^(?:void )?([^<(]*)")
_PARAMETERS: Final = re.compile(
    r"aten::_?(foreach|fused|amp)_|clip_grad|multi_tensor|fused_adam", re.IGNORECASE
)

_VIEWS: Final = re.compile(
    r"aten::_?(as_strided|view|t|transpose|detach|expand|select|slice|unsqueeze|squeeze|reshape"
    r"|permute|narrow|alias|empty|empty_like|empty_strided|resolve_conj|resolve_neg|numpy_T)_?(_unsafe)?$"
)
"""Operators that only create views of tensors."""
_HALF: Final = 0.5
"""Share of self time below which an operator mostly calls others."""


Key = tuple[str, Kind, bool]
"""Name and kind of an operator, and True if its time grows with the batch size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An operator in a mean step: `calls` and `time` per step; `grows`: scales with batch size."""

    name: str
    kind: Kind
    grows: bool
    calls: float
    time: Seconds

    @property
    def key(self) -> Key:
        """Name, kind and growth: the identity of the operator."""
        return self.name, self.kind, self.grows


def rows(trace: Trace, of: Window, names: Names) -> tuple[Row, ...]:
    """Return the operators of a window with their time per step, the longest first."""
    work = trace.of(*DEVICE)
    if work:
        pieces = [(names.key(event), event.duration) for event in work if of.holds(event)]
    else:
        pieces = list(_operator_times(trace, of, names))
    times: dict[Key, list[Seconds]] = {}
    for key, time in pieces:
        times.setdefault(key, []).append(time)
    per = 1.0 / of.steps
    made = (
        Row(name=name, kind=kind, grows=grows, calls=len(each) * per, time=sum(each) * per)
        for (name, kind, grows), each in times.items()
    )
    return tuple(sorted(made, key=lambda row: -row.time))


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of device events (the operator that launched them, else the kernel), and collectives.

    `updates` are the intervals of optimizer steps; `launched` and `messages` map ids of events to
    launch times and collectives.
    """

    operators: Mapping[int, str]
    updates: Sequence[tuple[float, float]]
    launched: Mapping[int, Seconds]
    messages: Mapping[int, Message]

    @classmethod
    def of_trace(cls, trace: Trace, of: Window, found: Mapping[int, Message]) -> Names:
        """Collect the names of a trace's events; `found` are its collectives by id of the event."""
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

    def key(self, event: Event) -> Key:
        """Return the identity of the operator of an event."""
        return self.name(event), event.kind, self.grows(event)

    def name(self, event: Event) -> str:
        """Return the name of the operator that launched a kernel, or the event's own name."""
        if event.kind is Kind.COLLECTIVE:
            message = self.messages.get(id(event))
            return message.operation if message else _short(event.name)
        if event.kind is not Kind.KERNEL:
            return event.name
        return self.operators.get(event.external or 0) or _short(event.name)

    def grows(self, event: Event) -> bool:
        """Return True if the event's time is assumed to grow with the batch size."""
        if event.kind is Kind.COLLECTIVE:
            message = self.messages.get(id(event))
            return message is not None and message.grows_with_batch
        if event.kind in {Kind.TO_HOST, Kind.TO_DEVICE}:
            return event.kind is Kind.TO_DEVICE
        return not self.is_update(event) and _PARAMETERS.search(self.name(event)) is None

    def is_update(self, event: Event) -> bool:
        """Return True if the event was launched by the optimizer."""
        at = self.launched.get(id(event), event.start if event.kind is Kind.OPERATOR else None)
        if at is None:
            return False
        index = bisect.bisect_right(self.updates, (at, float("inf"))) - 1
        return index >= 0 and at <= self.updates[index][1]


def _operator_times(trace: Trace, of: Window, named: Names) -> Iterator[tuple[Key, Seconds]]:
    """Yield the operators on the CPU with their self time.

    The time of views and of operators that mostly call others is taken as independent of the batch.
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
        yield (named.name(event), event.kind, not fixed and named.grows(event)), own


def _unnested(events: Iterable[Event]) -> list[tuple[Event, Seconds]]:
    """Return the events of one thread with their self time: duration without nested events."""
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
    match = _SHORT.match(name)
    return (match[1].strip() if match else "") or name


MARKS: Final = "call prof.step() once in every step"
_MAX_SPREAD: Final = 0.2
_MIN_STEP: Final = units.parse("1 us", units.SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Whole steps of a trace: `steps` steps between `start` and `end`.

    `launched` maps ids of device events to launch times, if the trace has them. `marks` are the
    host's ``ProfilerStep`` events.
    """

    start: Seconds
    end: Seconds
    steps: int
    marks: tuple[Event, ...]
    launched: dict[int, Seconds]
    warnings: tuple[str, ...] = ()

    @property
    def step(self) -> Seconds:
        """Mean time of a step [s]."""
        return (self.end - self.start) / self.steps

    def holds(self, event: Event) -> bool:
        """Return True if an event starts in the window."""
        return self.start <= event.start < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Composition of a mean step [s]; the parts that are not `hidden_*` add up to `step`.

    `compute` is device compute, including the part that overlaps with communication and copies;
    `gaps` the time in which the device is idle and the host does not wait for data: launch
    overhead, Python. On a CPU `compute` is time in operators. `to_device_bytes` is per step [B].
    """

    step: Seconds
    compute: Seconds
    communication: Seconds
    to_device: Seconds
    to_host: Seconds
    data: Seconds
    gaps: Seconds
    hidden_communication: Seconds
    hidden_to_device: Seconds
    to_device_bytes: Bytes
    busy: float
    on_device: bool

    @property
    def without_data(self) -> Seconds:
        """Time of compute and gaps, without data waits, exposed communication and copies [s]."""
        return self.compute + self.gaps


def window(trace: Trace, steps: int | None = None) -> Window:
    """Return the whole steps of a trace.

    Parameters
    ----------
    trace : Trace
        The trace.
    steps : int, optional
        Number of steps, for a trace without ``ProfilerStep`` marks.

    Raises
    ------
    InputError
        If the trace has neither marks nor a given number of steps, or is empty.
    """
    marks = _marks(trace)
    work = trace.of(*DEVICE)
    everything = work or trace.of(Kind.OPERATOR, Kind.LOAD)
    if not everything:
        fail(trace.origin, "holds no operators and no kernels", hint="was anything recorded?")
    launched = _launches(trace, work)
    if not marks:
        return _unmarked(trace, everything, steps, launched)
    if work and len(marks) > 1:
        firsts = _first_work(work, marks, launched)
        if len(firsts) == len(marks):
            return Window(
                start=firsts[0],
                end=firsts[-1],
                steps=len(marks) - 1,
                marks=marks,
                launched=launched,
                warnings=tuple(_doubts(firsts)),
            )
    warned = []
    end = marks[-1].end
    if len(marks) == 1:
        warned.append("one step alone: nothing says how steps follow each other")
        end = max((end, *(event.end for event in work)))
    elif work:
        warned.append("some steps launched nothing on the device; times are those of the host")
    return Window(
        start=marks[0].start,
        end=end,
        steps=len(marks),
        marks=marks,
        launched=launched,
        warnings=tuple(warned),
    )


def _marks(trace: Trace) -> tuple[Event, ...]:
    """Return the ``ProfilerStep`` events in order, the longest of each name."""
    found: dict[str, Event] = {}
    for event in trace.of(Kind.STEP):
        known = found.setdefault(event.name, event)
        if event.duration > known.duration:
            found[event.name] = event
    return tuple(sorted(found.values(), key=lambda event: event.start))


def _launches(trace: Trace, work: Sequence[Event]) -> dict[int, Seconds]:
    calls = {event.correlation: event.start for event in trace.of(Kind.LAUNCH, Kind.WAIT)}
    return {
        id(event): calls[event.correlation]
        for event in work
        if event.correlation is not None and event.correlation in calls
    }


def _unmarked(
    trace: Trace, work: Sequence[Event], steps: int | None, launched: dict[int, Seconds]
) -> Window:
    if steps is None:
        hint = f"{MARKS}, or give --steps"
        fail(trace.origin, "has no 'ProfilerStep' marks, so steps are unknown", hint=hint)
    start, end = min(event.start for event in work), max(event.end for event in work)
    said = f"no 'ProfilerStep' marks: the whole trace is taken as {steps} steps"
    return Window(start=start, end=end, steps=steps, marks=(), launched=launched, warnings=(said,))


def _first_work(
    work: Sequence[Event], marks: Sequence[Event], launched: dict[int, Seconds]
) -> list[Seconds]:
    """Return the times at which the device started each step; fewer than `marks` if one is unknown.

    Only the busiest compute stream counts, as copies of later batches may run far ahead.
    """
    computing: dict[str, float] = {}
    for event in work:
        if event.kind is Kind.KERNEL:
            computing[event.lane] = computing.get(event.lane, 0.0) + event.duration
    main = max(computing, key=lambda lane: computing[lane], default="")
    begins = [mark.start for mark in marks]
    firsts: dict[int, float] = {}
    for event in work:
        called = launched.get(id(event)) if event.lane == main else None
        if called is None or not begins[0] <= called < marks[-1].end:
            continue
        step = bisect.bisect_right(begins, called) - 1
        firsts[step] = min(firsts.get(step, event.start), event.start)
    found = [firsts[step] for step in sorted(firsts)]
    rises = all(after > before for before, after in pairwise(found))
    return found if rises else []


def _doubts(firsts: Sequence[Seconds]) -> Iterable[str]:
    times = [after - before for before, after in pairwise(firsts)]
    mean = sum(times) / len(times)
    if max(times) - min(times) > _MAX_SPREAD * mean:
        shown = ", ".join(units.show(time, units.SECOND, 3) for time in times[:5])
        yield f"steps differ much: {shown}; their mean is taken"


def composition(trace: Trace, of: Window) -> Composition:
    """Return the mean composition of the steps of a window."""
    work = trace.of(*DEVICE)
    return _composition_on_device(trace, of, work) if work else _host_composition(trace, of)


def _composition_on_device(trace: Trace, of: Window, work: Sequence[Event]) -> Composition:
    pieces = [(event.kind, event.start, event.end) for event in work]
    return device_composition(
        pieces,
        (of.start, of.end),
        steps=of.steps,
        waits=_spans(trace.of(Kind.LOAD)),
        size=_bytes(event for event in work if of.holds(event)),
    )


def device_composition(
    pieces: Iterable[tuple[Kind, Seconds, Seconds]],
    span: tuple[Seconds, Seconds],
    *,
    steps: int,
    waits: Intervals,
    size: Bytes,
) -> Composition:
    """Return the mean composition of `steps` steps on a device.

    Parameters
    ----------
    pieces : iterable
        Kind, start and end of each event on the device [s].
    span : tuple of float
        Start of the first and end of the last step [s].
    steps : int
        Number of steps.
    waits : array
        Intervals in which the host waits for data [s].
    size : float
        Bytes copied to the device in all steps [B].
    """
    whole, known = union([span]), list(pieces)
    compute, talk, down, up = (
        both(union((start, end) for kind, start, end in known if kind is wanted), whole)
        for wanted in DEVICE
    )
    per = 1.0 / steps
    busy = union((*_pairs(compute), *_pairs(talk), *_pairs(down), *_pairs(up)))
    idle = without(whole, busy)
    talking = union((*_pairs(compute), *_pairs(talk)))
    return Composition(
        step=length(whole) * per,
        compute=length(compute) * per,
        communication=length(without(talk, compute)) * per,
        to_device=length(without(down, talking)) * per,
        to_host=length(without(without(up, talking), down)) * per,
        data=length(both(idle, waits)) * per,
        gaps=length(without(idle, waits)) * per,
        hidden_communication=length(both(talk, compute)) * per,
        hidden_to_device=length(both(down, talking)) * per,
        to_device_bytes=size * per,
        busy=length(busy) / length(whole),
        on_device=True,
    )


def _host_composition(trace: Trace, of: Window) -> Composition:
    steps = _spans(of.marks) if of.marks else union([(of.start, of.end)])
    waits = both(_spans(trace.of(Kind.LOAD)), steps)
    work = without(both(_spans(trace.of(Kind.OPERATOR)), steps), waits)
    per = 1.0 / of.steps
    step = length(steps) * per
    compute, data = length(work) * per, length(waits) * per
    return Composition(
        step=step,
        compute=compute,
        communication=0.0,
        to_device=0.0,
        to_host=0.0,
        data=data,
        gaps=max(0.0, step - compute - data),
        hidden_communication=0.0,
        hidden_to_device=0.0,
        to_device_bytes=0.0,
        busy=compute / step if step > _MIN_STEP else 0.0,
        on_device=False,
    )


def _spans(events: Iterable[Event]) -> Intervals:
    return union((event.start, event.end) for event in events)


def _pairs(times: Intervals) -> list[tuple[float, float]]:
    return [(float(start), float(end)) for start, end in times]


def _bytes(events: Iterable[Event]) -> Bytes:
    """Return the bytes copied to the device [B]."""
    sizes = (event.about.get("bytes") for event in events if event.kind is Kind.TO_DEVICE)
    return sum(float(size) for size in sizes if isinstance(size, int | float))
