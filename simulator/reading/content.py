"""What identifies the contents of a scenario: a hash of all that a prediction can depend on.

A scenario follows from its checked sections, from which of their keys are given, from the
profiles and the model they name, and from the version of plan with its own data. Where figures
come from and the names that only people read are left out: they change no result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from simulator.memo import Memo
from simulator.reading.convert.calibration import calibration_of
from simulator.reading.long_run.interruptions import INTERRUPTIONS
from simulator.reading.resolved import LOOKED_UP, SECTIONS, Ask, Draft, Part, part
from simulator.version import __version__

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_PROVENANCE: Final = frozenset({"source", "sources", "note"})
_PEOPLE_READ: Final = frozenset({("data", "name"), ("calibration", "overlay")})
"""Keys that change no figure: what a path leads to counts, not the path."""
_APART: Final = frozenset({"cli", "report", "importers", "probe", "hardware_profiles", "scenarios"})
"""Folders of the package that ask for predictions or show them, and data that is looked up."""
_CONTENTS: Final = frozenset({".py", ".toml", ".csv"})


def content_key(ask: Ask) -> str:
    """The hash of everything that the prediction of a scenario depends on but its seed.

    Parameters
    ----------
    ask : callable
        Knows the parts of a draft without mistakes, everything looked up, or makes them.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.
    """
    parts = [model_version(), *map(ask, CONTENTS)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _of_calibration(draft: Draft) -> str:
    """Factors and fitted parameters, with the contents of an overlay."""
    return _of_thing(calibration_of(draft))


def _of_spells(draft: Draft) -> str:
    """A trace of spot capacity: what the file holds counts, not where it lies."""
    found = INTERRUPTIONS.make(draft)
    return "" if found is None or found.spells is None else _digest(_written(found.spells))


def _of_section(name: str, draft: Draft) -> str:
    """A section of the file: its values, and which keys are given."""
    section = getattr(draft, name)
    if section is None:
        return ""
    given = draft.document.value((name,))
    return _digests.of(
        (section,), lambda: _digest(f"{_section(name, section)}{_given(name, given)}")
    )


def _of_profile(name: str, draft: Draft) -> str:
    """A profile, or the model."""
    thing = getattr(draft, name)
    return "" if thing is None else _of_thing(thing)


def _of_thing(thing: object) -> str:
    return _digests.of((thing,), lambda: _digest(_written(thing)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_digests: Final[Memo[str]] = Memo(10_000)
"""Of profiles and sections, which many scenarios share."""
CONTENTS: Final[tuple[Part[str], ...]] = (
    part(_of_calibration, "calibration"),
    *(part(partial(_of_section, name), name) for name in SECTIONS),
    part(_of_spells, " ".join(INTERRUPTIONS.reads)),
    *(part(partial(_of_profile, name), name) for name in LOOKED_UP),
)
"""Digests of all that a prediction depends on."""


@cache
def model_version() -> str:
    """The version of plan with a digest of its own sources and data.

    A checkout under development is another version after every change.
    """
    return f"{__version__}+{digest_of(_PACKAGE)}"


def digest_of(folder: Path) -> str:
    """The digest of all sources and data in a folder that can change a prediction."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix in _CONTENTS and _APART.isdisjoint(inside.parts):
            digest.update(f"{inside.as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _section(name: str, section: object) -> str:
    values = _fields(section).items()
    return _written({key: value for key, value in values if (name, key) not in _PEOPLE_READ})


def _given(name: str, given: object) -> list[str]:
    """The keys of a section that are given: defaults are other evidence than what somebody says."""
    return sorted(path for path in _paths(given) if (name, path) not in _PEOPLE_READ)


def _paths(given: object, before: str = "") -> Iterator[str]:
    """Dotted paths of all keys in a table."""
    for key, value in given.items() if isinstance(given, Mapping) else ():
        yield f"{before}{key}"
        yield from _paths(value, f"{before}{key}.")


def _written(value: object) -> str:
    """A value as text: equal for equal contents, different for different ones."""
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
    """The fields of an object but for where its figures come from."""
    names = (field.name for field in fields(value))
    return {name: getattr(value, name) for name in names if name not in _PROVENANCE}
