"""Reading and decoding of files, with all errors that precede the check of their contents."""

from __future__ import annotations

import codecs
import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final, NoReturn

from simulator import units
from simulator.errors import InputError, Problem
from simulator.reading.lines import DEEPEST, Repeat, TooDeepError, is_too_deep, key_lines

LARGEST: Final = int(units.parse("2 MB", units.BYTE))
"""Size of the largest file that is read [B]; the largest shipped one is under a twentieth of it."""

_WIDE_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_PLACE: Final = re.compile(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)
_UNQUOTED: Final = re.compile(r"""^\s*([\w.-]+)\s*=\s*([^\s"'\[{#=][^"'#]*?)\s*(?:#.*)?$""")
# A dotted key costs the standard library's parser the square of its length.
_LONG_KEY: Final = re.compile(rf"(?<![\w.-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST + 1},}}")


def fail(
    origin: str, message: str, *, line: int | None = None, hint: str | None = None
) -> NoReturn:
    """Raise an `InputError` with one problem of the file `origin`."""
    raise InputError((Problem(origin=origin, message=message, line=line, hint=hint),))


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return the first `largest` + 1 bytes of a file; `decode` refuses more than `largest`.

    Raises
    ------
    InputError
        If there is no such file (with the nearest name there), or it is a folder, a pipe or a
        device, or cannot be read.
    """
    origin = str(path)
    try:
        refuse_irregular(path)
        if path.is_dir():
            fail(origin, "is a folder, not a file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size or largest
            content = file.read(min(size, largest) + 1)
    except FileNotFoundError:
        fail(origin, "does not exist", hint=neighbour(path))
    except PermissionError:
        fail(origin, "cannot be read: permission denied")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fail(origin, f"cannot be read: {reason.lower()}")
    return content


def refuse_irregular(path: Path) -> None:
    """Refuse pipes and devices, which could block a reader forever.

    Raises
    ------
    InputError
        If there is something at `path` that is neither a regular file nor a folder.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        fail(str(path), "is not a regular file", hint="write it to a file first")


def neighbour(path: Path) -> str | None:
    """Return a hint with the nearest name in the folder of a missing file; None without one."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"the folder {path.parent} does not exist"
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean '{path.parent / close[0]}'?" if close else None


def decode(
    content: bytes,
    origin: str,
    *,
    kind: str = "TOML",
    largest: int = LARGEST,
    begin: str = "begin with schema = 1",
) -> str:
    """Decode a UTF-8 file, without byte-order mark and with Unix line ends.

    Parameters
    ----------
    content : bytes
        Contents of the file.
    origin : str
        Name of the file in messages.
    kind : str
        Expected kind of text, for messages.
    largest : int
        Size of the largest accepted file [B].
    begin : str
        Hint for an empty file.

    Raises
    ------
    InputError
        If the content is too big, empty, binary or in another encoding.
    """
    if len(content) > largest:
        most = units.show(largest, units.BYTE)
        fail(origin, f"is larger than {most}", hint="this is not a file of plan's")
    if not content.removeprefix(codecs.BOM_UTF8).strip():
        fail(origin, "is empty", hint=begin)
    for mark, name in _WIDE_MARKS:
        if content.startswith(mark):
            fail(origin, f"is {name} text", hint="save it as UTF-8")
    if b"\0" in content:
        if _is_wide(content[:1000]):
            fail(origin, "looks like UTF-16 text", hint="save it as UTF-8")
        fail(origin, f"is a binary file, not {kind} text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"0x{content[error.start]:02x}"
        fail(origin, f"is not UTF-8 text (byte {byte})", line=line, hint="save it as UTF-8")
    return text.replace("\r\n", "\n")


def _is_wide(head: bytes) -> bool:
    """Return whether most odd or even bytes are zero, as in Latin text of 16-bit characters."""
    zeros = (head[0::2].count(0), head[1::2].count(0))
    return min(zeros) == 0 and max(zeros) > len(head) // 4


def reason_of(error: Exception) -> str:
    """Return a parser's error message without text that is for programmers."""
    return "a number of thousands of digits" if "digits" in str(error) else str(error)


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Parse a TOML text.

    Raises
    ------
    InputError
        With the line, for a syntax error, a duplicate key or table, or too deep nesting.
    """
    long_key = _LONG_KEY.search(text)
    if long_key is not None:
        _fail_deep(origin, text.count("\n", 0, long_key.start()) + 1)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _fail_syntax(origin, text, str(error))
    except RecursionError:
        _fail_deep(origin, None)
    except ValueError as error:
        fail(origin, f"holds a value that cannot be read: {reason_of(error)}")
    if is_too_deep(data):
        _find_depth(origin, text)
    return data


def _find_depth(origin: str, text: str) -> NoReturn:
    try:
        key_lines(text)
    except TooDeepError as error:
        _fail_deep(origin, error.line)
    _fail_deep(origin, None)


def _fail_deep(origin: str, line: int | None) -> NoReturn:
    hint = f"at most {DEEPEST} levels are read"
    fail(origin, "is nested too deeply", line=line, hint=hint)


def _fail_syntax(origin: str, text: str, error: str) -> NoReturn:
    match = _PLACE.match(error)
    message, place, column = match.groups() if match else (error, None, None)
    line = int(place) if place else text.rstrip().count("\n") + 1
    repeat = _repeat(text, line)
    if repeat is not None:
        _fail_repeat(origin, repeat)
    where = f" (column {column})" if column else " (at the end of the file)"
    spelt = message[0].lower() + message[1:]
    lines = text.split("\n")
    hint = _quotes_missing(lines[line - 1]) if line <= len(lines) else None
    if "'\\n'" in message:
        hint = "the quote that ends the text is missing"
    fail(origin, f"is not valid TOML: {spelt}{where}", line=line, hint=hint)


def _repeat(text: str, line: int) -> Repeat | None:
    try:
        repeats = key_lines(text).repeats
    except (TooDeepError, RecursionError):
        return None
    return next((repeat for repeat in repeats if repeat.line == line), None)


def _fail_repeat(origin: str, repeat: Repeat) -> NoReturn:
    problem = Problem(
        origin=origin,
        line=repeat.line,
        key=dotted(repeat.path),
        message="is given twice",
        hint=f"first on line {repeat.first}",
    )
    raise InputError((problem,))


def _quotes_missing(line: str) -> str | None:
    match = _UNQUOTED.match(line)
    if match is None:
        return None
    key, value = match.groups()
    return f'text needs quotes: {key} = "{value}"'


def dotted(path: tuple[str | int, ...]) -> str:
    """Return a key path in dotted form, such as ``input.straggler[0].worker``, positions from 0."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = re.fullmatch(r"[A-Za-z0-9_-]+", part) is not None
        name = part if plain else repr(part)
        text += f".{name}" if text else name
    return text
