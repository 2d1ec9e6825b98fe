"""A traced step at other batch sizes and numbers of devices: rules, and what they assume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from simulator import units
from simulator.importers.torch_profiler.kineto import Event, Kind
from simulator.importers.torch_profiler.messages import Message, Wire
from simulator.importers.torch_profiler.operators import Growth, Names, Row
from simulator.importers.torch_profiler.steps import Composition
from simulator.units import BytesPerSecond, Seconds

Key = tuple[str, Kind, Growth]

_SAME: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is asked for: samples of a device, and devices. None: as in the trace.

    `network` is the rate of one machine's network, one way, between machines of `per_machine`
    devices; None: as fast between machines as inside.
    """

    batch: int | None = None
    devices: int | None = None
    network: BytesPerSecond | None = None
    per_machine: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Time of an operator in a step: ``fixed + each x batch`` [s], fitted to several traces."""

    fixed: Seconds
    each: Seconds

    def time(self, batch: float) -> Seconds:
        """Time at a batch size [s]."""
        return self.fixed + self.each * batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the time of each piece of work changes from a trace to a target.

    `growth` is the target's batch over the trace's, `shortest` what a kernel is
    taken to need however little it does. `lines` win over that rule.
    `members` are ranks of the trace's largest group, `ranks` those of the target's.
    """

    batch: int | None
    growth: float
    shortest: Seconds
    names: Names
    messages: Mapping[int, Message]
    wire: Wire | None
    members: int
    ranks: int
    target: Target
    lines: Mapping[Key, Line]
    on_device: bool

    def duration(self, event: Event) -> Seconds:
        """How long a piece of work takes at the target [s]."""
        if event.kind is Kind.COLLECTIVE:
            return self._collective(event)
        key = self.names.key(event)
        if key[2] is Growth.FIXED or abs(self.growth - 1.0) < _SAME:
            return event.duration
        line = self.lines.get(key)
        if line is not None and self.batch is not None and line.time(self.batch) > 0.0:
            ratio = line.time(self.batch * self.growth) / line.time(self.batch)
            return event.duration * ratio
        fixed = min(event.duration, self.shortest) if event.kind is Kind.KERNEL else 0.0
        return fixed + (event.duration - fixed) * self.growth

    def _collective(self, event: Event) -> Seconds:
        message = self.messages.get(id(event))
        if message is None or self.wire is None or message.ranks <= 1:
            return event.duration
        size = message.size * (self.growth if message.grows_with_batch else 1.0)
        ranks = self.ranks if message.ranks == self.members else message.ranks
        before = self.wire.time(message, message.size, message.ranks)
        return event.duration * self._time(message, size, ranks) / before

    def _time(self, message: Message, size: float, ranks: int) -> Seconds:
        """Time of a collective at the target, over machines where it spans several [s]."""
        wire, target = self.wire, self.target
        if wire is None:
            return 0.0
        local = target.per_machine or self.members
        if target.network is None or ranks <= local:
            return wire.time(message, size, ranks)
        share = size if message.operation == "all_reduce" else size / 2.0
        return wire.time_over_machines(share, local, ranks / local, target.network)

    def assumptions(self) -> Iterator[str]:
        """What the rules take for granted, in words."""
        if abs(self.growth - 1.0) >= _SAME:
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
            "waiting for peers grows alike"
        )
        local = self.target.per_machine or self.members
        if self.ranks > local and self.target.network is None:
            yield "the link between machines is as fast as that of the trace (give --network)"
        elif self.ranks > local:
            network = units.show(self.target.network or 0.0, units.BYTE_PER_SECOND)
            yield f"machines of {local} devices with a network of {network}, same latency"


def scaled(before: Composition, rows: tuple[Row, ...], rules: Rules) -> Composition:
    """A composition with each part in proportion to its operators: where no replay is possible."""
    compute = before.compute * _ratio(rows, rules, Kind.KERNEL, Kind.OPERATOR)
    growth = rules.growth
    return replace(
        before,
        step=compute
        + before.communication
        + before.to_device * growth
        + before.to_host
        + before.gaps,
        compute=compute,
        to_device=before.to_device * growth,
        hidden_to_device=before.hidden_to_device * growth,
        to_device_bytes=before.to_device_bytes * growth,
        data=0.0,
    )


def _ratio(rows: tuple[Row, ...], rules: Rules, *kinds: Kind) -> float:
    """How much longer the operators of some kinds take together."""
    chosen = [row for row in rows if row.kind in kinds]
    before = sum(row.time for row in chosen)
    after = sum(_grown(row, rules) for row in chosen)
    return after / before if before > 0.0 else 1.0


def _grown(row: Row, rules: Rules) -> Seconds:
    if row.growth is Growth.FIXED:
        return row.time
    line = rules.lines.get(row.key)
    if line is not None and rules.batch is not None and line.time(rules.batch) > 0.0:
        return row.time * line.time(rules.batch * rules.growth) / line.time(rules.batch)
    fixed = min(row.time, row.calls * rules.shortest)
    return fixed + (row.time - fixed) * rules.growth


def lines(tables: Mapping[int, tuple[Row, ...]]) -> dict[Key, Line]:
    """Operators that occur at two batch sizes or more: a line through their times by batch."""
    times: dict[Key, dict[int, float]] = {}
    for batch, rows in tables.items():
        for row in rows:
            times.setdefault(row.key, {})[batch] = row.time
    found = {}
    for key, points in times.items():
        if len(points) == len(tables) > 1 and key[2] is Growth.BATCH:
            found[key] = _line(points)
    return found


def _line(points: Mapping[int, float]) -> Line:
    """The line of least squares, neither part below zero."""
    count = len(points)
    middle = sum(points) / count
    mean = sum(points.values()) / count
    spread = sum((batch - middle) ** 2 for batch in points)
    each = sum((batch - middle) * (time - mean) for batch, time in points.items()) / spread
    each = min(max(0.0, each), mean / middle)
    return Line(fixed=mean - each * middle, each=each)
