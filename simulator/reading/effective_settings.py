"""All keys of a scenario with their values, defaults included, for comparing two scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from simulator.reading.document import Document, check, shown
from simulator.reading.lines import KeyPath
from simulator.reading.reading import dotted
from simulator.reading.service.sections import ServiceFile
from simulator.reading.tables import FileTable, table_keys
from simulator.reading.unresolved import read_sections
from simulator.records import dataclass
from simulator.schema.fields import Section
from simulator.schema.scenario import Scenario
from simulator.schema.serving import Service, Serving

_SECTIONS: Final = (
    *("hardware", "remote", "data", "input", "model", "train", "parallelism", "software"),
    *("memory", "cost", "calibration"),
    *("run", "failures", "checkpoint", "spot", "energy", "owned", "store"),
)
"""Sections in the order in which reports compare them; name and title are not inputs."""
OPTIONAL: Final = frozenset(
    {"remote", "parallelism", "run", "failures", "checkpoint", "spot", "energy", "owned", "store"}
)
"""Sections without which their defaults do not apply."""
_OF_SERVICES: Final = (
    *("hardware", "model", "serving", "load", "slo", "calibration", "cost", "owned", "energy"),
)
"""Sections of a service in the order in which reports compare them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A key with its `value` to compare and its `text` to display; `given`: the file states it."""

    value: object
    text: str
    given: bool


def inputs(document: Document, scenario: Scenario) -> Mapping[str, Input]:
    """Return every key of a valid scenario with its value, by dotted name.

    Parameters
    ----------
    document : Document
        Contents of the scenario's files and options.
    scenario : Scenario
        The scenario of the document, with the defaults that depend on other keys.
    """
    file, _ = read_sections(document)
    sections = (
        (name, getattr(file, name))
        for name in _SECTIONS
        if name not in OPTIONAL or name in document.data
    )
    return _inputs(document, sections, lambda value, path: _settled(value, path, scenario))


def service_inputs(document: Document, service: Service) -> Mapping[str, Input]:
    """Return every key of a valid service with its value, by dotted name.

    Parameters
    ----------
    document : Document
        Contents of the service's files and options.
    service : Service
        The service of the document, with the engine's own defaults.
    """
    file = check(ServiceFile, document)
    sections = {name: getattr(file, name) for name in _OF_SERVICES}
    sections["serving"] = file.serving or Serving()
    return _inputs(document, sections.items(), lambda value, path: _served(value, path, service))


def _inputs(
    document: Document,
    sections: Iterable[tuple[str, FileTable | None]],
    settle: Callable[[object, KeyPath], object],
) -> dict[str, Input]:
    """Return the keys of sections with their values, with defaults filled in by `settle`."""
    found: dict[str, Input] = {}
    for name, section in sections:
        if section is None:
            continue
        for path, value in _leaves(section, (name,)):
            said = document.value(path)
            settled = value if said is not None else settle(value, path)
            text = _text(settled) if said is None else shown(said).strip("'\"")
            found[dotted(path)] = Input(value=settled, text=text, given=said is not None)
    return found


def _leaves(table: FileTable, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    for name, key in table_keys(type(table)).items():
        value = getattr(table, name)
        here = (*path, name)
        stated = not isinstance(table, Section) or table.states(name)
        if not stated and (key.depends or is_dataclass(value)):
            value = None
        if is_dataclass(value) and not isinstance(value, type):
            yield from _leaves(value, here)
        elif isinstance(value, dict):
            yield from (((*here, str(key)), item) for key, item in value.items())
        else:
            yield here, _plain(value)


def _plain(value: object) -> object:
    """Convert a value to plain data that can be compared."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        items = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {key: _plain(item) for key, item in items if item is not None}
    return value.value if isinstance(value, Enum) else value


def _settled(value: object, path: KeyPath, scenario: Scenario) -> object:
    """Return the value, or if it is left out, the value in the scenario."""
    if value is not None or len(path) != 2:  # noqa: PLR2004 - a section and a key
        return value
    job = scenario.job
    homes: dict[str, tuple[object, ...]] = {
        "input": (job.input,),
        "train": (job.train,),
        "software": (job.software,),
    }
    found = (_held(home, path[1]) for home in homes.get(str(path[0]), ()))
    return next((one for one in found if one is not None), None)


def _served(value: object, path: KeyPath, service: Service) -> object:
    """Return the value, or the engine's default for a key of ``[serving]`` that is left out."""
    if len(path) != 2 or path[0] != "serving":  # noqa: PLR2004 - a section and a key
        return value
    if path[1] == "version":
        return service.serving.rules.version
    depends = table_keys(Serving)[str(path[1])].depends
    return _held(service.serving, path[1]) if depends or value is None else value


def _held(home: object, key: str | int) -> object:
    """Return the attribute `key` of an object if it is a plain value, else None."""
    found = getattr(home, str(key), None)
    if not isinstance(found, bool | int | float | str):
        return None
    return found.value if isinstance(found, Enum) else found


def _text(value: object) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)
