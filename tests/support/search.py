"""A small search for tests: a scenario of a few steps, and readers that misbehave on purpose."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.errors import NotModelled
from simulator.reading.search.candidates import CandidateReader, Loaded
from simulator.schema.goal import Plain
from simulator.studies.search.outcome import Candidate

BASE = "resnet18-imagenet-one-worker"
SHORT = ("data.samples=4096", "train.epochs=2")
"""Overrides that leave a few steps of it."""


def reader(*overrides: str) -> CandidateReader:
    """Reads the short scenario."""
    return CandidateReader(BASE, overrides=(*SHORT, *overrides))


def grid(**axes: tuple[Plain, ...]) -> tuple[Candidate, ...]:
    """Candidates over axes named by section and key: ``input_workers`` is ``input.workers``."""
    rows: list[dict[str, Plain]] = [{}]
    for name, values in axes.items():
        key = name.replace("_", ".", 1)
        rows = [{**row, key: value} for row in rows for value in values]
    return tuple(Candidate(index=i, settings=row) for i, row in enumerate(rows))


@dataclass(frozen=True)
class Deadly:
    """Reads the short scenario, but its process is killed over some numbers of workers.

    `times` is how often each of them kills: a file in `folder` counts. Only the process that
    predicts is killed: each candidate is read once before.
    """

    folder: Path
    workers: tuple[int, ...]
    times: int
    parent: int

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """The scenario, or death."""
        number = settings["input.workers"]
        if number in self.workers and os.getpid() != self.parent:
            with (self.folder / f"{number}.log").open("a", encoding="utf-8") as log:
                log.write("x")
            reads = (self.folder / f"{number}.log").stat().st_size
            if 1 < reads <= 1 + self.times:
                os.kill(os.getpid(), signal.SIGKILL)
        return reader().read(settings)

    def read_without_uncertainty(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded, ...]:
        """One after another."""
        return tuple(self.read(settings) for settings in candidates)


@dataclass(frozen=True)
class Buggy:
    """Reads the short scenario, but for some numbers of workers something else goes wrong."""

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """The scenario, a refusal, or a mistake of ours."""
        number = settings["input.workers"]
        if number == 1:
            msg = "one worker is not modelled today"
            raise NotModelled(msg)
        if number == 2:
            return 1 / 0  # type: ignore[return-value] # what goes wrong
        return reader().read(settings)

    def read_without_uncertainty(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded, ...]:
        """One after another."""
        return tuple(self.read(settings) for settings in candidates)


@dataclass(frozen=True)
class Changing:
    """Reads the short scenario, but a profile changes between bounding and predicting."""

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """As after the change."""
        return replace(reader().read(settings), key="after")

    def read_without_uncertainty(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded, ...]:
        """As before it."""
        return tuple(reader().read(settings) for settings in candidates)
