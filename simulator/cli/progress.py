"""A progress line for long runs, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

QUIET_FOR: Final = 1.0
"""A run shorter than this shows nothing [s]."""
EVERY: Final = 0.2
"""Time between two updates [s]."""
WIDTH: Final = 40
"""Columns of the bar."""


@contextmanager
def progress_line(label: str) -> Iterator[Callable[[float], None] | None]:
    """Yield a function that takes the finished fraction (0..1), or None off a terminal.

    The line shows on standard error once the run has lasted `QUIET_FOR` and is wiped at the end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line(label)
    try:
        yield line.show
    finally:
        line.wipe()


class _Line:
    """One line of the terminal, rewritten in place."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.due = time.monotonic() + QUIET_FOR
        self.shown = False

    def show(self, fraction: float) -> None:
        """Draw the bar if an update is due."""
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + EVERY
        self.shown = True
        done = round(WIDTH * min(1.0, max(0.0, fraction)))
        bar = "#" * done + "." * (WIDTH - done)
        sys.stderr.write(f"\r{self.label} [{bar}] {fraction:4.0%}")
        sys.stderr.flush()

    def wipe(self) -> None:
        """Leave nothing behind."""
        if self.shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
