"""Foreign files as bytes, text or JSON: what can be wrong before their content counts."""

from __future__ import annotations

import codecs
import contextlib
import json
import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.reading.reading import fail
from simulator.reading.reading import read_bytes as read_start

LARGEST: Final = int(units.parse("256 MiB", units.BYTE))
"""Size of the largest file that is read, after unpacking [B]."""
MOST_PROBLEMS: Final = 20
"""How many problems of one file are told."""

_GZIP: Final = b"\x1f\x8b"
_WIDE: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PART_OF_A_WORD: Final = re.compile(r"[\w.+-]*")


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of a file, unpacked if it is gzip.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    most : int
        Size from which on it is refused, before it is read and while it is unpacked [B].

    Raises
    ------
    InputError
        If there is no such file (with the nearest name beside it), or it is a folder, too big,
        empty, cut off within the gzip stream, or cannot be read.
    """
    origin, size = str(path), 0
    with contextlib.suppress(OSError, ValueError):  # told by who opens it
        size = 0 if path.is_dir() else path.stat().st_size
    if size > most:
        _fail_size(origin, most, units.show(size, units.BYTE))
    content = read_start(path, most)
    if content.startswith(_GZIP):
        content = _unpacked(content, origin, most)
    if len(content) > most:
        _fail_size(origin, most)
    if not content.strip():
        fail(origin, "is empty")
    return content


def _unpacked(content: bytes, origin: str, most: int) -> bytes:
    """The content of a gzip file, all its members; little more than `most` bytes."""
    found = b""
    while content.startswith(_GZIP) and len(found) <= most:
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            found += unpack.decompress(content, most + 1)
        except zlib.error as error:
            fail(origin, f"is damaged: not a gzip stream ({error})")
        if not unpack.eof and len(found) <= most:
            fail(origin, "is cut off: the gzip stream has no end")
        content = unpack.unused_data
    return found


def _fail_size(origin: str, most: int, size: str | None = None) -> None:
    message = f"is larger than {units.show(most, units.BYTE)}"
    hint = "record a shorter run, or take a part of it"
    raise InputError((Problem(origin=origin, message=message, found=size, hint=hint),))


def read_text(path: Path, wanted: str, most: int = LARGEST) -> str:
    """The text of a file in UTF-8 (or UTF-16 with its mark, as PowerShell writes).

    Parameters
    ----------
    path : pathlib.Path
        The file; may be gzip.
    wanted : str
        What it should be, for messages: ``the output of nccl-tests``.
    most : int
        As for `read_bytes`.

    Raises
    ------
    InputError
        As `read_bytes`, and if it is binary or in another encoding.
    """
    content, origin = read_bytes(path, most), str(path)
    encoding = next((name for mark, name in _WIDE.items() if content.startswith(mark)), "utf-8-sig")
    if encoding != "utf-16" and b"\0" in content:
        fail(origin, f"is a binary file, not {wanted}")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        fail(origin, f"is not text, so not {wanted}", line=line)
    return text.replace("\r\n", "\n")


def parse_json(
    text: str, origin: str, reduce: Callable[[dict[str, Any]], Any] | None = None
) -> Any:  # noqa: ANN401 - a file may hold anything
    """Return the data of a JSON text.

    Parameters
    ----------
    text : str
        The JSON.
    origin : str
        Names the file in messages.
    reduce : callable, optional
        Called with each object once it is parsed; its result takes the object's place.

    Raises
    ------
    InputError
        With the line, for a syntax error; a text that stops too early is said to be cut off.
    """
    try:
        # Names of kernels and of source files may hold plain tabs, hence not strict.
        return json.loads(text, strict=False, object_hook=reduce)
    except json.JSONDecodeError as error:
        if _stops_early(text, error):
            last = text.rstrip().count("\n") + 1
            fail(origin, "is cut off: the JSON stops before its end", line=last)
        said = error.msg[0].lower() + error.msg[1:]
        fail(origin, f"is not valid JSON: {said} (column {error.colno})", line=error.lineno)
    except RecursionError:
        fail(origin, "is nested too deeply")
    except ValueError as error:
        # A number of thousands of digits, for one.
        fail(origin, f"holds a value that cannot be read: {error}")


def _stops_early(text: str, error: json.JSONDecodeError) -> bool:
    rest = text[error.pos :].rstrip()
    if error.msg == "Extra data":
        return False
    return error.msg.startswith("Unterminated") or _PART_OF_A_WORD.fullmatch(rest) is not None


def read_json(path: Path, wanted: str, most: int = LARGEST) -> Any:  # noqa: ANN401 - a file may hold anything
    """The data of a JSON file, gzip or not; as `read_text` and `parse_json`."""
    return parse_json(read_text(path, wanted, most), str(path))


def refuse(problems: list[Problem]) -> None:
    """Raise an `InputError` of the first `MOST_PROBLEMS` problems and the count of the others."""
    if not problems:
        return
    shown = problems[:MOST_PROBLEMS]
    more = len(problems) - len(shown)
    if more:
        origin = problems[0].origin
        shown = [*shown, Problem(origin=origin, message=f"has {more} problems more")]
    raise InputError(tuple(shown))


def changed(path: Path) -> str:
    """The day a file was last written, as an ISO date: what dates figures that bear no date."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return "undated"
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()
