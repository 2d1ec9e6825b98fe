"""Many scenarios that differ in a few settings: what they share is read once.

A candidate's settings are put over the gathered document key by key, and only the sections they
touch are checked anew. Whatever is unusual about them (a mistake, a table for a value, another
overlay) goes the long way of `load_scenario`, so results and messages are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from pydantic import BaseModel, ValidationError

from simulator.errors import InputError, PlanError, Problem
from simulator.files.catalogue import Catalogue
from simulator.files.content import content_key
from simulator.files.document import Document, model_at
from simulator.files.draft import LEFT_OUT, SECTIONS, Draft, draft_of, read_sections
from simulator.files.gather import chain_of, joined, parse_override
from simulator.files.goal_section import goal_of
from simulator.files.lines import KeyPath
from simulator.files.scenario import (
    checked,
    converted,
    default_name_of,
    from_document,
    spread_given,
    to_scenario,
)
from simulator.files.sections import ScenarioFile
from simulator.files.settings import as_option, possible_names
from simulator.files.spread import with_assumed_spreads
from simulator.files.sweep_section import axes_of
from simulator.goal import Axes, Goal, Plain
from simulator.scenario import Scenario

_OVERLAY: Final[KeyPath] = ("calibration", "overlay")
_MOST_KEPT: Final = 20_000
"""Checked sections and options kept for the next candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A scenario, and the `key` of all contents its prediction depends on.

    Two scenarios with the same key are predicted alike, whatever files they came from.
    """

    scenario: Scenario
    key: str


class CandidateReader:
    """Reads one scenario again and again, each time with other settings.

    It can be pickled: a process that gets it has the same texts.

    Parameters
    ----------
    name_or_path : str
        A file, the name of a shipped scenario, or ``-`` for standard input.
    overrides : sequence of str
        ``section.key=value``, before any settings.
    stdin : file object, optional
        Read in place of standard input.
    profiles : sequence of pathlib.Path
        Folders of hardware profiles that come before the usual ones.
    calibration : pathlib.Path, optional
        An overlay of fitted parameters, in place of the one the scenario names.

    Raises
    ------
    InputError
        If its text, or a folder of profiles, cannot be read.
    UnknownName
        If there is no such scenario.
    """

    def __init__(
        self,
        name_or_path: str,
        *,
        overrides: Sequence[str] = (),
        stdin: TextIO | BinaryIO | None = None,
        profiles: Sequence[Path] = (),
        calibration: Path | None = None,
    ) -> None:
        self.name_or_path = name_or_path
        self.overrides = tuple(overrides)
        self.profiles = tuple(profiles)
        self.calibration = calibration
        self._chain = chain_of(name_or_path, stdin)
        self._prepare()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in _WORKED_OUT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def _prepare(self) -> None:
        self._catalogue = Catalogue.default(self.profiles)
        self._document, self._problems = self._joined(())
        self._base = None if self._problems else _base_of(self._document)

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """The scenario with these settings over its own, as `load_scenario` reads it.

        Raises
        ------
        InputError, UnknownName, NotModelled
            As `load_scenario` does.
        """
        draft = self._draft(settings)
        scenario = to_scenario(draft, default_name_of(self.name_or_path))
        return Loaded(scenario=scenario, key=content_key(draft, scenario.calibration))

    def read_bare(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded | PlanError, ...]:
        """Many scenarios as `read` gives them but for their doubts, which closed forms don't ask.

        Returns
        -------
        tuple
            In the order of `candidates`; a mistake stands in the place of its candidate.
        """
        found: list[Loaded | PlanError] = []
        given: list[bool] = []
        for settings in candidates:
            try:
                draft = self._draft(settings)
                scenario = converted(draft, default_name_of(self.name_or_path))
            except PlanError as mistake:
                found.append(mistake)
                continue
            given.append(spread_given(draft))
            found.append(Loaded(scenario=scenario, key=content_key(draft, scenario.calibration)))
        plain = [one for one in found if isinstance(one, Loaded)]
        varied = iter(with_assumed_spreads([one.scenario for one in plain], given))
        return tuple(
            replace(one, scenario=next(varied)) if isinstance(one, Loaded) else one for one in found
        )

    def _draft(self, settings: Mapping[str, Plain]) -> Draft:
        options = tuple(as_option(key, value) for key, value in settings.items())
        draft = None if self._base is None else self._base.with_options(options)
        if draft is not None:
            return checked(draft, self._catalogue, ())
        document, problems = self._joined(options)
        return from_document(document, self._catalogue, problems)

    @property
    def axes(self) -> Axes | None:
        """What its [sweep] section varies; None where it has none.

        Raises
        ------
        InputError
            With all mistakes of the section.
        """
        return axes_of(self.document(), self._catalogue)

    @property
    def goal(self) -> Goal | None:
        """What its [goal] section looks for; None where it has none.

        Raises
        ------
        InputError
            With all mistakes of the section.
        """
        return goal_of(self.document(), self._catalogue)

    def names(self, key: str) -> tuple[str, ...]:
        """The names that a key such as ``hardware.machine`` can have; empty for other keys."""
        return possible_names(key, self._catalogue)

    def given(self, key: str) -> object:
        """What the scenario itself says at a dotted key; None where it says nothing."""
        return self._document.value(tuple(key.split(".")))

    def document(self) -> Document:
        """All that its files and options say, without any settings; without mistakes."""
        if self._problems:
            raise InputError(self._problems)
        return self._document

    def _joined(self, options: Sequence[str]) -> tuple[Document, tuple[Problem, ...]]:
        return joined(
            self._chain,
            overrides=(*self.overrides, *options),
            model=ScenarioFile,
            overlay=self.calibration,
        )


_WORKED_OUT: Final = frozenset({"_catalogue", "_document", "_problems", "_base"})
"""What a reader finds out anew from its texts in another process."""


@dataclass(frozen=True, slots=True)
class _Option:
    """A setting as it goes into a document."""

    path: KeyPath
    value: object
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """A scenario without mistakes in its sections, over which settings are put.

    `places` has the file or option of every key path, `checked` the sections. What was read for
    one candidate is kept for the next.
    """

    document: Document
    places: Mapping[KeyPath, str]
    lines: Mapping[KeyPath, int]
    checked: Mapping[str, BaseModel | None]
    options: dict[str, _Option | None] = field(default_factory=dict)
    sections: dict[tuple[str, ...], BaseModel | None] = field(default_factory=dict)

    def with_options(self, options: Sequence[str]) -> Draft | None:
        """The draft with some options; None if they have to go the long way."""
        found = [self._option(text) for text in options]
        data, lines, places = dict(self.document.data), dict(self.lines), dict(self.places)
        touched: dict[str, list[str]] = {}
        for text, option in zip(options, found, strict=True):
            if option is None or not _put(data, option, set(touched)):
                return None
            section = str(option.path[0])
            touched.setdefault(section, []).append(text)
            lines.pop(option.path, None)
            places[option.path] = option.origin
            for end in range(1, len(option.path)):
                places.setdefault(option.path[:end], option.origin)
        document = Document(origin=self.document.origin, data=data, lines=lines, origins=places)
        sections = dict(self.checked)
        for name, texts in touched.items():
            sections[name] = self._section(name, data[name], texts)
            if sections[name] is None:
                return None
        return draft_of(document, sections)

    def _option(self, text: str) -> _Option | None:
        if text not in self.options:
            if len(self.options) > _MOST_KEPT:
                self.options.clear()
            self.options[text] = _parsed(text)
        return self.options[text]

    def _section(self, name: str, data: object, texts: Sequence[str]) -> BaseModel | None:
        """The section with these options put in; None if it has mistakes."""
        key = (name, *texts)
        if key not in self.sections:
            if len(self.sections) > _MOST_KEPT:
                self.sections.clear()
            self.sections[key] = _validated(name, data)
        return self.sections[key]


def _base_of(document: Document) -> _Base | None:
    """What settings are put over; None if a section has mistakes."""
    draft, problems = read_sections(document)
    if problems:
        return None
    del draft
    lines = dict(document.lines)
    known = {**lines, **document.origins}
    places = {path: document.origins.get(path, document.origin) for path in known}
    data = {**LEFT_OUT, **document.data}
    checked = {name: _validated(name, data[name]) if name in data else None for name in SECTIONS}
    return _Base(document=document, places=places, lines=lines, checked=checked)


def _parsed(text: str) -> _Option | None:
    """An option that sets a single value in a section; None for any other."""
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
    return _Option(path, value, document.origin)


def _put(data: dict[str, Any], option: _Option, own: set[str]) -> bool:
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
