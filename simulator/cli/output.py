"""Output of a command: reports, messages, progress, files written atomically, exit codes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from simulator.errors import InputError, PlanError, Problem

if TYPE_CHECKING:
    from simulator.report.document import Document
    from simulator.report.html.page import Made
    from simulator.studies.subject import Study

FORM: Final = "simulator.form"
"""Key of the output format in the context of a command."""


NARROWEST: Final = 60
"""Smallest width of a report [columns]."""
MAX_BUGS: Final = 3
"""Largest number of internal errors that are printed one by one."""
REPORT_BUG: Final = (
    "please report it in the project's issue tracker (its address is in the README), with the "
    "command, the scenario file and the files it builds on"
)


class Exit(IntEnum):
    """Exit codes; the last two are those that a shell reports for these signals."""

    FINE = 0
    DOES_NOT_FIT = 1
    BAD_INPUT = 2
    OUR_BUG = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def ended(code: Exit, bugs: Sequence[str]) -> Exit:
    """Return the exit code of a study; internal errors are printed and override `code`.

    Parameters
    ----------
    code : Exit
        Exit code for the study's result.
    bugs : sequence of str
        Messages of internal errors in single predictions.
    """
    if not bugs:
        return code
    different = list(dict.fromkeys(bugs))
    complain(
        f"{len(bugs):,} of the predictions met a bug in plan, not in your input; the answer rests "
        "on the others",
        *different[:MAX_BUGS],
        *([f"and {len(different) - MAX_BUGS:,} others"] if len(different) > MAX_BUGS else []),
        REPORT_BUG,
    )
    return Exit.OUR_BUG


def study_ended(study: Study[Any]) -> Exit:
    """Return the exit code of a study whose result is printed; print its internal errors."""
    code = Exit.BAD_INPUT if study.refused else Exit.DOES_NOT_FIT
    return ended(Exit.FINE if study.good else code, study.bugs)


def today() -> date:
    """Return the date in UTC; called only in this package, so predictions don't depend on it."""
    return datetime.now(tz=UTC).date()


def emit(text: str) -> None:
    """Write `text` and a newline to standard output, in colour if it is a report on a terminal.

    Raises
    ------
    BrokenPipeError
        If standard output is a closed pipe.
    PlanError
        If it cannot be written for another reason, such as a full disk.
    """
    if sys.stdout is None:
        msg = "cannot write to standard output: it is closed"
        raise PlanError(msg)
    try:
        is_shown = is_report() and wants_colour(sys.stdout)
        sys.stdout.write(f"{coloured(text) if is_shown else text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        msg = f"cannot write to standard output: {error.strerror}"
        raise PlanError(msg) from error


def answer(document: Document, form: str) -> None:
    """Print a document in the format `form`; text is as wide as the terminal, at most `WIDTH`."""
    from simulator.report.document import render

    emit(render(document, form, width=columns()))


def is_report() -> bool:
    """Return True if the current command prints a report in text form, rather than data."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(FORM) == "table"


def columns() -> int:
    """Return the width of a report: the terminal's width, at most `WIDTH`."""
    from simulator.report.text import WIDTH

    if sys.stdout is None or not sys.stdout.isatty():
        return WIDTH
    return max(NARROWEST, min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns))


def complain(*lines: str) -> None:
    """Write messages to standard error, one line each, wrapped if it is a terminal."""
    if sys.stderr is None:
        return
    from simulator.report.text import printable

    with contextlib.suppress(OSError):
        for line in lines:
            sys.stderr.write("\n".join(_broken(f"plan: {printable(line)}")) + "\n")
        sys.stderr.flush()


def _broken(text: str) -> list[str]:
    """Wrap a message to the width of the terminal; one line if standard error is not a terminal."""
    if not sys.stderr.isatty():
        return [text]
    import textwrap

    from simulator.report.text import WIDTH

    width = max(NARROWEST, shutil.get_terminal_size((WIDTH, 0)).columns)
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def check_writable(path: Path, option: str) -> None:
    """Check that a file can be written, before a long computation.

    Raises
    ------
    InputError
        If `path` is a folder or "-", or its folder is missing or not writable.
    """
    if str(path) == "-":
        raise _unwritable(path, option, "is not a file; use /dev/stdout for standard output")
    if path.is_dir():
        raise _unwritable(path, option, "is a folder")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise _unwritable(path, option, "lies in a folder that does not exist")
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK):
        raise _unwritable(path, option, "cannot be written: permission denied")


