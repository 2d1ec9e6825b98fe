"""What to do next, asked by verbs that print it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simulator.cli.progress import progress_line

if TYPE_CHECKING:
    from simulator.errors import PlanError
    from simulator.reading.search.candidates import CandidateReader, Loaded
    from simulator.results.prediction import Prediction
    from simulator.schema.goal import Plain
    from simulator.schema.scenario import Scenario
    from simulator.studies.changes.actions import Action

NOTHING: Final[Mapping[str, Plain]] = {}


@dataclass(frozen=True, slots=True)
class _Over:
    """A reader of a scenario with some settings over its own."""

    reader: CandidateReader
    settings: Mapping[str, Plain]

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        return self.reader.read({**self.settings, **settings})

    def read_bare(self, candidates: Sequence[Mapping[str, Plain]]) -> Sequence[Loaded | PlanError]:
        return self.reader.read_bare([{**self.settings, **one} for one in candidates])

    def plainly(self, settings: Mapping[str, Plain]) -> Scenario:
        return self.reader.plainly({**self.settings, **settings})

    def given(self, key: str) -> object:
        return self.settings.get(key, self.reader.given(key))


def next_actions(
    reader: CandidateReader,
    base: Prediction,
    profiles: tuple[Path, ...],
    *,
    given: Mapping[str, Plain] = NOTHING,
) -> tuple[tuple[Action, ...], list[str]]:
    """The actions for a prediction, and bugs that were met on the way.

    Parameters
    ----------
    reader : CandidateReader
        Of the scenario that was predicted.
    base : Prediction
        The job as it is.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles that come before the usual ones.
    given : mapping
        Settings over those of the scenario with which it was predicted.
    """
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.studies.changes.actions import actions
    from simulator.studies.search.outcome import BugLog

    met = BugLog()
    with progress_line("looking for what helps"):
        found = actions(_Over(reader, given), base, Catalogue.default(profiles), met=met)
    return found, met.reasons
