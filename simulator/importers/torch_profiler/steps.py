"""How a traced step is spent: what the device did, what was hidden, what it waited for.

The time of a step is taken on the device where there is one: from the first work launched by one
step to the first launched by a later one, so that a host that runs ahead misleads nobody. Of one
step alone, and on a CPU, it is what the host says.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from simulator import units
from simulator.importers.torch_profiler.intervals import Intervals, both, length, union, without
from simulator.importers.torch_profiler.kineto import DEVICE, Event, Kind, Trace
from simulator.reading.reading import fail
from simulator.units import Bytes, Seconds

MARKS: Final = "call prof.step() once in every step"
_UNEVEN: Final = 0.2
_SHORTEST: Final = units.parse("1 us", units.SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Whole steps of a trace: from `start` to `end` there are `steps` of them.

    `launched` is when each device event was launched, by id; where the trace does not tell, its
    own start. `marks` are the steps as the host says.
    """

    start: Seconds
    end: Seconds
    steps: int
    marks: tuple[Event, ...]
    launched: dict[int, Seconds]
    warnings: tuple[str, ...] = ()

    @property
    def step(self) -> Seconds:
        """Time of a step [s]."""
        return (self.end - self.start) / self.steps

    def holds(self, event: Event) -> bool:
        """Whether an event begins inside."""
        return self.start <= event.start < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """How a step is spent [s]; the parts that are not `hidden_*` add up to `step`.

    `compute` is device work beside which anything else is hidden, `gaps` time in which the device
    stands idle and the host does not wait for data: launches, Python, waiting for the host.
    On a CPU `compute` is time in operators. Sizes are bytes of a step.
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
        """Time of compute and gaps: what a step takes that neither waits nor exchanges [s]."""
        return self.compute + self.gaps


def window(trace: Trace, steps: int | None = None) -> Window:
    """The whole steps of a trace.

    Parameters
    ----------
    trace : Trace
        The trace.
    steps : int, optional
        How many steps there are, for a trace without marks.

    Raises
    ------
    InputError
        If neither marks nor `steps` say where steps begin, or nothing was done.
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
    """The steps as the host says, each once."""
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
        fail(trace.origin, "has no 'ProfilerStep' marks, so steps cannot be told", hint=hint)
    start, end = min(event.start for event in work), max(event.end for event in work)
    said = f"no 'ProfilerStep' marks: the whole trace is taken as {steps} steps"
    return Window(start=start, end=end, steps=steps, marks=(), launched=launched, warnings=(said,))


def _first_work(
    work: Sequence[Event], marks: Sequence[Event], launched: dict[int, Seconds]
) -> list[Seconds]:
    """When the device began to compute each step; fewer than marks if one launched nothing.

    Only the stream that computes most tells: copies of later batches may run far ahead.
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
    if max(times) - min(times) > _UNEVEN * mean:
        shown = ", ".join(units.show(time, units.SECOND, 3) for time in times[:5])
        yield f"steps differ much: {shown}; their mean is taken"


def composition(trace: Trace, of: Window) -> Composition:
    """How the steps of a window are spent, on average."""
    work = trace.of(*DEVICE)
    return _on_device(trace, of, work) if work else _on_host(trace, of)


def _on_device(trace: Trace, of: Window, work: Sequence[Event]) -> Composition:
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
    """How a device spends `steps` steps between the two times of `span`.

    Parameters
    ----------
    pieces : iterable
        Kind, start and end of each piece of its work [s].
    span : tuple of float
        When the steps begin and end [s].
    steps : int
        How many there are.
    waits : array
        When the host waits for data [s].
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


def _on_host(trace: Trace, of: Window) -> Composition:
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
        busy=compute / step if step > _SHORTEST else 0.0,
        on_device=False,
    )


def _spans(events: Iterable[Event]) -> Intervals:
    return union((event.start, event.end) for event in events)


def _pairs(times: Intervals) -> list[tuple[float, float]]:
    return [(float(start), float(end)) for start, end in times]


def _bytes(events: Iterable[Event]) -> Bytes:
    """Bytes copied to the device [B]."""
    sizes = (event.about.get("bytes") for event in events if event.kind is Kind.TO_DEVICE)
    return sum(float(size) for size in sizes if isinstance(size, int | float))
