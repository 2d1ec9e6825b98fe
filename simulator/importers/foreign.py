"""Reader for foreign files: bytes, text, JSON or YAML, with limits on size, depth and numbers.

`Entry` is a value of such a file; it collects every problem with the path to the value. All JSON
and YAML of other tools passes through this module: nested at most `MAX_DEPTH` deep, and with
numbers that are finite and between `SMALLEST` and `LARGEST`.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from simulator import units
from simulator.errors import InputError, Problem, first_problems
from simulator.reading.reading import dotted, fail, reason_of
from simulator.reading.reading import read_bytes as read_start
from simulator.records import dataclass

MAX_BYTES: Final = int(units.parse("256 MiB", units.BYTE))
"""Maximum size of a file, after decompression [B]."""
MAX_DEPTH: Final = 100
"""Maximum nesting of a JSON or YAML document; known formats have fewer than ten levels."""
SMALLEST, LARGEST = 1e-30, 1e30
"""Bounds of the magnitude of numbers other than zero, in any unit: what lies outside is damaged."""

_GZIP: Final = b"\x1f\x8b"
_WIDE: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PART_OF_A_WORD: Final = re.compile(r"[\w.+-]*")


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a file, decompressed if it is gzip.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    most : int
        Maximum size, checked before reading and while decompressing [B].

    Raises
    ------
    InputError
        If the file does not exist (the message names the closest match), is a folder, too large,
        empty, truncated within the gzip stream, or unreadable.
    """
    origin, size = str(path), 0
    with contextlib.suppress(OSError, ValueError):  # reported when the file is opened
        size = 0 if path.is_dir() else path.stat().st_size
    if size > most:
        _fail_size(origin, most, units.show(size, units.BYTE))
    content = read_start(path, most)
    if content.startswith(_GZIP):
        content = b"".join(piece for piece, _ in _unpacked(content, origin, most))
    if len(content) > most:
        _fail_size(origin, most)
    if not content.strip():
        fail(origin, "is empty")
    return content


_PACKED_PIECE: Final = int(units.parse("16 KiB", units.BYTE))
"""Compressed bytes that are unpacked at once: at most a thousand times as many come out [B]."""


def _unpacked(content: bytes, origin: str, most: int) -> Iterator[tuple[bytes, float]]:
    """Yield pieces of all members of a gzip file up to about `most` bytes, and the share read."""
    view, place, size = memoryview(content), 0, 0
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    while place < len(view) and size <= most:
        part = bytes(view[place : place + _PACKED_PIECE])
        try:
            piece = unpack.decompress(part)
        except zlib.error as error:
            fail(origin, f"is damaged: not a gzip stream ({error})")
        place += len(part) - len(unpack.unused_data)
        size += len(piece)
        yield piece, place / len(view)
        if unpack.eof:
            if bytes(view[place : place + len(_GZIP)]) != _GZIP:
                return
            unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    if not unpack.eof and size <= most:
        fail(origin, "is cut off: the gzip stream has no end")


def _fail_size(origin: str, most: int, size: str | None = None) -> None:
    message = f"is larger than {units.show(most, units.BYTE)}"
    hint = "record a shorter run, or take a part of it"
    raise InputError((Problem(origin=origin, message=message, found=size, hint=hint),))


