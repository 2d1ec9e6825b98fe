"""The complete probe: selected devices, a time for each, and the load of the machine meanwhile."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from simulator.probe import cpu, disk, gpu, machine, memory
from simulator.probe.disk import Place
from simulator.probe.machine import Busy, Machine
from simulator.probe.reading import Found, Reading, Say, joined
from simulator.records import dataclass
from simulator.units import Seconds
from simulator.version import __version__

DEVICES: Final = ("disk", "memory", "cpu", "gpu")
"""Devices in the order of measurement."""
_PARTS: Final[Mapping[str, float]] = {"disk": 4.0, "memory": 1.0, "cpu": 3.0, "gpu": 4.0}
"""Relative time for each device."""
_LINUX: Final = sys.platform == "linux"
"""True on Linux, where fio can open the unlinked test file."""
_MAX_BUSY_CORES: Final = 0.1
"""Cores in use by other programs above which a warning is given."""

Measure = Callable[[Seconds, Say], Found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Devices to measure and total time [s]; `place` is the folder of the disk's test file."""

    devices: tuple[str, ...]
    seconds: Seconds
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """Product, memory [B], number and driver of the measured accelerators."""

    product: str
    memory: float
    count: int
    software: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """All readings of a machine.

    `others` is the mean number of cores that other programs used during the measurement, `stolen`
    the same for the hypervisor; None if unknown.
    """

    machine: Machine
    found: Found
    wanted: Wanted
    date: str
    accelerator: Accelerator | None = None
    others: float | None = None
    stolen: float | None = None

    @property
    def source(self) -> str:
        """Citation of this measurement, for profiles."""
        return f"measured by plan probe {__version__} on {self.machine.cpu}"

    def reading(self, device: str, key: str) -> Reading | None:
        """Return the reading `key` of `device`; None if it was not measured."""
        here = (r for r in self.found.readings if r.device == device and r.key == key)
        return next(here, None)


def probe(
    wanted: Wanted,
    say: Say,
    find_gpu: Callable[[], gpu.Device | str] = gpu.find,
) -> Probed:
    """Measure the selected devices of this machine.

    Parameters
    ----------
    wanted : Wanted
        Devices, total time and folder of the test file.
    say : callable
        Called with each line of progress.
    find_gpu : callable, optional
        Returns the accelerator, or the reason why there is none.

    Raises
    ------
    InputError
        If the disk's test file cannot be written.
    """
    if "disk" in wanted.devices:
        disk.check(wanted.place)
    here = machine.look()
    device = find_gpu() if "gpu" in wanted.devices else ""
    before, start = Busy.now(), time.monotonic()
    found = joined(_measured(wanted, here, device, say))
    after, elapsed = Busy.now(), time.monotonic() - start
    others, stolen = (None, None)
    if before is not None and after is not None and elapsed > 0.0:
        others, stolen = after.others_since(before, elapsed)
    warnings = [*found.warnings, *_doubts(here, wanted, others, stolen)]
    return Probed(
        machine=here,
        found=Found(readings=found.readings, warnings=tuple(warnings)),
        wanted=wanted,
        date=datetime.now(tz=UTC).date().isoformat(),
        accelerator=None if isinstance(device, str) else _named(device),
        others=others,
        stolen=stolen,
    )


def _named(device: gpu.Device) -> Accelerator:
    return Accelerator(
        product=device.product,
        memory=device.memory,
        count=device.count,
        software=device.software,
    )


def _measured(wanted: Wanted, here: Machine, device: gpu.Device | str, say: Say) -> Iterator[Found]:
    calls: dict[str, Measure] = {
        "disk": lambda seconds, say: disk.measure(
            wanted.place, seconds, say, shutil.which("fio") if _LINUX else None
        ),
        "memory": lambda seconds, say: memory.measure(here, seconds, say),
        "cpu": lambda seconds, say: cpu.measure(here, seconds, say),
    }
    if not isinstance(device, str):
        calls["gpu"] = lambda seconds, say: gpu.measure(device, seconds, say)
    elif device:
        yield Found(warnings=(f"no GPU was measured: {device}",))
    chosen = [name for name in DEVICES if name in wanted.devices and name in calls]
    whole = sum(_PARTS[name] for name in chosen)
    for name in chosen:
        yield calls[name](wanted.seconds * _PARTS[name] / whole, say)


def _doubts(
    here: Machine, wanted: Wanted, others: float | None, stolen: float | None
) -> Iterator[str]:
    if others is not None and others > _MAX_BUSY_CORES:
        yield f"other programs kept {others:.1f} cores busy; measure again on a quiet machine"
    if stolen is not None and stolen > _MAX_BUSY_CORES:
        yield f"the host took {stolen:.1f} cores away meanwhile"
    if here.virtual and "disk" in wanted.devices:
        yield "a virtual machine: its host may keep what was read in memory"
    for limit in here.limits:
        yield f"{limit} counts as what the machine has"
