"""Disk: large reads and writes, small random reads, the page cache, opening a file.

fio measures if it is installed, else Python threads do. Both use one file without a name: it is
unlinked as soon as it is open, so that it disappears even after a crash or Ctrl-C.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from simulator import units
from simulator.errors import InputError, Problem
from simulator.probe.reading import Found, Reading, Say, Unmeasurable, repeat
from simulator.records import dataclass
from simulator.units import Bytes, Seconds, Unit

LARGE: Final = units.parse("1 MiB", units.BYTE)
SMALL: Final = units.parse("4 KiB", units.BYTE)
_TAIL_SHARE: Final = 0.99
_F_NOCACHE: Final = 48
"""Equivalent of O_DIRECT on macOS, from its fcntl.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kind of requests: size [B], queue depth, random or sequential, reads or writes.

    `key` and `unit` are those of its reading.
    """

    key: str
    unit: Unit
    size: int
    depth: int
    random: bool
    write: bool = False

    def __str__(self) -> str:
        order = "random" if self.random else "sequential"
        kind = "writes" if self.write else "reads"
        kept = f"{self.depth} open" if self.depth > 1 else "one at a time"
        large = self.size == int(LARGE)
        return f"{order} {kind} of {'1 MiB' if large else '4 KiB'}, {kept}"


CASES: Final = (
    Case(key="read_bandwidth", unit=units.BYTE_PER_SECOND, size=int(LARGE), depth=8, random=False),
    Case(key="read_operations", unit=units.PER_SECOND, size=int(SMALL), depth=32, random=True),
    Case(key="read_latency", unit=units.SECOND, size=int(SMALL), depth=1, random=True),
    Case(
        key="write_bandwidth",
        unit=units.BYTE_PER_SECOND,
        size=int(LARGE),
        depth=8,
        random=False,
        write=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The open test file: its handle, its size [B]; `direct` if requests bypass the page cache."""

    handle: int
    size: int
    direct: bool

    @property
    def way(self) -> str:
        """Way of access: ``direct`` or ``through the page cache``."""
        return "direct" if self.direct else "through the page cache"

    @property
    def path(self) -> str:
        """Path that opens the unlinked file; Linux only."""
        return f"/proc/self/fd/{self.handle}"

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Context manager: open the file again, with O_DIRECT if `direct`, and yield the handle."""
        if sys.platform != "linux":
            extra = os.dup(self.handle)
        else:
            extra = os.open(self.path, os.O_RDWR | (os.O_DIRECT if self.direct else 0))
        try:
            if sys.platform == "darwin":
                import fcntl  # noqa: PLC0415 - not everywhere

                fcntl.fcntl(extra, _F_NOCACHE, 1)
            yield extra
        finally:
            os.close(extra)


def own_reads(volume: Volume, case: Case, seconds: Seconds) -> tuple[float, str]:
    """Measure a case with Python threads; return its value and a note on the method.

    Parameters
    ----------
    volume : Volume
        The test file.
    case : Case
        The requests.
    seconds : float
        Duration [s].

    Returns
    -------
    tuple of float and str
        A rate [B/s or /s], or the mean latency for a queue depth of 1 [s]; and a note.
    """
    stop = threading.Event()
    with volume.opened() as handle, ThreadPoolExecutor(case.depth) as pool:
        if not volume.direct and sys.platform == "linux":
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        start = time.perf_counter()
        jobs = [
            pool.submit(_ask, handle, volume.size, case, worker, start + seconds, stop)
            for worker in range(case.depth)
        ]
        try:
            times = [took for job in jobs for took in job.result()]
        finally:
            stop.set()
        elapsed = time.perf_counter() - start
    if not times:
        msg = "no request was answered in time"
        raise OSError(msg)
    tail = sorted(times)[int(_TAIL_SHARE * (len(times) - 1))]
    how = f"Python threads, {volume.way}, p99 {units.show(tail, units.SECOND)}"
    if case.depth == 1:
        return statistics.fmean(times), how
    rate = len(times) / elapsed
    return (rate if case.random else rate * case.size), how


def _ask(  # noqa: PLR0913, PLR0917 - one thread's part of a case
    handle: int, size: int, case: Case, worker: int, end: float, stop: threading.Event
) -> list[Seconds]:
    """Issue the requests of one thread until `end` or `stop`; return the latency of each [s].

    `size` is the size of the file [B], `worker` the index of the thread.
    """
    buffer = mmap.mmap(-1, case.size)
    # Some drives do not store blocks of zeros.
    buffer.write(random.Random(worker).randbytes(case.size))  # noqa: S311 - not secret
    generator, blocks = random.Random(worker), size // case.size  # noqa: S311 - not secret
    block, times = worker, []
    while not stop.is_set():
        block = generator.randrange(blocks) if case.random else (block + case.depth) % blocks
        start = time.perf_counter()
        if start >= end:
            break
        ask = os.pwritev if case.write else os.preadv
        ask(handle, [buffer], block * case.size)
        times.append(time.perf_counter() - start)
    return times


_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_NANOSECOND: Final = units.parse("1 ns", units.SECOND)
_FIO_TIMEOUT: Final = 20.0
"""Time fio may take in addition to its run time [s]."""
_MAX_MESSAGE: Final = 200


def fio_reads(fio: str, volume: Volume, case: Case, seconds: Seconds) -> tuple[float, str]:
    """Measure a case with fio; see `own_reads`.

    Raises
    ------
    Unmeasurable
        If fio fails, exceeds its time, or prints other text than its JSON.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the program the user installed, our own arguments
            _command(fio, volume, case, seconds),
            pass_fds=(volume.handle,),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + _FIO_TIMEOUT,
        )
        result = json.loads(done.stdout[done.stdout.index("{") :])
        return _figure(result, case, volume)
    except OSError as error:
        raise Unmeasurable(error.strerror or str(error)) from error
    except subprocess.TimeoutExpired as error:
        msg = "it did not end in time"
        raise Unmeasurable(msg) from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Unmeasurable(lines[-1][:_MAX_MESSAGE] if lines else "it printed nothing") from error


