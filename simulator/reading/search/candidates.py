"""Many scenarios that differ in a few settings, of which common parts are read once.

A candidate is the scenario with some sections replaced: a setting is put into its section, and only
that section is read again. Look-ups and defaults are shared by all candidates that agree in the
sections they depend on (`memo.shared`). Candidates with an unusual setting (a table, another
overlay, a mistake within a section) are read by `load_scenario`.

The key of a scenario's contents is a hash of everything a prediction can depend on: its checked
sections, which of their keys are stated, the profiles and the model they name, and the version of
plan with its own data. Sources of figures and names for display are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from simulator.errors import InputError, PlanError
from simulator.memo import cached
from simulator.reading.calibration import calibration_of
from simulator.reading.checks import CHECKS
from simulator.reading.document import Document
from simulator.reading.lines import KeyPath
from simulator.reading.merge_documents import (
    chain_of,
    merged_tables,
    parse_override,
    refuse_service,
)
from simulator.reading.scenario import (
    default_name_of,
    from_document,
    refuse,
    resolve,
    to_scenario,
)
from simulator.reading.sections import ScenarioFile
from simulator.reading.settings import SettingsReader, as_options, possible_names, without_key
from simulator.reading.tables import BROKEN, Reading
from simulator.reading.unresolved import (
    SECTIONS,
    STEP_TIME,
    UnresolvedScenario,
    batch_of_step,
    find_problems,
    parts_of,
    parts_read,
    read_sections,
    reading_any,
    stated_interruptions,
)
from simulator.records import dataclass
from simulator.schema.cost import Purchase
from simulator.schema.fields import Section
from simulator.schema.goal import Axes, Goal, Plain
from simulator.schema.machines import short_name
from simulator.schema.scenario import Scenario
from simulator.version import __version__

MAX_TABLES: Final = 20_000
"""Number of sections with settings that are cached."""
_OVERLAY: Final[KeyPath] = ("calibration", "overlay")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting parsed for a document."""

    path: KeyPath
    document: Document

    @property
    def section(self) -> str:
        """Name of the section of the setting."""
        return str(self.path[0])


