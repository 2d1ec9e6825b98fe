"""CPU: time to decode an image, and its increase with all cores and threads busy.

Costs are CPU time, not wall time, so that other programs on the machine disturb them less.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnProcess
from typing import Final

from simulator import units
from simulator.errors import PlanError
from simulator.probe import decode
from simulator.probe.machine import Machine
from simulator.probe.reading import SHARE, Found, Reading, Say
from simulator.units import Seconds

START_TIMEOUT: Final = 60.0
"""Timeout for the start of processes [s]."""
_MAX_SHARE: Final = 1.0
"""Maximum plausible share; larger ones are left out."""


def measure(machine: Machine, seconds: Seconds, say: Say) -> Found:
    """Measure decoding with one process, one process per core, and one per hardware thread.

    Parameters
    ----------
    machine : Machine
        The machine, for its number of cores and threads.
    seconds : float
        Time for the measurement, without starting the processes [s].
    say : callable
        Called with each line of progress.

    Returns
    -------
    Found
        CPU time of one image (`decode_time`; without Pillow `inflate_time`), rates,
        `contention` and `smt_worth`.
    """
    jpeg = decode.has_pillow()
    data = decode.sample(jpeg=jpeg)
    counts = sorted({1, machine.cores, machine.threads})
    levels = {}
    for count in counts:
        say(f"cpu: {'decoding JPEG' if jpeg else 'inflating'} in {count} at once")
        levels[count] = run(data, count, seconds / len(counts), jpeg=jpeg)
    found = [*_speeds(levels, len(data), jpeg=jpeg), *_shares(levels, machine)]
    missing = "Pillow is not installed: zlib data were inflated instead of decoding JPEG"
    implausible = [
        f"{reading.key} came out as {reading.value:.2f}, which no profile may say; left out"
        for reading in found
        if reading.unit is SHARE and reading.value > _MAX_SHARE
    ]
    return Found(
        readings=tuple(r for r in found if r.unit is not SHARE or r.value <= _MAX_SHARE),
        warnings=tuple([] if jpeg else [missing]) + tuple(implausible),
    )


def _speeds(
    levels: Mapping[int, tuple[Seconds, float]], size: int, *, jpeg: bool
) -> Iterator[Reading]:
    name = "decode" if jpeg else "inflate"
    what = f"JPEG of {decode.WIDTH} x {decode.HEIGHT}, {units.show(size, units.BYTE)}"
    what = what if jpeg else f"zlib, {units.show(size, units.BYTE)}"
    for processes, (cost, rate) in levels.items():
        users = "one process" if processes == 1 else f"{processes} processes"
        end = "" if processes == 1 else f"_{processes}"
        note = f"CPU time, {what}, {users}"
        yield _reading(f"{name}_time{end}", cost, units.SECOND, note)
        yield _reading(f"{name}_rate{end}", rate, units.PER_SECOND, f"{what}, {users}")


_reading = partial(Reading, "cpu")


def _shares(levels: Mapping[int, tuple[Seconds, float]], machine: Machine) -> Iterator[Reading]:
    """Yield the parameters of `CpuPool`, from the CPU time per image at each level of load.

    `levels` maps the number of processes to CPU time per image [s] and images per second.
    """
    cost = {processes: cost for processes, (cost, _) in levels.items()}
    alone, full = cost[1], cost[machine.cores]
    if machine.cores > 1:
        value, note = contention(full / alone, machine.cores), f"{machine.cores} cores busy"
        yield _reading("contention", value, SHARE, f"CPU time of one picture, {note} over one")
    if machine.threads > machine.cores:
        slower = cost[machine.threads] / full
        value = smt_worth(slower, machine.cores, machine.threads)
        note = f"CPU time of one picture, {machine.threads} threads busy over {machine.cores}"
        yield _reading("smt_worth", value, SHARE, note)


def contention(slowdown: float, cores: int) -> float:
    """Return the relative slowdown of work with all cores busy, the `contention` of `CpuPool`.

    Parameters
    ----------
    slowdown : float
        CPU time with `cores` busy over CPU time with one busy core [1].
    cores : int
        Number of busy cores, at least 2 [1].

    Notes
    -----
    The inverse of `thread_slowdown` at ``n = cores``: ``(slowdown - 1) * cores / (cores - 1)``.

    Examples
    --------
    >>> round(contention(1.35, 8), 6)
    0.4
    """
    return max(0.0, (slowdown - 1.0) * cores / (cores - 1))


def smt_worth(slowdown: float, cores: int, threads: int) -> float:
    """Return the work that a second hardware thread adds to a busy core, as a fraction of a core.

    Parameters
    ----------
    slowdown : float
        CPU time with all `threads` busy over CPU time with all `cores` busy [1].
    cores, threads : int
        Number of physical cores, and of hardware threads (more than cores) [1].

    Notes
    -----
    With all threads busy the machine does the work of ``threads / slowdown`` cores; the excess over
    `cores` is divided by the number of additional threads.

    Examples
    --------
    >>> round(smt_worth(1.6, 8, 16), 6)
    0.25
    """
    return max(0.0, (threads / slowdown - cores) / (threads - cores))


def run(data: bytes, processes: int, seconds: Seconds, *, jpeg: bool) -> tuple[Seconds, float]:
    """Decode in `processes` processes at once; return CPU time per image [s] and images per second.

    Raises
    ------
    PlanError
        If a process ends early.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes)
    started: list[tuple[SpawnProcess, Connection]] = []
    try:
        with _deaf():
            for _ in range(processes):
                ours, theirs = context.Pipe(duplex=False)
                options = {"jpeg": jpeg, "seconds": seconds}
                process = context.Process(
                    target=decode.work, args=(data, barrier, theirs), kwargs=options, daemon=True
                )
                process.start()
                theirs.close()
                started.append((process, ours))
        results = [_result(pipe, seconds) for _, pipe in started]
    finally:
        _end(started)
    count, cpu = sum(r[0] for r in results), sum(r[1] for r in results)
    rate = sum(r[0] / r[2] for r in results)
    return cpu / count, rate


def _result(pipe: Connection, seconds: Seconds) -> decode.Result:
    msg = "a process that measures the CPU ended before its time; is the machine out of memory?"
    if not wait_for([pipe], START_TIMEOUT + seconds):
        raise PlanError(msg)
    try:
        found: decode.Result = pipe.recv()
    except EOFError:
        raise PlanError(msg) from None
    return found


def _end(started: Sequence[tuple[SpawnProcess, Connection]]) -> None:
    for process, pipe in started:
        process.terminate()
        pipe.close()
    for process, _ in started:
        process.join()


@contextmanager
def _deaf() -> Iterator[None]:
    """Context manager: processes started in it ignore SIGINT, as the parent terminates them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
