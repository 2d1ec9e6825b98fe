"""Which settings an answer about a draft depends on: found out by watching what is asked.

`watched` looks like the draft of a candidate to whoever works something out of it, and notes the
settings that bear on what they look at. Whoever asks the same questions of another candidate, and
is told the same, comes to the same answer: only what differs has to be worked out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from pydantic import BaseModel

from simulator.files.document import Document
from simulator.files.lines import KeyPath
from simulator.files.resolved import LOOKED_UP, SECTIONS, Draft

_SECTIONS: Final = frozenset(SECTIONS)
_LOOKED_UP: Final = frozenset(LOOKED_UP)
_TEXTS: Final = frozenset({"data", "lines", "origins"})


class Settings:
    """The keys that candidates set, by number."""

    def __init__(self, paths: Sequence[KeyPath]) -> None:
        self.paths = tuple(paths)
        self.sections = frozenset(str(path[0]) for path in paths)
        self._about: dict[KeyPath, frozenset[int]] = {}

    def about(self, path: KeyPath) -> frozenset[int]:
        """Those that say what stands at a path, or below it."""
        found = self._about.get(path)
        if found is None:
            found = self._about[path] = frozenset(
                number
                for number, own in enumerate(self.paths)
                if all(one == other for one, other in zip(own, path, strict=False))
            )
        return found

    def of_section(self, name: str) -> frozenset[str]:
        """Keys of a section that are set, or have a table in which something is."""
        return frozenset(str(path[1]) for path in self.paths if path[0] == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Which settings were `asked` about, by number.

    `names` are the settings that decide what is looked up, `plain` the sections as they are before
    anything is derived.
    """

    settings: Settings
    names: frozenset[int]
    plain: Mapping[str, BaseModel | None]
    asked: set[int]

    def about(self, path: KeyPath) -> None:
        """Somebody looks at what stands at a path, or below it."""
        self.asked.update(self.settings.about(path))

    def about_names(self) -> None:
        """Somebody looks at a profile or a model."""
        self.asked.update(self.names)


@cache
def keys_of(model: type[BaseModel]) -> Mapping[str, tuple[str, ...]]:
    """Keys in a file by field of a section."""
    return {
        name: tuple(dict.fromkeys((name, info.alias or name)))
        for name, info in model.model_fields.items()
    }


def watched(draft: Draft, notes: Notes) -> Draft:
    """A draft that answers as `draft` does and notes what is asked."""
    seen: Any = object.__new__(_WatchedDraft)
    object.__setattr__(seen, "_own", draft)
    object.__setattr__(seen, "_notes", notes)
    return cast("Draft", seen)


class _WatchedDraft(Draft):
    """Answers for a draft; its properties ask the same way."""

    __slots__ = ("_notes", "_own")
    _own: Draft
    _notes: Notes

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever a draft has
        if name in _SECTIONS:
            return _section(object.__getattribute__(self, "_own"), name, self._notes)
        if name in _LOOKED_UP:
            self._notes.about_names()
            return getattr(self._own, name)
        if name == "document":
            return _document(self._own.document, self._notes)
        if name == "broken":
            return self._own.broken
        return object.__getattribute__(self, name)


def _section(draft: Draft, name: str, notes: Notes) -> Any:  # noqa: ANN401 - a section, or like one
    section = getattr(draft, name)
    if section is not notes.plain[name]:
        # Derived from this section and others: from which is not known here.
        notes.about(())
        return section
    if section is None or name not in notes.settings.sections:
        return section
    return _WatchedSection(section, name, notes)


class _WatchedSection:
    """Answers for a section some of whose keys are set."""

    __slots__ = ("_name", "_notes", "_own")

    def __init__(self, own: BaseModel, name: str, notes: Notes) -> None:
        self._own = own
        self._name = name
        self._notes = notes

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a section has
        keys = keys_of(type(self._own)).get(name)
        if keys is None:
            self._notes.about((self._name,))
        else:
            for key in keys:
                self._notes.about((self._name, key))
        return getattr(self._own, name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override] # what vars() shows
        self._notes.about((self._name,))
        return vars(self._own)

    @property  # type: ignore[misc] # what isinstance() sees
    def __class__(self) -> type[BaseModel]:  # type: ignore[override] # the same
        return type(self._own)


def _document(document: Document, notes: Notes) -> Document:
    seen: Any = object.__new__(_WatchedDocument)
    object.__setattr__(seen, "_own", document)
    object.__setattr__(seen, "_notes", notes)
    return cast("Document", seen)


class _WatchedDocument(Document):
    """Answers for a document."""

    __slots__ = ("_notes", "_own")
    _own: Document
    _notes: Notes

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever a document has
        if name in _TEXTS:
            self._notes.about(())
        elif name == "__class__":
            # So that a changed copy is a plain document.
            return Document
        return (
            getattr(self._own, name) if name in _DOCUMENT else object.__getattribute__(self, name)
        )

    def where(self, path: KeyPath) -> tuple[str, int | None]:
        """File (or option) and line of `path`, or of the table it is missing from."""
        # That of a table which options made is their place.
        self._notes.about(path if self._own.knows(path) else path[:1])
        return self._own.where(path)

    def value(self, path: KeyPath) -> object:
        """What stands at `path`."""
        self._notes.about(path)
        return self._own.value(path)

    def says(self, path: KeyPath) -> bool:
        """Whether anything stands at `path`."""
        self._notes.about(path)
        return self._own.says(path)


_DOCUMENT: Final = frozenset({*_TEXTS, "origin"})
