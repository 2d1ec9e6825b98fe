"""Merging of a scenario, the files it extends, and ``--set`` options into one document.

Later texts take precedence, key by key: tables are merged, everything else is replaced. Each key
has the file and line (or the option) it came from, so that mistakes are reported there.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TextIO

from simulator.errors import InputError, Problem, UnknownName
from simulator.reading.document import (
    Document,
    parse_document,
    read_document,
    schema_problem,
)
from simulator.reading.fitted.overlay import overrides_of, read_overlay
from simulator.reading.lines import DEEPEST, KeyPath, TooDeepError, key_lines
from simulator.reading.reading import LARGEST, fail, neighbour
from simulator.reading.shipped import find_scenario, nearest_scenarios
from simulator.reading.tables import FileTable, key_at
from simulator.records import dataclass
from simulator.schema.training import Mode

STANDARD_INPUT: Final = "-"
_OWN: Final = ("schema", "name", "title")
"""Keys that describe one file and are not inherited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A document, the folder to which `extends` is relative, and its identity, to detect cycles."""

    document: Document
    folder: Path
    identity: str


def gather(
    name_or_path: str,
    *,
    overrides: Sequence[str] = (),
    stdin: TextIO | BinaryIO | None = None,
    model: type[FileTable],
    overlay: Path | None = None,
) -> tuple[Document, tuple[Problem, ...]]:
    """Read a scenario and all files it extends.

    Parameters
    ----------
    name_or_path : str
        A file, the name of a shipped scenario, or ``-`` for standard input.
    overrides : sequence of str
        ``section.key=value``, the value as in TOML or plain text.
    stdin : file object, optional
        Used instead of standard input.
    model : type of a frozen dataclass
        The table that describes the document, which determines the options whose values are text.
    overlay : pathlib.Path, optional
        Fitted parameters, which override the files and are overridden by options; by default those
        that ``calibration.overlay`` names.

    Returns
    -------
    Document
        The merged document.
    tuple of Problem
        Mistakes in options and ``schema`` keys that do not prevent checking the rest.

    Raises
    ------
    InputError
        If a file cannot be read, or files extend each other in a circle.
    UnknownName
        If there is no such scenario.
    """
    chain = chain_of(name_or_path, stdin)
    return joined(chain, overrides=overrides, model=model, overlay=overlay)


def chain_of(name_or_path: str, stdin: TextIO | BinaryIO | None = None) -> tuple[Document, ...]:
    """Return the documents of a scenario, of the file it extends, and so on.

    Raises the errors of `gather`.
    """
    return tuple(_chain(_open(name_or_path, stdin)))


def joined(
    chain: Sequence[Document],
    *,
    overrides: Sequence[str] = (),
    model: type[FileTable],
    overlay: Path | None = None,
) -> tuple[Document, tuple[Problem, ...]]:
    """Merge a chain of documents, an overlay and options, like `gather`."""
    problems = [problem for base in chain[1:] if (problem := schema_problem(base)) is not None]
    merged = chain[-1]
    for child in reversed(chain[:-1]):
        merged = merge(merged, child)
    merged = replace(merged, batch_size=_batch_size(merged))
    options = []
    for text in overrides:
        try:
            options.append(parse_override(text, model))
        except InputError as error:
            problems += error.problems
    for part in (*_overlaid([merged, *options], overlay), *options):
        merged = merge(merged, part)
    return replace(merged, origin=chain[0].origin), tuple(problems)


def _batch_size(document: Document) -> int | None:
    """Return the batch size that a document states, if it is a number."""
    stated = document.value(("train", "batch_size"))
    return stated if isinstance(stated, int) else None


def _overlaid(parts: Sequence[Document], overlay: Path | None) -> list[Document]:
    """Return two documents for an overlay: its path, and its values; none without an overlay.

    It is `overlay`, or the one that the last of several documents names.
    """
    if overlay is None:
        named = [part.value(("calibration", "overlay")) for part in parts]
        name = next((text for text in reversed(named) if isinstance(text, str) and text), None)
        if name is None:
            return []
        overlay = Path(name)
    values = overrides_of(read_overlay(overlay), str(overlay))
    home = Document(origin=str(overlay), data={"calibration": {"overlay": str(overlay)}}, lines={})
    return [home, values]


def _open(name_or_path: str, stdin: TextIO | BinaryIO | None) -> Opened:
    if name_or_path == STANDARD_INPUT:
        document = parse_document(_all_of(stdin), "standard input")
        return Opened(document=document, folder=Path(), identity=STANDARD_INPUT)
    path = find_scenario(name_or_path)
    if path is None:
        advice = nearest_scenarios(name_or_path)
        msg = f"there is no scenario '{name_or_path}', neither a file nor a shipped one; {advice}"
        raise UnknownName(msg)
    return _read(path)


def _read(path: Path) -> Opened:
    document = _near(read_document(path), path.parent)
    return Opened(document=document, folder=path.parent, identity=str(path.resolve()))


def _near(document: Document, folder: Path) -> Document:
    """Return the document with the path of its overlay relative to `folder`."""
    table = document.data.get("calibration")
    if not isinstance(table, dict):
        return document
    name = table.get("overlay")
    if not isinstance(name, str) or not name.strip():
        return document
    placed = {**table, "overlay": str(folder / name)}
    return replace(document, data={**document.data, "calibration": placed})


def _all_of(stdin: TextIO | BinaryIO | None) -> bytes:
    stream = sys.stdin if stdin is None else stdin
    if stream is None:
        fail("standard input", "is closed")
    try:
        content = getattr(stream, "buffer", stream).read(LARGEST + 1)
    except (OSError, ValueError) as error:
        fail("standard input", f"cannot be read: {error}")
    return content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content


def _chain(first: Opened) -> list[Document]:
    """Return the documents of a scenario, of the file it extends, and so on."""
    chain = [first]
    while "extends" in chain[-1].document.data:
        newest = chain[-1]
        base = _base(newest)
        seen = [source.identity for source in chain]
        if base.identity in seen:
            circle = [*chain[seen.index(base.identity) :], base]
            names = " -> ".join(source.document.origin for source in circle)
            _refuse_base(newest, "leads back to itself", f"the circle is {names}")
        chain.append(base)
    return [source.document for source in chain]


def _base(source: Opened) -> Opened:
    name = source.document.data["extends"]
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        _refuse_base(source, "is not the name of a scenario", "write it in quotes")
    path = find_scenario(name, source.folder)
    if path is None:
        _refuse_base(source, "unknown scenario", nearest_scenarios(name, source.folder))
    if not path.exists():
        _refuse_base(source, "is a file that does not exist", neighbour(path))
    return _read(path)


def _refuse_base(source: Opened, message: str, hint: str | None) -> NoReturn:
    raise InputError((source.document.problem(("extends",), message, hint=hint),))


def merge(base: Document, over: Document) -> Document:
    """Return `base` with the keys of `over`: tables are merged, everything else is replaced."""
    own = [key for key in _OWN if over.lines]
    kept = {key: value for key, value in base.data.items() if key not in own}
    replaced: set[KeyPath] = {(key,) for key in own}
    data = _merged(kept, over.data, (), replaced)
    places = {
        path: (base.origins.get(path, base.origin), base.lines.get(path))
        for path in {**base.lines, **base.origins}
        if not any(path[:end] in replaced for end in range(1, len(path) + 1))
    }
    for path in {**over.lines, **over.origins}:
        place = (over.origins.get(path, over.origin), over.lines.get(path))
        # An option passes through a table that a file has a line for.
        if place[1] is not None or path not in places:
            places[path] = place
    return Document(
        origin=over.origin,
        data=data,
        lines={path: line for path, (_, line) in places.items() if line is not None},
        origins={path: origin for path, (origin, _) in places.items()},
        batch_size=base.batch_size,
    )


def merged_tables(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return the table `base` with the keys of `over` merged in."""
    return _merged(base, over, (), set())


