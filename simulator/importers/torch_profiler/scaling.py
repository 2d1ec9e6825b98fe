"""Traced steps at other batch sizes and numbers of devices: scaling rules, replay of the trace.

The replay runs the trace again with other durations: the host launches kernels and copies, the
device runs them in stream order. Each starts after its launch, after the preceding work on its
stream, and after the work on other streams that it depends on:

- a collective waits for the compute that was launched before it (as in ProcessGroupNCCL);
- work of the optimizer waits for all collectives launched before it;
- work that began just when work on another stream ended waits for that work.

The host proceeds at the speed of the trace. It waits for the device where it did so in the trace
(synchronizing calls, blocking copies), and does not wait for data. Launches that took long because
the device's queue was full are assumed to be short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

import numpy as np

from simulator import units
from simulator.importers.torch_profiler.steps import (
    Composition,
    Key,
    Names,
    Row,
    Window,
    device_composition,
)
from simulator.importers.torch_profiler.trace_file import (
    DEVICE,
    Event,
    Kind,
    Message,
    Trace,
    Wire,
    both,
    union,
)
from simulator.records import dataclass
from simulator.units import BytesPerSecond, Seconds

_INSTANT: Final = units.parse("2 us", units.SECOND)
"""Tolerance of comparisons of times."""
_SAME_TIME: Final = units.parse("10 us", units.SECOND)
"""Maximum time from the end of a dependency to the start of the work that waited for it."""
_BLOCKED: Final = units.parse("100 us", units.SECOND)
_TIMES_USUAL: Final = 10.0
_MIN_LINKED_SHARE: Final = 0.95
"""Minimum share of device work with a known launch."""
_LATENCY: Final = units.parse("20 us", units.SECOND)
"""Maximum time from a launch to its start on an idle device."""
_MAX_RECENT: Final = 256
"""Number of the latest work items among which the last to end is searched."""
_MAX_SPEEDUP: Final = 5.0
"""Percentile of the times from launch to start taken as the time of an idle device."""
_LOOK_BACK: Final = 8
"""Number of the latest work items of another stream searched for a dependency."""


@dataclass(slots=True)
class _Work:
    """A kernel, collective or copy: its dependencies and its delays in the trace.

    `needs` are indices of the work it waits for. It starts `lag` after the last of them ends, and
    `latency` after its launch.
    """

    event: Event
    launch: Seconds
    needs: tuple[int, ...]
    lag: Seconds
    latency: Seconds


@dataclass(frozen=True, slots=True)
class Replay:
    """The device work of whole steps, to be run with other durations.

    `first` is the index of the first work of the first step, `turns` the host's actions (start,
    end, kind, index of the launched work), `size` the bytes copied to the device in all steps.
    """

    first: int
    works: tuple[_Work, ...]
    turns: tuple[tuple[Seconds, Seconds, Kind, int], ...]
    steps: int
    size: float

    def composition(self, duration: Callable[[Event], Seconds], growth: float) -> Composition:
        """Return the composition of a mean step in which each event takes ``duration(event)``.

        `growth` scales the bytes copied to the device. Data waits are excluded.
        """
        starts, ends = self._run([duration(work.event) for work in self.works])
        # The last work is the first of the next step, where the window ends.
        span = (starts[self.first], starts[-1])
        pieces = [
            (work.event.kind, start, end)
            for work, start, end in zip(self.works, starts, ends, strict=True)
        ]
        return device_composition(
            pieces[:-1], span, steps=self.steps, waits=union([]), size=self.size * growth
        )

    def _run(self, durations: Sequence[float]) -> tuple[list[Seconds], list[Seconds]]:
        """Return the start and end times of all device work [s].

        `shift` is the delay of the host relative to the trace [s].
        """
        shift = 0.0
        starts: list[Seconds] = []
        ends: list[Seconds] = []
        for start, end, kind, index in self.turns:
            if kind is Kind.WAIT:
                shift = self._after_wait(shift, ends, start, end)
            elif index < 0:
                shift -= end - start
            else:
                work = self.works[index]
                ready = work.launch + shift + work.latency
                ready = max([ready, *(ends[need] + work.lag for need in work.needs)])
                starts.append(ready)
                ends.append(ready + durations[index])
                if kind is Kind.TO_HOST:
                    shift = ends[index] + (end - work.event.end) - end
        return starts, ends

    def _after_wait(
        self, shift: float, ends: Sequence[Seconds], start: Seconds, end: Seconds
    ) -> float:
        """Return the delay of the host after it waited for the last work that ended by `end`."""
        recent = range(max(0, len(ends) - _MAX_RECENT), len(ends))
        done = [i for i in recent if self.works[i].event.end <= end + _INSTANT]
        if not done:
            return shift
        last = max(done, key=lambda i: self.works[i].event.end)
        was, now = self.works[last].event.end, ends[last]
        if was > start:
            return max(start + shift, now + max(0.0, end - was)) - end
        return max(shift, now - end)


def replay(trace: Trace, of: Window, names: Names) -> Replay | None:
    """Return a replay of the steps of a window; None if launch times are unknown."""
    work = [e for e in trace.of(*DEVICE) if of.start <= e.start <= of.end]
    known = [event for event in work if id(event) in of.launched]
    if len(of.marks) <= 1 or len(known) < _MIN_LINKED_SHARE * len(work) or not known:
        return None
    ordered = sorted(known, key=lambda event: (of.launched[id(event)], event.start))
    ends_at = next((e for e in ordered if e.start >= of.end), None)
    begins_at = next((e for e in ordered if e.start <= of.start), None)
    if ends_at is None or begins_at is None:
        return None
    # Work launched after the first work of the next step belongs to that step.
    inside = ordered[: ordered.index(ends_at)]
    whole = [*inside, ends_at]
    works = _linked(whole, of, names)
    size = sum(float(e.about.get("bytes") or 0.0) for e in inside if e.kind is Kind.TO_DEVICE)
    first = whole.index(begins_at)
    return Replay(first, tuple(works), tuple(_turns(trace, works)), of.steps, size)


def _linked(whole: Sequence[Event], of: Window, names: Names) -> list[_Work]:
    """Return the device work in launch order, with dependencies and delays."""
    usual = _usual_latency(whole, of)
    lanes: dict[str, list[int]] = {}
    works: list[_Work] = []
    for index, event in enumerate(whole):
        launch = of.launched[id(event)]
        needs = _needs(event, works, lanes, names)
        done = max((works[need].event.end for need in needs), default=-np.inf)
        bound = done >= launch + usual
        works.append(
            _Work(
                event=event,
                launch=launch,
                needs=needs,
                lag=max(0.0, event.start - done) if bound else 0.0,
                latency=min(usual, event.start - launch) if bound else event.start - launch,
            )
        )
        lanes.setdefault(event.lane, []).append(index)
    return works


def _needs(
    event: Event, works: Sequence[_Work], lanes: dict[str, list[int]], names: Names
) -> tuple[int, ...]:
    """Return the indices of the earlier work that has to end before `event` starts."""
    found = lanes.get(event.lane, [])[-1:]
    reached = works[found[0]].event.end if found else -np.inf
    update = names.is_update(event)
    for lane, before in lanes.items():
        if lane == event.lane:
            continue
        done = [i for i in before[-_LOOK_BACK:] if works[i].event.end <= event.start + _INSTANT]
        if not done:
            continue
        other = works[done[-1]].event
        follows = other.end > reached and event.start - other.end <= _SAME_TIME
        known = (event.kind is Kind.COLLECTIVE and other.kind is Kind.KERNEL) or (
            update and other.kind is Kind.COLLECTIVE
        )
        if follows or known:
            found = [*found, done[-1]]
    return tuple(found)


def _usual_latency(whole: Sequence[Event], of: Window) -> Seconds:
    """Return the time from launch to start of work on an idle device [s], a low percentile."""
    latencies = [event.start - of.launched[id(event)] for event in whole]
    return float(min(_LATENCY, max(0.0, np.percentile(latencies, _MAX_SPEEDUP))))


def _turns(trace: Trace, works: Sequence[_Work]) -> list[tuple[Seconds, Seconds, Kind, int]]:
    """Return the host's actions in order of time: launches, waits, data loading, blocking calls."""
    indices: dict[int | None, list[int]] = {}
    for index, work in enumerate(works):
        indices.setdefault(work.event.correlation, []).append(index)
    begin, end = works[0].launch, works[-1].launch
    recorded = trace.of(Kind.LAUNCH, Kind.WAIT)
    # A launch may be recorded twice; the last record has the time of the launch.
    last = {e.correlation: e for e in recorded}
    calls = [
        e
        for e in recorded
        if begin <= e.start <= end and (e.kind is Kind.WAIT or last[e.correlation] is e)
    ]
    usual = float(np.median([e.duration for e in calls if e.kind is Kind.LAUNCH] or [0.0]))
    found: list[tuple[float, float, Kind, int]] = []
    for call in calls:
        found += _turn(call, indices.get(call.correlation, []), works, usual)
    loads = union((e.start, e.end) for e in trace.of(Kind.LOAD))
    window = union([(begin, end)])
    found += [(float(a), float(b), Kind.LOAD, -1) for a, b in both(loads, window)]
    return sorted(found, key=lambda turn: (turn[0], turn[3]))


