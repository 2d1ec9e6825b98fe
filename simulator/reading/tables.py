"""The reader of tables: conversion of TOML data to the frozen dataclass that describes it.

The annotations of a dataclass define the values of its keys (`schema.fields`): markers, other
dataclasses, lists, tables of equal entries, plain types. Every mistake of a table is recorded.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from enum import Enum, auto
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from simulator.reading.lines import KeyPath
from simulator.records import dataclass
from simulator.schema.fields import (
    SOURCED,
    BadValueError,
    Citation,
    Figure,
    Length,
    Marker,
    Sourceable,
    nearest_hint,
)
from simulator.schema.provenance import Source

Reader: TypeAlias = Callable[[Any, KeyPath, "Reading"], Any]
BROKEN: Final = object()
"""Result of reading a value with mistakes."""


class FileTable(Protocol):
    """A frozen dataclass that describes a table of a file."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


AnyTable = TypeVar("AnyTable", bound=FileTable)


class MistakeKind(Enum):
    """Subject of a mistake."""

    VALUE = auto()
    KEY = auto()
    """Name of an entry, in a table of equal entries."""
    MISSING = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake at a `path` within a table, with a hint.

    `show`: the message includes the value there.
    """

    path: KeyPath
    message: str
    hint: str = ""
    kind: MistakeKind = MistakeKind.VALUE
    show: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKey:
    """A key of a table: its name, the type of its values, and its default.

    `kind` is the annotation, `marker` reads the values (None for tables and plain types), `table`
    describes the table that is its value, or the tables in its list or under names chosen by the
    user. `depends`: the default depends on other keys.
    """

    name: str
    kind: Any
    required: bool
    default: object
    depends: bool
    marker: Marker | None
    table: type[FileTable] | None
    read: Reader

    @property
    def is_list(self) -> bool:
        """True if its values are lists."""
        return get_origin(without_none(self.kind)) in (list, tuple)

    @property
    def is_switch(self) -> bool:
        """True if its values are true and false."""
        return without_none(self.kind) is bool

    @property
    def is_text(self) -> bool:
        """True if its values are free text."""
        return self.kind is str or _holds_text(self.kind)


@dataclass(slots=True)
class Reading:
    """The mistakes found in a table, and the location of each of its keys.

    `cited` are the sources of figures by their paths.
    """

    place: Callable[[KeyPath], str]
    mistakes: list[Mistake] = field(default_factory=list)
    cited: dict[KeyPath, Source] = field(default_factory=dict)

    def refuse(self, path: KeyPath, message: str, hint: str = "") -> object:
        """Record a mistake and return `BROKEN`."""
        self.mistakes.append(Mistake(path, message, hint))
        return BROKEN

    def table(self, table: type[AnyTable], data: object, path: KeyPath) -> AnyTable | object:
        """Read a table; return `BROKEN` if it has mistakes."""
        before = len(self.mistakes)
        values = self.values(table, data, path)
        return table(**values) if len(self.mistakes) == before else BROKEN

    def values(self, table: type[FileTable], data: object, path: KeyPath) -> dict[str, Any]:
        """Return the values of the stated keys of a table that are valid."""
        if not isinstance(data, dict):
            self.refuse(path, *getattr(table, "NOT_A_TABLE", _NOT_A_TABLE))
            return {}
        keys, values = table_keys(table), dict[str, Any]()
        for name, key in keys.items():
            if name in data:
                value = key.read(data[name], (*path, name), self)
                if value is not BROKEN:
                    values[name] = value
            elif key.required:
                mistake = Mistake((*path, name), "is missing", kind=MistakeKind.MISSING)
                self.mistakes.append(mistake)
        for name in data:
            if name not in keys:
                message = "is not a known section" if isinstance(data[name], dict) else _UNKNOWN
                self.mistakes.append(Mistake((*path, name), message, kind=MistakeKind.UNKNOWN))
        if issubclass(table, Sourceable):
            values["sources"] = self._cited_in(path)
        elif "sources" in table.__dataclass_fields__ and "sources" not in keys:
            values["sources"] = {
                name: Source(reference=f"given: {self.place((*path, name))}", date="undated")
                for name in data
                if name in keys
            }
        return values

    def _cited_in(self, path: KeyPath) -> dict[str, Source]:
        """Return the sources of the figures of a table by dotted key, from 1 in lists."""
        depth = len(path)
        return {
            ".".join(
                str(part + 1 if isinstance(part, int) else part) for part in place[depth:]
            ): source
            for place, source in self.cited.items()
            if place[:depth] == path
        }


_UNKNOWN: Final = "is not a known key"
_NOT_A_TABLE: Final = ("is not a table", "write it as a [section] or {key = value}")


def table_keys(table: type[FileTable]) -> Mapping[str, TableKey]:
    """Return the keys of a table by name, in their order; cached."""
    keys = _KEYS.get(table)
    if keys is None:
        keys = _KEYS[table] = _keys_of(table)
    return keys


_KEYS: Final[dict[type[FileTable], Mapping[str, TableKey]]] = {}


def _keys_of(table: type[FileTable]) -> Mapping[str, TableKey]:
    hints = get_type_hints(table, include_extras=True)
    return {
        each.name: TableKey(
            name=each.name,
            kind=hints[each.name],
            required="required" in each.metadata
            or (each.default is MISSING and each.default_factory is MISSING),
            default=each.default if each.default_factory is MISSING else each.default_factory(),
            depends="depends" in each.metadata,
            marker=_marker(hints[each.name]),
            table=_table(hints[each.name]),
            read=_reader(hints[each.name]),
        )
        for each in fields(table)
        if "derived" not in each.metadata
    }


def key_at(table: type[FileTable], path: KeyPath) -> TableKey | None:
    """Return the key at `path`; None if there is none."""
    owner = table_at(table, path[:-1])
    return None if owner is None or not path else table_keys(owner).get(str(path[-1]))


def table_at(table: type[FileTable], path: KeyPath) -> type[FileTable] | None:
    """Return the dataclass of the table at `path`, also within lists and tables of tables."""
    owner: type[FileTable] | None = table
    for depth, part in enumerate(path):
        if owner is None or isinstance(part, int):
            continue
        key = table_keys(owner).get(part)
        if key is None:
            # A name that the user chose, in a table of equal entries.
            is_entry = depth > 0 and owner is not table
            owner = owner if is_entry else None
            continue
        owner = key.table
    return owner


def key_paths(table: type[FileTable], before: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of all keys of a table and of the tables in it."""
    for name, key in table_keys(table).items():
        path = (*before, name)
        yield path
        if key.table is not None:
            yield from key_paths(key.table, path)


