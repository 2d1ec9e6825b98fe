"""A scenario without mistakes in its sections, over which settings are put key by key.

Only the sections that settings touch are checked anew. Whatever is unusual about a setting (a
mistake, a table for a value, another overlay) is left to those who read the whole scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from simulator.errors import InputError
from simulator.files.document import Document, model_at
from simulator.files.lines import KeyPath
from simulator.files.merge_documents import parse_override
from simulator.files.resolved import LEFT_OUT, SECTIONS, Draft, draft_of, read_sections
from simulator.files.sections import ScenarioFile

MOST_KEPT: Final = 20_000
"""Answers of a kind that are kept for the next candidate."""
_OVERLAY: Final[KeyPath] = ("calibration", "overlay")


@dataclass(frozen=True, slots=True)
class Option:
    """A setting as it goes into a document."""

    path: KeyPath
    value: object
    origin: str

    @property
    def section(self) -> str:
        """Name of the section it belongs to."""
        return str(self.path[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What settings are put over.

    `places` has the file or option of every key path, `checked` the sections. What was read for
    one candidate is kept for the next.
    """

    document: Document
    places: Mapping[KeyPath, str]
    lines: Mapping[KeyPath, int]
    checked: Mapping[str, BaseModel | None]
    options: dict[str, Option | None] = field(default_factory=dict)
    sections: dict[tuple[str, ...], BaseModel | None] = field(default_factory=dict)

    def with_options(self, texts: Sequence[str]) -> Draft | None:
        """The draft with some options; None if they have to go the long way."""
        data, lines, places = dict(self.document.data), dict(self.lines), dict(self.places)
        touched: dict[str, list[str]] = {}
        for text in texts:
            option = self.option(text)
            if option is None or not _put(data, option, set(touched)):
                return None
            touched.setdefault(option.section, []).append(text)
            lines.pop(option.path, None)
            places[option.path] = option.origin
            for end in range(1, len(option.path)):
                places.setdefault(option.path[:end], option.origin)
        document = Document(origin=self.document.origin, data=data, lines=lines, origins=places)
        sections = dict(self.checked)
        for name, own in touched.items():
            sections[name] = self._section(name, data[name], own)
            if sections[name] is None:
                return None
        return draft_of(document, sections)

    def option(self, text: str) -> Option | None:
        """An option that sets a single value in a section; None for any other."""
        if text not in self.options:
            if len(self.options) > MOST_KEPT:
                self.options.clear()
            self.options[text] = _parsed(text)
        return self.options[text]

    def section(self, texts: Sequence[str]) -> BaseModel | None:
        """The section that these options belong to, with them put in; None if it has mistakes."""
        data, name = dict(self.document.data), ""
        for text in texts:
            option = self.option(text)
            if option is None or not _put(data, option, {name}):
                return None
            name = option.section
        return self._section(name, data[name], texts)

    def _section(self, name: str, data: object, texts: Sequence[str]) -> BaseModel | None:
        key = (name, *texts)
        if key not in self.sections:
            if len(self.sections) > MOST_KEPT:
                self.sections.clear()
            self.sections[key] = _validated(name, data)
        return self.sections[key]


def base_of(document: Document) -> Base | None:
    """What settings are put over; None if a section has mistakes."""
    _, problems = read_sections(document)
    if problems:
        return None
    lines = dict(document.lines)
    known = {**lines, **document.origins}
    places = {path: document.origins.get(path, document.origin) for path in known}
    data = {**LEFT_OUT, **document.data}
    checked = {name: _validated(name, data[name]) if name in data else None for name in SECTIONS}
    return Base(document=document, places=places, lines=lines, checked=checked)


def _parsed(text: str) -> Option | None:
    try:
        document = parse_override(text, ScenarioFile)
    except InputError:
        return None
    path = max(document.origins, key=len)
    value = document.value(path)
    whole = len(path) == text.partition("=")[0].count(".") + 1
    plain = whole and isinstance(value, str | int | float) and path != _OVERLAY
    if not plain or path[0] not in SECTIONS or len(path) == 1:
        return None
    return Option(path, value, document.origin)


def _put(data: dict[str, Any], option: Option, own: set[str]) -> bool:
    """Put an option into a copy of its section; False where something other than a value is.

    Tables in `own` were copied for this document before.
    """
    *parents, last = (str(part) for part in option.path)
    table = data
    for depth, name in enumerate(parents):
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            return False
        if depth or name not in own:
            table[name] = inner = dict(inner)
        table = inner
    if isinstance(table.get(last), dict | list):
        return False
    table[last] = option.value
    return True


def _validated(name: str, data: object) -> BaseModel | None:
    model = model_at(ScenarioFile, (name,))
    if model is None:
        return None
    try:
        return model.model_validate(data)
    except ValidationError:
        return None
