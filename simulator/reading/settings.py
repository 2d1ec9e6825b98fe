"""Settings of a scenario by dotted key: valid keys and the values of each.

A search varies any of them; here a value is checked alone, before it is combined with others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from simulator.errors import Problem
from simulator.reading.document import Document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.keys import OF_A_SEARCH, OF_THE_RUN
from simulator.reading.lines import KeyPath
from simulator.reading.merge_documents import joined, value_of_text
from simulator.reading.model_library import model_names, shape_keys
from simulator.reading.sections import ScenarioFile
from simulator.reading.tables import FileTable, TableKey, key_at, table_keys
from simulator.schema.fields import (
    BadValueError,
    Choice,
    Marker,
    Number,
    Quantity,
    nearest,
    nearest_hint,
    slip_of,
)
from simulator.schema.goal import Plain
from simulator.units import Unit

_HOSTS: Final = ("node", "instance")
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "hardware.machine": _HOSTS,
    "hardware.gpu": ("gpu",),
    "hardware.storage": ("storage",),
    "hardware.cache": ("storage",),
    "data.client": ("client",),
    "remote.machine": _HOSTS,
    "remote.storage": ("storage",),
    "input.measured_on": _HOSTS,
}
"""Kinds of the profiles that may be values of a key."""
NAMED: Final = (*_KINDS, "model.name")
"""Keys whose values are names of profiles or models, which a pattern can match."""


@cache
def setting_names() -> tuple[str, ...]:
    """Return all keys with a single value, in order of the sections; keys of shapes come last."""
    return (*_leaves(ScenarioFile, ""), *sorted(shape_keys()))


def _leaves(table: type[FileTable], before: str) -> Iterator[str]:
    for name, inner in table_keys(table).items():
        key = f"{before}{name}"
        if inner.table is None:
            # Keys without a section describe the file, and lists of tables hold no single value.
            if before and key != "model.shape":
                yield key
        elif not inner.is_list and key not in OF_A_SEARCH:
            yield from _leaves(inner.table, f"{key}.")


@cache
def _key(name: str) -> TableKey | None:
    """Return the key of a dotted name; None if there is none."""
    return key_at(ScenarioFile, tuple(name.split(".")))


def unknown_hint(name: str) -> str:
    """Return a hint for a key that does not exist: the same last part elsewhere, or the nearest."""
    known = setting_names()
    last = name.rpartition(".")[2]
    same = [key for key in known if key.rpartition(".")[2] == last]
    if any(key.startswith(f"{name}.") for key in known):
        return nearest_hint("", [key for key in known if key.startswith(f"{name}.")])
    lasts = {key.rpartition(".")[2]: key for key in known}
    section = name.partition(".")[0]
    beside = {key.rpartition(".")[2]: key for key in known if key.startswith(f"{section}.")}
    close = (
        beside.get(slip_of(last, tuple(beside)) or "")
        or (same[0] if same else None)
        or beside.get(nearest(last, tuple(beside)) or "")
        or nearest(name, known)
        or lasts.get(nearest(last, tuple(lasts)) or "")
    )
    return f"did you mean '{close}'?" if close else "plan schema lists all keys"


def marker_of(name: str) -> Marker | None:
    """Return the marker of a key's values; None for a switch, and for keys of a shape."""
    key = _key(name)
    return None if key is None else key.marker


def is_switch(name: str) -> bool:
    """Return whether a key is true or false."""
    key = _key(name)
    return key is not None and key.is_switch


def choices_of(name: str) -> tuple[str, ...]:
    """Return the values of a key with few possible values; empty for all others."""
    marker = marker_of(name)
    return tuple(member.value for member in marker.kind) if isinstance(marker, Choice) else ()


def unit_of(name: str) -> Unit | None:
    """Return the unit of a key whose values are quantities; None for all others."""
    marker = marker_of(name)
    return marker.unit if isinstance(marker, Quantity) else None


def setting_units() -> dict[str, Unit | None]:
    """Return all keys with the unit of their values, as extra names of expressions."""
    return {name: unit_of(name) for name in setting_names()}


def setting_from_text(name: str, text: str) -> object:
    """Return the value that ``--set name=text`` would give."""
    key = _key(name)
    return value_of_text(text, text=key is not None and key.is_text)


