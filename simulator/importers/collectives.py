"""From measured times of collectives to a link: latency and bandwidth fitted to all sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator import units
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import (
    Line,
    binary_size,
    comment,
    quantity,
    quote,
    table,
)
from simulator.schema.machines import Collective, Link, LinkKind, Regime
from simulator.units import Bytes, BytesPerSecond, Seconds

BUS_FACTOR: Final[Mapping[str, Callable[[float], float]]] = {
    "all_reduce": lambda n: 2.0 * (n - 1.0) / n,
    "all_gather": lambda n: (n - 1.0) / n,
    "reduce_scatter": lambda n: (n - 1.0) / n,
    "alltoall": lambda n: (n - 1.0) / n,
    "gather": lambda n: (n - 1.0) / n,
    "scatter": lambda n: (n - 1.0) / n,
    "hypercube": lambda n: (n - 1.0) / n,
    "broadcast": lambda n: 1.0 + 0.0 * n,
    "reduce": lambda n: 1.0 + 0.0 * n,
    "sendrecv": lambda n: 1.0 + 0.0 * n,
}
"""Collective: bytes on the busiest link over the buffer's size, by ranks (nccl-tests,
doc/PERFORMANCE.md)."""

_MODELLED: Final = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
    "sendrecv": Collective.SEND,
}
"""Collective: what it is called in a profile; others say something of the link alone."""

LARGE: Final = units.parse("64 MiB", units.BYTE)
"""Size from which on a link is taken to be full."""
_MIN_SIZES: Final = 3
"""Sizes that a fit of two figures needs at least."""
_MAX_REGIMES: Final = 3
_MAX_BREAKS: Final = 40
"""Sizes between which regimes may change, of those measured."""
_GOOD_ERROR: Final = 0.01
"""Mean relative error that needs no further regime: measured times vary by more."""
_MAX_ERROR_RATIO: Final = 0.67
"""What a further regime has to leave of the error to be worth it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One message size: its mean time, bus bandwidth, and that over the algorithm's."""

    size: Bytes
    time: Seconds
    bus: BytesPerSecond
    ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollective:
    """One measured collective over `ranks` on `hosts`, by ascending size."""

    operation: str
    ranks: int
    hosts: int
    points: tuple[Point, ...]
    source: str
    date: str
    devices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        hosts = "one host" if self.hosts == 1 else f"{self.hosts} hosts"
        return f"{self.operation} over {self.ranks} ranks on {hosts}"

    @property
    def factor(self) -> float:
        """Bytes on the busiest link over the buffer's size."""
        return BUS_FACTOR[self.operation](self.ranks)

    @property
    def steps(self) -> float:
        """Steps of its ring one after another."""
        if self.operation == "sendrecv":
            return 1.0
        return (self.ranks - 1.0) * (2.0 if self.operation == "all_reduce" else 1.0)

    @property
    def largest(self) -> Point:
        """The point of the largest message."""
        return self.points[-1]


