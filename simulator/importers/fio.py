"""Importer of fio's JSON output: rates and latencies of each run, as a storage profile.

Structure and units: axboe/fio, stat.c (f5344384) and HOWTO; versions 2.2 to 3.3x. `bw` is in KiB/s
and `bw_bytes` (3.2 and later) in B/s; latencies are in ns under ``clat_ns`` (2.99 and later), in us
under ``clat`` before; ``io_bytes`` is in KiB before 2.21; options are text, some of them under
``global options``. Without group reporting each clone of a job has its own entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.importers.foreign import Entry, changed, first_json, parse_json, read_text, refuse
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import (
    Line,
    binary_size,
    comment,
    quantity,
    quote,
    table,
)
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.schema.storage import Scope, Storage
from simulator.units import Bytes, BytesPerSecond, PerSecond, Seconds

WANTED: Final = "the JSON of fio (--output-format=json)"

_KIB: Final = units.parse("1 KiB", units.BYTE)
_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_MICROSECOND: Final = units.parse("1 us", units.SECOND)
_NANOSECOND: Final = units.parse("1 ns", units.SECOND)
_VERSION: Final = re.compile(r"fio-(\d{1,4})\.(\d{1,4})")
_BYTES_SINCE: Final = (2, 21)
_ONE_AT_A_TIME: Final = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})
"""I/O engines that keep one request open at any `iodepth`; fio's default is one of them."""
_MIN_RUN_TIME: Final = 0.1
"""Shortest run whose rate and amount are compared [s]."""
_RATE_TOLERANCE: Final = 0.05
"""Tolerated relative difference of two rates of a run; wrong units are off by about 1,000."""
_TAIL_PERCENTILE: Final = 99.0


