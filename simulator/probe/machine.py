"""The machine as the operating system reports it: processors, RAM, load, processes, packages."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

from simulator import units
from simulator.records import dataclass
from simulator.units import Bytes, Seconds
from simulator.version import __version__

_KIB: Final = units.parse("1 KiB", units.BYTE)
_ROOT: Final = Path("/")
_IDLE: Final = slice(3, 5)
"""Columns of /proc/stat with idle time and I/O wait."""
_COUNTED: Final = 8
"""Number of columns of /proc/stat that add up to all time, from user to steal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Processors and RAM available to this process.

    `threads` and `cores` are those in its CPU affinity, `ram` its memory; limits of a container are
    applied and listed in `limits`. `virtual`: a hypervisor may share the cores with other guests.
    """

    host: str
    cpu: str
    sockets: int
    cores: int
    threads: int
    ram: Bytes
    virtual: bool = False
    limits: tuple[str, ...] = ()


def look(root: Path = _ROOT) -> Machine:
    """Return the machine as /proc and /sys below `root` report it.

    Where they don't exist (macOS), Python's view is used: one socket, one hardware thread per core.
    """
    allowed, kept = _allowed(), []
    info = _text(root / "proc/cpuinfo")
    quota = _quota(root)
    threads = len(allowed)
    if quota is not None and quota < threads:
        kept.append(f"a container's limit of {quota:g} CPUs")
        threads = max(1, round(quota))
    cores, sockets = _topology(root, allowed)
    ram, limit = _installed(root), _memory_limit(root)
    if limit is not None and limit < ram:
        kept.append(f"a container's limit of {units.show(limit, units.BYTE)} of memory")
        ram = limit
    return Machine(
        host=platform.node() or "this-machine",
        cpu=_field(info, "model name") or platform.processor() or platform.machine(),
        sockets=sockets,
        cores=min(cores, threads),
        threads=threads,
        ram=ram,
        virtual="hypervisor" in _field(info, "flags").split(),
        limits=tuple(kept),
    )


def _allowed() -> frozenset[int]:
    ask = getattr(os, "sched_getaffinity", None)
    return frozenset(range(os.cpu_count() or 1) if ask is None else ask(0))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def _topology(root: Path, allowed: frozenset[int]) -> tuple[int, int]:
    """Return the number of physical cores and of sockets of the hardware threads `allowed`."""
    cores, sockets = set(), set()
    for cpu in allowed:
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        socket = _text(folder / "physical_package_id").strip() or "0"
        sockets.add(socket)
        cores.add((socket, _text(folder / "core_id").strip() or f"cpu{cpu}"))
    return len(cores), len(sockets)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups, from its own up to the root.

    Version 2 of control groups has one hierarchy, version 1 one for each controller.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, names, path = [*line.split(":", 2), "", ""][:3]
        if number != "0" and controller not in names.split(","):
            continue
        top = root / "sys/fs/cgroup"
        top = top if number == "0" else top / controller
        own = top / path.lstrip("/")
        yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(top))


def _quota(root: Path) -> float | None:
    """Return the number of CPUs that control groups allow; None if there is no limit."""
    found = []
    for folder in _groups(root, "cpu"):
        now = _text(folder / "cpu.max").split()
        old = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        quota, period = [*now, "", ""][:2] if now else old
        if quota.isdecimal() and period.isdecimal():
            found.append(int(quota) / int(period))
    return min(found, default=None)


def _memory_limit(root: Path) -> Bytes | None:
    """Return the memory that control groups allow [B]; None if there is no limit."""
    texts = [
        _text(folder / name).strip()
        for folder in _groups(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    return min((float(text) for text in texts if text.isdecimal()), default=None)


def _installed(root: Path) -> Bytes:
    """Return the RAM of the operating system [B]."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    if match:
        return int(match[1]) * _KIB
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """CPU seconds used by the whole machine and by this process, and stolen by the hypervisor."""

    machine: float
    own: float
    stolen: float

    @classmethod
    def now(cls, root: Path = _ROOT) -> Busy | None:
        """Return the current counters; None if they are unknown."""
        fields = _text(root / "proc/stat").partition("\n")[0].split()[1:]
        if len(fields) < _COUNTED:
            return None
        ticks = [float(field) for field in fields[:_COUNTED]]
        times, second = os.times(), os.sysconf("SC_CLK_TCK")
        busy = sum(ticks) - sum(ticks[_IDLE])
        own = times.user + times.system + times.children_user + times.children_system
        return cls(machine=busy / second, own=own, stolen=ticks[-1] / second)

    def others_since(self, before: Busy, elapsed: float) -> tuple[float, float]:
        """Return the mean number of cores used by other programs and stolen by the hypervisor.

        The means are over the `elapsed` seconds since `before`.
        """
        stolen = (self.stolen - before.stolen) / elapsed
        others = (self.machine - before.machine - (self.own - before.own)) / elapsed - stolen
        return max(0.0, others), max(0.0, stolen)


