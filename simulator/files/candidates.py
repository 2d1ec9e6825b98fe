"""Many scenarios that differ in a few settings: what they share is read once."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from simulator.files.catalogue import Catalogue
from simulator.files.content import content_key
from simulator.files.document import Document
from simulator.files.gather import STANDARD_INPUT, gather
from simulator.files.goal_section import goal_of
from simulator.files.models import model_names
from simulator.files.scenario import load_scenario
from simulator.files.sections import ScenarioFile
from simulator.files.settings import as_option
from simulator.files.sweep_section import axes_of
from simulator.goal import Axes, Goal, Plain
from simulator.scenario import Scenario

_MACHINES: Final = ("node", "instance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A scenario, and the `key` of all contents its prediction depends on.

    Two scenarios with the same key are predicted alike, whatever files they came from.
    """

    scenario: Scenario
    key: str


class CandidateReader:
    """Reads one scenario again and again, each time with other settings.

    It can be pickled: a process that gets it reads the same texts.

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

    Raises
    ------
    InputError
        If its text, or a folder of profiles, cannot be read.
    UnknownName
        If there is no such scenario.
    """

    def __init__(
        self,
        name_or_path: str,
        *,
        overrides: Sequence[str] = (),
        stdin: TextIO | BinaryIO | None = None,
        profiles: Sequence[Path] = (),
        calibration: Path | None = None,
    ) -> None:
        self.name_or_path = name_or_path
        self.overrides = tuple(overrides)
        self.profiles = tuple(profiles)
        self.calibration = calibration
        self._text = _kept(name_or_path, stdin)
        self._catalogue = Catalogue.default(self.profiles)
        self._document()

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """The scenario with these settings over its own, as `load_scenario` reads it.

        Raises
        ------
        InputError, UnknownName, NotModelled
            As `load_scenario` does.
        """
        options = (as_option(key, value) for key, value in settings.items())
        scenario = load_scenario(
            self.name_or_path,
            overrides=(*self.overrides, *options),
            stdin=self._stdin(),
            calibration=self.calibration,
            catalogue=self._catalogue,
        )
        return Loaded(scenario=scenario, key=content_key(scenario))

    @property
    def axes(self) -> Axes | None:
        """What its [sweep] section varies; None where it has none.

        Raises
        ------
        InputError
            With all mistakes of the section.
        """
        return axes_of(self._document())

    @property
    def goal(self) -> Goal | None:
        """What its [goal] section looks for; None where it has none.

        Raises
        ------
        InputError
            With all mistakes of the section.
        """
        return goal_of(self._document(), self._catalogue)

    def names(self, key: str) -> tuple[str, ...]:
        """The names that a key such as ``hardware.machine`` can have; empty for other keys."""
        if key in ("hardware.machine", "remote.machine", "input.measured_on"):
            return tuple(name for kind in _MACHINES for name in self._catalogue.names(kind))
        if key in ("hardware.storage", "hardware.cache", "remote.storage"):
            return self._catalogue.names("storage")
        if key == "hardware.gpu":
            return self._catalogue.names("gpu")
        return model_names() if key == "model.name" else ()

    def given(self, key: str) -> object:
        """What the scenario itself says at a dotted key; None where it says nothing."""
        return self._document().value(tuple(key.split(".")))

    def _document(self) -> Document:
        document, _ = gather(
            self.name_or_path,
            overrides=self.overrides,
            stdin=self._stdin(),
            model=ScenarioFile,
            overlay=self.calibration,
        )
        return document

    def _stdin(self) -> BinaryIO | None:
        return None if self._text is None else io.BytesIO(self._text)


def _kept(name_or_path: str, stdin: TextIO | BinaryIO | None) -> bytes | None:
    """All of standard input, if that is the scenario: it can be read only once."""
    if name_or_path != STANDARD_INPUT:
        return None
    stream = sys.stdin if stdin is None else stdin
    content = getattr(stream, "buffer", stream).read()
    return content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
