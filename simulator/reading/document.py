"""A TOML file as plain data with lines, and its check against a pydantic model.

`read_document` and `parse_document` give a `Document`; `check` holds it against a `FileModel` and
reports every mistake in one `InputError`.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from simulator.errors import InputError, Problem
from simulator.reading.field_docs import meaning
from simulator.reading.lines import KeyPath, LazyLines
from simulator.reading.quantity import MISTAKE, nearest_hint, slip_of
from simulator.reading.reading import decode, dotted, parse_toml, read_bytes
from simulator.reading.shipped import without_folder

SCHEMA: Final = 1
"""The file format this version reads; every file says ``schema = 1``."""

AnyModel = TypeVar("AnyModel", bound=BaseModel)


class FileModel(BaseModel):
    """A table of a file: frozen, closed to unknown keys, and without silent conversions."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        defer_build=True,
        validate_default=False,
        populate_by_name=True,
    )


MOST_PROBLEMS: Final = 40
"""How many mistakes of one file are told, each with a search for the nearest name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file says, before anyone knows whether it makes sense.

    `data` are the TOML values, `lines` the line of each key path. Where a document was put
    together from several files and options, `origins` names the source of each key path that
    doesn't come from `origin`, and `batch_size` is that of the files, whatever options say: the one
    that a step time in them was measured at.
    """

    origin: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    origins: Mapping[KeyPath, str] = field(default_factory=dict)
    within: frozenset[str] | None = None
    batch_size: int | None = None

    def where(self, path: KeyPath) -> tuple[str, int | None]:
        """File (or option) and line of `path`, or of the table it is missing from."""
        self._refuse_outside(path)
        for end in range(len(path), 0, -1):
            part = path[:end]
            if self.knows(part):
                return self.origins.get(part, self.origin), self.lines.get(part)
        return self.origin, None

    def knows(self, path: KeyPath) -> bool:
        """Whether it is known where `path` itself was given."""
        return path in self.lines or path in self.origins

    def place(self, path: KeyPath) -> str:
        """`where` in words that are the same wherever plan is installed."""
        origin, line = self.where(path)
        name = without_folder(origin)
        return name if line is None else f"{name}:{line}"

    def value(self, path: KeyPath) -> object:
        """What stands at `path`; None where nothing does."""
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
        """Whether anything stands at `path`."""
        return self.value(path) is not None

    def problem(
        self, path: KeyPath, message: str, *, hint: str | None = None, show: bool = True
    ) -> Problem:
        """A `Problem` at `path`, which shows the value there unless told not to."""
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
    """The document of a file, parsed once as long as the file stays as it is."""
    del stamp
    return parse_document(read_bytes(path), str(path))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is written; None for what is no regular file."""
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


def check(model: type[AnyModel], document: Document, *, at: KeyPath = ()) -> AnyModel:
    """Hold a document, or the table `at` a path in it, against a file model.

    Parameters
    ----------
    model : type of pydantic.BaseModel
        Describes the table without its ``schema`` key, which is checked here.
    document : Document
        What to check.
    at : tuple of str or int
        Path of the table; the whole document by default.

    Returns
    -------
    pydantic.BaseModel
        An instance of `model`.

    Raises
    ------
    InputError
        With all problems of the table.
    """
    checked, problems = examine(model, document, at=at)
    if checked is None:
        raise InputError(problems)
    return checked


def examine(
    model: type[AnyModel], document: Document, *, at: KeyPath = ()
) -> tuple[AnyModel | None, tuple[Problem, ...]]:
    """Like `check`, but the problems are returned: for those who collect more of them."""
    data = document.value(at)
    problems: list[Problem] = []
    if not at and isinstance(data, dict):
        problem = schema_problem(document)
        if problem is not None:
            problems.append(problem)
            if "schema" in data:
                # Nothing else can be said about a format that is unknown.
                return None, tuple(problems)
        other = kind_problem(model, document)
        if other is not None:
            return None, (*problems, other)
        data = {key: value for key, value in data.items() if key != "schema"}
    try:
        checked = model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        details.sort(key=lambda detail: _place(document, at, detail))
        problems += [_problem(model, document, at, detail) for detail in details[:MOST_PROBLEMS]]
        problems.sort(key=lambda problem: (problem.origin, problem.line or 0))
        if (more := len(details) - MOST_PROBLEMS) > 0:
            last = problems[-1]
            problems.append(replace(last, key=None, found=None, hint=None, message=_more(more)))
        return None, tuple(dict.fromkeys(problems))
    return (None if problems else checked), tuple(problems)


def kind_problem(model: type[BaseModel], document: Document) -> Problem | None:
    """That a file is of another kind: several keys stand there, and none is one of the model's.

    A name and a title say nothing of a kind.
    """
    known, told = list(_names(model)), set(document.data) - {"schema", "name", "title"}
    if len(told) <= 1 or not told.isdisjoint(known):
        return None
    message = "is a file of another kind: nothing in it is known here"
    hint = f"allowed: {', '.join(known)}"
    return Problem(origin=document.origin, message=message, hint=hint)


def schema_problem(document: Document) -> Problem | None:
    """What is wrong with the document's ``schema``, if anything is."""
    schema = document.data.get("schema")
    if schema is None:
        return document.problem(("schema",), "is missing", hint=f"begin with schema = {SCHEMA}")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema != SCHEMA:
        hint = f"this version reads schema = {SCHEMA}"
        return document.problem(("schema",), "is an unknown file format", hint=hint)
    return None