def without_none(kind: Any) -> Any:  # noqa: ANN401 - an annotation
    """Return the annotation of an optional value without None."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    options = [option for option in get_args(kind) if option is not type(None)]
    if len(options) != 1:
        msg = f"a key has one type of values, not {kind}"
        raise TypeError(msg)
    return options[0]


def _marker(kind: Any) -> Marker | None:  # noqa: ANN401 - an annotation
    if get_origin(kind) is Annotated:
        found = next((one for one in kind.__metadata__ if hasattr(one, "read")), None)
        return found or _marker(kind.__origin__)
    inner = (_marker(part) for part in get_args(kind) if get_origin(kind) is not Literal)
    return next((one for one in inner if one is not None), None)


def _table(kind: Any) -> type[FileTable] | None:  # noqa: ANN401 - an annotation
    if get_origin(kind) is Annotated and SOURCED in kind.__metadata__:
        return Figure
    if isinstance(kind, type) and is_dataclass(kind):
        return kind
    inner = (_table(part) for part in get_args(kind) if get_origin(kind) is not Literal)
    return next((one for one in inner if one is not None), None)


def _holds_text(kind: Any) -> bool:  # noqa: ANN401 - an annotation
    origin = get_origin(kind)
    if origin in (list, tuple, Literal):
        return False
    return any(part is str or _holds_text(part) for part in get_args(kind))


def _reader(kind: Any) -> Reader:  # noqa: ANN401 - an annotation
    """Return a function that reads the values of an annotation."""
    kind = without_none(kind)
    origin, inner = get_origin(kind), get_args(kind)
    reader = _plain(kind)
    if origin is Annotated:
        reader = _annotated(kind)
        reader = _as_float(reader) if kind.__origin__ is float else reader
    elif origin in (list, tuple):
        reader = _list_of(_reader(inner[0]), origin)
    elif origin in (dict, Mapping):
        reader = _entries_of(*inner)
    elif origin is Literal:
        reader = _one_of(inner)
    elif isinstance(kind, type) and is_dataclass(kind):
        reader = _table_of(kind)
    return reader


def _table_of(table: type[FileTable]) -> Reader:
    return lambda value, path, reading: reading.table(table, value, path)


def _annotated(kind: Any) -> Reader:  # noqa: ANN401 - an annotation
    if SOURCED in kind.__metadata__:
        marks = tuple(mark for mark in kind.__metadata__ if mark is not SOURCED)
        return _figure_of(_reader(Annotated[(kind.__origin__, *marks)]))
    for mark in kind.__metadata__:
        if isinstance(mark, Length):
            return _of_length(_reader(kind.__origin__), mark)
        if hasattr(mark, "read"):
            return _marked(mark)
    return _reader(kind.__origin__)


def _as_float(number: Reader) -> Reader:
    """Return a reader that converts integers to floats, for keys used in formulas."""

    def read(value: object, path: KeyPath, reading: Reading) -> object:
        found = number(value, path, reading)
        return float(found) if isinstance(found, int) else found

    return read


def _figure_of(value: Reader) -> Reader:
    """Return a reader of the value of a figure's table, which records the source."""

    def read(data: object, path: KeyPath, reading: Reading) -> object:
        before = len(reading.mistakes)
        table = reading.table(Figure, data, path)
        if not isinstance(data, dict) or "value" not in data:
            return BROKEN
        found = value(data["value"], (*path, "value"), reading)
        if len(reading.mistakes) > before or not isinstance(table, Citation):
            return BROKEN
        reading.cited[path] = table.cited
        return found

    return read


