"""What Linux says of a process: time on a core, time it waited for one, bytes read, own memory."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator import units
from simulator.units import Bytes, Seconds

_PROC: Final = Path("/proc")
_NANOSECOND: Final = units.parse("1 ns", units.SECOND)
_KIB: Final = units.parse("1 KiB", units.BYTE)


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
        """What came on top of `before`."""
        return Usage(
            running=self.running - before.running,
            waiting=self.waiting - before.waiting,
            read=self.read - before.read,
        )


def usage(pid: int, root: Path = _PROC) -> Usage | None:
    """What the process `pid` used so far; None where the system doesn't say."""
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
    """How long this thread waited for a core so far; 0 where the system doesn't say."""
    with suppress(OSError, ValueError, IndexError):
        return int((root / "thread-self/schedstat").read_text().split()[1]) * _NANOSECOND
    return 0.0


def own_memory(pid: int, root: Path = _PROC) -> Bytes | None:
    """Memory that the process `pid` shares with nobody [B]; None where the system doesn't say."""
    with suppress(OSError):
        text = (root / f"{pid}/smaps_rollup").read_text()
        parts = re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.MULTILINE)
        if parts:
            return sum(int(part) for part in parts) * _KIB
    return None