def _command(fio: str, volume: Volume, case: Case, seconds: Seconds) -> list[str]:
    pattern = ("rand" if case.random else "") + ("write" if case.write else "read")
    return [
        fio,
        "--name=plan-probe",
        f"--filename={volume.path}",
        f"--rw={pattern}",
        f"--bs={case.size}",
        f"--iodepth={case.depth}",
        f"--direct={int(volume.direct)}",
        f"--size={volume.size}",
        f"--runtime={max(1, round(seconds / _MILLISECOND))}ms",
        "--ioengine=libaio",
        "--time_based",
        "--thread",
        "--allow_file_create=0",
        "--output-format=json",
    ]


def _figure(result: Mapping[str, Any], case: Case, volume: Volume) -> tuple[float, str]:
    job = result["jobs"][0]
    if job["error"]:
        msg = f"error {job['error']}"
        raise Unmeasurable(msg)
    side = job["write" if case.write else "read"]
    latency = side["clat_ns"]
    tail = float(latency["percentile"]["99.000000"]) * _NANOSECOND
    how = f"{result['fio version']}, {volume.way}, p99 {units.show(tail, units.SECOND)}"
    if case.depth == 1:
        return _positive(latency["mean"]) * _NANOSECOND, how
    return _positive(side["iops"] if case.random else side["bw_bytes"]), how


def _positive(value: object) -> float:
    number = float(str(value))
    if not number > 0.0:
        msg = "no request was answered in time"
        raise Unmeasurable(msg)
    return number


