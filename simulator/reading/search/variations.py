"""Candidates: one scenario, read once, with other values for some of its keys.

A candidate is the scenario's draft with some sections exchanged. Only the sections that its keys
belong to are checked again, and what sections settle together is worked out again
(`resolved.settled_by`). Each part of the scenario says which fields of the draft it reads
(`resolved.Part`); it is made once for all candidates that agree in these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from simulator.errors import InputError, Problem
from simulator.reading.checks.sections import CHECKS
from simulator.reading.document import Document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.lines import KeyPath
from simulator.reading.merge_documents import parse_override
from simulator.reading.resolved import (
    COUNTS,
    LEFT_OUT,
    LOOK_UPS,
    SECTIONS,
    SETTLED,
    STEP_TIME,
    Ask,
    Draft,
    Found,
    LookUp,
    Part,
    batch_of_step,
    draft_of,
    draft_with,
    part,
    read_sections,
    with_step_times,
)
from simulator.reading.scenario import ModelLibrary, converted, refuse
from simulator.reading.sections import ModelSection, ScenarioFile
from simulator.reading.tables import BROKEN, FileTable, Reading, table_at
from simulator.schema.scenario import Scenario

Thing = TypeVar("Thing")
MOST_KEPT: Final = 20_000
"""Answers of a kind that are kept for the next candidate."""
_OVERLAY: Final[KeyPath] = ("calibration", "overlay")
_UNKNOWN: Final[Any] = object()
_Numbered: TypeAlias = list[tuple[int, Problem]]


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


@dataclass(frozen=True, slots=True)
class Bare:
    """A scenario for closed forms, without uncertainties."""

    scenario: Scenario
    ask: Ask
    """Knows the parts of its draft, or makes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A scenario without mistakes in its sections, over which settings are put.

    `places` has the file or option of every key path, `checked` the sections.
    """

    document: Document
    places: Mapping[KeyPath, str]
    lines: Mapping[KeyPath, int]
    checked: Mapping[str, FileTable | None]
    options: dict[str, Option | None] = field(default_factory=dict)
    sections: dict[tuple[str, ...], FileTable | None] = field(default_factory=dict)

    def with_options(self, texts: Sequence[str]) -> Draft | None:
        """The draft with some options; None if they have to go the long way."""
        touched: dict[str, list[str]] = {}
        for text in texts:
            option = self.option(text)
            if option is None:
                return None
            touched.setdefault(option.section, []).append(text)
        changed = {name: self.section(tuple(own)) for name, own in touched.items()}
        if None in changed.values():
            return None
        return draft_of(self.told(texts), {**self.checked, **changed})

    def told(self, texts: Sequence[str]) -> Document:
        """The document with options that have been found sound."""
        data, lines, places = dict(self.document.data), dict(self.lines), dict(self.places)
        own = set[str]()
        for text in texts:
            option = self.option(text)
            if option is None or not _put(data, option, own):
                msg = f"{text} makes a section, but not a document"
                raise TypeError(msg)
            own.add(option.section)
            lines.pop(option.path, None)
            places[option.path] = option.origin
            for end in range(1, len(option.path)):
                places.setdefault(option.path[:end], option.origin)
        return Document(
            origin=self.document.origin,
            data=data,
            lines=lines,
            origins=places,
            batch_size=self.document.batch_size,
        )

    def option(self, text: str) -> Option | None:
        """An option that sets a single value in a section; None for any other."""
        if text not in self.options:
            if len(self.options) > MOST_KEPT:
                self.options.clear()
            self.options[text] = _parsed(text)
        return self.options[text]

    def section(self, texts: tuple[str, ...]) -> FileTable | None:
        """The section that these options belong to, with them put in; None if it has mistakes."""
        if texts not in self.sections:
            if len(self.sections) > MOST_KEPT:
                self.sections.clear()
            self.sections[texts] = self._section(texts)
        return self.sections[texts]

    def _section(self, texts: tuple[str, ...]) -> FileTable | None:
        data, name = dict(self.document.data), ""
        for text in texts:
            option = self.option(text)
            if option is None or not _put(data, option, {name}):
                return None
            name = option.section
        return _validated(name, data[name])


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


def _validated(name: str, data: object) -> FileTable | None:
    table = table_at(ScenarioFile, (name,))
    if table is None:
        return None
    reading = Reading(lambda _: "")
    found: Any = reading.table(table, data, (name,))
    return None if found is BROKEN else found


class _Known:
    """Parts that have been made, for all candidates that agree in some fields."""

    def __init__(self, fields: frozenset[str]) -> None:
        self._objects = tuple(sorted(fields - COUNTS))
        self._counts = tuple(sorted(fields & COUNTS))
        self._made: dict[tuple[int, ...], tuple[list[Any], dict[Part[Any], Any]]] = {}

    def of(self, fields: Mapping[str, Any]) -> dict[Part[Any], Any]:
        """Those of a candidate with these fields; more can be put in."""
        objects = [fields[name] for name in self._objects]
        key = (*map(id, objects), *[fields[name] for name in self._counts])
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            # As long as the objects are kept, no others can have their identities.
            found = self._made[key] = objects, {}
        return found[1]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a part is known: by the `fields` it reads, and by the `sections` these follow from.

    Both count only what candidates differ in. No candidate has all its sections from another one:
    a part that follows from all of them is known by its fields alone.
    """

    fields: _Known
    sections: _Known | None


