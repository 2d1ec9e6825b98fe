"""Host memory: copy bandwidth of numpy, with one thread and with one thread per core."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator import units
from simulator.probe.machine import Machine
from simulator.probe.reading import Found, Reading, Say, repeat
from simulator.units import BytesPerSecond, Seconds

BUFFER: Final = units.parse("64 MiB", units.BYTE)
"""Size of each thread's copy, larger than most CPU caches [B]."""
ROUNDS: Final = 3
"""Number of runs, of which the best counts, as other programs only reduce bandwidth."""
_RAM_SHARE: Final = 0.05
"""Maximum share of RAM for the buffers."""
_MOVED: Final = 2.0
"""Bytes read and written for each byte copied."""

Buffers = list[tuple[NDArray[np.uint8], NDArray[np.uint8]]]


def measure(machine: Machine, seconds: Seconds, say: Say) -> Found:
    """Measure the copy bandwidth, read plus written, with one thread and with one thread per core.

    Parameters
    ----------
    machine : Machine
        The machine, for its number of cores and its RAM.
    seconds : float
        Total time [s].
    say : callable
        Called with each line of progress.
    """
    say("memory: copying")
    size = int(min(BUFFER, _RAM_SHARE * machine.ram / (2.0 * machine.cores)))
    buffers = [
        (np.ones(size, dtype=np.uint8), np.ones(size, dtype=np.uint8)) for _ in range(machine.cores)
    ]
    levels = {"copy_one_core": 1, "copy_all_cores": machine.cores}
    each = seconds / (len(levels) * ROUNDS)
    return Found(
        readings=tuple(
            Reading(
                device="memory",
                key=key,
                value=max(_rate(buffers[:threads], each) for _ in range(ROUNDS)),
                unit=units.BYTE_PER_SECOND,
                note=f"read plus written; numpy, {threads} thread{'s' * (threads > 1)}, "
                f"{units.show(size, units.BYTE)} each, best of {ROUNDS}",
            )
            for key, threads in levels.items()
        )
    )


def _rate(buffers: Buffers, seconds: Seconds) -> BytesPerSecond:
    with ThreadPoolExecutor(len(buffers)) as pool:
        start = time.perf_counter()
        jobs = [pool.submit(repeat, partial(np.copyto, *pair), seconds) for pair in buffers]
        copied = sum(job.result()[0] for job in jobs) * buffers[0][0].nbytes
        return _MOVED * copied / (time.perf_counter() - start)
