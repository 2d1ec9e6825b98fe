"""Many scenarios that differ in a few settings: what they share is read once, see `variations`.

Candidates with something unusual about them (a mistake, a table for a value, another overlay) go
the long way of `load_scenario`, so that results and messages are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from simulator.errors import InputError, PlanError, Problem
from simulator.reading.content import content_key
from simulator.reading.document import Document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.lines import KeyPath
from simulator.reading.merge_documents import chain_of, joined
from simulator.reading.resolved import Draft
from simulator.reading.scenario import (
    asking,
    checked,
    converted,
    default_name_of,
    from_document,
    to_scenario,
)
from simulator.reading.search.alternatives import without_key
from simulator.reading.search.goal_section import goal_of
from simulator.reading.search.sweep_section import axes_of
from simulator.reading.search.variations import Bare, Variations, base_of
from simulator.reading.sections import ScenarioFile
from simulator.reading.service.mode import refuse_service
from simulator.reading.settings import as_option, possible_names
from simulator.schema.goal import Axes, Goal, Plain
from simulator.schema.scenario import Scenario


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
    chain : sequence of Document, optional
        Its documents where they have been read already (`merge_documents.chain_of`).

    Raises
    ------
    InputError
        If its text, or a folder of profiles, cannot be read.
    UnknownName
        If there is no such scenario.
    """

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
        self.name_or_path = name_or_path
        self.overrides = tuple(overrides)
        self.profiles = tuple(profiles)
        self.calibration = calibration
        self._chain = chain_of(name_or_path, stdin) if chain is None else tuple(chain)
        self._prepare()

    def over(self, settings: Mapping[str, Plain]) -> CandidateReader:
        """Return a reader of the same scenario with these settings over its own."""
        return CandidateReader(
            self.name_or_path,
            overrides=(*self.overrides, *_options(settings)),
            profiles=self.profiles,
            calibration=self.calibration,
            chain=self._chain,
        )

    def less(self, keys: Sequence[KeyPath]) -> CandidateReader:
        """A reader of the same scenario without some keys, wherever they are stated."""
        found = copy(self)
        chain = tuple(_less(document, keys) for document in self._chain)
        names = tuple(f"{'.'.join(map(str, key))}=" for key in keys)
        kept = [text for text in self.overrides if not text.replace(" ", "").startswith(names)]
        found.__setstate__({**self.__getstate__(), "_chain": chain, "overrides": tuple(kept)})
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in _WORKED_OUT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def _prepare(self) -> None:
        self._catalogue = Catalogue.default(self.profiles)
        self._document, self._problems = self._joined(())
        refuse_service(self._document)
        self._base = None if self._problems else base_of(self._document)
        self._variations: dict[tuple[str, ...], Variations] = {}

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """The scenario with these settings over its own, as `load_scenario` reads it.

        Raises
        ------
        InputError, UnknownName, NotModelled
            As `load_scenario` does.
        """
        draft = self._draft(_options(settings))
        scenario = to_scenario(draft, default_name_of(self.name_or_path))
        return Loaded(scenario=scenario, key=content_key(asking(draft)))

    def read_bare(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded | PlanError, ...]:
        """Read many scenarios like `read`, without uncertainties, which closed forms don't need.

        Returns
        -------
        tuple
            In the order of `candidates`; a mistake stands in the place of its candidate.
        """
        return tuple(map(self._loaded_or_error, candidates))

    def plainly(self, settings: Mapping[str, Plain]) -> Scenario:
        """The scenario with these settings, without uncertainties.

        Candidates that set the same keys share all that does not depend on what they differ in.

        Raises
        ------
        InputError, UnknownName, NotModelled
            As `load_scenario` does.
        """
        return self._bare(settings).scenario

    def without(self, key: str) -> Scenario:
        """The scenario with one of its keys left out; otherwise as `plainly` gives it.

        Raises
        ------
        InputError
            If the key is needed.
        """
        document = self.document()
        data = without_key(document.data, tuple(key.split(".")))
        draft = from_document(replace(document, data=data), self._catalogue, ())
        return converted(asking(draft), draft.document, default_name_of(self.name_or_path))

    def _loaded_or_error(self, settings: Mapping[str, Plain]) -> Loaded | PlanError:
        try:
            bare = self._bare(settings)
        except PlanError as error:
            return error
        return Loaded(scenario=bare.scenario, key=content_key(bare.ask))

    def _bare(self, settings: Mapping[str, Plain]) -> Bare:
        options, keys = _options(settings), tuple(settings)
        variations = self._variations.get(keys) or self._of_keys(keys, options)
        found = None if variations is None else variations.read(options)
        if found is not None:
            return found
        draft = self._draft(options)
        ask, name = asking(draft), default_name_of(self.name_or_path)
        return Bare(converted(ask, draft.document, name), ask)

    def _of_keys(self, keys: tuple[str, ...], options: Sequence[str]) -> Variations | None:
        """Who reads candidates that set these keys; None where the options are unusual."""
        if self._base is None:
            return None
        known = [self._base.option(text) for text in options]
        paths = [option.path for option in known if option is not None]
        if len(paths) < len(known):
            return None
        name = default_name_of(self.name_or_path)
        found = self._variations[keys] = Variations(self._base, paths, self._catalogue, name)
        return found

    def _draft(self, options: Sequence[str]) -> Draft:
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


def _less(document: Document, keys: Sequence[KeyPath]) -> Document:
    data = document.data
    for key in keys:
        if document.value(key) is not None:
            data = without_key(data, key)
    return replace(document, data=data)


def _options(settings: Mapping[str, Plain]) -> tuple[str, ...]:
    return tuple([as_option(key, value) for key, value in settings.items()])


_WORKED_OUT: Final = frozenset({"_catalogue", "_document", "_problems", "_base", "_variations"})
"""What a reader finds out anew from its texts in another process."""
