"""The catalogue of hardware profiles, read from files on demand and cached.

Names are paths below a kind, without ``.toml``: ``gpu/a100-sxm4-80gb``,
``instance/aws/p4d.24xlarge``. Directories are searched in order: those given by ``--profiles``,
those of ``$PLAN_PROFILES``, ``./hardware_profiles``, the packaged ones. The first profile found is
used; with ``overlay = true`` it only replaces single figures of the next one.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from simulator.errors import InputError, Problem, UnknownName
from simulator.reading.document import (
    Document,
    check,
    read_document,
    schema_problem,
)
from simulator.reading.hardware.devices import (
    Cite,
    to_client,
    to_cpu,
    to_gpu,
    to_link,
    to_storage,
)
from simulator.reading.hardware.machine import DefaultsFile, swapped, to_host
from simulator.reading.hardware.profile_text import price_table
from simulator.reading.lines import KeyPath
from simulator.reading.merge_documents import merge
from simulator.reading.shipped import shipped_folder
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.fields import DateField, TextField
from simulator.schema.machines import Cpu, Host, Link
from simulator.schema.provenance import Source
from simulator.schema.storage import Storage, StoreClient

Profile: TypeAlias = Host | Gpu | Cpu | Link | Storage | StoreClient
"""Types of the contents of a profile."""
Thing = TypeVar("Thing")

KINDS: Final = ("gpu", "cpu", "link", "storage", "client", "node", "instance")
"""The folders of a profile directory."""
ENVIRONMENT: Final = "PLAN_PROFILES"
"""Environment variable with profile directories, separated as in ``$PATH``."""
FOLDER: Final = "hardware_profiles"

_NAME: Final = re.compile(r"[\w+-][\w.+-]*(?:/[\w+-][\w.+-]*)*")
_SPACES: Final = re.compile(r"[ _-]")
_MAKERS: Final = ("nvidia", "geforce")
"""Words that people write before the name of a card, in this order."""
_CARD_DIGITS: Final = 4
"""Number of digits in the numbers of cards."""
_LONGEST: Final = 200
"""Longest part of a name in characters; file systems allow 255 with the extension."""
_ANY: Final = "profile"
_MACHINES: Final = ("node", "instance")
_CALLED: Final[Mapping[str, str]] = MappingProxyType(
    {"gpu": "accelerator", "cpu": "processor", "storage": "store",
     "client": "client of object stores", "node": "machine",
     "instance": "machine"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """An entry of a sources.toml."""

    reference: TextField
    """Title, address and version of the source."""
    date: DateField
    """Date of the source."""
    note: TextField | None = None
    """Licence or remarks."""


class Catalogue:
    """Profiles of a list of directories; each is read on demand and cached.

    Parameters
    ----------
    directories : sequence of pathlib.Path
        Directories to search, in this order. Each has folders named like `KINDS` and may have a
        ``sources.toml``.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        self.directories = tuple(directories)
        # Any: the first part of the name says which of Profile it is.
        self._loaded: dict[str, Any] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._cited: dict[str, str] = {}
        self._registers: tuple[Document, ...] | None = None

    @classmethod
    def default(cls, extra: Sequence[Path] = ()) -> Catalogue:
        """Return the catalogue of the standard search path, `extra` directories first.

        Raises
        ------
        InputError
            If a directory of `extra` or of ``$PLAN_PROFILES`` doesn't exist.
        """
        listed = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
        asked = [(path, "--profiles") for path in extra]
        asked += [(Path(text), f"${ENVIRONMENT}") for text in listed if text]
        missing = tuple(
            Problem(origin=origin, message="is not a folder", found=str(path))
            for path, origin in asked
            if not _is_folder(path)
        )
        if missing:
            raise InputError(missing)
        here = Path(FOLDER)
        found = [path for path, _ in asked] + ([here] if here.is_dir() else []) + [packaged()]
        return cls(tuple({path.resolve(): path for path in found}.values()))

    def gpu(self, name: str) -> Gpu:
        """Return the accelerator called `name`, with or without the prefix ``gpu/``.

        Raises
        ------
        UnknownName
            If there is none; names the nearest ones. So do all similar methods.
        InputError
            If its profile has mistakes. So do all similar methods.
        """
        return self._device("gpu", name, to_gpu)

    def cpu(self, name: str) -> Cpu:
        """Return the processor called `name`, with or without the prefix ``cpu/``."""
        return self._device("cpu", name, to_cpu)

    def link(self, name: str) -> Link:
        """Return the link called `name`, with or without the prefix ``link/``."""
        return self._device("link", name, to_link)

    def storage(self, name: str) -> Storage:
        """Return the store called `name`, with or without the prefix ``storage/``."""
        return self._device("storage", name, to_storage)

    def client(self, name: str) -> StoreClient:
        """Return the client of object stores called `name`, with or without ``client/``."""
        return self._device("client", name, to_client)

    def host(self, name: str) -> Host:
        """Return the machine called `name`: ``node/...`` or ``instance/...``."""
        name = self._meant(name, _MACHINES)
        if name.partition("/")[0] not in _MACHINES:
            machines = (*self.names("node"), *self.names("instance"))
            cards = [gpu for gpu in self.names("gpu") if _folded(gpu) == _folded(name)]
            if cards:
                meant = f"it is an accelerator: `plan init --gpu {name}` writes a machine around it"
                msg = f"there is no {_CALLED['node']} '{name}'; {meant}"
                raise UnknownName(msg)
            raise _unknown(_CALLED["node"], name, machines)

        def build(document: Document) -> Host:
            return to_host(name, document, self._cite, self)

        return self._load(name, build)

    def with_gpu(self, host: Host, name: str) -> Host:
        """Return the machine with its accelerators replaced by those called `name`."""
        return swapped(host, name, self)

    def load(self, name: str) -> Profile:
        """Return the profile of any kind with this full name."""
        kinds: dict[str, Callable[[str], Profile]] = {
            "gpu": self.gpu,
            "cpu": self.cpu,
            "link": self.link,
            "storage": self.storage,
            "client": self.client,
            "node": self.host,
            "instance": self.host,
        }
        name = self._meant(name, KINDS)
        kind = name.partition("/")[0]
        if kind not in kinds or "/" not in name:
            every = tuple(known for kind in KINDS for known in self.names(kind))
            raise _unknown(_ANY, name, every)
        return kinds[kind](name)

    def defaults(self) -> DefaultsFile:
        """Return the defaults for values that a profile lacks, from the first ``defaults.toml``."""
        if "defaults" not in self._loaded:
            self._loaded["defaults"] = check(DefaultsFile, self._document("defaults"))
        defaults: DefaultsFile = self._loaded["defaults"]
        return defaults

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the full names of all profiles of a kind of `KINDS`, sorted; reads no file.

        Files whose names no profile can have, such as ``a b.toml``, are left out.
        """
        if kind not in self._names:
            found = {name for name, _ in self._files(kind) if _is_name(name)}
            self._names[kind] = tuple(sorted(found, key=_natural))
        return self._names[kind]

    def misnamed(self, kind: str) -> tuple[Path, ...]:
        """Return the files of a kind whose names no profile can have, sorted."""
        return tuple(sorted(path for name, path in self._files(kind) if not _is_name(name)))

    def _files(self, kind: str) -> Iterator[tuple[str, Path]]:
        for directory in self.directories:
            for path in (directory / kind).rglob("*.toml"):
                yield path.relative_to(directory).as_posix().removesuffix(".toml"), path

    def listed(self, wanted: str) -> tuple[str, ...]:
        """Return the full names of the kind `wanted`, else the names that `holding` finds.

        Raises
        ------
        UnknownName
            If there are none.
        """
        if wanted in KINDS:
            return self.names(wanted)
        names = tuple(name for known in KINDS for name in self.names(known))
        found = holding(wanted, names)
        if not found:
            raise _unknown(_ANY, wanted, (*KINDS, *names))
        return found

    def _device(
        self,
        kind: str,
        name: str,
        convert: Callable[[str, Document, Cite], Thing],
    ) -> Thing:
        full = self._meant(name if name.startswith(f"{kind}/") else f"{kind}/{name}", (kind,))

        def build(document: Document) -> Thing:
            return convert(full, document, self._cite)

        return self._load(full, build)

    def _meant(self, name: str, kinds: Sequence[str]) -> str:
        """Return the full name for `name`: an exact match, or the only one with the same ending.

        Upper and lower case are the same; spaces, hyphens, underscores and the manufacturer are
        ignored, so that ``p4d.24xlarge``, ``rtx4090`` and ``NVIDIA RTX 4090`` are accepted. So are
        the number of a card, ``4090``, and a family of machines with a single size, ``p4d``.
        """
        if name in self._loaded or self._paths(name):
            return name
        wanted, given = _folded(name), name.partition("/")[0]
        if not _NAME.fullmatch(name.replace(" ", "")):
            return name
        kinds = (given,) if given in kinds and "/" in name else kinds
        folded = {full: _folded(full) for kind in kinds for full in self.names(kind)}
        known = [full for full, short in folded.items() if short == wanted]
        if not known and wanted.isdigit() and len(wanted) >= _CARD_DIGITS:
            known = [full for full, short in folded.items() if short.endswith(wanted)]
        if not known:
            known = [
                full for full in folded if full.startswith(_RENTED) and _family(full) == wanted
            ]
        return known[0] if len(known) == 1 else name

    def _load(self, name: str, build: Callable[[Document], Thing]) -> Thing:
        if name not in self._loaded:
            self._loaded[name] = build(self._document(name))
        thing: Thing = self._loaded[name]
        return thing

    def _document(self, name: str) -> Document:
        """Return the document of a profile, an overlay merged over the profile that it changes."""
        kind = name.partition("/")[0]
        paths = self._paths(name)
        if not paths:
            raise _unknown(_CALLED.get(kind, kind), name, self.names(kind))
        layers = []
        for path in paths:
            layers.append(read_document(path))
            if layers[-1].data.get("overlay") is not True:
                break
        else:
            hint = "leave it out for a profile that stands alone"
            message = "has nothing to lie over"
            raise InputError((layers[-1].problem(("overlay",), message, hint=hint),))
        merged = layers.pop()
        for layer in reversed(layers):
            wrong = schema_problem(layer)
            if wrong is not None:
                raise InputError((wrong,))
            merged = merge(_without(merged, layer), layer)
        return merged

    def _paths(self, name: str) -> tuple[Path, ...]:
        if not _is_name(name):
            return ()
        paths = (directory / f"{name}.toml" for directory in self.directories)
        return tuple(path for path in paths if path.is_file())

    def _cite(self, source: Source) -> Source:
        if source.reference not in self._cited:
            self._cited[source.reference] = self._reference(source.reference)
        return replace(source, reference=self._cited[source.reference])

    def _reference(self, key: str) -> str:
        if self._registers is None:
            files = (directory / "sources.toml" for directory in self.directories)
            self._registers = tuple(read_document(file) for file in files if file.is_file())
        for register in self._registers:
            if key != "schema" and key in register.data:
                return check(SourceTable, register, at=(key,)).reference
        return key


_RENTED: Final = "instance/"


def _is_name(name: str) -> bool:
    """Return True if a profile may have this name: letters, digits, - . _ + and folders."""
    return _NAME.fullmatch(name) is not None and max(map(len, name.split("/"))) <= _LONGEST


def _folded(name: str) -> str:
    """Return the last part of a name without case, separators and manufacturer."""
    folded = _SPACES.sub("", name.rsplit("/", maxsplit=1)[-1].lower())
    for maker in _MAKERS:
        folded = folded.removeprefix(maker)
    return folded


def _family(full: str) -> str:
    first, point, _ = full.rsplit("/", maxsplit=1)[-1].lower().partition(".")
    return first if point else ""


def _unknown(called: str, name: str, known: Sequence[str]) -> UnknownName:
    close = nearest_names(name, known)
    meant = f"did you mean {' or '.join(repr(other) for other in close)}?" if close else ""
    advice = meant or "`plan hardware list` shows them all"
    if not meant and called == _CALLED["node"]:
        advice += "; `plan init --gpu NAME --vcpus N --ram SIZE` writes one of your own"
    return UnknownName(f"there is no {called} '{name}'; {advice}")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # A name too long for any file.
        return False


def packaged() -> Path:
    """Return the directory of the profiles that come with plan, in the package or the checkout."""
    return shipped_folder(FOLDER)


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    parts = re.split(r"(\d+)", name.lower())
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts if part)


def _without(base: Document, over: Document) -> Document:
    """Return `base` without the figures that `over` replaces, each with its source and date."""
    data = _stripped(_alike(base.data, over.data), over.data)
    gone: list[KeyPath] = [path for path in base.lines if _value_at(data, path) is None]
    lines = {path: line for path, line in base.lines.items() if path not in gone}
    return Document(origin=base.origin, data=data, lines=lines, origins=base.origins)


def _alike(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with its prices as a table if `over` has a table of prices."""
    listed = base.get("price")
    if not isinstance(listed, list) or not isinstance(over.get("price"), dict):
        return base
    return {**base, "price": price_table(listed)}


