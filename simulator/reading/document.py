"""A TOML file as plain data with lines, and its check against a dataclass.

`read_document` and `parse_document` return a `Document`; `check` reads it as a table and reports
every mistake in one `InputError`.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime, time
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from simulator.errors import MAX_PROBLEMS, InputError, Problem
from simulator.reading.lines import KeyPath, LazyLines
from simulator.reading.reading import decode, dotted, parse_toml, read_bytes
from simulator.reading.shipped import without_folder
from simulator.reading.tables import (
    BROKEN,
    AnyTable,
    FileTable,
    Mistake,
    MistakeKind,
    Reading,
    key_paths,
    table_at,
    table_keys,
)
from simulator.records import dataclass
from simulator.schema.fields import nearest_hint, slip_of

SCHEMA: Final = 1
"""The file format this version reads; every file says ``schema = 1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The unchecked contents of a file.

    `data` are the TOML values, `lines` the line of each key path. In a document merged from several
    files and options, `origins` names the source of each key path that is not from `origin`, and
    `batch_size` is that of the files, not of options: the batch size at which a step time in them
    was measured.
    """

    origin: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    origins: Mapping[KeyPath, str] = field(default_factory=dict)
    within: frozenset[str] | None = None
    batch_size: int | None = None

    def where(self, path: KeyPath) -> tuple[str, int | None]:
        """Return the file (or option) and line of `path`, or of the table it is missing from."""
        self._refuse_outside(path)
        for end in range(len(path), 0, -1):
            part = path[:end]
            if self.knows(part):
                return self.origins.get(part, self.origin), self.lines.get(part)
        return self.origin, None

    def knows(self, path: KeyPath) -> bool:
        """Return whether the file or option of `path` itself is known."""
        return path in self.lines or path in self.origins

    def place(self, path: KeyPath) -> str:
        """Return file and line of `path` as text, independent of the place of installation."""
        origin, line = self.where(path)
        name = without_folder(origin)
        return name if line is None else f"{name}:{line}"

    def value(self, path: KeyPath) -> object:
        """Return the value at `path`; None if there is none."""
        self._refuse_outside(path)
        value: Any = self.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def _refuse_outside(self, path: KeyPath) -> None:
        if self.within is not None and self.within.isdisjoint(path[:1]):
            msg = f"{dotted(path)} is asked about, but only {', '.join(sorted(self.within))} may be"
            raise LookupError(msg)

    def says(self, path: KeyPath) -> bool:
        """Return whether there is a value at `path`."""
        return self.value(path) is not None

    def problem(
        self, path: KeyPath, message: str, *, hint: str | None = None, show: bool = True
    ) -> Problem:
        """Return a `Problem` at `path`, which includes the value there unless `show` is false."""
        origin, line = self.where(path)
        value = self.value(path) if show else None
        return Problem(
            origin=origin,
            line=line,
            key=dotted(path) or None,
            message=message,
            found=None if value is None else shown(value),
            hint=hint or None,
        )


def read_document(path: Path) -> Document:
    """Read a TOML file.

    Parameters
    ----------
    path : pathlib.Path
        The file; its name as given appears in messages.

    Raises
    ------
    InputError
        If it is missing, a folder, empty, binary, too big, in another encoding than UTF-8, or
        not valid TOML.
    """
    stamp = _stamp(path)
    if stamp is None:
        return parse_document(read_bytes(path), str(path))
    return _kept(path, stamp)


@lru_cache(maxsize=512)
def _kept(path: Path, stamp: tuple[int, ...]) -> Document:
    """Return the document of a file, parsed again only when the file has changed.

    `stamp` identifies the version of the file.
    """
    del stamp
    return parse_document(read_bytes(path), str(path))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return a key that changes when a file is written; None if it is not a regular file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def parse_document(text: bytes, origin: str) -> Document:
    """Read TOML from memory; `origin` names it in messages. Raises as `read_document` does."""
    plain = decode(text, origin)
    return Document(origin=origin, data=parse_toml(plain, origin), lines=LazyLines(plain))


def check(table: type[AnyTable], document: Document, *, at: KeyPath = ()) -> AnyTable:
    """Read a document, or the table `at` a path in it.

    Parameters
    ----------
    table : type of a frozen dataclass
        Describes the table without its ``schema`` key, which is checked here.
    document : Document
        What to check.
    at : tuple of str or int
        Path of the table; the whole document by default.

    Returns
    -------
    dataclass
        An instance of `table`.

    Raises
    ------
    InputError
        With all problems of the table.
    """
    checked, problems = examine(table, document, at=at)
    if checked is None:
        raise InputError(problems)
    return checked


def examine(
    table: type[AnyTable], document: Document, *, at: KeyPath = ()
) -> tuple[AnyTable | None, tuple[Problem, ...]]:
    """Read a table as `check` does, but return its problems."""
    data = document.value(at)
    problems: list[Problem] = []
    if not at and isinstance(data, dict):
        problem = schema_problem(document)
        if problem is not None:
            problems.append(problem)
            if "schema" in data:
                # Nothing else can be said about a format that is unknown.
                return None, tuple(problems)
        other = kind_problem(table, document)
        if other is not None:
            return None, (*problems, other)
        data = {key: value for key, value in data.items() if key != "schema"}
    reading = Reading(document.place)
    checked: Any = reading.table(table, data, at)
    problems += problems_of(table, document, reading.mistakes, at)
    return (None if problems or checked is BROKEN else checked), tuple(dict.fromkeys(problems))


def problems_of(
    table: type[FileTable], document: Document, mistakes: Sequence[Mistake], at: KeyPath = ()
) -> list[Problem]:
    """Return the mistakes of the table `at` a path as problems of a document, by line."""
    placed = sorted(mistakes, key=lambda one: _place(document, one))
    problems = [_problem(table, document, at, one) for one in placed[:MAX_PROBLEMS]]
    problems.sort(key=lambda problem: (problem.origin, problem.line or 0))
    if (more := len(placed) - MAX_PROBLEMS) > 0:
        message, last = f"has {more:,} more problems", problems[-1]
        problems.append(replace(last, key=None, found=None, hint=None, message=message))
    return problems


def kind_problem(table: type[FileTable], document: Document) -> Problem | None:
    """Return a problem if all keys of the file are unknown, so that it is of another kind.

    `schema`, `name` and `title` are ignored, and so is a file with a single key.
    """
    known, stated = list(table_keys(table)), set(document.data) - {"schema", "name", "title"}
    if len(stated) <= 1 or not stated.isdisjoint(known):
        return None
    message = "is a file of another kind: nothing in it is known here"
    hint = f"allowed: {', '.join(known)}"
    return Problem(origin=document.origin, message=message, hint=hint)


def schema_problem(document: Document) -> Problem | None:
    """Return a problem if the document's ``schema`` is missing or unknown, else None."""
    schema = document.data.get("schema")
    if schema is None:
        return document.problem(("schema",), "is missing", hint=f"begin with schema = {SCHEMA}")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema != SCHEMA:
        hint = f"this version reads schema = {SCHEMA}"
        return document.problem(("schema",), "is an unknown file format", hint=hint)
    return None