def regimes(found: MeasuredCollective) -> tuple[Regime, ...]:
    """Return one to three regimes whose best one has the least relative error over all sizes.

    ``time = min over regimes of latency + factor x size / bandwidth``: libraries change protocol
    and algorithm with the size. Each size weighs the same, however long it took; each regime is
    fitted to a range of sizes, and a further one is taken only if it leaves no more than two
    thirds of the error. Latency is 0 (not known) where there are fewer than three sizes.
    """
    moved = np.array([found.factor * point.size for point in found.points])
    times = np.array([point.time for point in found.points])
    positions = range(_MIN_SIZES, len(times) - _MIN_SIZES + 1)
    breaks = list(positions)[:: max(1, len(positions) // _MAX_BREAKS)]
    best: tuple[Regime, ...] = (_fitted(moved, times),)
    least = np.inf
    for count in range(_MAX_REGIMES):
        if least <= _GOOD_ERROR:
            break
        for inner in combinations(breaks, count):
            edges = (0, *inner, len(times))
            spans = list(pairwise(edges))
            if any(end - start < _MIN_SIZES for start, end in spans) and count:
                continue
            ways = tuple(_fitted(moved[a:b], times[a:b]) for a, b in spans)
            error = float(np.sqrt(np.mean((envelope(ways, moved) / times - 1.0) ** 2)))
            if error < (least if len(ways) == len(best) else _MAX_ERROR_RATIO * least):
                best, least = ways, error
    return best


def envelope(ways: Sequence[Regime], moved: Floats) -> Floats:
    """Return the time of the best regime for `size` bytes on the wire [s]."""
    each = [way.latency + moved / way.bandwidth for way in ways]
    least: Floats = np.min(each, axis=0)
    return least


def _fitted(moved: Floats, times: Floats) -> Regime:
    """Return latency and bandwidth with the least relative error; neither below zero."""
    fixed, moving = 1.0 / times, moved / times
    latency = per_byte = 0.0
    if len(set(moved)) >= _MIN_SIZES:
        # Both columns of length one: a byte takes a millionth of an empty message.
        lengths = np.linalg.norm(fixed), np.linalg.norm(moving)
        columns = np.column_stack([fixed / lengths[0], moving / lengths[1]])
        solution = np.linalg.lstsq(columns, np.ones(len(times)), rcond=None)[0]
        latency, per_byte = (float(x / length) for x, length in zip(solution, lengths, strict=True))
    if latency <= 0.0 or per_byte <= 0.0:
        latency, per_byte = 0.0, float(moving.sum() / (moving @ moving))
    return Regime(latency=latency, bandwidth=1.0 / per_byte)


def link_profile(
    found: Sequence[MeasuredCollective], *, kind: LinkKind | None = None, over: Link | None = None
) -> Fragment:
    """Return a link profile from measured collectives; see `nccl_tests.read` for the parameters.

    Bandwidth and latency of the link itself are those of the all-reduce, or of the first.
    """
    first = next((each for each in found if each.operation == "all_reduce"), found[0])
    where = kind or (None if over is None else over.kind)
    if where is None:
        where = LinkKind.NETWORK if first.hosts > 1 else LinkKind.NVLINK
    fitted = {id(each): regimes(each) for each in found}
    note = (
        f"Achievable rate and latency fitted to {first}, {len(first.points)} sizes; "
        "bandwidth of one rank in one direction."
    )
    body = [
        comment(f"Measured by {'; '.join(each.source for each in found)}."),
        "schema = 1",
        f"kind = {quote(str(where))}",
        f"note = {quote(note)}",
        "",
        table("", _figures(first, fitted[id(first)], over)),
    ]
    for each in found:
        if each.operation in _MODELLED:
            body += ["", _curve(each, fitted[id(each)], over)]
    return Fragment(
        kind=Kind.LINK,
        text="\n".join(body) + "\n",
        summary=tuple(line for each in found for line in _summary(each, fitted[id(each)])),
        warnings=(
            *(warning for each in found for warning in each.warnings),
            *_warnings(first, fitted[id(first)], over),
            *_assumed(where, known=kind is not None or over is not None),
        ),
    )


def _figures(found: MeasuredCollective, ways: Sequence[Regime], over: Link | None) -> list[Line]:
    full = ways[-1].bandwidth
    if over is not None and over.peak >= full and "peak" in over.sources:
        source = over.sources["peak"]
        peak = Line(
            key="peak",
            value=quantity(over.peak, units.BYTE_PER_SECOND),
            source=source.reference,
            date=source.date,
            verified=source.verified,
            note=source.note,
        )
    else:
        peak = Line(
            key="peak",
            value=quantity(full, units.BYTE_PER_SECOND),
            source=found.source,
            date=found.date,
            verified=False,
            note="as achieved: the datasheet's rate is not in the log",
        )
    seen = units.show(found.largest.bus, units.BYTE_PER_SECOND)
    note = f"fitted; bus bandwidth at {binary_size(found.largest.size)} was {seen}"
    rate = quantity(full, units.BYTE_PER_SECOND)
    lines = [
        peak,
        Line(key="achievable", value=rate, source=found.source, date=found.date, note=note),
    ]
    latency = ways[0].latency / found.steps
    if latency > 0.0:
        note = f"fitted; each of {found.steps:g} steps, launch included"
        value = quantity(latency, units.SECOND)
        lines.append(
            Line(key="latency", value=value, source=found.source, date=found.date, note=note)
        )
    return lines


def _curve(found: MeasuredCollective, ways: Sequence[Regime], over: Link | None) -> str:
    """Return one collective by message size, as link profiles hold it."""
    each = ",\n".join(
        f"  {{ latency = {quantity(way.latency, units.SECOND)}, "
        f"bandwidth = {quantity(way.bandwidth, units.BYTE_PER_SECOND)} }}"
        for way in ways
    )
    worst = max(abs(error) for error in _errors(found, ways))
    first = found.points[0]
    sizes = f"{len(found.points)} sizes from {binary_size(first.size)} on"
    lines = [
        f"operation = {quote(str(_MODELLED[found.operation]))}",
        f"ranks = {found.ranks}",
        f"machines = {found.hosts}",
        f"regimes = [\n{each},\n]",
        f"source = {quote(found.source)}",
        f"date = {quote(found.date)}",
        f"note = {quote(f'fitted to {sizes}, at most {worst:.0%} off')}",
    ]
    if _in_switch(ways, over):
        lines.insert(4, "in_switch = true")
    return "\n".join(["[[collective]]", *lines])


def _in_switch(ways: Sequence[Regime], over: Link | None) -> bool:
    return over is not None and ways[-1].bandwidth > over.peak


def _errors(found: MeasuredCollective, ways: Sequence[Regime]) -> Floats:
    moved = np.array([found.factor * point.size for point in found.points])
    times = np.array([point.time for point in found.points])
    errors: Floats = envelope(ways, moved) / times - 1.0
    return errors


def _summary(found: MeasuredCollective, ways: Sequence[Regime]) -> Iterator[str]:
    devices = f" ({', '.join(found.devices)})" if found.devices else ""
    yield f"{found}{devices}"
    for way in ways:
        yield (
            f"  fit: {units.show(way.latency, units.SECOND)} + bytes on the wire at "
            f"{units.show(way.bandwidth, units.BYTE_PER_SECOND)}"
        )
    yield f"  {'size':>10}  {'time':>10}  {'bus bandwidth':>14}  {'fit':>6}"
    for point, error in zip(found.points, _errors(found, ways), strict=True):
        yield (
            f"  {binary_size(point.size):>10}  {units.show(point.time, units.SECOND):>10}  "
            f"{units.show(point.bus, units.BYTE_PER_SECOND):>14}  {error:>+6.0%}"
        )


def _warnings(
    found: MeasuredCollective, ways: Sequence[Regime], over: Link | None
) -> Iterator[str]:
    if len({point.size for point in found.points}) < _MIN_SIZES:
        yield f"fewer than {_MIN_SIZES} sizes: there is no latency in the profile"
    if found.largest.size < LARGE:
        yield (
            f"the largest message is {binary_size(found.largest.size)}: a link is full from "
            f"{binary_size(LARGE)} on, so its bandwidth is higher"
        )
    if over is None:
        yield "the log doesn't say the datasheet rate; name the link with --over to keep its own"
    elif _in_switch(ways, over):
        rates = [
            units.show(rate, units.BYTE_PER_SECOND) for rate in (ways[-1].bandwidth, over.peak)
        ]
        yield f"{rates[0]} is above the peak of {over.name}, {rates[1]}: the switch helps to reduce"


def _assumed(kind: LinkKind, *, known: bool) -> Iterator[str]:
    if kind is LinkKind.NVLINK and not known:
        yield "one host: taken as NVLink; say --kind pcie if the devices have none"
