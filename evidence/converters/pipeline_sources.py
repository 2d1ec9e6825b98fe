"""Who reads the rows of each source of the table of input pipelines."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from simulator.reading.document import check, read_document
from simulator.schema.fields import TextField

_FILE: Final = Path(__file__).resolve().parent / "pipeline_sources.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderTable:
    """A loader that a source ran."""

    begins: TextField
    """How the loader's name begins."""
    base: TextField
    """The scenario its rows change."""
    fitted: bool = False
    """Whether figures of the scenario were fitted to its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A source: either a reader or a reason not to read it."""

    family: TextField
    """What its rows are counted under."""
    begins: TextField
    """How its name begins."""
    reader: TextField | None = None
    """Who reads its rows."""
    reason: TextField | None = None
    """Why its rows are not predicted."""
    loader: list[LoaderTable] = field(default_factory=list)
    """Loaders it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesFile:
    """The sources of the table, the first that fits first."""

    source: list[SourceTable]
    """One by one."""


@cache
def pipeline_sources() -> tuple[SourceTable, ...]:
    """The sources whose rows are known."""
    return tuple(check(SourcesFile, read_document(_FILE)).source)