def read_text(path: Path, wanted: str, most: int = MAX_BYTES) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark (PowerShell).

    Parameters
    ----------
    path : pathlib.Path
        The file; may be gzip.
    wanted : str
        Expected content, for messages, such as ``the output of nccl-tests``.
    most : int
        As for `read_bytes`.

    Raises
    ------
    InputError
        As `read_bytes`, and if it is binary or in another encoding.
    """
    content, origin = read_bytes(path, most), str(path)
    encoding = _encoding(content)
    if encoding != "utf-16" and b"\0" in content:
        fail(origin, f"is a binary file, not {wanted}")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        fail(origin, f"is not text, so not {wanted}", line=line)
    return text.replace("\r\n", "\n")


def _encoding(content: bytes) -> str:
    return next((name for mark, name in _WIDE.items() if content.startswith(mark)), "utf-8-sig")


def parse_json(text: str, origin: str) -> Any:  # noqa: ANN401 - a file may hold anything
    """Parse a JSON text; `origin` names it in messages.

    Raises
    ------
    InputError
        For a syntax error, with its line; truncated text is reported as cut off.
    """
    try:
        # Names of kernels and of source files may hold plain tabs, hence not strict.
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        _fail_json(text, origin, error)
    if _is_deep(data):
        _fail_deep(origin)
    return data


def first_json(text: str, start: int = 0) -> tuple[Any, int]:
    """Parse the JSON value that begins at `start`; return it and the offset of its end.

    Raises
    ------
    ValueError
        If there is none, or it is nested too deeply.
    """
    try:
        data, end = _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError(_DEEP) from error
    if _is_deep(data):
        raise ValueError(_DEEP)
    return data, end


_DECODER: Final = json.JSONDecoder(strict=False)
_DEEP: Final = "is nested too deeply"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_COMMA: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=\S)")


def _is_deep(data: object) -> bool:
    """Return True if `data` is nested deeper than `MAX_DEPTH`."""
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = [
            value
            for group in level
            for value in (group.values() if isinstance(group, dict) else group)
            if isinstance(value, dict | list)
        ]
    return bool(level)


def _fail_deep(origin: str) -> NoReturn:
    fail(origin, _DEEP, hint=f"at most {MAX_DEPTH} levels are read")


def _fail_json(
    text: str, origin: str, error: ValueError | RecursionError, before: int = 0
) -> NoReturn:
    """Raise an `InputError` for a JSON text that cannot be parsed, after `before` other lines."""
    if isinstance(error, RecursionError):
        _fail_deep(origin)
    if not isinstance(error, json.JSONDecodeError):
        # Such as a number with thousands of digits.
        fail(origin, f"holds a value that cannot be read: {reason_of(error)}")
    if _stops_early(text, error):
        last = before + text.rstrip().count("\n") + 1
        fail(origin, "is cut off: the JSON stops before its end", line=last)
    said = error.msg[0].lower() + error.msg[1:]
    message = f"is not valid JSON: {said} (column {error.colno})"
    fail(origin, message, line=before + error.lineno)


def _stops_early(text: str, error: json.JSONDecodeError) -> bool:
    rest = text[error.pos :].rstrip()
    if error.msg == "Extra data":
        return False
    return error.msg.startswith("Unterminated") or _PART_OF_A_WORD.fullmatch(rest) is not None


def read_json(path: Path, wanted: str, most: int = MAX_BYTES) -> Any:  # noqa: ANN401 - a file may hold anything
    """Parse a JSON file, gzip or not; see `read_text` and `parse_json` for details and errors."""
    return parse_json(read_text(path, wanted, most), str(path))


_PIECE: Final = int(units.parse("1 MiB", units.BYTE))
"""Size of the pieces in which a long file is decoded [B]."""


class _LongText:
    """The text of a long file, of which only the part that is parsed is in memory.

    `text` is that part; it begins after `before` lines. `share` is the share of the file that was
    decoded.
    """

    def __init__(self, path: Path, wanted: str) -> None:
        self.origin, self._wanted = str(path), wanted
        content = read_start(path, MAX_BYTES)
        if len(content) > MAX_BYTES:
            _fail_size(self.origin, MAX_BYTES)
        self._pieces = _pieces(content, self.origin)
        self._decoder: codecs.IncrementalDecoder | None = None
        self._encoding, self._lines, self._size = "", 0, 0
        self.text, self.before, self.share = "", 0, 0.0
        if not self._extend():
            fail(self.origin, "is empty")

    def _extend(self) -> bool:
        """Append about as much text again; return False at the end of the file."""
        added: list[str] = []
        wanted = len(self.text)
        while not added or wanted > 0:
            piece, self.share = next(self._pieces, (b"", 1.0))
            added.append(self._decoded(piece))
            wanted -= len(added[-1])
            if not piece:
                break
        self.text += "".join(added)
        return any(added)

    def _decoded(self, piece: bytes) -> str:
        if self._decoder is None:
            self._encoding = _encoding(piece)
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
        if self._encoding != "utf-16" and b"\0" in piece:
            fail(self.origin, f"is a binary file, not {self._wanted}")
        self._size += len(piece)
        if self._size > MAX_BYTES:
            _fail_size(self.origin, MAX_BYTES)
        try:
            text = self._decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            line = self._lines + piece.count(b"\n", 0, error.start) + 1
            fail(self.origin, f"is not text, so not {self._wanted}", line=line)
        self._lines += text.count("\n")
        return text

    def skip(self, start: int) -> tuple[str, int]:
        """Return the next character that is not a space, and its place; none at the end."""
        while True:
            end = _SPACE.match(self.text, start).end()  # type: ignore[union-attr] # matches nothing too
            if end < len(self.text) or not self._extend():
                return self.text[end : end + 1], end

    def value(self, start: int) -> tuple[Any, int]:
        """Return the JSON value at `start`, and the place of its end."""
        while True:
            try:
                found, end = _DECODER.raw_decode(self.text, start)
            except (ValueError, RecursionError) as error:
                if self._extend():
                    continue
                _fail_json(self.text, self.origin, error, self.before)
            # A number may go on in the next piece.
            if end < len(self.text) or not self._extend():
                return found, end

    def expect(self, wanted: str, start: int) -> tuple[str, int]:
        """Return the next character, one of `wanted`, and the place after it."""
        mark, place = self.skip(start)
        if not mark or mark not in wanted:
            while self._extend():
                pass
            said = f"Expecting {wanted[0]!r} delimiter"
            error = json.JSONDecodeError(said if mark else "Unterminated", self.text, place)
            _fail_json(self.text, self.origin, error, self.before)
        return mark, place + 1

    def drop(self, end: int) -> None:
        """Forget the text up to `end`."""
        self.before += self.text.count("\n", 0, end)
        self.text = self.text[end:]


def _pieces(content: bytes, origin: str) -> Iterator[tuple[bytes, float]]:
    """Yield the content of a file, unpacked, piece by piece, and the share read."""
    if content.startswith(_GZIP):
        yield from (
            (piece, share) for piece, share in _unpacked(content, origin, MAX_BYTES) if piece
        )
        return
    for start in range(0, len(content), _PIECE):
        end = min(len(content), start + _PIECE)
        yield content[start:end], end / len(content)


def read_long_list(
    path: Path,
    wanted: str,
    name: str,
    take: Callable[[int, Any], None],
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Read a JSON object whose list `name` is too long to be held in memory.

    Parameters
    ----------
    path : pathlib.Path
        The file; may be gzip.
    wanted : str
        Expected content, for messages.
    name : str
        Name of the list in the outermost object.
    take : callable
        Called with the position and the value of each element of the list.
    progress : callable, optional
        Called with the share of the file that was read, from 0 to 1.

    Returns
    -------
    dict
        The other members of the object; the list is empty in it.

    Raises
    ------
    InputError
        As `read_json`; and if the file is not a JSON object.
    """
    text = _LongText(path, wanted)
    mark, place = text.skip(0)
    if mark == "[":
        fail(text.origin, "is not a JSON object but a list")
    if mark != "{":
        text.value(place)
        fail(text.origin, "is not a JSON object but a value")
    members: dict[str, Any] = {}
    mark, after = text.skip(place + 1)
    place = after + 1
    while mark != "}":
        key, place = text.value(after)
        if not isinstance(key, str):
            error = json.JSONDecodeError("Expecting property name", text.text, after)
            _fail_json(text.text, text.origin, error, text.before)
        _, place = text.expect(":", place)
        mark, after = text.skip(place)
        if key == name and mark == "[":
            members[key] = []
            place = _read_elements(text, after + 1, take, progress)
        else:
            members[key], place = text.value(after)
        mark, place = text.expect(",}", place)
        if mark == ",":
            _, after = text.skip(place)
    mark, place = text.skip(place)
    if mark:
        error = json.JSONDecodeError("Extra data", text.text, place)
        _fail_json(text.text, text.origin, error, text.before)
    if _is_deep(members):
        _fail_deep(text.origin)
    return members