@lru_cache(maxsize=20_000)
def _setting(text: str) -> Setting | None:
    """Return the setting of ``section.key=value`` with a single value; None for any other text."""
    try:
        document = parse_override(text, ScenarioFile)
    except InputError:
        return None
    path = max(document.origins, key=len)
    whole = len(path) == text.partition("=")[0].count(".") + 1
    plain = isinstance(document.value(path), str | int | float)
    usual = path[0] in SECTIONS and len(path) > 1 and path != _OVERLAY
    return Setting(path, document) if whole and plain and usual else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A scenario, and the `key` of all contents that its prediction depends on.

    Two scenarios with the same key have the same prediction, even from different files.
    """

    scenario: Scenario
    key: str


class CandidateReader(SettingsReader):
    """Reads one scenario again and again, each time with other settings.

    Parameters
    ----------
    name_or_path : str
        A file, the name of a shipped scenario, or ``-`` for standard input.
    stdin : file object, optional
        Read instead of standard input.
    chain : sequence of Document, optional
        Its documents where they have been read already (`merge_documents.chain_of`).
    overrides, profiles, calibration
        As of any `SettingsReader`.

    Raises
    ------
    InputError
        If its text, or a folder of profiles, cannot be read.
    UnknownName
        If there is no such scenario.
    """

    derived = SettingsReader.derived | {
        *("_document", "_problems", "_base", "_tables", "_known", "_sound", "_step_batch")
    }

    def __init__(  # noqa: PLR0913 - what a scenario is made of
        self,
        name_or_path: str,
        *,
        overrides: Sequence[str] = (),
        stdin: TextIO | BinaryIO | None = None,
        profiles: Sequence[Path] = (),
        calibration: Path | None = None,
        chain: Sequence[Document] | None = None,
    ) -> None:
        super().__init__(
            chain_of(name_or_path, stdin) if chain is None else chain,
            default_name_of(name_or_path),
            overrides=overrides,
            profiles=profiles,
            calibration=calibration,
        )

    def less(self, keys: Sequence[KeyPath]) -> CandidateReader:
        """Return a reader of the same scenario without some keys, in all of its files."""
        found = CandidateReader.__new__(CandidateReader)
        chain = tuple(_less(document, keys) for document in self.chain)
        names = tuple(f"{'.'.join(map(str, key))}=" for key in keys)
        kept = [text for text in self.overrides if not text.replace(" ", "").startswith(names)]
        found.__setstate__({**self.__getstate__(), "chain": chain, "overrides": tuple(kept)})
        return found

    def _prepare(self) -> None:
        super()._prepare()
        self._document, self._problems = self._joined(())
        refuse_service(self._document)
        self._base = self._without_problems()
        self._step_batch = batch_of_step(self._document)
        self._tables: dict[tuple[str, ...], Any] = {}
        self._known: dict[tuple[Any, ...], Any] = {}
        self._sound: tuple[Any, ...] = ()

    def _without_problems(self) -> UnresolvedScenario | None:
        """Return the sections of the scenario without settings; None if they have mistakes."""
        if self._problems:
            return None
        try:
            file, problems = read_sections(self._document)
        except InputError:
            return None
        return None if problems else file

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """Return the scenario with these settings.

        Raises
        ------
        InputError, UnknownName, NotModelled
            In the same cases as `load_scenario`.
        """
        file = self._file(as_options(settings))
        scenario = to_scenario(file, self.default_name)
        return Loaded(scenario=scenario, key=content_key(file))

    def read_without_uncertainty(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded | PlanError, ...]:
        """Read many scenarios like `read`, without uncertainties, which closed forms don't need.

        Returns
        -------
        tuple
            In the order of `candidates`; an error replaces the scenario of its candidate.
        """
        return tuple(map(self._loaded_or_error, candidates))

    def without_uncertainty(self, settings: Mapping[str, Plain]) -> Scenario:
        """Return the scenario with these settings, without uncertainties.

        Raises
        ------
        InputError, UnknownName, NotModelled
            In the same cases as `load_scenario`.
        """
        return resolve(self._file(as_options(settings)), self.default_name)

    def without(self, key: str) -> Scenario:
        """Return the scenario without one of its keys and without uncertainties.

        Raises
        ------
        InputError
            If the key is needed.
        """
        document = self.document()
        data = without_key(document.data, tuple(key.split(".")))
        file = from_document(replace(document, data=data), self.catalogue, ())
        return resolve(file, self.default_name)

    def _loaded_or_error(self, settings: Mapping[str, Plain]) -> Loaded | PlanError:
        try:
            file = self._file(as_options(settings))
            scenario = resolve(file, self.default_name)
        except PlanError as error:
            return error
        return Loaded(scenario=scenario, key=content_key(file))

    def _file(self, texts: Sequence[str]) -> UnresolvedScenario:
        """Return the scenario with some settings, looked up and checked."""
        file = self._exchanged(texts)
        if file is None:
            document, problems = self._joined(texts)
            return from_document(document, self.catalogue, problems)
        looking = file.look_up(self.catalogue, self._known)
        if looking:
            refuse((*looking, *find_problems(file, CHECKS)), self._document.origin)
        # What a check reads may be as in a candidate without mistakes.
        names = parts_read(CHECKS)
        parts = parts_of(file, names)
        before = self._sound or (self,) * len(parts)
        changed = [name for name, a, b in zip(names, parts, before, strict=True) if a is not b]
        problems = find_problems(file, reading_any(CHECKS, tuple(changed)))
        if problems:
            refuse(problems, self._document.origin)
        self._sound = parts
        return file

    def _exchanged(self, texts: Sequence[str]) -> UnresolvedScenario | None:
        """Return the scenario with some sections replaced; None if a setting is unusual."""
        base = self._base
        if base is None:
            return None
        settings = [setting for text in texts if (setting := _setting(text)) is not None]
        if len(settings) < len(texts):
            return None
        by_section: dict[str, list[str]] = {}
        for text, setting in zip(texts, settings, strict=True):
            by_section.setdefault(setting.section, []).append(text)
        sections = {name: getattr(base, name) for name in SECTIONS}
        for name, own in by_section.items():
            sections[name] = self._table(name, tuple(own))
            if sections[name] is BROKEN:
                return None
        stated = any(setting.path == STEP_TIME for setting in settings)
        return UnresolvedScenario(
            sections,
            lambda: self._with(settings),
            name=base.name,
            title=base.title,
            step_batch=None if stated else self._step_batch,
        )

    def _with(self, settings: Sequence[Setting]) -> Document:
        """Return the document with some settings."""
        base = self._document
        data, origins = base.data, dict[KeyPath, str]()
        for setting in settings:
            data = merged_tables(data, setting.document.data)
            for path in setting.document.origins:
                # A setting passes through tables that a file has lines for.
                if path == setting.path or not (base.knows(path) or path in origins):
                    origins[path] = setting.document.origin
        lines = {path: line for path, line in base.lines.items() if path not in origins}
        return replace(base, data=data, lines=lines, origins={**base.origins, **origins})

    def _table(self, name: str, texts: tuple[str, ...]) -> object:
        """Return a section with settings; `BROKEN` if it has mistakes."""
        table = self._tables.get((name, *texts))
        if table is None:
            if len(self._tables) > MAX_TABLES:
                self._tables.clear()
            table = self._tables[name, *texts] = self._read_table(name, texts)
        return table

    def _read_table(self, name: str, texts: Sequence[str]) -> object:
        settings = [setting for text in texts if (setting := _setting(text)) is not None]
        document = self._with(settings)
        return Reading(document.place).table(SECTIONS[name], document.data[name], (name,))

    @property
    def axes(self) -> Axes | None:
        """Axes of its ``[sweep]`` section; None if it has none.

        Raises
        ------
        InputError
            With all mistakes of the section.
        """
        from simulator.reading.search.sweep_section import axes_of

        return axes_of(self.document(), self.catalogue)

    @property
    def goal(self) -> Goal | None:
        """Goal of its ``[goal]`` section; None if it has none.

        Raises
        ------
        InputError
            With all mistakes of the section.
        """
        from simulator.reading.search.goal_section import goal_of

        return goal_of(self.document(), self.catalogue)

    def names(self, key: str) -> tuple[str, ...]:
        """Return the valid names of a key such as ``hardware.machine``; empty for other keys."""
        return possible_names(key, self.catalogue)

    def given(self, key: str) -> object:
        """Return the value that the scenario states for a dotted key; None if it states none."""
        return self._document.value(tuple(key.split(".")))

    def document(self) -> Document:
        """Return the contents of its files and options, without settings and without mistakes."""
        if self._problems:
            raise InputError(self._problems)
        return self._document


def _less(document: Document, keys: Sequence[KeyPath]) -> Document:
    data = document.data
    for key in keys:
        if document.value(key) is not None:
            data = without_key(data, key)
    return replace(document, data=data)


_PACKAGE: Final = Path(__file__).resolve().parents[2]
_PROVENANCE: Final = frozenset({"source", "sources", "note"})
_PEOPLE_READ: Final = frozenset({("data", "name"), ("calibration", "overlay")})
"""Keys that affect no figure; for a path, the contents of its file count."""
_APART: Final = frozenset({"cli", "report", "importers", "probe", "hardware_profiles", "scenarios"})
"""Folders of the package that only request or show predictions, and data that is looked up."""
_CONTENTS: Final = frozenset({".py", ".toml", ".csv"})


LOOKED_UP: Final = (
    *("host", "storage", "cache", "client", "helper", "helper_storage", "measured_on"),
    "library_model",
)
"""Parts of a scenario that its sections only name."""


def content_key(file: UnresolvedScenario) -> str:
    """Return the hash of everything that the prediction of a scenario depends on, except its seed.

    Parameters
    ----------
    file : UnresolvedScenario
        The scenario without mistakes, all names looked up.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.
    """
    parts = [model_version(), _of_thing(calibration_of(file.calibration))]
    for name in SECTIONS:
        section = getattr(file, name)
        parts.append("" if section is None else _of_section(name, section))
    interruptions = stated_interruptions(file)
    if interruptions is not None and interruptions.outages is not None:
        # A trace of spot capacity: what the file holds counts, not where it lies.
        parts.append(_of_thing(interruptions.outages))
    for name in LOOKED_UP:
        thing = getattr(file, name)
        parts.append("" if thing is None else _of_thing(thing))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cached()
def _of_section(name: str, section: Section) -> str:
    """Return the digest of a section: its values, and which keys are stated.

    A default has other evidence than the same value stated in the file.
    """
    fields = _fields(section).items()
    values = {key: value for key, value in fields if (name, key) not in _PEOPLE_READ}
    stated = sorted(key for key in section.sources if (name, key) not in _PEOPLE_READ)
    return _digest(f"{_written(values)}{stated}")


@cached()
def _of_thing(thing: object) -> str:
    return _digest(_written(thing))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def model_version() -> str:
    """Return the version of plan with a digest of its own sources and data.

    In a checkout it changes with every edit.
    """
    return f"{__version__}+{digest_of(_PACKAGE)}"


def digest_of(folder: Path) -> str:
    """Return the digest of all sources and data in a folder that can change a prediction."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix in _CONTENTS and _APART.isdisjoint(inside.parts):
            digest.update(f"{inside.as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _written(value: object) -> str:
    """Return a value as text: equal for equal contents, different for different ones."""
    if value is None or isinstance(value, str | int | float):
        plain: object = value
        return repr(plain.value if isinstance(plain, Enum) else plain)
    if is_dataclass(value):
        return f"{type(value).__name__}{_written(_fields(value))}"
    if isinstance(value, Mapping):
        entries = sorted(f"{_written(key)}:{_written(item)}" for key, item in value.items())
        return f"{{{','.join(entries)}}}"
    if isinstance(value, frozenset | set):
        return f"<{','.join(sorted(map(_written, value)))}>"
    if isinstance(value, tuple | list):
        return f"[{','.join(map(_written, value))}]"
    msg = f"{type(value).__name__} has no contents that could be hashed"
    raise TypeError(msg)


def _fields(value: Any) -> dict[str, object]:  # noqa: ANN401 - a dataclass
    """Return the fields of an object as a dict, without the sources of its figures."""
    names = (field.name for field in fields(value))
    return {name: getattr(value, name) for name in names if name not in _PROVENANCE}


MACHINE: Final = "hardware.machine"
PURCHASE: Final = ("cost", "purchase")
_FIGURES: Final = (
    *("gpu", "gpus", "emulated", "ram", "vcpus", "cores", "smt_worth", "contention"),
    *("memory_bandwidth", "network_bandwidth", "pcie_bandwidth"),
)
OF_ITS_MACHINE: Final[tuple[KeyPath, ...]] = (
    *(("hardware", name) for name in _FIGURES),
    ("cost", "price"),
)
"""Keys that describe the machine of the scenario and do not apply to another one."""


class RentingReader(CandidateReader):
    """Reads one scenario repeatedly, on other machines without the keys for its own machine.

    Parameters
    ----------
    reader : CandidateReader
        Reader of the unchanged scenario.
    """

    derived = CandidateReader.derived | {"_own", "_elsewhere"}

    def __init__(self, reader: CandidateReader) -> None:
        self.__setstate__(reader.__getstate__())

    def _prepare(self) -> None:
        super()._prepare()
        self._own = short_name(self.given(MACHINE))
        owned = self.given(".".join(PURCHASE)) == Purchase.OWNED
        self._elsewhere = self.less((*OF_ITS_MACHINE, PURCHASE) if owned else OF_ITS_MACHINE)

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """Return the scenario with these settings, like `CandidateReader.read`."""
        return self._elsewhere.read(settings) if self._moves(settings) else super().read(settings)

    def without_uncertainty(self, settings: Mapping[str, Plain]) -> Scenario:
        """Return the scenario with these settings, like `CandidateReader.without_uncertainty`."""
        moves = self._moves(settings)
        return (
            self._elsewhere.without_uncertainty(settings)
            if moves
            else super().without_uncertainty(settings)
        )

    def read_without_uncertainty(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded | PlanError, ...]:
        """Read many scenarios, like `CandidateReader.read_without_uncertainty`."""
        moving = [self._moves(settings) for settings in candidates]
        pairs = list(zip(candidates, moving, strict=True))
        there = iter(
            self._elsewhere.read_without_uncertainty(
                [settings for settings, moves in pairs if moves]
            )
        )
        here = iter(
            super().read_without_uncertainty([settings for settings, moves in pairs if not moves])
        )
        return tuple(next(there if moves else here) for moves in moving)

    def _moves(self, settings: Mapping[str, Plain]) -> bool:
        """Return whether settings name another machine than the scenario does."""
        return MACHINE in settings and short_name(settings[MACHINE]) != self._own
