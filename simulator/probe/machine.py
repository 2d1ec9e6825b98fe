"""The machine as the operating system shows it: processors, RAM, load, processes, packages."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from simulator import units
from simulator.units import Bytes, Seconds
from simulator.version import __version__

_KIB: Final = units.parse("1 KiB", units.BYTE)
_ROOT: Final = Path("/")
_IDLE: Final = slice(3, 5)
"""Where /proc/stat counts idle time and waiting for disks."""
_COUNTED: Final = 8
"""Columns of /proc/stat that add up to all time: user to steal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Processors and RAM that this process may use.

    `threads` and `cores` are those this process may run on, `ram` what it may have: a container's
    limits count. `virtual`: a hypervisor runs below, so that cores may be shared unseen.
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
    """Return the machine as /proc and /sys below `root` show it.

    Where they don't exist (macOS), Python's own view is used: one socket, a core a thread.
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
    """Return physical cores and sockets behind the threads that may be used."""
    cores, sockets = set(), set()
    for cpu in allowed:
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        socket = _text(folder / "physical_package_id").strip() or "0"
        sockets.add(socket)
        cores.add((socket, _text(folder / "core_id").strip() or f"cpu{cpu}"))
    return len(cores), len(sockets)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Return control groups of this process, from its own up to the whole machine.

    Version 2, then 1.
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
    """Return CPUs that control groups allow; None if there is no limit."""
    found = []
    for folder in _groups(root, "cpu"):
        now = _text(folder / "cpu.max").split()
        old = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        quota, period = [*now, "", ""][:2] if now else old
        if quota.isdecimal() and period.isdecimal():
            found.append(int(quota) / int(period))
    return min(found, default=None)


def _memory_limit(root: Path) -> Bytes | None:
    """Return memory that control groups allow; None if there is no limit."""
    texts = [
        _text(folder / name).strip()
        for folder in _groups(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    return min((float(text) for text in texts if text.isdecimal()), default=None)


def _installed(root: Path) -> Bytes:
    """Return RAM the operating system has."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    if match:
        return int(match[1]) * _KIB
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """CPU seconds used since start: of the whole machine, of this program, taken by hosts."""

    machine: float
    own: float
    stolen: float

    @classmethod
    def now(cls, root: Path = _ROOT) -> Busy | None:
        """Return the current state; None where it is unknown."""
        fields = _text(root / "proc/stat").partition("\n")[0].split()[1:]
        if len(fields) < _COUNTED:
            return None
        ticks = [float(field) for field in fields[:_COUNTED]]
        times, second = os.times(), os.sysconf("SC_CLK_TCK")
        busy = sum(ticks) - sum(ticks[_IDLE])
        own = times.user + times.system + times.children_user + times.children_system
        return cls(machine=busy / second, own=own, stolen=ticks[-1] / second)

    def others_since(self, before: Busy, elapsed: float) -> tuple[float, float]:
        """Return cores that others kept busy since `before`, and cores that the host took away."""
        stolen = (self.stolen - before.stolen) / elapsed
        others = (self.machine - before.machine - (self.own - before.own)) / elapsed - stolen
        return max(0.0, others), max(0.0, stolen)


_PROC: Final = Path("/proc")
_NANOSECOND: Final = units.parse("1 ns", units.SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Since a process began, all its threads together: CPU time, time in line for a core, reads.

    `read` counts what read calls returned, from a disk or from the page cache; files that are
    mapped into memory are not in it.
    """

    running: Seconds
    waiting: Seconds
    read: Bytes

    def since(self, before: Usage) -> Usage:
        """Return the difference from `before`."""
        return Usage(
            running=self.running - before.running,
            waiting=self.waiting - before.waiting,
            read=self.read - before.read,
        )


def usage(pid: int, root: Path = _PROC) -> Usage | None:
    """Return the resources that `pid` used so far; None where the system doesn't say."""
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
    """Return the time this thread waited for a core so far; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int((root / "thread-self/schedstat").read_text().split()[1]) * _NANOSECOND
    return 0.0


def own_memory(pid: int, root: Path = _PROC) -> Bytes | None:
    """Return memory that the process `pid` does not share [B].

    None where the system doesn't say.
    """
    with suppress(OSError):
        text = (root / f"{pid}/smaps_rollup").read_text()
        parts = re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.MULTILINE)
        if parts:
            return sum(int(part) for part in parts) * _KIB
    return None


DISTRIBUTION: Final = "plan-simulator"
"""What plan is called where packages are listed."""
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that plan builds on; `version` is None where it is not installed.

    `extra` names the group of optional packages it belongs to; empty: it is always needed.
    """

    name: str
    version: str | None
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Versions, and where plan itself lies."""

    version: str
    python: str
    system: str
    place: Path
    packages: tuple[Package, ...]

    @property
    def missing(self) -> tuple[Package, ...]:
        """Packages that are needed and not there."""
        return tuple(p for p in self.packages if not p.extra and p.version is None)


def installation() -> Installation:
    """Look at this installation; nothing of it is imported."""
    return Installation(
        version=__version__,
        python=platform.python_version(),
        system=platform.platform(terse=True),
        place=Path(sys.modules[__name__].__file__ or "").parents[1],
        packages=tuple(_packages()),
    )


def _packages() -> Iterator[Package]:
    """Return the requirements of the installed distribution; nothing in an uninstalled checkout."""
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