def _read_elements(
    text: _LongText,
    place: int,
    take: Callable[[int, Any], None],
    progress: Callable[[float], None] | None,
) -> int:
    """Read the elements of a list that begins before `place`; return the place after the list."""
    index = 0
    mark, after = text.skip(place)
    if mark == "]":
        return after + 1
    while True:
        value, place = text.value(after)
        brackets = text.text.count("[", after, place) + text.text.count("{", after, place)
        if brackets > MAX_DEPTH and _is_deep(value):
            _fail_deep(text.origin)
        take(index, value)
        index += 1
        comma = _COMMA.match(text.text, place)
        if comma is not None and place < _PIECE:
            after = comma.end()
            continue
        mark, place = text.expect(",]", place)
        if mark == "]":
            return place
        if place > _PIECE:
            text.drop(place)
            place = 0
            if progress is not None:
                progress(text.share)
        _, after = text.skip(place)


class Problems(list[Problem]):
    """The problems of one foreign text, in the order of detection."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.origin = origin

    def note(
        self,
        message: str,
        *,
        line: int | None = None,
        key: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Append a problem with this text as its origin."""
        self.append(
            Problem(origin=self.origin, line=line, key=key, message=message, found=found, hint=hint)
        )

    def number(self, text: str, name: str, *, line: int) -> float | None:
        """Parse the number in a cell of column `name`; NaN and infinity are accepted.

        For a negative number, one beyond the bounds, or other text, report a problem and return
        None.
        """
        try:
            value = float(text)
        except ValueError:
            self.note(f"has no number under {name}", line=line, found=repr(text[:40]))
            return None
        if value < 0.0:
            self.note(f"has {name} below zero", line=line, found=text)
            return None
        if is_out_of_bounds(value):
            self.note(f"has an impossible number under {name}", line=line, found=text)
            return None
        return value