def _stripped(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in base.items():
        new = over.get(key)
        if isinstance(value, dict) and isinstance(new, dict):
            if "value" not in value:
                kept[key] = _stripped(value, new)
        else:
            kept[key] = value
    return kept


def _value_at(data: object, path: KeyPath) -> object:
    value: Any = data
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


_ALIKE: Final = 0.75
"""Similarity of the last parts of two names from which one is suggested for the other."""


def nearest_names(name: str, known: Sequence[str], most: int = 3) -> list[str]:
    """Return the known names most similar to `name`; those with the same last part come first."""
    wanted = name.lower()
    last = wanted.rsplit("/", maxsplit=1)[-1]
    ends = [other for other in known if other.lower().rsplit("/", maxsplit=1)[-1] == last]
    folded = {other.lower(): other for other in known}
    close = difflib.get_close_matches(wanted, folded, n=most)
    begins = [other for other in known if last and f"/{last}" in other.lower()]
    holds = [other for other in known if last and last in other.lower()]
    # What people type is often a last part alone, of a name that begins otherwise.
    lasts = {other.lower().rsplit("/", maxsplit=1)[-1]: other for other in known}
    alike = difflib.get_close_matches(last, lasts, n=most, cutoff=_ALIKE)
    found = dict.fromkeys(
        [*ends, *begins, *(folded[o] for o in close), *(lasts[o] for o in alike), *holds]
    )
    return list(found)[:most]


def holding(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that begin with `text`, else those that contain it, or match a pattern.

    Case is ignored; ``*`` in a pattern is any text.

    Examples
    --------
    >>> holding("70B", ["llama-2-70b", "resnet50"]), holding("res*", ["llama-2-70b", "resnet50"])
    (('llama-2-70b',), ('resnet50',))
    """
    wanted = text.lower()
    if set(wanted) & set("*?["):
        return tuple(name for name in names if fnmatch.fnmatch(name.lower(), wanted))
    begin = tuple(name for name in names if name.lower().startswith(wanted))
    return begin or tuple(name for name in names if wanted in name.lower())


def asked_for(called: str, text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that `holding` finds for text typed by a user.

    Raises
    ------
    UnknownName
        If there are none; names the nearest ones, or how to list all.
    """
    found = holding(text, names)
    if found:
        return found
    close = nearest_names(text, names)
    meant = " or ".join(repr(name) for name in close)
    hint = f"did you mean {meant}?" if close else "without a name all are listed"
    msg = f"there is no {called} '{text}'; {hint}"
    raise UnknownName(msg)