def _marked(marker: Marker) -> Reader:
    def read(value: object, path: KeyPath, reading: Reading) -> object:
        try:
            return marker.read(value)
        except BadValueError as error:
            return reading.refuse(path, error.message, error.hint)

    return read


def _of_length(items: Reader, length: Length) -> Reader:
    def read(value: object, path: KeyPath, reading: Reading) -> object:
        if isinstance(value, list):
            low, high = length.low, length.high
            if len(value) < low or (high is not None and len(value) > high):
                allowed = f"{low}" if low == high else f"at least {low}"
                return reading.refuse(path, f"has {len(value)} items", f"{allowed} are needed")
        return items(value, path, reading)

    return read


def _list_of(item: Reader, container: Callable[[list[Any]], Any]) -> Reader:
    def read(value: object, path: KeyPath, reading: Reading) -> object:
        if not isinstance(value, list):
            return reading.refuse(path, "is not a list", "write it in square brackets")
        found = [item(each, (*path, index), reading) for index, each in enumerate(value)]
        return BROKEN if BROKEN in found else container(found)

    return read


def _entries_of(name_kind: Any, kind: Any) -> Reader:  # noqa: ANN401 - annotations
    marker, entry = _marker(name_kind), _reader(kind)

    def read(value: object, path: KeyPath, reading: Reading) -> object:
        if not isinstance(value, dict):
            return reading.refuse(path, *_NOT_A_TABLE)
        found, broken = dict[Any, Any](), False
        for name, each in value.items():
            key: Any = name
            if marker is not None:
                try:
                    key = marker.read(name)
                except BadValueError as error:
                    broken = True
                    mistake = Mistake((*path, name), error.message, error.hint, MistakeKind.KEY)
                    reading.mistakes.append(mistake)
            found[key] = entry(each, (*path, name), reading)
            if (*path, name) in reading.cited:  # by the name that the key has here
                reading.cited[*path, str(key)] = reading.cited.pop((*path, name))
        return BROKEN if broken or BROKEN in found.values() else found

    return read


def _one_of(values: tuple[object, ...]) -> Reader:
    names = tuple(map(str, values))

    def read(value: object, path: KeyPath, reading: Reading) -> object:
        if value in values:
            return value
        hint = nearest_hint(value if isinstance(value, str) else "", names)
        return reading.refuse(path, "is not a valid choice", hint)

    return read


_PLAIN: Final[Mapping[Any, tuple[tuple[type, ...], str, str]]] = {
    bool: ((bool,), "is not true or false", "write true or false, without quotes"),
    str: ((str,), "is not text", "write it in quotes"),
    int: ((int,), "is not a whole number", "write it without quotes and without a point"),
    float: ((int, float), "is not a number", "write it without quotes"),
}
"""Plain types with the types of their values, the message about other values, and a hint."""


def _plain(kind: Any) -> Reader:  # noqa: ANN401 - a type, or object for any value
    allowed, message, hint = _PLAIN.get(kind, ((object,), "", ""))

    def read(value: object, path: KeyPath, reading: Reading) -> object:
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind in (int, float)):
            return reading.refuse(path, message, hint)
        return float(value) if kind is float and isinstance(value, int) else value

    return read