class Variations:
    """Reads candidates that set the same keys.

    A part is made once for all candidates that agree in what it reads. It is also known by the
    sections that this follows from: so a candidate finds most of its parts at once.

    Parameters
    ----------
    base : Base
        What they are put over.
    paths : sequence of tuple of str
        The keys.
    catalogue : Catalogue
        Knows the hardware profiles.
    default_name : str
        What the scenario is called where it has no name.
    """

    def __init__(
        self, base: Base, paths: Sequence[KeyPath], catalogue: Catalogue, default_name: str
    ) -> None:
        self.base = base
        self._default_name = default_name
        self._measured_at = None if STEP_TIME in paths else batch_of_step(base.document)
        self._keys: dict[str, list[int]] = {}
        for number, path in enumerate(paths):
            self._keys.setdefault(str(path[0]), []).append(number)
        library = ModelLibrary()
        self._look_ups = {_part_of(one, catalogue, library): one.names for one in LOOK_UPS}
        self._by_fields: dict[frozenset[str], _Known] = {}
        self._by_sections: dict[frozenset[str], _Known] = {}
        self._places: dict[Part[Any], _Place] = {}
        self._checks = self._grouped_checks()

    def read(self, texts: tuple[str, ...]) -> Bare | None:
        """The candidate with these options, one for each key; None if it goes the long way.

        Raises
        ------
        InputError
            With all mistakes of its sections against each other.
        """
        fields = self._sections(texts)
        if fields is None:
            return None
        candidate = _Candidate(self, texts, fields)
        for look_up, names in self._look_ups.items():
            named = candidate.part(look_up)
            if named.problems:
                return None
            for name in names:
                fields[name] = named.things[name]
        for name, settles in SETTLED.items():
            fields[name] = candidate.part(settles)
        document, ask = self.base.document, candidate.part
        found = [one for checks in self._checks for one in ask(checks)]
        if found:
            refuse([problem for _, problem in sorted(found, key=itemgetter(0))], document.origin)
        return Bare(converted(ask, document, self._default_name), ask)

    def _sections(self, texts: tuple[str, ...]) -> dict[str, Any] | None:
        """The sections of a candidate; None if one of them has mistakes."""
        sections: dict[str, Any] = dict(self.base.checked)
        for name, numbers in self._keys.items():
            section = self.base.section(tuple([texts[number] for number in numbers]))
            if section is None:
                return None
            sections[name] = section
        if sections["model"] is not None:
            batch = self._measured_at or sections["train"].batch_size
            sections["model"] = with_step_times(sections["model"], batch)
        return sections

    def made(self, fields: Mapping[str, Any]) -> dict[Part[Any], Any]:
        """All parts of a candidate that are known by its sections."""
        made: dict[Part[Any], Any] = {}
        for known in self._by_sections.values():
            made.update(known.of(fields))
        return made

    def make(
        self, asked: Part[Thing], fields: Mapping[str, Any], only: Callable[[Iterable[str]], Draft]
    ) -> Thing:
        """A part of a candidate with these fields, known by what it reads or made now."""
        place = self._place(asked)
        known = place.fields.of(fields)
        thing: Thing = known.get(asked, _UNKNOWN)
        if thing is _UNKNOWN:
            thing = known[asked] = asked.make(only(asked.reads))
        if place.sections is not None:
            place.sections.of(fields)[asked] = thing
        return thing

    def _place(self, asked: Part[Any]) -> _Place:
        """Where a part is known."""
        found = self._places.get(asked)
        if found is None:
            sources = {name: self._sources(name) for name in asked.reads}
            sections = frozenset[str]().union(*sources.values())
            reads = frozenset(name for name, own in sources.items() if own)
            found = self._places[asked] = _Place(
                fields=self._by_fields.setdefault(reads, _Known(reads)),
                sections=self._by_sections.setdefault(sections, _Known(sections))
                if len(sections) < len(self._keys)
                else None,
            )
        return found

    def _sources(self, name: str) -> frozenset[str]:
        """The sections in which candidates differ that a field of the draft follows from."""
        if name in SECTIONS:
            stated = {name, "train"} if name == "model" and self._is_timed() else {name}
            return frozenset(stated).intersection(self._keys)
        if name in SETTLED:
            reads = SETTLED[name].reads
        else:
            reads = next(look_up.reads for look_up, own in self._look_ups.items() if name in own)
        return frozenset[str]().union(*map(self._sources, reads))

    def _is_timed(self) -> bool:
        """Whether [model] may have one step time, which is that of the batch in [train]."""
        model = self.base.checked["model"]
        stated = isinstance(model, ModelSection) and model.step_time is not None
        return stated or "model" in self._keys

    def _grouped_checks(self) -> tuple[Part[_Numbered], ...]:
        """Problems by the numbers of their checks, for all checks that are known in one place."""
        groups: dict[_Known, list[int]] = {}
        for number, check in enumerate(CHECKS):
            place = self._place(check.problems)
            groups.setdefault(place.sections or place.fields, []).append(number)
        return tuple(map(_problems_of, groups.values()))