_PROC: Final = Path("/proc")
_NANOSECOND: Final = units.parse("1 ns", units.SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Resources that all threads of a process have used since its start.

    `running` is CPU time, `waiting` time in the run queue [s]. `read` counts bytes returned by read
    calls, from a disk or the page cache; memory-mapped files are not included.
    """

    running: Seconds
    waiting: Seconds
    read: Bytes

    def since(self, before: Usage) -> Usage:
        """Return the usage since `before`."""
        return Usage(
            running=self.running - before.running,
            waiting=self.waiting - before.waiting,
            read=self.read - before.read,
        )


def usage(pid: int, root: Path = _PROC) -> Usage | None:
    """Return the resources used by process `pid`; None if the system doesn't report them."""
    with suppress(OSError, ValueError, IndexError):
        tasks = [path.read_text().split() for path in (root / f"{pid}/task").glob("*/schedstat")]
        match = re.search(r"^rchar: (\d+)", (root / f"{pid}/io").read_text(), re.MULTILINE)
        if tasks:
            return Usage(
                running=sum(int(task[0]) for task in tasks) * _NANOSECOND,
                waiting=sum(int(task[1]) for task in tasks) * _NANOSECOND,
                read=float(match[1]) if match else 0.0,
            )
    return None


def in_line(root: Path = _PROC) -> Seconds:
    """Return the time this thread has waited for a core [s]; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int((root / "thread-self/schedstat").read_text().split()[1]) * _NANOSECOND
    return 0.0


def own_memory(pid: int, root: Path = _PROC) -> Bytes | None:
    """Return the private memory of process `pid` [B]; None if the system doesn't report it."""
    with suppress(OSError):
        text = (root / f"{pid}/smaps_rollup").read_text()
        parts = re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.MULTILINE)
        if parts:
            return sum(int(part) for part in parts) * _KIB
    return None


DISTRIBUTION: Final = "plan-simulator"
"""Name of plan as an installed distribution."""
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A Python package that plan requires; `version` is None if it is not installed.

    `extra` names the group of optional packages it belongs to; empty if it is always required.
    """

    name: str
    version: str | None
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Versions of plan, Python, the system and packages; `place` is plan's folder."""

    version: str
    python: str
    system: str
    place: Path
    packages: tuple[Package, ...]

    @property
    def missing(self) -> tuple[Package, ...]:
        """Required packages that are not installed."""
        return tuple(p for p in self.packages if not p.extra and p.version is None)


def installation() -> Installation:
    """Return versions and packages of this installation; packages are not imported."""
    return Installation(
        version=__version__,
        python=platform.python_version(),
        system=platform.platform(terse=True),
        place=Path(sys.modules[__name__].__file__ or "").parents[1],
        packages=tuple(_packages()),
    )


def _packages() -> Iterator[Package]:
    """Yield the requirements of the installed distribution; none for an uninstalled checkout."""
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return
    for text in required:
        name, extra = _NAME.match(text), _EXTRA.search(text)
        if name is not None:
            yield Package(
                name=name.group(),
                version=_version(name.group()),
                extra="" if extra is None else extra.group(1),
            )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
