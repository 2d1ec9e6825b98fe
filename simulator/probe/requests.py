"""Requests to a disk: which ones are timed, and Python threads that make them."""

from __future__ import annotations

import mmap
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from simulator import units
from simulator.units import Seconds

LARGE: Final = units.parse("1 MiB", units.BYTE)
SMALL: Final = units.parse("4 KiB", units.BYTE)
_TAIL: Final = 0.99
_F_NOCACHE: Final = 48
"""What macOS has in place of O_DIRECT, from its fcntl.h."""


class Unable(Exception):  # noqa: N818 - says what happened, and another way is taken
    """A tool cannot measure here; its text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Requests of one kind: `depth` of `size` [B] kept open, `random` or front to back."""

    key: str
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
    Case(key="read_bandwidth", size=int(LARGE), depth=8, random=False),
    Case(key="read_operations", size=int(SMALL), depth=32, random=True),
    Case(key="read_latency", size=int(SMALL), depth=1, random=True),
    Case(key="write_bandwidth", size=int(LARGE), depth=8, random=False, write=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The test file: `handle` is open, it holds `size` bytes, `direct` passes the page cache by."""

    handle: int
    size: int
    direct: bool

    @property
    def way(self) -> str:
        """Which way requests go, in a word or two."""
        return "direct" if self.direct else "through the page cache"

    @property
    def path(self) -> str:
        """A path that opens the file though it has no name; Linux only."""
        return f"/proc/self/fd/{self.handle}"

    @contextmanager
    def opened(self) -> Iterator[int]:
        """The file opened once more, past the page cache where `direct`."""
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
    """The figure of a case by Python threads, and how it was had.

    Parameters
    ----------
    volume : Volume
        The test file.
    case : Case
        What to ask for.
    seconds : float
        How long [s].

    Returns
    -------
    tuple of float and str
        A rate [B/s or /s], or for a depth of one the mean time [s]; and a note.
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
    tail = sorted(times)[int(_TAIL * (len(times) - 1))]
    how = f"Python threads, {volume.way}, p99 {units.show(tail, units.SECOND)}"
    if case.depth == 1:
        return statistics.fmean(times), how
    rate = len(times) / elapsed
    return (rate if case.random else rate * case.size), how


def _ask(  # noqa: PLR0913, PLR0917 - one thread's part of a case
    handle: int, size: int, case: Case, worker: int, end: float, stop: threading.Event
) -> list[Seconds]:
    """Ask until the time is up; the time of each request [s]."""
    buffer = mmap.mmap(-1, case.size)
    # A write of zeros alone is what some drives do not store.
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