MIN_FILE: Final = units.parse("16 MiB", units.BYTE)
"""Minimum size of the test file; smaller ones fit into a drive's cache."""
_WRITE_SHARE: Final = 0.3
"""Maximum share of the time for writing the test file."""
_FREE_SHARE: Final = 0.5
"""Share of the free space that is not used."""
_MAX_OPENS: Final = 300
_SEED: Final = 1
_NETWORK: Final = (
    "nfs",
    "smb",
    "cifs",
    "lustre",
    "ceph",
    "glusterfs",
    "beegfs",
    "gpfs",
    "9p",
    "fuse.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Folder of the test file, and maximum size of the file [B]."""

    folder: Path
    space: Bytes

    @property
    def file_system(self) -> str:
        """Type of the file system as in /proc/mounts; empty if unknown."""
        try:
            text = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        mounts = [line.split()[1:3] for line in text.splitlines()]
        where = self.folder.resolve()
        above = [(len(path), kind) for path, kind in mounts if where.is_relative_to(path)]
        return max(above, default=(0, ""), key=lambda mount: mount[0])[1]

    @property
    def networked(self) -> bool:
        """True if the file system is a network file system."""
        return self.file_system.startswith(_NETWORK)


def check(place: Place) -> None:
    """Check before any measurement that a folder can hold the test file.

    Raises
    ------
    InputError
        If it is not a folder, is not writable, has too little free space, or the test file would be
        smaller than `MIN_FILE`.
    """
    shown = str(place.folder)
    if not place.folder.is_dir():
        _refuse("--disk", "is not a folder", shown)
    if not os.access(place.folder, os.W_OK):
        _refuse("--disk", "cannot be written: permission denied", shown)
    space = units.show(place.space, units.BYTE)
    if place.space < MIN_FILE:
        least = units.show(MIN_FILE, units.BYTE)
        _refuse("--disk-space", f"has to be {least} at least", space)
    state = os.statvfs(place.folder)
    free = state.f_bavail * state.f_frsize
    if place.space > free * (1.0 - _FREE_SHARE):
        hint = f"{units.show(free, units.BYTE)} are free in {shown}, and half of that is left alone"
        _refuse("--disk-space", "is too much", space, hint)


def _refuse(option: str, message: str, found: str, hint: str | None = None) -> NoReturn:
    raise InputError((Problem(origin=option, message=message, found=found, hint=hint),))


def measure(place: Place, seconds: Seconds, say: Say, fio: str | None = None) -> Found:
    """Measure the disk of a folder.

    Parameters
    ----------
    place : Place
        Folder and maximum size of the test file.
    seconds : float
        Total time; a hanging request extends it [s].
    say : callable
        Called with each line of progress.
    fio : str, optional
        Path of fio; by default Python threads measure.

    Raises
    ------
    InputError
        If the folder cannot be used, or writing fails (a full disk).
    """
    check(place)
    warnings: list[str] = []
    each = seconds * (1.0 - _WRITE_SHARE) / (len(CASES) + 1)
    try:
        with nameless_file(place.folder) as handle:
            say(f"disk: writing a test file of {units.show(place.space, units.BYTE)} or less")
            size = _fill(handle, place.space, seconds * _WRITE_SHARE)
            volume = Volume(handle=handle, size=size, direct=_direct(handle))
            readings = list(_cases(volume, each, say, fio, warnings))
            readings.append(_cached(volume, each))
            readings.append(_opening(place.folder))
    except OSError as error:
        _refuse("--disk", f"cannot be measured: {error.strerror or error}", str(place.folder))
    if not volume.direct:
        warnings.append(f"{place.file_system or 'this system'} has no O_DIRECT: memory may answer")
    return Found(readings=tuple(readings), warnings=tuple(warnings))


@contextmanager
def nameless_file(folder: Path) -> Iterator[int]:
    """Context manager: create an unlinked file in `folder` and yield its handle."""
    handle, name = tempfile.mkstemp(prefix=".plan-probe-", dir=folder)
    try:
        os.unlink(name)  # noqa: PTH108 - next to the open call
        yield handle
    finally:
        os.close(handle)


def _fill(handle: int, space: Bytes, seconds: Seconds) -> int:
    """Write random data up to `space` bytes or for `seconds`; return the size of the file [B].

    The size is a multiple of the large block and at least `MIN_FILE` if `space` is.
    """
    block, deadline = int(LARGE), time.monotonic() + seconds
    generator, written = random.Random(_SEED), 0  # noqa: S311 - incompressible, not secret
    while written + block <= space:
        os.pwrite(handle, generator.randbytes(block), written)
        written += block
        if time.monotonic() > deadline and written >= MIN_FILE:
            break
        if written % int(MIN_FILE) == 0:
            os.fdatasync(handle) if sys.platform == "linux" else os.fsync(handle)
    os.fsync(handle)
    return written


def _direct(handle: int) -> bool:
    """Return True if the file can be read with O_DIRECT."""
    with suppress(OSError), Volume(handle=handle, size=0, direct=True).opened() as extra:
        buffer = mmap.mmap(-1, mmap.PAGESIZE)
        return os.preadv(extra, [buffer], 0) > 0
    return False


def _cases(
    volume: Volume, seconds: Seconds, say: Say, fio: str | None, warnings: list[str]
) -> Iterator[Reading]:

    for case in CASES:
        say(f"disk: {case}")
        found = None
        if fio is not None:
            try:
                found = fio_reads(fio, volume, case, seconds)
            except Unmeasurable as error:
                warnings.append(f"fio could not run ({error}); Python threads measured instead")
                fio = None
        value, how = found or own_reads(volume, case, seconds)
        yield Reading("disk", case.key, value, case.unit, f"{case}; {how}")


def _cached(volume: Volume, seconds: Seconds) -> Reading:
    """Measure the bandwidth of reading a file from the page cache with one thread."""
    buffer, block = mmap.mmap(-1, int(LARGE)), int(LARGE)
    part = min(volume.size, 16 * int(MIN_FILE))

    def read() -> None:
        for offset in range(0, part, block):
            os.preadv(volume.handle, [buffer], offset)

    read()
    count, elapsed = repeat(read, seconds / 4)
    rate = count * len(range(0, part, block)) * block / elapsed
    note = f"a file of {units.show(part, units.BYTE)} in the page cache, one thread"
    return Reading("disk", "page_cache_bandwidth", rate, units.BYTE_PER_SECOND, note)


def _opening(folder: Path) -> Reading:
    """Measure the time to open and close a file with cached metadata."""
    with tempfile.NamedTemporaryFile(prefix=".plan-probe-", dir=folder) as file:
        times = []
        for _ in range(_MAX_OPENS):
            start = time.perf_counter()
            os.close(os.open(file.name, os.O_RDONLY))
            times.append(time.perf_counter() - start)
    note = f"open and close, metadata in memory; median of {_MAX_OPENS}"
    return Reading("disk", "open_latency", statistics.median(times), units.SECOND, note)
