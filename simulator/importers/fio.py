"""fio's JSON: rates and latencies of each run, as a storage profile.

Structure and units: axboe/fio, stat.c (f5344384) and HOWTO; versions 2.2 to 3.3x. `bw` is in KiB/s
and `bw_bytes` (3.2 and later) in B/s; latencies are in ns under ``clat_ns`` (2.99 and later), in us
under ``clat`` before; ``io_bytes`` is in KiB before 2.21; options are text, some of them under
``global options``. Without group reporting each clone of a job has an entry of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers.foreign import Entry, changed, parse_json, read_text, refuse
from simulator.importers.result import Fragment
from simulator.importers.storage_profile import Run, storage_profile
from simulator.reading.reading import fail
from simulator.schema.storage import Scope

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
"""Shortest run whose counters are held against each other [s]."""
_RATE_TOLERANCE: Final = 0.05
"""How far rates of one run may differ, as a fraction; most wrong units are a thousandfold off."""
_TAIL_PERCENTILE: Final = 99.0


@dataclass(frozen=True, slots=True)
class _File:
    """Global options of a file, which all its jobs share."""

    path: Path
    version: str
    date: str
    options: Mapping[str, object]

    @property
    def amount_unit(self) -> float:
        """Bytes in one of `io_bytes`."""
        match = _VERSION.match(self.version)
        old = match is not None and (int(match[1]), int(match[2])) < _BYTES_SINCE
        return _KIB if old else 1.0


def read(paths: Sequence[Path], scope: Scope = Scope.LOCAL) -> Fragment:
    """Return a storage profile from the JSON of one or more fio runs.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Files of ``fio --output-format=json``; text around the JSON is skipped.
    scope : Scope
        How the store is reached, which fio doesn't say.

    Returns
    -------
    Fragment
        A profile with the best large read as `achievable_read_bandwidth`, small random reads as
        `read_operations`, reads one at a time as `read_latency`, and the same of writes.

    Raises
    ------
    InputError
        For files that are no fio output, failed jobs, negative or contradictory figures.
    """
    problems: list[Problem] = []
    runs = [run for path in paths for run in _runs(path, problems)]
    refuse(problems)
    return storage_profile(runs, scope, ", ".join(path.name for path in paths))


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
    options = top.get("global options")
    about = _File(
        path=path,
        version=top.text_at("fio version") or "fio of unknown version",
        date=_date(top, path),
        options=_mapping(options),
    )
    found = [run for job in jobs.entries() for run in _of_job(job, about)]
    if not found and not problems:
        jobs.fault("holds no job that read or wrote anything")
    return list(_merged(found))


def _mapping(entry: Entry | None) -> Mapping[str, object]:
    return entry.value if entry is not None and isinstance(entry.value, Mapping) else {}


def _document(path: Path) -> object:
    """Return the last JSON object of the file.

    With ``--status-interval`` each replaces the one before.
    """
    text, origin = read_text(path, WANTED), str(path)
    decoder = json.JSONDecoder()
    start, last = _brace(text, 0), None
    if start is None:
        fail(origin, "holds no JSON object", hint=f"it should be {WANTED}")
    while start is not None:
        try:
            last, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            # Empty lines instead of the text before keep the line numbers of the message.
            return parse_json("\n" * text.count("\n", 0, start) + text[start:], origin)
        start = _brace(text, end)
    return last


def _brace(text: str, start: int) -> int | None:
    """Return the offset of the next line that begins an object."""
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


def _of_job(job: Entry, about: _File) -> Iterator[Run]:
    """Return one run for each direction in which the job moved data."""
    if not job.is_mapping():
        job.fault("is not a job", found=job.value)
        return
    failed = job.number_at("error", least=float("-inf"))
    if failed:
        job.fault(f"failed with error {failed:g}", hint="run it again, or leave it out")
        return
    options = {**about.options, **_mapping(job.get("job options"))}
    for direction in ("read", "write", "mixed"):
        side = job.get(direction)
        if side is None or (direction == "mixed" and job.get("read") is not None):
            continue
        run = _of_side(side, _Options(options), about, job)
        if run is not None:
            yield run


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a job, global ones included; fio writes all of them as text."""

    given: Mapping[str, object]

    def text(self, *names: str) -> str:
        """Return the first option given of `names`, which mean the same."""
        return next((str(self.given[name]) for name in names if name in self.given), "")

    @property
    def pattern(self) -> str:
        """Pattern of the requests, fio's rw: read, randread, write, randrw, ..."""
        return (self.text("rw", "readwrite") or "read").partition(":")[0]

    @property
    def depth(self) -> int:
        """Requests a job keeps open."""
        engine = self.text("ioengine") or "psync"
        depth = self.text("iodepth")
        return 1 if engine in _ONE_AT_A_TIME or not depth.isdecimal() else max(1, int(depth[:9]))

    @property
    def clones(self) -> int:
        """Copies of the job that share one entry."""
        jobs = self.text("numjobs")
        return max(1, int(jobs[:9])) if jobs.isdecimal() else 1

    @property
    def direct(self) -> bool:
        """True if the page cache was passed by."""
        direct, buffered = self.text("direct"), self.text("buffered")
        return direct == "1" or buffered == "0" or ("direct" in self.given and direct == "")


def _of_side(side: Entry, options: _Options, about: _File, job: Entry) -> Run | None:
    before = len(side.problems)
    rate = _rate(side)
    amount = side.number_at("io_bytes")
    requests = side.number_at("iops")
    count = side.number_at("total_ios")
    runtime = side.number_at("runtime")
    mean, tail = _latency(side)
    if len(side.problems) > before or not rate:
        return None
    if requests is None:
        side.fault("has no 'iops'")
        return None
    if amount is not None and runtime:
        _hold(side, rate, amount * about.amount_unit, runtime * _MILLISECOND)
    size = amount * about.amount_unit / count if amount and count else rate / (requests or 1.0)
    direction = str(side.path[-1])
    if direction == "mixed":
        direction = _only_direction(options.pattern)
    return Run(
        name=job.text_at("jobname") or "unnamed",
        group=f"{about.path}:{job.text_at('groupid') or '0'}",
        direction=direction,
        pattern=options.pattern,
        size=size,
        depth=options.depth,
        jobs=options.clones,
        bandwidth=rate,
        operations=requests,
        latency=mean,
        tail=tail,
        direct=options.direct,
        source=f"{about.version}: {about.path.name}",
        date=about.date,
    )


def _only_direction(pattern: str) -> str:
    """Return the direction of a run that reports reads and writes as one, if it had only one."""
    return {"read": "read", "randread": "read", "write": "write", "randwrite": "write"}.get(
        pattern, "mixed"
    )


def _rate(side: Entry) -> float | None:
    """Return the rate of one direction [B/s]; None where it moved nothing."""
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
    """Hold the rate against what was moved in the time: a wrong unit shows."""
    if time >= _MIN_RUN_TIME and amount > 0.0 and abs(amount / time / rate - 1.0) > _RATE_TOLERANCE:
        moved = f"{units.show(amount, units.BYTE)} in {units.show(time, units.SECOND)}"
        message = f"moved {moved}, which is not {units.show(rate, units.BYTE_PER_SECOND)}"
        side.fault(message, hint="io_bytes, runtime [ms] or the rate is in another unit")


def _latency(side: Entry) -> tuple[float | None, float | None]:
    """Return mean and 99th percentile of the completion latency [s]; None where not recorded."""
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
    """Return clones of a job summed: same name, group, pattern and direction, an entry for each."""
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