def possible_names(name: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the valid names of a key such as ``hardware.machine``; empty for other keys."""
    if name == "model.name":
        return model_names()
    kinds = _KINDS.get(name, ())
    return tuple(known for kind in kinds for known in catalogue.names(kind))


def as_option(name: str, value: Plain) -> str:
    """Return the argument of ``--set`` that sets a key to this value."""
    if isinstance(value, bool):
        return f"{name}={'true' if value else 'false'}"
    return f"{name}={value}"


def as_options(settings: Mapping[str, Plain]) -> tuple[str, ...]:
    """Return settings by dotted key as arguments of ``--set``."""
    return tuple([as_option(key, value) for key, value in settings.items()])


def mistake(name: str, value: object) -> tuple[str, str] | None:
    """Return the mistake in a value alone, and a hint; None if the value is valid."""
    marker = marker_of(name)
    if marker is None:
        if is_switch(name) and not isinstance(value, bool):
            return "is not true or false", "write true or false, without quotes"
        plain = isinstance(value, str | int | float)
        return None if plain else ("is not a single value", "write a number or a text")
    try:
        marker.read(value)
    except BadValueError as error:
        return error.message, error.hint
    return None


FOR_PEOPLE: Final = frozenset(
    {"data.name", "remote.name", "software.framework", "software.version", "calibration.overlay"}
)
"""Keys that are names only, for display and for finding similar measurements."""
FACTORS: Final = (2.0, 0.5, 1.5, 1e3, 1e-3, 1e5)
"""Factors that are tried on amounts, in this order; large ones too, for effects hidden by another
amount."""
_AMOUNT: Final = re.compile(r"^(\s*\$?\s*)([0-9][0-9._]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)(.*)$")


def given_keys(document: Document) -> tuple[str, ...]:
    """Return keys with a single value that the document's own file or an option states.

    Keys of files that it extends are left out, and so are those of a long run, which affect no
    step.
    """
    return tuple(
        name
        for name in setting_names()
        if name not in FOR_PEOPLE
        and name.partition(".")[0] not in OF_THE_RUN
        and _is_own(document, tuple(name.split(".")))
    )


def _is_own(document: Document, path: KeyPath) -> bool:
    if not document.says(path):
        return False
    origin, _ = document.where(path)
    return origin == document.origin or origin.startswith("--set")


def without_key(data: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """Return a copy of a table without the key at a path.

    Examples
    --------
    >>> without_key({"data": {"name": "a", "samples": 1}}, ("data", "name"))
    {'data': {'samples': 1}}
    """
    first, rest = str(path[0]), path[1:]
    if not rest:
        return {key: value for key, value in data.items() if key != first}
    return {key: without_key(value, rest) if key == first else value for key, value in data.items()}


def alternatives(name: str, value: object) -> tuple[Plain, ...]:
    """Return other values that a key may have, in the order in which to try them.

    Parameters
    ----------
    name : str
        The dotted key.
    value : object
        Its present value.

    Returns
    -------
    tuple
        Empty for names of profiles and models, and for keys of shapes.

    Examples
    --------
    >>> alternatives("input.pin_memory", True), alternatives("input.workers", 4)
    ((False,), (8, 2, 6, 4000, 0))
    >>> alternatives("data.bytes_per_sample", "110 kB")[:3]
    ('220.0 kB', '55.0 kB', '165.0 kB')
    """
    marker = marker_of(name)
    if is_switch(name):
        return (not value,)
    if choices_of(name):
        return tuple(choice for choice in choices_of(name) if choice != value)
    if isinstance(marker, Number) and isinstance(value, int | float):
        found: tuple[Plain, ...] = _numbers(value, whole=marker.whole)
    elif isinstance(marker, Quantity) and isinstance(value, str):
        found = _amounts(value)
    else:
        return ()
    return tuple(one for one in found if one != value and mistake(name, one) is None)


def _numbers(value: float, *, whole: bool) -> tuple[Plain, ...]:
    if value == 0:
        return (1,) if whole else (0.5,)
    several = (value * factor for factor in FACTORS)
    found = (round(one) if whole else float(one) for one in several)
    return tuple(dict.fromkeys(found))


def _amounts(value: str) -> tuple[Plain, ...]:
    parts = _AMOUNT.match(value)
    if parts is None:
        return ()
    sign, number, unit = parts.groups()
    amount = float(number.replace("_", ""))
    others = [amount * factor for factor in FACTORS] if amount else [1.0]
    return tuple(f"{sign}{other!r}{unit}" for other in others)


class SettingsReader:
    """Reads one job or service repeatedly, each time with other settings.

    It can be pickled: a process that receives it has the same texts.

    Parameters
    ----------
    chain : sequence of Document
        The documents of the file, of the file it extends, and so on (`merge_documents.chain_of`).
    default_name : str
        Name of the job or service if the file states none.
    overrides : sequence of str
        ``section.key=value``, before any settings.
    profiles : sequence of pathlib.Path
        Directories of hardware profiles, searched before the default ones.
    calibration : pathlib.Path, optional
        An overlay of fitted parameters, instead of the one the file names.
    """

    table: ClassVar[type[FileTable]] = ScenarioFile
    """The sections of the file."""
    derived: ClassVar[frozenset[str]] = frozenset({"catalogue"})
    """Attributes computed from the others, which are not pickled."""

    def __init__(
        self,
        chain: Sequence[Document],
        default_name: str,
        *,
        overrides: Sequence[str] = (),
        profiles: Sequence[Path] = (),
        calibration: Path | None = None,
    ) -> None:
        self.chain = tuple(chain)
        self.default_name = default_name
        self.overrides = tuple(overrides)
        self.profiles = tuple(profiles)
        self.calibration = calibration
        self._prepare()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in self.derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def _prepare(self) -> None:
        """Compute the attributes that depend on the others."""
        self.catalogue = Catalogue.default(self.profiles)

    def over(self, settings: Mapping[str, Plain]) -> Self:
        """Return a reader of the same file with these settings in addition to its own."""
        changed = self.__class__.__new__(self.__class__)
        overrides = (*self.overrides, *as_options(settings))
        changed.__setstate__({**self.__getstate__(), "overrides": overrides})
        return changed

    def _joined(self, options: Sequence[str]) -> tuple[Document, tuple[Problem, ...]]:
        """Return the contents of its files and options, and mistakes in the options."""
        return joined(
            self.chain,
            overrides=(*self.overrides, *options),
            model=self.table,
            overlay=self.calibration,
        )