def made(seed: int | None, *asked: str) -> Made:
    """Return the origin of a page: date, command line and seed.

    `asked` are the scenarios as command-line arguments.
    """
    import shlex

    from simulator.report.html.page import Made

    arguments: tuple[str, ...] = click.get_current_context().find_root().obj or ()
    command = shlex.join(("plan", *arguments))
    return Made(date=today().isoformat(), command=command, seed=seed, asked=asked)


def write_file(path: Path, content: str | bytes, option: str) -> None:
    """Write `content` to `path` atomically: readers see the old content or the new one.

    Special files (``/dev/stdout``, a named pipe) are written in place. `option` names the option in
    errors.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(_encoded(content))
        else:
            _replace(path.resolve(), _encoded(content))
    except OSError as error:
        raise _unwritable(path, option, f"cannot be written: {error.strerror}") from error


def write_files(contents: Mapping[Path, str], option: str) -> None:
    """Write several files; if one cannot be written, restore all of them.

    Missing folders are created, and removed again if restoring leaves them empty. `option` names
    the option in errors.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    before: dict[Path, bytes | None] = {}
    folders: list[Path] = []
    try:
        for path, content in contents.items():
            folders += _make_folders(path.absolute().parent)
            before[path] = path.read_bytes() if path.exists() else None
            _replace(path.resolve(), _encoded(content))
    except BaseException as error:
        _put_back(before, folders)
        if isinstance(error, OSError):
            message = f"cannot be written: {error.strerror}"
            raise _unwritable(path, option, message) from error
        raise


