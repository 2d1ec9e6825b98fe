"""A disk: large reads and writes, small random reads, the page cache, opening a file.

fio measures where it is installed, else Python threads do. Both use one file that has no name: it
is unlinked as soon as it is open, so that no crash and no Ctrl-C leaves it behind.
"""

from __future__ import annotations

import mmap
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.probe.reading import Found, Reading, Say
from simulator.probe.requests import CASES, LARGE, Case, Unable, Volume, own_reads
from simulator.units import Bytes, Seconds, Unit

LEAST: Final = units.parse("16 MiB", units.BYTE)
"""Smallest test file; below it a drive's own memory answers."""
_FILLING: Final = 0.3
"""Share of the time that writing the test file may take."""
_LEAVE: Final = 0.5
"""Share of the free space that is left alone."""
_OPENS: Final = 300
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
_UNITS: Final[dict[str, Unit]] = {
    "read_bandwidth": units.BYTE_PER_SECOND,
    "read_operations": units.PER_SECOND,
    "read_latency": units.SECOND,
    "write_bandwidth": units.BYTE_PER_SECOND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the test file goes, and how big it may get [B]."""

    folder: Path
    space: Bytes

    @property
    def file_system(self) -> str:
        """Type of the file system, as /proc/mounts names it; empty where there is none."""
        return _file_system(self.folder)

    @property
    def networked(self) -> bool:
        """Whether the store is reached over a network."""
        name = self.file_system
        return name.startswith(_NETWORK)


def check(place: Place) -> None:
    """Refuse a folder that cannot hold the test file, before anything is measured.

    Raises
    ------
    InputError
        If it is no folder, cannot be written, or has less than twice the space free.
    """
    problem = _fault(place)
    if problem is not None:
        raise InputError((problem,))


def _fault(place: Place) -> Problem | None:
    folder, shown = place.folder, str(place.folder)
    if not folder.is_dir():
        return Problem(origin="--disk", message="is not a folder", found=shown)
    if not os.access(folder, os.W_OK):
        return Problem(origin="--disk", message="cannot be written: permission denied", found=shown)
    if place.space < LEAST:
        least, found = units.show(LEAST, units.BYTE), units.show(place.space, units.BYTE)
        message = f"has to be {least} at least"
        return Problem(origin="--disk-space", message=message, found=found)
    state = os.statvfs(folder)
    free = state.f_bavail * state.f_frsize
    if place.space > free * (1.0 - _LEAVE):
        hint = f"{units.show(free, units.BYTE)} are free in {shown}, and half of that is left alone"
        found = units.show(place.space, units.BYTE)
        return Problem(origin="--disk-space", message="is too much", found=found, hint=hint)
    return None


def measure(place: Place, seconds: Seconds, say: Say, fio: str | None = None) -> Found:
    """Measure the disk that `place` lies on.

    Parameters
    ----------
    place : Place
        Folder and largest size of the test file.
    seconds : float
        Time all of it may take [s]; a request that hangs comes on top.
    say : callable
        Told what is going on.
    fio : str, optional
        Path of fio; without it, Python reads.

    Raises
    ------
    InputError
        If the folder cannot be used, or writing fails (a full disk).
    """
    check(place)
    warnings: list[str] = []
    each = seconds * (1.0 - _FILLING) / (len(CASES) + 1)
    try:
        with nameless_file(place.folder) as handle:
            say(f"disk: writing a test file of {units.show(place.space, units.BYTE)} or less")
            size = _fill(handle, place.space, seconds * _FILLING)
            volume = Volume(handle=handle, size=size, direct=_direct(handle))
            readings = list(_cases(volume, each, say, fio, warnings))
            readings.append(_cached(volume, each))
            readings.append(_opening(place.folder))
    except OSError as error:
        message = f"cannot be measured: {error.strerror or error}"
        problem = Problem(origin="--disk", message=message, found=str(place.folder))
        raise InputError((problem,)) from error
    if not volume.direct:
        warnings.append(f"{place.file_system or 'this system'} has no O_DIRECT: memory may answer")
    return Found(readings=tuple(readings), warnings=tuple(warnings))


@contextmanager
def nameless_file(folder: Path) -> Iterator[int]:
    """A file descriptor open for reading and writing in `folder` whose name is gone already."""
    handle, name = tempfile.mkstemp(prefix=".plan-probe-", dir=folder)
    try:
        os.unlink(name)  # noqa: PTH108 - beside the open call
        yield handle
    finally:
        os.close(handle)


def _fill(handle: int, space: Bytes, seconds: Seconds) -> int:
    """Write random data until space or time is used up, a whole number of large blocks [B]."""
    block, deadline = int(LARGE), time.monotonic() + seconds
    generator, written = random.Random(_SEED), 0  # noqa: S311 - incompressible, not secret
    while written + block <= space:
        os.pwrite(handle, generator.randbytes(block), written)
        written += block
        if time.monotonic() > deadline and written >= LEAST:
            break
        if written % int(LEAST) == 0:
            os.fdatasync(handle) if sys.platform == "linux" else os.fsync(handle)
    os.fsync(handle)
    return written


def _direct(handle: int) -> bool:
    """Whether the file can be read past the page cache."""
    with suppress(OSError), Volume(handle=handle, size=0, direct=True).opened() as extra:
        buffer = mmap.mmap(-1, mmap.PAGESIZE)
        return os.preadv(extra, [buffer], 0) > 0
    return False


def _cases(
    volume: Volume, seconds: Seconds, say: Say, fio: str | None, warnings: list[str]
) -> Iterator[Reading]:
    from simulator.probe.fio_runs import fio_reads  # noqa: PLC0415 - only where fio is

    for case in CASES:
        say(f"disk: {case}")
        if fio is not None:
            try:
                yield _reading(case, fio_reads(fio, volume, case, seconds))
                continue
            except Unable as error:
                warnings.append(f"fio could not run ({error}); Python threads measured instead")
                fio = None
        yield _reading(case, own_reads(volume, case, seconds))


def _reading(case: Case, found: tuple[float, str]) -> Reading:
    value, how = found
    note = f"{case}; {how}"
    return Reading(device="disk", key=case.key, value=value, unit=_UNITS[case.key], note=note)


def _cached(volume: Volume, seconds: Seconds) -> Reading:
    """Rate at which a file in the page cache is read, by one thread."""
    buffer, block = mmap.mmap(-1, int(LARGE)), int(LARGE)
    part = min(volume.size, 16 * int(LEAST))
    for offset in range(0, part, block):
        os.preadv(volume.handle, [buffer], offset)
    done, start = 0, time.perf_counter()
    while done == 0 or time.perf_counter() - start < seconds / 4:
        for offset in range(0, part, block):
            done += os.preadv(volume.handle, [buffer], offset)
    rate = done / (time.perf_counter() - start)
    note = f"a file of {units.show(part, units.BYTE)} in the page cache, one thread"
    unit = units.BYTE_PER_SECOND
    return Reading(device="disk", key="page_cache_bandwidth", value=rate, unit=unit, note=note)


def _opening(folder: Path) -> Reading:
    """Time to open and close a file whose metadata are in memory."""
    with tempfile.NamedTemporaryFile(prefix=".plan-probe-", dir=folder) as file:
        times = []
        for _ in range(_OPENS):
            start = time.perf_counter()
            os.close(os.open(file.name, os.O_RDONLY))
            times.append(time.perf_counter() - start)
    note = f"open and close, metadata in memory; median of {_OPENS}"
    value = statistics.median(times)
    return Reading(device="disk", key="open_latency", value=value, unit=units.SECOND, note=note)


def _file_system(folder: Path) -> str:
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    mounts = [line.split()[1:3] for line in lines]
    where = folder.resolve()
    held = [(len(path), kind) for path, kind in mounts if where.is_relative_to(path)]
    return max(held, default=(0, ""), key=lambda mount: mount[0])[1]
