"""What identifies the contents of a scenario: a hash of every figure a prediction can depend on.

Where figures come from, the names that people read and the notes about assumptions are left out:
they change no result. The version of the model, its own sources and data included, is part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from simulator.hardware.gpu import Gpu
from simulator.hardware.host import Host
from simulator.hardware.storage import Storage
from simulator.scenario import Scenario
from simulator.version import __version__
from simulator.workload.dataset import Dataset

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_UNSEEN: Final[Mapping[type, frozenset[str]]] = {
    Scenario: frozenset({"name", "title", "notes"}),
    Dataset: frozenset({"name"}),
}
"""Fields that change no figure of a prediction."""
_PROVENANCE: Final = frozenset({"source", "sources"})
_MODELS: Final = "simulator.workload.models"


def content_key(scenario: Scenario) -> str:
    """The hash of everything a prediction of `scenario` depends on but its seed.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.
    """
    text = _written(scenario)
    return hashlib.sha256(f"{model_version()}\n{text}".encode()).hexdigest()


@cache
def model_version() -> str:
    """The version of plan with a digest of its own sources and data.

    A checkout under development is another version after every change.
    """
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        if path.suffix in (".py", ".toml", ".csv") and _counts(path.relative_to(_PACKAGE).parts[0]):
            digest.update(f"{path.relative_to(_PACKAGE).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()}"


_APART: Final = frozenset({"cli", "report", "importers", "probe", "studies"})
"""Packages that only ask for predictions or show them."""
_OWN_DATA: Final = frozenset({"hardware_profiles", "scenarios"})


def _counts(part: str) -> bool:
    return part not in _APART


class _Digests:
    """Digests of large parts that many scenarios share, kept as long as the parts live."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[object, str]] = {}

    def of(self, part: object) -> str:
        """The digest of a part, worked out once."""
        found = self._kept.get(id(part))
        if found is not None and found[0] is part:
            return found[1]
        if len(self._kept) > _MOST:
            self._kept.clear()
        text = hashlib.sha256(_fields_of(part).encode()).hexdigest()
        # Keeping the part keeps its id from being used again.
        self._kept[id(part)] = (part, text)
        return text


_MOST: Final = 4096
_digests: Final = _Digests()


@cache
def _plan(kind: Any) -> tuple[str, Callable[[Any], Any] | None, bool, bool]:
    """How a dataclass is written: its name, a getter of its fields, whether one, if shared."""
    unseen = _UNSEEN.get(kind, frozenset()) | _PROVENANCE
    names = [field.name for field in fields(kind) if field.name not in unseen]
    shared = issubclass(kind, Host | Gpu | Storage) or kind.__module__.startswith(_MODELS)
    getter = attrgetter(*names) if names else None
    return kind.__qualname__, getter, len(names) == 1, shared


def _kind(value: object) -> Hashable:
    return type(value)


def _written(value: object) -> str:
    """A value as text: equal for equal contents, different for different ones."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if is_dataclass(value):
        return _digests.of(value) if _plan(_kind(value))[3] else _fields_of(value)
    if isinstance(value, tuple | list):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, Mapping):
        entries = sorted(f"{_written(key)}:{_written(item)}" for key, item in value.items())
        return f"{{{','.join(entries)}}}"
    if isinstance(value, frozenset | set):
        return f"<{','.join(sorted(map(_written, value)))}>"
    msg = f"{type(value).__name__} has no contents that could be hashed"
    raise TypeError(msg)


def _fields_of(value: object) -> str:
    name, getter, single, _ = _plan(_kind(value))
    if getter is None:
        return f"{name}()"
    found = getter(value)
    parts = (found,) if single else found
    return f"{name}({','.join(map(_written, parts))})"