def _turn(
    call: Event, indices: Sequence[int], works: Sequence[_Work], usual: Seconds
) -> list[tuple[float, float, Kind, int]]:
    """Return the actions of one host call: its launches (a CUDA graph has many), or its wait."""
    if call.kind is Kind.WAIT:
        return [(call.start, call.end, Kind.WAIT, -1)]
    if call.correlation is None or not indices:
        return []
    event = works[indices[-1]].event
    copies = event.kind in {Kind.TO_HOST, Kind.TO_DEVICE}
    blocks = copies and call.end >= event.end - _INSTANT and call.end > event.start
    kind = Kind.TO_HOST if blocks else Kind.LAUNCH
    turns = [(call.start, call.end, kind, index) for index in indices]
    if not blocks and call.duration > max(_BLOCKED, _TIMES_USUAL * usual):
        turns.append((call.start + usual, call.end, Kind.LAUNCH, -1))
    return turns


_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules that scale the time of each operator from the traced size to a target size.

    `growth` is the target batch size over the traced one, `shortest` the minimum time of a kernel.
    `lines` take precedence over the rules: fixed time and time per sample of an operator, fitted to
    several traces. `members` is the largest group size in the trace, `ranks` that of the target.
    `network` is the bandwidth of one machine in one direction, between machines of `per_machine`
    devices; None: links between machines are as fast as links inside.
    """

    batch: int | None
    growth: float
    shortest: Seconds
    names: Names
    wire: Wire | None
    members: int
    ranks: int
    network: BytesPerSecond | None
    per_machine: int
    lines: Mapping[Key, tuple[Seconds, Seconds]]
    on_device: bool

    def duration(self, event: Event) -> Seconds:
        """Return the time of an event at the target size [s]."""
        if event.kind is Kind.COLLECTIVE:
            return self._collective(event)
        return self.grown(self.names.key(event), event.duration)

    def grown(self, key: Key, time: Seconds, calls: float = 1.0) -> Seconds:
        """Return the time of an operator at the target size, from its `time` in the trace [s]."""
        _, kind, grows = key
        if not grows or abs(self.growth - 1.0) < _ROUNDING:
            return time
        if key in self.lines and self.batch is not None:
            fixed, each = self.lines[key]
            before = fixed + each * self.batch
            if before > 0.0:
                return time * ((fixed + each * self.batch * self.growth) / before)
        fixed = min(time, calls * self.shortest) if kind is Kind.KERNEL else 0.0
        return fixed + (time - fixed) * self.growth

    def _collective(self, event: Event) -> Seconds:
        message = self.names.messages.get(id(event))
        if message is None or self.wire is None or message.ranks <= 1:
            return event.duration
        size = message.size * (self.growth if message.grows_with_batch else 1.0)
        ranks = self.ranks if message.ranks == self.members else message.ranks
        before = self.wire.time(message, message.size, message.ranks)
        return event.duration * self._time(message, size, ranks) / before

    def _time(self, message: Message, size: float, ranks: int) -> Seconds:
        """Return the time of a collective at the target size, hierarchical across machines [s]."""
        wire, local = self.wire, self.per_machine
        if wire is None:
            return 0.0
        if self.network is None or ranks <= local:
            return wire.time(message, size, ranks)
        share = size if message.operation == "all_reduce" else size / 2.0
        return wire.time_over_machines(share, local, ranks / local, self.network)

    def assumptions(self) -> Iterator[str]:
        """Yield the assumptions of the rules as text."""
        if abs(self.growth - 1.0) >= _ROUNDING:
            yield from self._about_batch()
        if self.ranks != self.members:
            yield from self._about_ranks()
        yield "the host launches work as fast as in the trace, and never waits for data"

    def _about_batch(self) -> Iterator[str]:
        what = "other " if self.lines else ""
        if self.on_device:
            floor = units.show(self.shortest, units.SECOND, 3)
            yield f"{what}kernels: time grows with the batch, but for {floor} each takes anyway"
        else:
            yield f"{what}operators: time grows with the batch"
            yield "views of tensors and the time to call other operators do not grow"
        yield "work of the optimizer and on whole lists of parameters does not grow with the batch"
        yield "gradients and parameters exchanged do not grow; activations (all-to-all, send) do"

    def _about_ranks(self) -> Iterator[str]:
        wire = self.wire
        if wire is None:
            yield "the trace holds no collective that says what it moved: none is added"
            return
        latency = units.show(wire.latency, units.SECOND, 3)
        rate = units.show(wire.bandwidth, units.BYTE_PER_SECOND, 3)
        yield (
            f"collectives of {self.members} ranks become those of {self.ranks} by the same "
            f"algorithm, with {latency} a step and {rate} a rank, fitted to the trace; time spent "
            "waiting for peers grows in proportion"
        )
        if self.ranks > self.per_machine and self.network is None:
            yield "the link between machines is as fast as that of the trace (give --network)"
        elif self.ranks > self.per_machine:
            network = units.show(self.network or 0.0, units.BYTE_PER_SECOND)
            local = self.per_machine
            yield f"machines of {local} devices with a network of {network}, same latency"


def scaled(before: Composition, rows: tuple[Row, ...], rules: Rules) -> Composition:
    """Scale a composition in proportion to the time of its operators, if no replay is possible."""
    kernels = [row for row in rows if row.kind in {Kind.KERNEL, Kind.OPERATOR}]
    time = sum(row.time for row in kernels)
    after = sum(rules.grown(row.key, row.time, row.calls) for row in kernels)
    compute = before.compute * (after / time if time > 0.0 else 1.0)
    growth = rules.growth
    to_device = before.to_device * growth
    return replace(
        before,
        step=compute + before.communication + to_device + before.to_host + before.gaps,
        compute=compute,
        to_device=to_device,
        hidden_to_device=before.hidden_to_device * growth,
        to_device_bytes=before.to_device_bytes * growth,
        data=0.0,
    )


def lines(tables: Mapping[int, tuple[Row, ...]]) -> dict[Key, tuple[Seconds, Seconds]]:
    """Fit fixed time and time per sample of operators that occur in all of two or more traces.

    `tables` maps batch sizes to operators. The fit is by least squares; neither part is negative.
    """
    times: dict[Key, dict[int, float]] = {}
    for batch, rows in tables.items():
        for row in rows:
            times.setdefault(row.key, {})[batch] = row.time
    found = {}
    for key, points in times.items():
        if len(points) == len(tables) > 1 and key[2]:
            middle, mean = fmean(points), fmean(points.values())
            spread = sum((batch - middle) ** 2 for batch in points)
            each = sum((batch - middle) * (time - mean) for batch, time in points.items()) / spread
            each = min(max(0.0, each), mean / middle)
            found[key] = mean - each * middle, each
    return found
