"""A progress line for long runs: rewritten on a terminal, else a line every 15 s."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

QUIET_FOR: Final = 1.0
"""Time before the line appears [s]."""
EVERY: Final = 0.2
"""Time between two updates [s]."""
WITHOUT_TERMINAL: Final = 15.0
"""Time between two lines without a terminal, and before the first [s]."""
MIN_FRACTION: Final = 0.05
"""Finished share below which the time left is not estimated."""
WIDTH: Final = 40
"""Columns of the bar."""


@contextmanager
def progress_line(label: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the finished fraction (0..1).

    The line shows on standard error once the run has lasted `QUIET_FOR` and is wiped at the end;
    off a terminal a line is written every `WITHOUT_TERMINAL` seconds.
    """
    if not sys.stderr.isatty():
        yield _Lines(label).show
        return
    line = _Line(label)
    try:
        yield line.show
    finally:
        line.wipe()


@contextmanager
def counting_line(label: str) -> Iterator[Callable[[float, str], None]]:
    """Yield a function that takes the finished fraction and counts, and shows the time left.

    Off a terminal it writes a line every `WITHOUT_TERMINAL` seconds.

    The time left assumes that the rest goes as fast as what is done; a search that rules out
    candidates on its way takes less.
    """
    if not sys.stderr.isatty():
        yield _Lines(label).show_counts
        return
    line = _Line(label, width=WIDTH // 2)
    try:
        yield line.show_counts
    finally:
        line.wipe()


class _Line:
    """One line of the terminal, rewritten in place."""

    def __init__(self, label: str, width: int = WIDTH) -> None:
        self.label = label
        self.width = width
        self.started = time.monotonic()
        self.due = self.started + QUIET_FOR
        self.shown = False

    def show(self, fraction: float) -> None:
        """Draw the bar if an update is due."""
        if time.monotonic() >= self.due:
            self._draw(fraction, "")

    def show_counts(self, fraction: float, counts: str) -> None:
        """Draw the bar with counts and the time left, if an update is due."""
        now = time.monotonic()
        if now < self.due:
            return
        left = remaining(now - self.started, fraction)
        self._draw(fraction, f" {counts}{f', {left} left' if left else ''}")

    def _draw(self, fraction: float, behind: str) -> None:
        self.due = time.monotonic() + EVERY
        self.shown = True
        done = round(self.width * min(1.0, max(0.0, fraction)))
        bar = "#" * done + "." * (self.width - done)
        text = f"{self.label} [{bar}] {fraction:4.0%}{behind}"
        room = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{text[:room]}" if behind else f"\r{text}")
        sys.stderr.flush()

    def wipe(self) -> None:
        """Leave nothing behind."""
        if self.shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


class _Lines:
    """Whole lines, for logs and pipes."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.started = time.monotonic()
        self.due = self.started + WITHOUT_TERMINAL

    def show(self, fraction: float) -> None:
        """Write a line if one is due."""
        self.show_counts(fraction, "")

    def show_counts(self, fraction: float, counts: str) -> None:
        """Write a line if one is due; it holds what is counted."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + WITHOUT_TERMINAL
        left = remaining(now - self.started, fraction)
        parts = [f"{fraction:.0%}", counts, f"{left} left" if left else ""]
        sys.stderr.write(f"{self.label}: {', '.join(filter(None, parts))}\n")
        sys.stderr.flush()


def remaining(elapsed: float, fraction: float) -> str:
    """Return the time left at the pace so far, for reading; empty if it is too early.

    Examples
    --------
    >>> remaining(30.0, 0.25), remaining(3600.0, 0.1), remaining(1.0, 0.0)
    ('90 s', '9 h', '')
    """
    if not MIN_FRACTION <= fraction <= 1.0:
        return ""
    from simulator.units import SECOND, show

    return show(elapsed * (1.0 - fraction) / fraction, SECOND, 2)
