"""Output of a verb: a report, messages, files that appear whole, and an exit code."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from simulator.cli.options import is_report
from simulator.errors import InputError, PlanError, Problem

if TYPE_CHECKING:
    from simulator.report.html.page import Made
    from simulator.studies.subject import Study

NARROWEST: Final = 60
"""Smallest width of a report [columns]."""
MAX_BUGS: Final = 3
"""Largest number of internal errors that are printed one by one."""
REPORT_BUG: Final = (
    "please report it in the project's issue tracker (its address is in the README), with the "
    "command, the scenario file and the files it builds on"
)


class Exit(IntEnum):
    """The exit codes of every verb; the last two are those a shell gives such an end."""

    FINE = 0
    DOES_NOT_FIT = 1
    BAD_INPUT = 2
    OUR_BUG = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def ended(code: Exit, bugs: Sequence[str]) -> Exit:
    """Return the exit code of a study: its own, or that of a bug if it met any and went on.

    Parameters
    ----------
    code : Exit
        That of its answer.
    bugs : sequence of str
        Messages of the internal errors that it met.
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
    """Return the exit code of a study after its answer is printed."""
    code = Exit.BAD_INPUT if study.refused else Exit.DOES_NOT_FIT
    return ended(Exit.FINE if study.good else code, study.bugs)


def today() -> date:
    """Return the date in UTC; nothing below the command line asks for it."""
    return datetime.now(tz=UTC).date()


def emit(text: str) -> None:
    """Write `text` and a line end to standard output; a report on a terminal has colours.

    Raises
    ------
    PlanError
        If it cannot be written (a full disk); a closed pipe stays a `BrokenPipeError`.
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


def columns() -> int:
    """Return the columns of a report: those of a narrow terminal, else `WIDTH`."""
    import shutil

    from simulator.report.text import WIDTH

    if sys.stdout is None or not sys.stdout.isatty():
        return WIDTH
    return max(NARROWEST, min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns))


def complain(*lines: str) -> None:
    """Write messages to standard error, one line each.

    On a terminal they are wrapped at spaces.
    """
    if sys.stderr is None:
        return
    from simulator.report.text import printable

    with contextlib.suppress(OSError):
        for line in lines:
            sys.stderr.write("\n".join(_broken(f"plan: {printable(line)}")) + "\n")
        sys.stderr.flush()


def _broken(text: str) -> list[str]:
    """Wrap a message for the terminal; one line if standard error is none."""
    if not sys.stderr.isatty():
        return [text]
    import shutil
    import textwrap

    from simulator.report.text import WIDTH

    width = max(NARROWEST, shutil.get_terminal_size((WIDTH, 0)).columns)
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def check_writable(path: Path, option: str) -> None:
    """Refuse a path that cannot be written, before a long run rather than after it.

    Raises
    ------
    InputError
        If `path` is a folder or "-", or its folder is missing or closed to us.
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
    """Return what a page says of its origin: the date, the command as it was typed, the seed.

    `asked` are the scenarios as the user would type them again.
    """
    import shlex

    from simulator.report.html.page import Made

    arguments: tuple[str, ...] = click.get_current_context().find_root().obj or ()
    command = shlex.join(("plan", *arguments))
    return Made(date=today().isoformat(), command=command, seed=seed, asked=asked)


def write_file(path: Path, content: str | bytes, option: str) -> None:
    """Write `content` to `path` atomically: a reader finds the old file or the new one.

    Other than regular files (``/dev/stdout``, a named pipe) are written in place.

    Raises
    ------
    InputError
        If it cannot be written; names `option`.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(_encoded(content))
        else:
            _replace(path.resolve(), _encoded(content))
    except OSError as error:
        raise _unwritable(path, option, f"cannot be written: {error.strerror}") from error


def write_files(contents: Mapping[Path, str], option: str) -> None:
    """Write several files, each whole; if one cannot be written, all are as they were before.

    Folders that are missing are made, and taken away again where nothing came to lie in them.

    Raises
    ------
    InputError
        If one cannot be written; names `option`.
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
    """Make a folder and its parents; return those that were missing."""
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
    """Return the permissions of the file to replace, or those of a new file."""
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _unwritable(path: Path, option: str, message: str) -> InputError:
    return InputError((Problem(origin=option, message=message, found=str(path)),))


_INDENT: Final = "  "
_COLOURS: Final = {"bad": "red", "doubtful": "yellow", "good": "green"}
_JUDGES: Final = re.compile(
    r"""
    (?P<bad>
        (?<=,\ )does\ not\ fit$ | (?<=:\ )does\ not\ fit(?=;)
        | ^Does\ not\ fit: | ^No\ candidate\b.* | ^Over\ tolerance$
    ) | (?P<doubtful>
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
    """Return whether `stream` is a terminal with colours.

    ``NO_COLOR`` set to anything turns them off (https://no-color.org).
    """
    declined = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not declined and stream.isatty()


def coloured(report: str) -> str:
    """Return a report with its title and headings in bold, and its judgements in colour.

    Reports are plain text: headings are found by the layout, judgements by their words.
    """
    lines = report.split("\n")
    return "\n".join(_painted(line, leads=_leads(lines, place)) for place, line in enumerate(lines))


def _leads(lines: list[str], place: int) -> bool:
    """Return whether a line is the title, or a heading: alone above indented lines."""
    line, after = lines[place], (*lines, "")[place + 1]
    if not line or line.startswith(" "):
        return False
    if place == 0:
        return not after.startswith(_INDENT)
    return not lines[place - 1] and after.startswith(_INDENT)


def _painted(line: str, *, leads: bool) -> str:
    """Return a line with its judgements in colour, in bold if it `leads`."""
    painted, done = [], 0
    for match in _JUDGES.finditer(line):
        painted.append(_bold(line[done : match.start()], leads=leads))
        painted.append(click.style(match[0], fg=_COLOURS[str(match.lastgroup)], bold=True))
        done = match.end()
    return "".join([*painted, _bold(line[done:], leads=leads)])


def _bold(text: str, *, leads: bool) -> str:
    return click.style(text, bold=True) if leads and text else text
