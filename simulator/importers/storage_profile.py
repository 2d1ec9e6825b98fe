"""From measured reads and writes of a store to its profile: which run says which figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import (
    Line,
    binary_size,
    comment,
    quantity,
    quote,
    table,
)
from simulator.schema.storage import Scope
from simulator.units import Bytes, BytesPerSecond, PerSecond, Seconds

SMALL: Final = units.parse("16 KiB", units.BYTE)
"""Largest request that counts as small: its rate is a count of requests."""
LARGE: Final = units.parse("64 KiB", units.BYTE)
"""Smallest request whose rate is a bandwidth."""
MIN_BUSY_DEPTH: Final = 16
"""Requests open at once from which on a store is taken to be busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One direction of one measured run, all its clones together.

    `size` is that of a request [B], `depth` how many each of `jobs` keeps open, `tail` the 99th
    percentile of the latency; `direct` runs pass by the page cache. Runs of one `group` ran at
    the same time.
    """

    name: str
    group: str
    direction: str
    pattern: str
    size: Bytes
    depth: int
    jobs: int
    bandwidth: BytesPerSecond
    operations: PerSecond
    latency: Seconds | None
    tail: Seconds | None
    direct: bool
    source: str
    date: str

    @property
    def open(self) -> int:
        """Requests open at once."""
        return self.depth * self.jobs

    @property
    def random(self) -> bool:
        """True if requests lie anywhere in the file."""
        return self.pattern.startswith("rand")

    @property
    def pure(self) -> bool:
        """True if it did nothing but read, or nothing but write."""
        return self.pattern.removeprefix("rand") == self.direction

    def __str__(self) -> str:
        order = "random" if self.random else "sequential"
        kept = f"{self.open} open" if self.open > 1 else "one at a time"
        said = f"{order} {self.direction}s of {binary_size(self.size)}, {kept}"
        return said if self.direct else f"{said}, through the page cache"


def storage_profile(runs: Sequence[Run], scope: Scope, files: str) -> Fragment:
    """Return the profile of a store from measured runs.

    Parameters
    ----------
    runs : sequence of Run
        What was measured.
    scope : Scope
        How the store is reached.
    files : str
        The files they are in.

    Raises
    ------
    InputError
        If no run reads: the profile of a store needs a read rate.
    """
    used = [run for run in runs if run.pure]
    lines = [line for line in (*_of_reads(used), *_of_writes(used)) if line is not None]
    if not any(line.key == "achievable_read_bandwidth" for line in lines):
        message = "holds no run that only reads, so there is no read rate"
        hint = "run fio with --rw=read --bs=1m"
        raise InputError((Problem(origin=files, message=message, hint=hint),))
    first = lines[0]
    head = comment(f"Measured with {first.source.partition(':')[0]}: {files}.")
    body: list[Line | str] = [f"scope = {quote(str(scope))}", "", *lines]
    return Fragment(
        kind=Kind.STORAGE,
        text=f"{head}\nschema = 1\n{table('', body)}\n",
        summary=tuple(_told(run) for run in runs),
        warnings=tuple(dict.fromkeys(_warnings(runs, lines))),
    )


def _told(run: Run) -> str:
    parts = [
        units.show(run.bandwidth, units.BYTE_PER_SECOND),
        f"{run.operations:,.0f} requests/s",
    ]
    if run.latency is not None:
        parts.append(f"mean {units.show(run.latency, units.SECOND)}")
    if run.tail is not None:
        parts.append(f"p99 {units.show(run.tail, units.SECOND)}")
    return f"{run.name}: {run}: {', '.join(parts)}"


def _of_reads(runs: Sequence[Run]) -> Iterator[Line | None]:
    reads = [run for run in runs if run.direction == "read"]
    yield _bandwidth("achievable_read_bandwidth", reads)
    yield _operations("read_operations", reads)
    yield _latency("read_latency", reads)


def _of_writes(runs: Sequence[Run]) -> Iterator[Line | None]:
    writes = [run for run in runs if run.direction == "write"]
    yield _bandwidth("write_bandwidth", writes)
    yield _operations("write_operations", writes)
    yield _latency("write_latency", writes)


def _best(runs: Iterable[Run], by: Callable[[Run], float]) -> Run | None:
    return max(runs, key=lambda run: (run.direct, by(run)), default=None)


def _bandwidth(key: str, runs: Sequence[Run]) -> Line | None:
    large = [run for run in runs if run.size >= LARGE]
    best = _best(large or runs, lambda run: run.bandwidth)
    if best is None:
        return None
    return _line(key, quantity(best.bandwidth, units.BYTE_PER_SECOND), best, _tail(best))


def _operations(key: str, runs: Sequence[Run]) -> Line | None:
    small = [run for run in runs if run.random and run.size <= SMALL and run.open > 1]
    best = _best(small, lambda run: run.operations)
    if best is None:
        return None
    return _line(key, quantity(best.operations, units.PER_SECOND), best, _tail(best))


def _latency(key: str, runs: Sequence[Run]) -> Line | None:
    alone = [run for run in runs if run.open == 1 and run.random and run.size <= SMALL]
    best = _best((run for run in alone if run.latency), lambda run: -(run.latency or 0.0))
    if best is None:
        return None
    value = quantity(best.latency or 0.0, units.SECOND)
    return _line(key, value, best, "; ".join(["mean", *filter(None, [_tail(best)])]))


def _tail(run: Run) -> str:
    return "" if run.tail is None else f"p99 latency {units.show(run.tail, units.SECOND)}"


def _line(key: str, value: str, run: Run, more: str) -> Line:
    note = "; ".join(filter(None, [str(run), more]))
    return Line(key=key, value=value, source=run.source, date=run.date, note=note)


def _warnings(runs: Sequence[Run], lines: Sequence[Line]) -> Iterator[str]:
    keys = {line.key for line in lines}
    for run in runs:
        if run.direction == "mixed":
            yield f"{run.name}: reads and writes are reported as one; left out"
        elif not run.pure:
            yield f"{run.name}: {run.direction}s shared the store with others; left out"
        if run.pure and not run.direct:
            yield f"{run.name}: without direct=1; what the page cache answered is not the store"
        together = {other.name for other in runs if other.group == run.group} - {run.name}
        if together:
            others = ", ".join(sorted(together))
            yield f"{run.name}: ran together with {others}; each had only a share"
    large = any(run.direction == "read" and run.size >= LARGE for run in runs)
    if not large:
        yield f"no reads of {binary_size(LARGE)} or more: the bandwidth is that of small requests"
    small = [run for run in runs if run.random and run.size <= SMALL and run.open > 1]
    if "read_operations" in keys and max(run.open for run in small) < MIN_BUSY_DEPTH:
        few = f"fewer than {MIN_BUSY_DEPTH} small requests were open"
        yield f"{few}: the store may answer more a second"
    if "read_operations" not in keys:
        yield "no random reads of 16 KiB or less, several at a time: read_operations is left out"
    if "read_latency" not in keys:
        yield "no random reads of 16 KiB or less one at a time: read_latency is left out"
