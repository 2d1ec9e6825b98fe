"""A user's DataLoader: time per batch of its workers and of the main process.

Times are measured in a loader of one worker, which includes page faults, collation and transfer to
the main process; stages timed separately in a loop come out a fifth to a quarter too low. The CPU
time of a worker is read from /proc, so that other programs on the machine disturb it less.
"""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from simulator.errors import PlanError
from simulator.probe.machine import Usage, in_line, own_memory, usage
from simulator.records import dataclass
from simulator.units import Bytes, Seconds

PREFETCH: Final = 2
"""Prefetch factor of the worker, as by default in PyTorch."""
MIN_BATCHES: Final = 3
"""Minimum number of batches for a mean."""
_SIZE_RATIO: Final = 4
"""Ratio of the two batch sizes, which separate costs per sample and per batch."""
_MAX_TAKEN: Final = 12
"""Maximum number of ready batches to receive."""
_PAUSE_RATIO: Final = 1.5
"""Wait for the next batch to be ready, as a multiple of the time per batch."""
_SHARE_OF_TIME: Final = 0.35
"""Share of the time for timing batches; the rest is for receiving ready ones."""

Loader: TypeAlias = Any
"""A `torch.utils.data.DataLoader`, or an object with its attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Means per batch at one batch size, over `count` batches from one worker.

    `made` are the times between batches when the main process is always waiting, `taken` is the
    time of the main process to receive a ready batch, without waiting for a core, and `first` the
    time to the first batch [s]. `cpu` is the worker's CPU time and `blocked` the time it waited for
    anything but a core [s], `read` the bytes it read and `held` its private memory [B]; None if
    unknown.
    """

    size: int
    count: int
    made: tuple[Seconds, ...]
    taken: Seconds
    first: Seconds
    cpu: Seconds | None = None
    blocked: Seconds | None = None
    read: Bytes | None = None
    held: Bytes | None = None
    batch_bytes: Bytes = 0.0

    @property
    def wall(self) -> Seconds:
        """Mean wall time of a batch [s]."""
        return statistics.fmean(self.made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a DataLoader; `samples` is None for a stream of unknown length."""

    batch_size: int
    workers: int
    prefetch: int
    pin_memory: bool
    persistent: bool
    drop_last: bool
    in_order: bool
    samples: int | None


def settings(loader: Loader) -> Settings:
    """Return the settings of a loader.

    Raises
    ------
    PlanError
        If it is not a DataLoader, or has no batch size.
    """
    lacks = [name for name in ("dataset", "num_workers", "collate_fn") if not hasattr(loader, name)]
    if lacks:
        msg = f"{type(loader).__name__} is not a DataLoader: it has no {lacks[0]}"
        raise PlanError(msg)
    size = _batch_size(loader)
    if size is None:
        msg = "the loader does not batch, or hides its batch size; give it a batch_size"
        raise PlanError(msg)
    sampler = getattr(loader, "batch_sampler", None)
    return Settings(
        batch_size=size,
        workers=int(loader.num_workers),
        prefetch=int(getattr(loader, "prefetch_factor", None) or PREFETCH),
        pin_memory=bool(getattr(loader, "pin_memory", False)),
        persistent=bool(getattr(loader, "persistent_workers", False)),
        drop_last=bool(getattr(loader, "drop_last", getattr(sampler, "drop_last", False))),
        in_order=bool(getattr(loader, "in_order", True)),
        samples=_length(getattr(loader, "sampler", None)) or _length(loader.dataset),
    )


def _batch_size(loader: Loader) -> int | None:
    """Return the batch size of a loader or of its batch sampler; None if it has none."""
    sampler = getattr(loader, "batch_sampler", None)
    size = getattr(loader, "batch_size", None) or getattr(sampler, "batch_size", None)
    return size if isinstance(size, int) and size > 0 else None


def _length(thing: object) -> int | None:
    """Return ``len(thing)``; None if it has no length (iterable data set, infinite sampler)."""
    try:
        return len(thing) or None  # type: ignore[arg-type] # whether it has a length is the question
    except (TypeError, NotImplementedError):
        return None


def measure(loader: Loader, batches: int, seconds: Seconds) -> list[Timed]:
    """Time a loader with one worker, at its batch size and, if it can be changed, at a smaller one.

    Parameters
    ----------
    loader : DataLoader
        The loader; a copy of it runs, it is not changed.
    batches : int
        Number of batches timed at each size, at least `MIN_BATCHES`.
    seconds : float
        Time after which fewer batches suffice [s].

    Raises
    ------
    PlanError
        If the loader fails, or yields too few batches.
    """
    size = settings(loader).batch_size
    sizes = [size, max(1, size // _SIZE_RATIO)] if _resizes(loader) else [size]
    found = []
    for chosen in dict.fromkeys(sizes):
        try:
            clone = one_worker(loader, chosen)
            found.append(_timed(clone, chosen, batches, seconds / len(sizes)))
        except PlanError:
            raise
        except Exception as error:
            # The user's code may raise anything, in this process or in a worker.
            lines = str(error).strip().splitlines() or [""]
            msg = f"the loader failed with one worker: {type(error).__name__}: {lines[-1]}"
            raise PlanError(msg) from error
    return found


def _resizes(loader: Loader) -> bool:
    sampler = getattr(loader, "batch_sampler", None)
    plain = type(sampler).__name__ == "BatchSampler"
    return plain and isinstance(getattr(sampler, "batch_size", None), int)


def one_worker(loader: Loader, size: int) -> Loader:
    """Return a copy of a loader with one worker and batches of `size`.

    A DataLoader rejects changes of some attributes after construction, as a running iterator would
    ignore them. They are safe in a copy without an iterator.
    """
    clone = copy.copy(loader)
    changes: dict[str, object] = {
        "num_workers": 1,
        "prefetch_factor": PREFETCH,
        "persistent_workers": False,
        "_iterator": None,
    }
    if size != settings(loader).batch_size:
        sampler = copy.copy(loader.batch_sampler)
        sampler.batch_size = size
        changes |= {"batch_sampler": sampler, "batch_size": size}
    for name, value in changes.items():
        object.__setattr__(clone, name, value)
    return clone


@dataclass(slots=True)
class _Run:
    """A running iterator over a loader with one worker, with the worker's process id."""

    loader: Loader
    batches: Iterator[object] = field(init=False)
    worker: int | None = field(init=False)
    first: Seconds = field(init=False)
    latest: object = field(init=False)

    def __post_init__(self) -> None:
        others = {child.pid for child in multiprocessing.active_children()}
        start = time.perf_counter()
        self.batches = iter(self.loader)
        self.latest = next(self.batches)
        self.first = time.perf_counter() - start
        new = [c.pid for c in multiprocessing.active_children() if c.pid not in others]
        self.worker = new[0] if len(new) == 1 else None

    def take(self) -> Seconds:
        """Fetch the next batch; return the time it took [s]."""
        start = time.perf_counter()
        # Kept as in a training loop: the preceding batch is freed only now.
        self.latest = next(self.batches)
        return time.perf_counter() - start

    def used(self) -> Usage | None:
        return None if self.worker is None else usage(self.worker)


def _timed(loader: Loader, size: int, batches: int, seconds: Seconds) -> Timed:
    length = _length(loader)
    needed = 1 + 2 * PREFETCH + 2 * MIN_BATCHES
    if length is not None and length < needed:
        msg = f"the loader gives {length} batches of {size}; measuring takes {needed} at least"
        raise PlanError(msg)
    # The last batches of an epoch are ready before they are requested.
    spare = math.inf if length is None else length - needed
    count = int(min(batches, MIN_BATCHES + spare / 2))
    taken_count = int(min(_MAX_TAKEN, MIN_BATCHES + spare / 2))
    try:
        run = _Run(loader)
        for _ in range(PREFETCH):
            run.take()
        before = run.used()
        made = list(_until(seconds * _SHARE_OF_TIME, (run.take() for _ in range(count))))
        after = run.used()
        pause = _PAUSE_RATIO * statistics.fmean(made)
        waits = (_later(run, pause) for _ in range(taken_count))
        taken = statistics.median(_until(seconds * (1.0 - _SHARE_OF_TIME), waits))
    except (StopIteration, statistics.StatisticsError):
        msg = f"the loader ended before {needed} batches of {size}"
        raise PlanError(msg) from None
    held = None if run.worker is None else own_memory(run.worker)
    found = Timed(
        size=size,
        count=len(made),
        made=tuple(made),
        taken=taken,
        first=run.first,
        held=held,
        batch_bytes=bytes_of(run.latest),
        **_of_worker(before, after, made),
    )
    del run
    return found


def _later(run: _Run, pause: Seconds) -> Seconds:
    """Return the time to fetch a batch that is long ready, without waiting for a core [s]."""
    time.sleep(pause)
    before = in_line()
    took = run.take()
    return max(0.0, took - (in_line() - before))


def _until(seconds: Seconds, times: Iterator[Seconds]) -> Iterator[Seconds]:
    """Yield `times` until `seconds` have passed and at least `MIN_BATCHES` are yielded."""
    end = time.monotonic() + seconds
    for number in itertools.count(1):
        try:
            yield next(times)
        except (StopIteration, RuntimeError) as error:
            # StopIteration inside a generator arrives as a RuntimeError.
            if isinstance(error, RuntimeError) and not isinstance(error.__cause__, StopIteration):
                raise
            return
        if number >= MIN_BATCHES and time.monotonic() > end:
            return


def _of_worker(
    before: Usage | None, after: Usage | None, made: Sequence[Seconds]
) -> dict[str, float]:
    """Return the worker's means per batch between two measurements of its usage.

    Empty if the usage is unknown.
    """
    if before is None or after is None:
        return {}
    spent, count = after.since(before), len(made)
    blocked = max(0.0, sum(made) - spent.running - spent.waiting)
    return {
        "cpu": spent.running / count,
        "blocked": blocked / count,
        "read": spent.read / count,
    }


def bytes_of(batch: object) -> Bytes:
    """Return the size of all tensors and arrays in a batch, however nested [B]."""
    size, items = getattr(batch, "element_size", None), getattr(batch, "nelement", None)
    if callable(size) and callable(items):
        return float(size() * items())
    if isinstance(batch, bytes | bytearray | memoryview):
        return float(len(batch))
    if isinstance(batch, Mapping):
        return sum(bytes_of(value) for value in batch.values())
    if isinstance(batch, list | tuple | set):
        return sum(bytes_of(value) for value in batch)
    held = getattr(batch, "nbytes", 0)
    if not held and hasattr(batch, "__dict__"):
        return sum(bytes_of(value) for value in vars(batch).values())
    return float(held)


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the cost per sample and the fixed cost per batch, from one or two batch sizes.

    Parameters
    ----------
    points : sequence of (size, cost)
        Batch size, and cost of a batch [s].

    Returns
    -------
    tuple of float
        Cost per sample and per batch, neither negative [s].

    Examples
    --------
    >>> line([(8.0, 10.0), (2.0, 4.0)]), line([(8.0, 16.0)]), line([(8.0, 16.0), (2.0, 3.0)])
    ((1.0, 2.0), (2.0, 0.0), (2.0, 0.0))
    """
    size, cost = points[0]
    if len(points) > 1:
        other, smaller = points[1]
        slope = (cost - smaller) / (size - other)
        if 0.0 <= slope <= cost / size:
            return slope, cost - slope * size
        if slope < 0.0:
            return 0.0, (cost + smaller) / 2.0
    return cost / size, 0.0