def refuse(problems: list[Problem]) -> None:
    """Raise an `InputError` with the first `MAX_PROBLEMS` problems and the number of the others.

    Does nothing if `problems` is empty.
    """
    if problems:
        raise InputError(first_problems(problems))


def is_out_of_bounds(number: float) -> bool:
    """Return True if a finite number other than zero is too small or too large to be evidence."""
    return math.isfinite(number) and number != 0.0 and not SMALLEST <= abs(number) <= LARGEST


def changed(path: Path) -> str:
    """Return the date of the last modification of a file in ISO format, or ``undated``.

    It dates values of files that contain no date.
    """
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return "undated"
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()


MAX_YAML_BYTES: Final = int(units.parse("4 MiB", units.BYTE))
"""Maximum size of a YAML file [B]; its parser is slow."""


def read_yaml(path: Path, wanted: str) -> Any:  # noqa: ANN401 - a file may hold anything
    """Parse a YAML file; only mappings, lists, text and numbers are constructed, never objects.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    wanted : str
        Expected content, for messages.

    Raises
    ------
    InputError
        As `read_text`; and for invalid YAML, with the line.
    """
    text, origin = read_text(path, wanted, MAX_YAML_BYTES), str(path)
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        fail(origin, f"is not valid YAML: {error.problem or error.context}", line=line)
    except yaml.YAMLError as error:
        fail(origin, f"is not valid YAML: {str(error).splitlines()[0]}")
    except RecursionError:
        _fail_deep(origin)
    except (ValueError, OverflowError, TypeError) as error:
        # Such as an impossible date or a number with thousands of digits.
        fail(origin, f"holds a value that cannot be read: {reason_of(error)}")
    if _is_swollen(data):
        fail(origin, "holds aliases that expand to too much data")
    if _is_deep(data):
        _fail_deep(origin)
    return data