def shown(value: object) -> str:
    """A value as messages show it: short, on one line, as TOML would write it."""
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


_TYPES: Final = {
    "missing": ("is missing", ""),
    "model_type": ("is not a table", "write it as a [section] or {key = value}"),
    "dict_type": ("is not a table", "write it as a [section] or {key = value}"),
    "list_type": ("is not a list", "write it in square brackets"),
    "bool_type": ("is not true or false", "write true or false, without quotes"),
    "string_type": ("is not text", "write it in quotes"),
    "int_type": ("is not a whole number", "write it without quotes and without a point"),
    "float_type": ("is not a number", "write it without quotes"),
}


def _more(count: int) -> str:
    return f"has {count:,} more problems"


def _place(document: Document, at: KeyPath, detail: ErrorDetails) -> tuple[str, int]:
    """File and line of a mistake."""
    origin, line = document.where((*at, *(part for part in detail["loc"] if part != "[key]")))
    return origin, line or 0


def _problem(
    model: type[BaseModel], document: Document, at: KeyPath, detail: ErrorDetails
) -> Problem:
    path = tuple(part for part in detail["loc"] if part != "[key]")
    kind = detail["type"]
    if kind == "extra_forbidden":
        hint = _key_hint(model, path)
        if isinstance(detail["input"], dict):
            return document.problem(at + path, "is not a known section", hint=hint, show=False)
        return document.problem(at + path, "is not a known key", hint=hint)
    if kind == MISTAKE:
        context = detail["ctx"]
        found = document.problem(at + path, context["message"], hint=context["hint"])
        return replace(found, found=shown(path[-1])) if detail["loc"][-1] == "[key]" else found
    if kind in _TYPES:
        message, hint = _TYPES[kind]
        example = _example(model, path) if kind == "missing" else ""
        return document.problem(at + path, message, hint=example or hint)
    said = detail["msg"].removeprefix("Value error, ")
    return document.problem(at + path, said[0].lower() + said[1:])


def _key_hint(model: type[BaseModel], path: KeyPath) -> str:
    key = str(path[-1])
    owner = model_at(model, path[:-1])
    names = tuple(_names(owner)) if owner else ()
    beside = slip_of(key, names)
    homes = (home for home in _paths(model, ()) if home[-1] == key)
    home = next((home for home in homes if len(home) >= min(len(path), 2)), None)
    if beside is not None and (home is None or len(path) > 1):
        home = (*path[:-1], beside)
    return nearest_hint(key, names) if home is None else f"did you mean '{dotted(home)}'?"


def _names(model: type[BaseModel]) -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield info.alias or name


def _paths(model: type[BaseModel], before: KeyPath) -> Iterator[KeyPath]:
    for name, info in model.model_fields.items():
        path = (*before, info.alias or name)
        yield path
        inner = _inner_model(info.annotation)
        if inner is not None:
            yield from _paths(inner, path)


def _example(model: type[BaseModel], path: KeyPath) -> str:
    info = field_at(model, path)
    owner = model_at(model, path[:-1])
    if info is None or owner is None:
        return ""
    name = next(name for name, one in owner.model_fields.items() if one is info)
    return _first_sentence(meaning(owner, name))


def _first_sentence(text: str) -> str:
    plain = " ".join(text.split())
    sentence = plain.partition(". ")[0].rstrip(".")
    return f"needed: {sentence[0].lower()}{sentence[1:]}" if sentence else ""


def field_at(model: type[BaseModel], path: KeyPath) -> FieldInfo | None:
    """The field that `path` leads to, None if there is none."""
    owner = model_at(model, path[:-1])
    if owner is None or not path:
        return None
    fields = owner.model_fields.items()
    return next((info for name, info in fields if (info.alias or name) == path[-1]), None)


def is_text(model: type[BaseModel], path: KeyPath) -> bool:
    """Whether free text belongs at `path`."""
    info = field_at(model, path)
    return info is not None and (info.annotation is str or _holds_text(info.annotation))


def _holds_text(annotation: object) -> bool:
    inner = get_args(annotation)
    return get_origin(annotation) is not list and any(
        argument is str or _holds_text(argument) for argument in inner
    )


def model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The model of the table at `path`, seen through lists, tables of tables and None."""
    owner: type[BaseModel] | None = model
    for depth, part in enumerate(path):
        if owner is None or isinstance(part, int):
            continue
        info = field_at(owner, (part,)) if part in _names(owner) else None
        if info is None:
            # A key that the user chose, in a table of equal tables.
            is_entry = depth > 0 and owner is not model
            owner = owner if is_entry else None
            continue
        owner = _inner_model(info.annotation)
    return owner


def _inner_model(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        inner = _inner_model(argument)
        if inner is not None:
            return inner
    return None
