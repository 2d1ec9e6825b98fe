"""From measured times of a collective to a link: latency and bandwidth fitted to all sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator import units
from simulator.files.profile_text import Line, binary_size, comment, quantity, quote, table
from simulator.hardware.link import Link, LinkKind
from simulator.importers.result import Fragment, Kind
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

LARGE: Final = units.parse("64 MiB", units.BYTE)
"""Size from which on a link is taken to be full."""
_FEWEST: Final = 3
"""Sizes that a fit of two figures needs at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One message size: its mean time, bus bandwidth, and that over the algorithm's."""

    size: Bytes
    time: Seconds
    bus: BytesPerSecond
    ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One measured collective over `ranks` on `hosts`, by ascending size."""

    operation: str
    ranks: int
    hosts: int
    points: tuple[Point, ...]
    source: str
    date: str
    origin: str
    devices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Time = steps x `latency` + bus factor x size / `bandwidth`."""

    latency: Seconds
    bandwidth: BytesPerSecond
    steps: float
    factor: float

    def time(self, size: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the fit says of messages of `size` [s]."""
        return self.steps * self.latency + self.factor * size / self.bandwidth


def fit(found: Collective) -> Fit:
    """Latency and bandwidth with the least relative error over all sizes.

    Each size weighs the same, however long it took. With fewer than three sizes the latency is
    taken as zero, and so it is where the best one were negative.
    """
    factor = BUS_FACTOR[found.operation](found.ranks)
    steps = _steps(found.operation, found.ranks)
    sizes = np.array([point.size for point in found.points])
    times = np.array([point.time for point in found.points])
    fixed, moving = steps / times, factor * sizes / times
    latency = per_byte = 0.0
    if len(set(sizes)) >= _FEWEST:
        # Both columns of length one: a byte takes a millionth of a step.
        lengths = np.linalg.norm(fixed), np.linalg.norm(moving)
        columns = np.column_stack([fixed / lengths[0], moving / lengths[1]])
        solution = np.linalg.lstsq(columns, np.ones(len(times)), rcond=None)[0]
        latency, per_byte = (float(x / length) for x, length in zip(solution, lengths, strict=True))
    if latency <= 0.0 or per_byte <= 0.0:
        latency, per_byte = 0.0, float(moving.sum() / (moving @ moving))
    return Fit(latency=latency, bandwidth=1.0 / per_byte, steps=steps, factor=factor)


def _steps(operation: str, ranks: int) -> float:
    """Steps of a collective's ring one after another."""
    if operation == "sendrecv":
        return 1.0
    return (ranks - 1.0) * (2.0 if operation == "all_reduce" else 1.0)


def _over(found: Collective) -> str:
    hosts = "one host" if found.hosts == 1 else f"{found.hosts} hosts"
    return f"{found.operation} over {found.ranks} ranks on {hosts}"


def link_profile(
    found: Collective, *, kind: LinkKind | None = None, over: Link | None = None
) -> Fragment:
    """A link profile from a measured collective; see `nccl_tests.read` for the parameters."""
    fitted = fit(found)
    where = kind or (None if over is None else over.kind)
    if where is None:
        where = LinkKind.NETWORK if found.hosts > 1 else LinkKind.NVLINK
    lines = [str(line) for line in _figures(found, fitted, over)]
    note = (
        f"Fitted to {_over(found)}, {len(found.points)} sizes; bandwidth of one rank in one "
        "direction."
    )
    head = comment(f"Measured by {found.source}.")
    body = [f"kind = {quote(str(where))}", f"note = {quote(note)}", "", *lines]
    assumed = kind is None and over is None
    return Fragment(
        kind=Kind.LINK,
        text=f"{head}\nschema = 1\n{table('', body)}\n",
        summary=tuple(_summary(found, fitted)),
        warnings=(*found.warnings, *_warnings(found, fitted, over, where, assumed=assumed)),
    )


def _figures(found: Collective, fitted: Fit, over: Link | None) -> Iterator[Line]:
    rate = quantity(fitted.bandwidth, units.BYTE_PER_SECOND)
    if over is not None and over.peak >= fitted.bandwidth and "peak" in over.sources:
        source = over.sources["peak"]
        yield Line(
            key="peak",
            value=quantity(over.peak, units.BYTE_PER_SECOND),
            source=source.reference,
            date=source.date,
            verified=source.verified,
            note=source.note,
        )
    else:
        note = "as achieved: the datasheet's rate is not in the log"
        yield Line(
            key="peak",
            value=rate,
            source=found.source,
            date=found.date,
            verified=False,
            note=note,
        )
    largest = found.points[-1]
    note = (
        f"fitted; bus bandwidth at {binary_size(largest.size)} was "
        f"{units.show(largest.bus, units.BYTE_PER_SECOND)}"
    )
    yield Line(key="achievable", value=rate, source=found.source, date=found.date, note=note)
    if fitted.latency > 0.0:
        note = f"fitted; each of {fitted.steps:g} steps, launch included"
        value = quantity(fitted.latency, units.SECOND)
        yield Line(key="latency", value=value, source=found.source, date=found.date, note=note)


def _summary(found: Collective, fitted: Fit) -> Iterator[str]:
    devices = f" ({', '.join(found.devices)})" if found.devices else ""
    yield f"{_over(found)}{devices}"
    yield (
        f"fit: {units.show(fitted.latency, units.SECOND)} a step, "
        f"{units.show(fitted.bandwidth, units.BYTE_PER_SECOND)} bus bandwidth"
    )
    yield f"{'size':>10}  {'time':>10}  {'bus bandwidth':>14}  {'fitted time':>11}  {'error':>6}"
    sizes = np.array([point.size for point in found.points])
    for point, time in zip(found.points, fitted.time(sizes), strict=True):
        yield (
            f"{binary_size(point.size):>10}  {units.show(point.time, units.SECOND):>10}  "
            f"{units.show(point.bus, units.BYTE_PER_SECOND):>14}  "
            f"{units.show(float(time), units.SECOND):>11}  {time / point.time - 1.0:>+6.0%}"
        )


def _warnings(
    found: Collective, fitted: Fit, over: Link | None, kind: LinkKind, *, assumed: bool
) -> Iterator[str]:
    largest = found.points[-1]
    if len({point.size for point in found.points}) < _FEWEST:
        yield f"fewer than {_FEWEST} sizes: there is no latency in the profile"
    if largest.size < LARGE:
        yield (
            f"the largest message is {binary_size(largest.size)}: a link is full from "
            f"{binary_size(LARGE)} on, so its bandwidth is higher"
        )
    if over is None:
        yield "the log doesn't say the datasheet rate; name the link with --over to keep its own"
    elif fitted.bandwidth > over.peak:
        rates = [units.show(rate, units.BYTE_PER_SECOND) for rate in (fitted.bandwidth, over.peak)]
        yield f"{rates[0]} is above the peak of {over.name}, {rates[1]}: the switch helps to reduce"
    if assumed and kind is LinkKind.NVLINK:
        yield "one host: taken as NVLink; say --kind pcie if the devices have none"