def _part_of(one: LookUp, catalogue: Catalogue, library: ModelLibrary) -> Part[Found]:
    return part(lambda draft: one.look(draft, catalogue, library), one.reads)


def _problems_of(numbers: Sequence[int]) -> Part[_Numbered]:
    checks = {number: CHECKS[number].problems for number in numbers}
    reads = dict.fromkeys(name for check in checks.values() for name in check.reads)
    return part(
        lambda draft: [(number, one) for number, look in checks.items() for one in look(draft)],
        " ".join(reads),
    )


class _Candidate:
    """A candidate: its options, the fields of its draft, and the draft where one is needed."""

    def __init__(
        self, variations: Variations, texts: tuple[str, ...], fields: Mapping[str, Any]
    ) -> None:
        self._variations = variations
        self._texts = texts
        self._fields = fields
        self._made = variations.made(fields)
        self._document: Document | None = None

    def part(self, part: Part[Thing]) -> Thing:
        """A part of its draft, known or made now."""
        thing: Thing = self._made.get(part, _UNKNOWN)
        if thing is _UNKNOWN:
            thing = self._made[part] = self._variations.make(part, self._fields, self._only)
        return thing

    def _only(self, names: Iterable[str]) -> Draft:
        """Its draft with nothing but these fields."""
        if self._document is None:
            self._document = self._variations.base.told(self._texts)
        fields = {name: self._fields[name] for name in names}
        return draft_with(fields, self._document)
