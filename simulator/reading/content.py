"""What identifies the contents of a scenario: a hash of all that a prediction can depend on.

A scenario follows from its checked sections, from which of their keys are given, from the
profiles and the model they name, and from the version of plan with its own data. Where figures
come from and the names that only people read are left out: they change no result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final

from simulator.memo import cached
from simulator.reading.calibration import calibration_of
from simulator.reading.unresolved import (
    SECTIONS,
    UnresolvedScenario,
    stated_interruptions,
)
from simulator.schema.fields import Section
from simulator.version import __version__

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_PROVENANCE: Final = frozenset({"source", "sources", "note"})
_PEOPLE_READ: Final = frozenset({("data", "name"), ("calibration", "overlay")})
"""Keys that change no figure: what a path leads to counts, not the path."""
_APART: Final = frozenset({"cli", "report", "importers", "probe", "hardware_profiles", "scenarios"})
"""Folders of the package that ask for predictions or show them, and data that is looked up."""
_CONTENTS: Final = frozenset({".py", ".toml", ".csv"})


LOOKED_UP: Final = (
    *("host", "storage", "cache", "helper", "helper_storage", "measured_on"),
    "library_model",
)
"""What a scenario has that its sections only name."""


def content_key(file: UnresolvedScenario) -> str:
    """Return the hash of everything that the prediction of a scenario depends on but its seed.

    Parameters
    ----------
    file : UnresolvedScenario
        Without mistakes, everything looked up.

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

    Defaults are other evidence than stated values.
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

    A checkout under development is another version after every change.
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
    """Return the fields of an object but for where its figures come from."""
    names = (field.name for field in fields(value))
    return {name: getattr(value, name) for name in names if name not in _PROVENANCE}