def _merged(
    base: dict[str, Any], over: dict[str, Any], path: KeyPath, replaced: set[KeyPath]
) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        old = base.get(key)
        here = (*path, key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = _merged(old, value, here, replaced)
        else:
            result[key] = value
            replaced.add(here)
    return result


def parse_override(text: str, model: type[FileTable]) -> Document:
    """Parse ``section.key=value`` as a document of one key.

    Parameters
    ----------
    text : str
        The option's argument; its value is TOML if valid, else text.
    model : type of a frozen dataclass
        The table of the file, which determines the keys whose values are always text.

    Raises
    ------
    InputError
        If there is no ``=``, or the key is invalid or may not be set.
    """
    longest = 100
    origin = f"--set {text if len(text) <= longest else text[:longest] + '...'}"
    key, equals, raw = text.partition("=")
    if not equals:
        fail(origin, "has no value", hint="write section.key=value")
    path = _key_path(key, origin)
    if path[0] in ("schema", "extends"):
        fail(origin, f"{path[0]} can only be set in a file")
    known = key_at(model, path)
    value = value_of_text(raw, text=known is not None and known.is_text)
    data: dict[str, Any] = {str(path[-1]): value}
    for part in reversed(path[:-1]):
        data = {str(part): data}
    places = [path[:end] for end in range(1, len(path))] + list(_inner_paths(value, path))
    return Document(origin=origin, data=data, lines={}, origins=dict.fromkeys(places, origin))


def _key_path(key: str, origin: str) -> KeyPath:
    statement = f"{key} = 0"
    try:
        tomllib.loads(statement)
        paths = key_lines(statement).lines
    except (tomllib.TOMLDecodeError, TooDeepError):
        paths = {}
    if not paths or "\n" in key:
        fail(origin, "has no key before the equals sign", hint="write section.key=value")
    return max(paths, key=len)


def value_of_text(raw: str, *, text: bool) -> object:
    """Parse a value as TOML; return the text if that fails, or with `text` if not a string."""
    try:
        value = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw.strip()
    is_one = set(value) == {"value"} and "\n" not in raw
    if not is_one or (text and not isinstance(value["value"], str)):
        return raw.strip()
    return value["value"]


def _inner_paths(value: object, path: KeyPath) -> Iterator[KeyPath]:
    yield path
    if len(path) > DEEPEST:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _inner_paths(inner, (*path, key))


MODE: Final = "mode"
_OF_JOBS: Final = tuple(Mode)


def describes_service(chain: Sequence[Document]) -> bool:
    """Return whether a document, or one that it extends, describes a service."""
    return any(_is_service(document) for document in chain)


def _is_service(document: Document) -> bool:
    return document.data.get(MODE, _OF_JOBS[0]) not in _OF_JOBS


def refuse_service(document: Document) -> None:
    """Refuse a service where a job is required.

    Raises
    ------
    InputError
        If the document has a key of a service.
    """
    if _is_service(document):
        hint = (
            "plan simulate, sweep, whatif, explain, report, compare, recommend and size answer "
            "about them"
        )
        message = "makes this file a service, which has no training job"
        raise InputError((document.problem((MODE,), message, hint=hint),))
