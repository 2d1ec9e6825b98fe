"""Candidates that set the same keys: what does not depend on those they differ in is shared.

Every part of a candidate's scenario, every check and every part of its content key is an answer
about its draft. `questions` finds out which settings each depends on, so that it is worked out once
for all candidates that agree in these: a search over thirty workers, ten batches and twenty
machines reads twenty machines. Whatever is unusual about a candidate is not read here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from simulator.errors import Problem
from simulator.files.base import MOST_KEPT, Base
from simulator.files.catalogue import Catalogue
from simulator.files.checks import CHECKS
from simulator.files.lines import KeyPath
from simulator.files.questions import Notes, Settings, keys_of, watched
from simulator.files.resolved import Ask, Draft, Found, find
from simulator.files.scenario import ModelLibrary, converted, refuse
from simulator.scenario.scenario import Scenario

Thing = TypeVar("Thing")
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Bare:
    """A scenario for closed forms, before anything is assumed of how samples vary."""

    scenario: Scenario
    ask: Ask
    """Works out more of its draft."""


@dataclass(slots=True)
class _Part:
    """Answers of one kind by the settings, of those in `about`, that they depend on."""

    about: tuple[int, ...] = ()
    of: Callable[[tuple[str, ...]], Hashable] = lambda _: ()
    known: dict[Hashable, Any] = field(default_factory=dict)

    def depends_on(self, about: set[int]) -> None:
        """It turned out to depend on these settings as well; what was known may not hold."""
        self.about = tuple(sorted({*self.about, *about}))
        self.of = itemgetter(*self.about)
        self.known.clear()


class Together:
    """Reads candidates that set the same keys.

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
        self.settings = Settings(paths)
        self.names: frozenset[int] = frozenset()
        self._default_name = default_name
        self._parts: dict[Callable[[Draft], Any], _Part] = {}
        self._sections: dict[str, _Part] = {}
        for number, path in enumerate(paths):
            part = self._sections.setdefault(str(path[0]), _Part())
            part.depends_on({*part.about, number})
        self._first: dict[str, BaseModel] = {}
        library = ModelLibrary()
        self._find = lambda draft: find(draft, catalogue, library)
        self._checks = [_told(look) for look, _ in CHECKS]

    def read(self, texts: tuple[str, ...]) -> Bare | None:
        """The candidate with these options, one for each key; None if it goes the long way.

        Raises
        ------
        InputError
            With all mistakes of its sections against each other.
        """
        sections = {name: self._section(part, name, texts) for name, part in self._sections.items()}
        if None in sections.values():
            return None
        case = _Case(self, texts, sections)
        if self.found(case).problems:
            return None
        refuse(self._problems(case), self.base.document.origin)

        def ask(part: Callable[[Draft], Thing]) -> Thing:
            return self.ask(part, case)

        scenario = converted(ask, self.base.document, self._default_name)
        return Bare(scenario, ask)

    def _problems(self, case: _Case) -> list[Problem]:
        """What a candidate's sections contradict each other in."""
        found: list[Problem] = []
        for check in tuple(self._checks):
            problems = self.ask(check, case)
            found += problems
            if not problems and not self._parts[check].about:
                # It depends on nothing that candidates differ in.
                self._checks.remove(check)
        return found

    def ask(self, part: Callable[[Draft], Thing], case: _Case) -> Thing:
        """What `part` makes of a candidate's draft, worked out now or for another one."""
        kept = self._parts.get(part)
        if kept is None:
            kept = self._parts[part] = _Part()
        answer = kept.known.get(kept.of(case.texts), _NOTHING)
        if answer is _NOTHING:
            answer = self._work_out(part, kept, case.draft, case)
        thing: Thing = answer
        return thing

    def found(self, case: _Case) -> Found:
        """The profiles and the model that a candidate names."""
        kept = self._parts.setdefault(self._find, _Part())
        answer = kept.known.get(kept.of(case.texts), _NOTHING)
        if answer is _NOTHING:
            answer = self._work_out(self._find, kept, case.bare, case)
            self.names = frozenset(kept.about)
        found: Found = answer
        return found

    def _work_out(
        self, part: Callable[[Draft], Thing], kept: _Part, draft: Draft, case: _Case
    ) -> Thing:
        notes = Notes(settings=self.settings, names=self.names, plain=case.plain, asked=set())
        answer = part(watched(draft, notes))
        if not notes.asked <= set(kept.about):
            kept.depends_on(notes.asked)
        elif len(kept.known) >= MOST_KEPT:
            kept.known.clear()
        kept.known[kept.of(case.texts)] = answer
        return answer

    def _section(self, kept: _Part, name: str, texts: tuple[str, ...]) -> BaseModel | None:
        own = kept.of(texts)
        if own not in kept.known:
            if len(kept.known) >= MOST_KEPT:
                kept.known.clear()
            kept.known[own] = self._alike(name, (own,) if isinstance(own, str) else own)
        section: BaseModel | None = kept.known[own]
        return section

    def _alike(self, name: str, texts: Any) -> BaseModel | None:  # noqa: ANN401 - a tuple of texts
        """The section, if it differs from those of other candidates in nothing but what is set."""
        section = self.base.section(texts)
        if section is None:
            return None
        first = self._first.setdefault(name, section)
        own = self.settings.of_section(name)
        others = [key for key, keys in keys_of(type(section)).items() if own.isdisjoint(keys)]
        same = all(getattr(section, key) == getattr(first, key) for key in others)
        return section if same else None


class _Case:
    """A candidate: its options, the sections they touch, and its draft where somebody needs it."""

    def __init__(
        self, together: Together, texts: tuple[str, ...], sections: Mapping[str, BaseModel | None]
    ) -> None:
        self.texts = texts
        self._together = together
        self._sections = sections

    @cached_property
    def plain(self) -> Mapping[str, BaseModel | None]:
        """All sections as its texts say."""
        return {**self._together.base.checked, **self._sections}

    @cached_property
    def bare(self) -> Draft:
        """The draft with nothing looked up."""
        found = self._together.base.with_options(self.texts)
        if found is None:
            msg = "sections that are sound one by one make a draft"
            raise TypeError(msg)
        return found

    @cached_property
    def draft(self) -> Draft:
        """The draft with everything looked up."""
        return replace(self.bare, **self._together.found(self).things)


def _told(look: Callable[[Draft], Iterable[Problem]]) -> Callable[[Draft], tuple[Problem, ...]]:
    """All problems that a check finds, at once."""
    return lambda draft: tuple(look(draft))
