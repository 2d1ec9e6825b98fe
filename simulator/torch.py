"""Measure your own DataLoader and training step, for the workload section of a scenario.

PyTorch is imported only where a device has to be waited for; the extra ``torch`` installs it.

::

    from simulator.torch import profile_loader, profile_step

    profile = profile_loader(loader)
    steps = profile_step(train_one_batch, batch_size=64)
    print(profile.toml(steps=[steps]))
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from simulator import units
from simulator.errors import PlanError
from simulator.probe import loader as probe
from simulator.probe.loader import Loader, Settings, Timed
from simulator.probe.machine import Busy, look
from simulator.reading.hardware.profile_text import binary_size, comment, quantity
from simulator.records import dataclass
from simulator.units import Bytes, Seconds
from simulator.version import __version__

_WARM_UP: Final = 3
_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_INSTANT: Final = units.parse("1 ns", units.SECOND)
_MIN_BYTES_READ: Final = 64.0
"""Fewest bytes a sample that count as read: less is what processes tell each other [B]."""
_MAX_BUSY_CORES: Final = 0.1
"""Cores that others may keep busy before it is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProfile:
    """Measured training steps of one batch size: `times` of the steps [s], on `device`."""

    batch_size: int
    times: tuple[Seconds, ...]
    device: str
    source: str
    date: str

    @property
    def time(self) -> Seconds:
        """Median time of a step [s]."""
        return statistics.median(self.times)

    def toml(self) -> str:
        """Return an entry of ``[[model.step_times]]``, with where it is from."""
        low, high = (quantity(value, units.SECOND) for value in (min(self.times), max(self.times)))
        heading = f"{self.source}, {self.date}: {self.device}, median of {len(self.times)} steps"
        heading = f"{heading}, {low} to {high}".replace('"', "")
        return (
            f"{comment(heading)}\n[[model.step_times]]\nbatch_size = {self.batch_size}\n"
            f"time = {quantity(self.time, units.SECOND)}\n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadProfile:
    """Costs of a DataLoader, measured with one worker.

    CPU times are core-seconds of `sample_time` for each sample and `batch_time` for each batch
    itself; `blocked_time` is the time a sample waits for reads; `receive_per_batch` and
    `receive_per_sample` are what the main process takes for a ready batch. `notes` list
    assumptions and uncertain figures.
    """

    settings: Settings
    sample_time: Seconds
    batch_time: Seconds
    blocked_time: Seconds | None
    receive_per_batch: Seconds
    receive_per_sample: Seconds
    worker_start: Seconds
    worker_memory: Bytes | None
    sample_bytes: Bytes
    stored_bytes: Bytes | None
    runs: tuple[Timed, ...]
    source: str
    date: str
    notes: tuple[str, ...] = ()

    def toml(self, steps: Sequence[StepProfile] = ()) -> str:
        """Return the ``[data]`` and ``[input]`` sections of a scenario, and measured steps."""
        lines = [f"{self.source}, {self.date}.", *map(_told, self.runs), *self.notes]
        lines.append(f"train.batch_size was {self.settings.batch_size}.")
        parts = [
            comment("\n".join(lines)),
            "",
            "[data]",
            *_data(self),
            "",
            "[input]",
            *_input(self),
        ]
        parts += [f"\n{step.toml().rstrip()}" for step in steps]
        return "\n".join(parts) + "\n"


def _told(run: Timed) -> str:
    least, most = (units.show(value, units.SECOND) for value in (min(run.made), max(run.made)))
    mean = units.show(run.wall, units.SECOND)
    return (
        f"Batches of {run.size}: one worker makes one in {mean} "
        f"({least} to {most}, {run.count} batches)."
    )


def _data(found: WorkloadProfile) -> Iterator[str]:
    samples = found.settings.samples
    if samples is None:
        yield "# samples = ?  # a stream of unknown length: say how many make an epoch"
    else:
        yield f"samples = {samples}"
    stored = found.stored_bytes
    size = found.sample_bytes if stored is None else stored
    why = "as a finished sample: reads were not seen" if stored is None else "as read by the worker"
    yield f"bytes_per_sample = {quantity(max(1.0, size), units.BYTE)}  # {why}"
    if found.blocked_time is not None:
        blocked = quantity(max(_INSTANT, found.blocked_time), units.SECOND)
        yield f"read_time = {blocked}  # waited; leave out to let the store's profile say"


def _input(found: WorkloadProfile) -> Iterator[str]:
    settings = found.settings
    yield 'loader = "pytorch"'
    yield f"workers = {settings.workers}"
    yield f"prefetch = {settings.prefetch}"
    for key, value in (
        ("pin_memory", settings.pin_memory),
        ("in_order", settings.in_order),
        ("persistent_workers", settings.persistent),
        ("drop_last", settings.drop_last),
    ):
        yield f"{key} = {str(value).lower()}"
    yield f"decode = {quantity(found.sample_time, units.SECOND)}  # all that is done to a sample"
    for key in ("receive_per_batch", "receive_per_sample", "worker_start"):
        yield f"{key} = {quantity(getattr(found, key), units.SECOND)}"
    yield f"per_batch = {quantity(found.batch_time, units.SECOND)}"
    if found.worker_memory is not None:
        yield f"worker_memory = {quantity(found.worker_memory, units.BYTE)}"
    shown = binary_size(found.sample_bytes)
    yield f'output_bytes_per_sample = "{shown}"'


def profile_loader(
    loader: Loader,
    *,
    batches: int = 20,
    seconds: Seconds = 30.0,
    bytes_per_sample: Bytes | None = None,
) -> WorkloadProfile:
    """Measure the costs of a DataLoader with any number of workers.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
        A copy of it with one worker is run, at its batch size and, where its batch sampler is a
        plain one, at a quarter of it: two sizes tell what a sample costs from what a batch does.
    batches : int, optional
        Batches timed at each size, 3 at least.
    seconds : float, optional
        When to make do with fewer [s].
    bytes_per_sample : float, optional
        Size of a sample on the store [B]; by default what the worker was seen to read.

    Returns
    -------
    WorkloadProfile
        Costs and settings; `WorkloadProfile.toml` gives the sections of a scenario.

    Raises
    ------
    PlanError
        If it is not a DataLoader, fails, or gives too few batches.

    Notes
    -----
    What one sample of a batch shares with another (reading ahead, a cache that warms up) is seen
    as it is in the first batches of an epoch. Run it on a machine that does nothing else.
    """
    if batches < probe.MIN_BATCHES:
        msg = f"batches is {batches}; {probe.MIN_BATCHES} at least are needed"
        raise PlanError(msg)
    settings, before, start = probe.settings(loader), Busy.now(), time.monotonic()
    runs = probe.measure(loader, batches, seconds)
    others = _others(before, start)
    return _profile(settings, runs, bytes_per_sample, others)


def _others(before: Busy | None, start: float) -> float:
    after = Busy.now()
    if before is None or after is None:
        return 0.0
    return after.others_since(before, max(_MILLISECOND, time.monotonic() - start))[0]


def _profile(
    settings: Settings, runs: Sequence[Timed], given: Bytes | None, others: float
) -> WorkloadProfile:
    main = runs[0]
    known = all(run.cpu is not None for run in runs)
    costs = [(float(run.size), run.wall if run.cpu is None else run.cpu) for run in runs]
    sample_time, batch_time = probe.line(costs)
    receive, receive_batch = probe.line([(float(run.size), run.taken) for run in runs])
    seen = None if main.read is None else main.read / main.size
    stored = given or (seen if seen is not None and seen >= _MIN_BYTES_READ else None)
    return WorkloadProfile(
        settings=settings,
        sample_time=sample_time,
        batch_time=batch_time,
        blocked_time=main.blocked / main.size if known and main.blocked is not None else None,
        receive_per_batch=receive_batch,
        receive_per_sample=receive,
        worker_start=max(0.0, min(run.first - run.wall for run in runs)),
        worker_memory=main.held,
        sample_bytes=main.batch_bytes / main.size,
        stored_bytes=stored,
        runs=tuple(runs),
        source=_source("profile_loader"),
        date=_today(),
        notes=tuple(_notes(settings, runs, others)),
    )


def _notes(settings: Settings, runs: Sequence[Timed], others: float) -> Iterator[str]:
    if others > _MAX_BUSY_CORES:
        yield f"Other programs kept {others:.1f} cores busy; measure again on a quiet machine."
    if len(runs) == 1:
        yield "One batch size: the cost of a batch itself is part of decode."
    if any(run.cpu is None for run in runs):
        yield "This system doesn't say what a worker uses: decode is time on the clock, waits too."
    if settings.workers == 0:
        yield "The loader has no workers; costs were measured with one."


def profile_step(
    step: Callable[[], object], *, batch_size: int, repeats: int = 20, warm_up: int = _WARM_UP
) -> StepProfile:
    """Time a training step that has its batch already.

    Parameters
    ----------
    step : callable
        Runs one step: forward, backward and optimizer, without fetching data.
    batch_size : int
        Samples the device takes in it.
    repeats : int, optional
        Steps timed.
    warm_up : int, optional
        Steps run before, for compilation, caches and memory pools.

    Returns
    -------
    StepProfile
        Times of the steps; with CUDA by the device's own clock, so that steps may queue up.

    Raises
    ------
    PlanError
        If there is nothing to time.
    """
    if batch_size < 1 or repeats < 1 or warm_up < 0:
        msg = "batch_size and repeats have to be 1 at least, warm_up 0"
        raise PlanError(msg)
    for _ in range(warm_up):
        step()
    torch = _torch()
    cuda = torch is not None and torch.cuda.is_available()
    times = _on_device(torch, step, repeats) if cuda else _on_clock(step, repeats)
    return StepProfile(
        batch_size=batch_size,
        times=tuple(times),
        device=torch.cuda.get_device_name() if torch is not None and cuda else look().cpu,
        source=_source("profile_step"),
        date=_today(),
    )


def _torch() -> Any:  # noqa: ANN401 - the module; it has no types here
    there = "torch" in sys.modules and find_spec("torch") is not None
    return import_module("torch") if there else None


def _on_clock(step: Callable[[], object], repeats: int) -> Iterable[Seconds]:
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        yield time.perf_counter() - start


def _on_device(
    torch: Any,  # noqa: ANN401 - the module; it has no types here
    step: Callable[[], object],
    repeats: int,
) -> Iterable[Seconds]:
    """Return the times between device events [s]; the host may run ahead of the device."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    for before, after in itertools.pairwise(events):
        yield float(before.elapsed_time(after)) * _MILLISECOND


def _source(function: str) -> str:
    return f"measured by simulator.torch.{function}, plan {__version__}, on {look().cpu}"


def _today() -> str:
    return datetime.now(tz=UTC).date().isoformat()