def shown(value: object) -> str:
    """Format a value for messages: short, on one line, as in TOML."""
    longest = 60
    plain = {True: "true", False: "false"}
    if isinstance(value, bool):
        return plain[value]
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, int) and value.bit_length() > 4 * longest:
        return "a number of very many digits"
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 4]}...{text[-1]}"


def _place(document: Document, mistake: Mistake) -> tuple[str, int]:
    origin, line = document.where(mistake.path)
    return origin, line or 0


def _problem(table: type[FileTable], document: Document, at: KeyPath, mistake: Mistake) -> Problem:
    path, within = mistake.path, mistake.path[len(at) :]
    match mistake.kind:
        case MistakeKind.UNKNOWN:
            is_table = isinstance(document.value(path), dict)
            hint = _key_hint(table, within)
            return document.problem(path, mistake.message, hint=hint, show=not is_table)
        case MistakeKind.MISSING:
            return document.problem(path, mistake.message, hint=_needed(table, within))
        case MistakeKind.KEY:
            problem = document.problem(path, mistake.message, hint=mistake.hint)
            return replace(problem, found=shown(path[-1]))
        case MistakeKind.VALUE:
            return document.problem(path, mistake.message, hint=mistake.hint)


def _key_hint(table: type[FileTable], path: KeyPath) -> str:
    key = str(path[-1])
    owner = table_at(table, path[:-1])
    names = tuple(table_keys(owner)) if owner else ()
    near = slip_of(key, names)
    homes = (home for home in key_paths(table) if home[-1] == key)
    home = next((home for home in homes if len(home) >= min(len(path), 2)), None)
    if near is not None and (home is None or len(path) > 1):
        home = (*path[:-1], near)
    return nearest_hint(key, names) if home is None else f"did you mean '{dotted(home)}'?"


def _needed(table: type[FileTable], path: KeyPath) -> str:
    """Return a hint with the first sentence of a missing key's documentation."""
    from simulator.reading.json_schema import meaning

    owner = table_at(table, path[:-1])
    text = "" if owner is None else meaning(owner, str(path[-1]))
    sentence = " ".join(text.split()).partition(". ")[0].rstrip(".")
    return f"needed: {sentence[0].lower()}{sentence[1:]}" if sentence else ""