def _make_folders(folder: Path) -> list[Path]:
    """Create a folder and its parents; return those that were missing."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _put_back(before: Mapping[Path, bytes | None], folders: Iterable[Path]) -> None:
    for path, content in before.items():
        with contextlib.suppress(OSError):
            if content is None:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != content:
                _replace(path.resolve(), content)
    for folder in sorted(folders, key=lambda one: -len(one.parts)):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _encoded(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8")


def _replace(path: Path, content: bytes) -> None:
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        part.chmod(_mode(path))
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """Return the permissions of the existing file, or of a new file under the umask."""
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _unwritable(path: Path, option: str, message: str) -> InputError:
    return InputError((Problem(origin=option, message=message, found=str(path)),))


QUIET_FOR: Final = 1.0
"""Time before the line appears [s]."""
EVERY: Final = 0.2
"""Time between two updates [s]."""
WITHOUT_TERMINAL: Final = 15.0
"""Time between two lines without a terminal, and before the first [s]."""
MIN_FRACTION: Final = 0.05
"""Finished share below which the time left is not estimated."""
BAR_WIDTH: Final = 40
"""Columns of the bar."""


@contextmanager
def progress_line(label: str) -> Iterator[Callable[[float], None]]:
    """Context manager: yield a function that shows a progress bar for a finished fraction (0 to 1).

    The bar is on standard error; it appears after `QUIET_FOR` and is wiped at the end. If standard
    error is not a terminal, a line is written every `WITHOUT_TERMINAL` seconds.
    """
    with _line(label, BAR_WIDTH) as line:
        yield line.show


@contextmanager
def counting_line(label: str) -> Iterator[Callable[[float, str], None]]:
    """Context manager: yield a function that shows finished fraction, counts and time left.

    The time left is extrapolated from the time so far; a search that excludes candidates later
    takes less.
    """
    with _line(label, BAR_WIDTH // 2) as line:
        yield line.show_counts


@contextmanager
def _line(label: str, width: int) -> Iterator[_Line | _Lines]:
    if not sys.stderr.isatty():
        yield _Lines(label)
        return
    line = _Line(label, width)
    try:
        yield line
    finally:
        line.wipe()


class _Line:
    """Progress on one line of the terminal, rewritten in place."""

    def __init__(self, label: str, width: int) -> None:
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
        """Erase the line."""
        if self.shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


class _Lines:
    """Progress as separate lines, for logs and pipes."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.started = time.monotonic()
        self.due = self.started + WITHOUT_TERMINAL

    def show(self, fraction: float) -> None:
        """Write a line if an update is due."""
        self.show_counts(fraction, "")

    def show_counts(self, fraction: float, counts: str) -> None:
        """Write a line with counts and the time left, if an update is due."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + WITHOUT_TERMINAL
        left = remaining(now - self.started, fraction)
        parts = [f"{fraction:.0%}", counts, f"{left} left" if left else ""]
        sys.stderr.write(f"{self.label}: {', '.join(filter(None, parts))}\n")
        sys.stderr.flush()


def remaining(elapsed: float, fraction: float) -> str:
    """Return the remaining time as text, extrapolated from `elapsed` [s]; empty if it is too early.

    Examples
    --------
    >>> remaining(30.0, 0.25), remaining(3600.0, 0.1), remaining(1.0, 0.0)
    ('90 s', '9 h', '')
    """
    if not MIN_FRACTION <= fraction <= 1.0:
        return ""
    from simulator.units import SECOND, show

    return show(elapsed * (1.0 - fraction) / fraction, SECOND, 2)


_INDENT: Final = "  "
_COLOURS: Final = {"bad": "red", "unsure": "yellow", "good": "green"}
_JUDGES: Final = re.compile(
    r"""
    (?P<bad>
        (?<=,\ )does\ not\ fit$ | (?<=:\ )does\ not\ fit(?=;)
        | ^Does\ not\ fit: | ^No\ candidate\b.* | ^Over\ tolerance$
    ) | (?P<unsure>
        (?<=,\ )uncertain:\ within\b.* | (?<=:\ )may\ not\ fit(?=,)
        | ^May\ not\ fit: | \bUNVERIFIED\b | \bunverified$
        | ^Warnings$ | ^\ \ (?!gpu\ )[\w.]+\ +(?:[\d.]+\ \S+\ +)?[\d.]+%\ .*\ bottleneck$
        | \b\w+-starved: | \b(?!GPU|Accelerator)[A-Z]\w+-bound:
    ) | (?P<good>
        (?<=,\ )fits$ | (?<=:\ )fits(?=;)
        | \b(?:GPU|Accelerator|accelerator)-bound: | ^\ \ gpu\ +.*\ bottleneck$
    )
    """,
    re.VERBOSE,
)


def wants_colour(stream: TextIO) -> bool:
    """Return True if `stream` is a terminal with colours.

    A non-empty ``NO_COLOR`` turns them off (https://no-color.org).
    """
    declined = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not declined and stream.isatty()


def coloured(report: str) -> str:
    """Return a report with title and headings in bold, and verdicts in colour.

    Reports are plain text: headings are found by their layout, verdicts by their words.
    """
    lines = report.split("\n")
    return "\n".join(_painted(line, leads=_leads(lines, place)) for place, line in enumerate(lines))


def _leads(lines: list[str], place: int) -> bool:
    """Return True if a line is the title or a heading: empty line above, indented lines below."""
    line, after = lines[place], (*lines, "")[place + 1]
    if not line or line.startswith(" "):
        return False
    if place == 0:
        return not after.startswith(_INDENT)
    return not lines[place - 1] and after.startswith(_INDENT)


def _painted(line: str, *, leads: bool) -> str:
    """Return a line with verdicts in colour; in bold if it is a heading (`leads`)."""
    painted, done = [], 0
    for match in _JUDGES.finditer(line):
        painted.append(_bold(line[done : match.start()], leads=leads))
        painted.append(click.style(match[0], fg=_COLOURS[str(match.lastgroup)], bold=True))
        done = match.end()
    return "".join([*painted, _bold(line[done:], leads=leads)])


def _bold(text: str, *, leads: bool) -> str:
    return click.style(text, bold=True) if leads and text else text