def _is_swollen(data: object) -> bool:
    """Return True if `data` has more values than a file of `MAX_YAML_BYTES` without aliases."""
    waiting, seen = [data], 0
    while waiting and seen <= MAX_YAML_BYTES:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return seen > MAX_YAML_BYTES


MISSING = (None, "", "N/A", "[N/A]")
"""Values that count as missing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a JSON or YAML document with its path, and the problems of the whole document."""

    value: object
    origin: str
    path: tuple[str | int, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    def fault(self, message: str, *, found: object = None, hint: str | None = None) -> None:
        """Report a problem with this value."""
        said = None if found is None else short(found)
        key = dotted(self.path) or None
        self.problems.append(
            Problem(origin=self.origin, message=message, key=key, found=said, hint=hint)
        )

    def is_mapping(self) -> bool:
        """Return True if the value is an object."""
        return isinstance(self.value, Mapping)

    def get(self, name: str) -> Entry | None:
        """Return the member `name`; None if it is missing or this value is not an object."""
        if not isinstance(self.value, Mapping):
            return None
        value = self.value.get(name)
        if isinstance(value, str | None) and value in MISSING:
            return None
        return Entry(value, self.origin, (*self.path, name), self.problems)

    def need(self, name: str, hint: str | None = None) -> Entry | None:
        """Return the member `name`; report a problem and return None if it is missing."""
        found = self.get(name)
        if found is None:
            self.fault(f"has no '{name}'", hint=hint)
        return found

    def entries(self) -> Iterator[Entry]:
        """Yield the elements of a list or values of an object; report a problem for other types."""
        if isinstance(self.value, Mapping):
            pairs: Iterator[tuple[str | int, object]] = (
                (str(key), value) for key, value in self.value.items()
            )
        elif isinstance(self.value, list):
            pairs = iter(enumerate(self.value))
        else:
            self.fault("is neither a list nor an object", found=self.value)
            return
        for key, value in pairs:
            yield Entry(value, self.origin, (*self.path, key), self.problems)

    def number(self, least: float = 0.0, most: float = math.inf) -> float | None:
        """Return the value as a finite number between `least` and `most`; else report a problem.

        Returns None after a problem. Text that holds a number is accepted, as some tools quote
        numbers.
        """
        value = self.value
        if isinstance(value, str):
            value = _plain_number(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault("is not a number", found=self.value)
            return None
        number = _float(value)
        if not math.isfinite(number):
            self.fault("is not a finite number", found=self.value)
            return None
        if is_out_of_bounds(number):
            self.fault("is not a possible number", found=self.value)
            return None
        if number < least:
            said = "is negative" if least == 0.0 and number < 0.0 else f"is below {least:g}"
            self.fault(said, found=self.value)
            return None
        if number > most:
            self.fault(f"is above {most:g}", found=self.value)
            return None
        return number

    def whole(self, least: float = 0.0, most: float = math.inf) -> int | None:
        """Return the value as an integer between `least` and `most`; else None, with a problem."""
        number = self.number(least, most)
        if number is not None and number != int(number):
            self.fault("is not a whole number", found=self.value)
        return None if number is None else int(number)

    def number_at(self, name: str, least: float = 0.0, most: float = math.inf) -> float | None:
        """Return the number under `name`; None, without a problem, if it is missing."""
        found = self.get(name)
        return None if found is None else found.number(least, most)

    def measured_at(self, name: str, most: float = math.inf) -> float | None:
        """Return a measurement; None if it is missing or NaN, as in some runs."""
        found = self.get(name)
        if found is None or (isinstance(found.value, float) and math.isnan(found.value)):
            return None
        return found.number(0.0, most)

    def text_at(self, name: str) -> str | None:
        """Return the value under `name` as text; None if missing or not text or a number."""
        found = self.get(name)
        if found is None or isinstance(found.value, bool | list | Mapping):
            return None
        return str(found.value)


def _plain_number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def short(value: object) -> str:
    """Return a value of a file for messages, cut to 60 characters."""
    longest = 60
    if isinstance(value, int) and value.bit_length() > 4 * longest:
        return "a number of very many digits"
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}..."