SMALL: Final = units.parse("16 KiB", units.BYTE)
"""Largest request that counts as small: its rate is a count of requests."""
LARGE: Final = units.parse("64 KiB", units.BYTE)
"""Smallest request whose rate is a bandwidth."""
MIN_BUSY_DEPTH: Final = 16
"""Number of outstanding requests from which a store counts as saturated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Reads or writes of one fio job, summed over its clones.

    `size` is the request size [B], `depth` the queue depth of each of `jobs` clones, `tail` the
    99th percentile latency [s]; `direct` runs bypass the page cache. Runs of one `group` ran
    concurrently.
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
    source: str = ""
    date: str = ""

    @property
    def open(self) -> int:
        """Number of outstanding requests, over all clones."""
        return self.depth * self.jobs

    @property
    def random(self) -> bool:
        """True if the access pattern is random."""
        return self.pattern.startswith("rand")

    @property
    def pure(self) -> bool:
        """True if the job only read, or only wrote."""
        return self.pattern.removeprefix("rand") == self.direction

    def __str__(self) -> str:
        order = "random" if self.random else "sequential"
        kept = f"{self.open} open" if self.open > 1 else "one at a time"
        said = f"{order} {self.direction}s of {binary_size(self.size)}, {kept}"
        return said if self.direct else f"{said}, through the page cache"


def read(
    paths: Sequence[Path], scope: Scope = Scope.LOCAL, over: Storage | None = None
) -> Fragment:
    """Return a storage profile from the JSON of one or more fio runs.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Files of ``fio --output-format=json``; text around the JSON is skipped.
    scope : Scope
        Connection of the store (local or network), which fio doesn't report.
    over : Storage, optional
        Profile of the measured store, for its figures that no run measured.

    Returns
    -------
    Fragment
        A profile with the best large read as `achievable_read_bandwidth`, small random reads as
        `read_operations`, single reads as `read_latency`, and the same keys for writes.

    Raises
    ------
    InputError
        For files that are not fio output, failed jobs, negative or contradictory values.
    """
    problems: list[Problem] = []
    runs = [run for path in paths for run in _runs(path, problems)]
    refuse(problems)
    return _profile(runs, scope, ", ".join(path.name for path in paths), over)


def _runs(path: Path, problems: list[Problem]) -> list[Run]:
    top = Entry(_document(path), str(path), problems=problems)
    jobs = top.get("jobs")
    if jobs is None:
        if top.get("client_stats") is not None:
            hint = "run fio on the machine whose store is meant"
            top.fault("holds runs of several machines (client_stats)", hint=hint)
        else:
            top.fault("has no 'jobs'", hint=f"it should be {WANTED}")
        return []
    version = top.text_at("fio version") or "fio of unknown version"
    source, date = f"{version}: {path.name}", _date(top, path)
    match = _VERSION.match(version)
    old = match is not None and (int(match[1]), int(match[2])) < _BYTES_SINCE
    amount_unit = _KIB if old else 1.0
    found = []
    for job in jobs.entries():
        options = {
            **_mapping(top.get("global options")),
            **_mapping(job.get("job options")),
        }
        found += [
            replace(run, group=f"{path}:{run.group}", source=source, date=date)
            for run in _of_job(job, options, amount_unit)
        ]
    if not found and not problems:
        jobs.fault("holds no job that read or wrote anything")
    return list(_merged(found))


def _mapping(entry: Entry | None) -> Mapping[str, object]:
    return entry.value if entry is not None and isinstance(entry.value, Mapping) else {}


def _document(path: Path) -> object:
    """Return the last JSON object of the file.

    fio ``--status-interval`` appends an object for each interval; the last one holds the totals.
    """
    text, origin = read_text(path, WANTED), str(path)
    start, last = _brace(text, 0), None
    if start is None:
        fail(origin, "holds no JSON object", hint=f"it should be {WANTED}")
    while start is not None:
        try:
            last, end = first_json(text, start)
        except ValueError:
            # Empty lines in front preserve the line numbers of the message.
            return parse_json("\n" * text.count("\n", 0, start) + text[start:], origin)
        start = _brace(text, end)
    return last


def _brace(text: str, start: int) -> int | None:
    """Return the offset of the next line that starts with an opening brace; None at the end."""
    match = re.compile(r"^\{", re.MULTILINE).search(text, start)
    return None if match is None else match.start()


def _date(top: Entry, path: Path) -> str:
    seconds = top.number_at("timestamp")
    try:
        if seconds:
            return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        top.fault("has a 'timestamp' that is not a time", found=seconds)
    return changed(path)


def _of_job(job: Entry, options: Mapping[str, object], amount_unit: float) -> Iterator[Run]:
    """Yield one run for each direction (read, write, mixed) in which the job moved data."""
    if not job.is_mapping():
        job.fault("is not a job", found=job.value)
        return
    failed = job.number_at("error", least=float("-inf"))
    if failed:
        job.fault(f"failed with error {failed:g}", hint="run it again, or leave it out")
        return
    for direction in ("read", "write", "mixed"):
        side = job.get(direction)
        if side is None or (direction == "mixed" and job.get("read") is not None):
            continue
        run = _of_side(side, options, amount_unit, job)
        if run is not None:
            yield run


def _option(options: Mapping[str, object], *names: str) -> str:
    """Return the value of the first of the synonyms `names` that is set; fio writes all as text."""
    return next((str(options[name]) for name in names if name in options), "")


def _count_option(options: Mapping[str, object], name: str) -> int:
    text = _option(options, name)
    return max(1, int(text[:9])) if text.isdecimal() else 1


def _of_side(
    side: Entry, options: Mapping[str, object], amount_unit: float, job: Entry
) -> Run | None:
    before = len(side.problems)
    rate = _rate(side)
    amount = side.number_at("io_bytes")
    requests = side.number_at("iops")
    count = side.number_at("total_ios")
    runtime = side.number_at("runtime")
    mean, tail = _latencies(side)
    if len(side.problems) > before or not rate:
        return None
    if requests is None:
        side.fault("has no 'iops'")
        return None
    if amount is not None and runtime:
        _hold(side, rate, amount * amount_unit, runtime * _MILLISECOND)
    size = amount * amount_unit / count if amount and count else rate / (requests or 1.0)
    pattern = (_option(options, "rw", "readwrite") or "read").partition(":")[0]
    direction = str(side.path[-1])
    if direction == "mixed" and pattern in {"read", "randread", "write", "randwrite"}:
        # A combined entry for reads and writes, of a run that had only one direction.
        direction = pattern.removeprefix("rand")
    alone = (_option(options, "ioengine") or "psync") in _ONE_AT_A_TIME
    direct = _option(options, "direct")
    return Run(
        name=job.text_at("jobname") or "unnamed",
        group=job.text_at("groupid") or "0",
        direction=direction,
        pattern=pattern,
        size=size,
        depth=1 if alone else _count_option(options, "iodepth"),
        jobs=_count_option(options, "numjobs"),
        bandwidth=rate,
        operations=requests,
        latency=mean,
        tail=tail,
        # An option without a value is on.
        direct=direct == "1"
        or _option(options, "buffered") == "0"
        or (not direct and "direct" in options),
    )


def _rate(side: Entry) -> float | None:
    """Return the bandwidth of one direction [B/s]; None if neither key of it is present."""
    exact, rounded = side.number_at("bw_bytes"), side.number_at("bw")
    if exact is None and rounded is None:
        side.fault("has neither 'bw_bytes' nor 'bw'")
        return None
    if exact is None:
        return (rounded or 0.0) * _KIB
    coarse = _MIN_RUN_TIME * _KIB * _KIB
    if rounded and exact > coarse and abs(rounded * _KIB / exact - 1.0) > _RATE_TOLERANCE:
        message = f"has bw_bytes = {exact:g} B/s, but bw = {rounded:g} KiB/s"
        side.fault(message, hint="one of them is in another unit")
    return exact


def _hold(side: Entry, rate: float, amount: float, time: float) -> None:
    """Report a problem if `rate` is not `amount` over `time`, which reveals a wrong unit."""
    if time >= _MIN_RUN_TIME and amount > 0.0 and abs(amount / time / rate - 1.0) > _RATE_TOLERANCE:
        moved = f"{units.show(amount, units.BYTE)} in {units.show(time, units.SECOND)}"
        message = f"moved {moved}, which is not {units.show(rate, units.BYTE_PER_SECOND)}"
        side.fault(message, hint="io_bytes, runtime [ms] or the rate is in another unit")


def _latencies(side: Entry) -> tuple[float | None, float | None]:
    """Return mean and 99th percentile of the completion latency [s]; None if not recorded."""
    names = (("clat_ns", _NANOSECOND), ("clat", _MICROSECOND))
    wider = (("lat_ns", _NANOSECOND), ("lat", _MICROSECOND))
    mean = tail = None
    for name, unit in (*names, *wider):
        times = side.get(name)
        if times is None:
            continue
        if mean is None:
            found = times.number_at("mean")
            mean = None if not found else found * unit
        shares = times.get("percentile")
        key = next((key for key in _mapping(shares) if _is_tail(key)), None)
        if tail is None and shares is not None and key is not None:
            found = shares.number_at(key)
            tail = None if not found else found * unit
    return mean, tail


def _is_tail(key: object) -> bool:
    try:
        return float(str(key)) == _TAIL_PERCENTILE
    except ValueError:
        return False


def _merged(runs: Iterable[Run]) -> Iterator[Run]:
    """Merge the clones of a job: entries with the same name, group, pattern and direction."""
    key = attrgetter("group", "name", "direction", "pattern", "depth")
    for _, found in groupby(sorted(runs, key=key), key=key):
        clones = list(found)
        if len(clones) == 1:
            yield clones[0]
            continue
        operations = sum(run.operations for run in clones)
        means = [run.latency for run in clones if run.latency is not None]
        tails = [run.tail for run in clones if run.tail is not None]
        yield replace(
            clones[0],
            jobs=len(clones),
            bandwidth=sum(run.bandwidth for run in clones),
            operations=operations,
            latency=sum(means) / len(means) if means else None,
            tail=max(tails, default=None),
        )


def _profile(
    runs: Sequence[Run], scope: Scope, files: str, over: Storage | None = None
) -> Fragment:
    """Return a storage profile of measured runs, with other figures of the store `over`.

    Raises
    ------
    InputError
        If no run is a pure read, and no store is given.
    """
    used = [run for run in runs if run.pure]
    reads = [run for run in used if run.direction == "read"]
    writes = [run for run in used if run.direction == "write"]
    found = (
        _bandwidth("achievable_read_bandwidth", reads),
        _operations("read_operations", reads),
        _latency("read_latency", reads),
        _bandwidth("write_bandwidth", writes),
        _operations("write_operations", writes),
        _latency("write_latency", writes),
    )
    lines = [line for line in found if line is not None]
    if not lines:
        message = "holds no run that only reads or only writes"
        raise InputError((Problem(origin=files, message=message, hint=_READ_RUN),))
    if over is None and not any(line.key == "achievable_read_bandwidth" for line in lines):
        message = "holds no run that only reads, so there is no read rate"
        hint = f"{_READ_RUN}, or name the store with --over to keep its read rate"
        raise InputError((Problem(origin=files, message=message, hint=hint),))
    first = lines[0]
    if over is not None:
        lines += _kept(over, {line.key for line in lines})
    head = comment(f"Measured with {first.source.partition(':')[0]}: {files}.")
    body: list[Line | str] = [f"scope = {quote(str(scope))}", "", *lines]
    return Fragment(
        kind=Kind.STORAGE,
        text=f"{head}\nschema = 1\n{table('', body)}\n",
        summary=tuple(_told(run) for run in runs),
        warnings=tuple(dict.fromkeys(_warnings(runs, lines))),
    )


_READ_RUN: Final = "run fio with --rw=read --bs=1m"
_KEPT: Final = {
    "read_bandwidth": units.BYTE_PER_SECOND,
    "achievable_read_bandwidth": units.BYTE_PER_SECOND,
    "read_operations": units.PER_SECOND,
    "read_latency": units.SECOND,
    "write_bandwidth": units.BYTE_PER_SECOND,
    "write_operations": units.PER_SECOND,
    "write_latency": units.SECOND,
}
"""Figures of a store that are kept where no run measured them."""


def _kept(over: Storage, measured: set[str]) -> Iterator[Line]:
    """Yield the figures of a store that are not `measured`, with their own sources."""
    for key, unit in _KEPT.items():
        source, value = over.sources.get(key), getattr(over, key)
        reads = key == "read_bandwidth" and "achievable_read_bandwidth" in measured
        if key in measured or reads or source is None or not value:
            continue
        yield Line(
            key=key,
            value=quantity(value, unit),
            source=source.reference,
            date=source.date,
            verified=source.verified,
            note=source.note,
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
    reads = [run for run in runs if run.direction == "read"]
    if reads and not any(run.size >= LARGE for run in reads):
        yield f"no reads of {binary_size(LARGE)} or more: the bandwidth is that of small requests"
    small = [run for run in runs if run.random and run.size <= SMALL and run.open > 1]
    if "read_operations" in keys and small and max(run.open for run in small) < MIN_BUSY_DEPTH:
        few = f"fewer than {MIN_BUSY_DEPTH} small requests were open"
        yield f"{few}: the store may answer more a second"
    if "read_operations" not in keys:
        yield "no random reads of 16 KiB or less, several at a time: read_operations is left out"
    if "read_latency" not in keys:
        yield "no random reads of 16 KiB or less one at a time: read_latency is left out"
