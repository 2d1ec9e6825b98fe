"""What the cores of a processor compute, by its name: the file `data/processors.toml`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from simulator.reading.document import check, read_document
from simulator.reading.shipped import DATA
from simulator.schema.fields import NumberField, PositiveShareField, TextField
from simulator.schema.hardware.host import VectorUnits
from simulator.uncertainty.provenance import Assumption, Source

_PATH: Final = DATA / "processors.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTable:
    """Processors of a kind."""

    name: TextField
    """Part of their names."""
    flop_per_cycle: NumberField
    """Of a core, in fp32."""
    note: TextField
    """Why."""
    share: PositiveShareField
    """Of the peak at the base clock that a tuned library reaches."""
    source: TextField
    """Who says so."""
    date: TextField
    """When."""
    verified: bool = True
    """Whether anybody measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTable:
    """Processors whose cores have matrix units."""

    names: list[TextField]
    """Parts of their names."""
    flop_per_cycle: NumberField
    """Of a core, in 16 bit."""
    note: TextField
    """Why."""
    source: TextField
    """Who says so."""
    date: TextField
    """When."""
    verified: bool = True
    """Whether it was read there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorFile:
    """The file."""

    memory_share: PositiveShareField
    """Of the memory's rate."""
    memory_source: TextField
    """Who says so; nobody measured it."""
    memory_date: TextField
    """When."""
    core: list[CoreTable]
    """The first whose name fits counts."""
    matrix: list[MatrixTable]
    """The same of matrix units; a processor that none of them names has none."""


@cache
def _processors() -> ProcessorFile:
    return check(ProcessorFile, read_document(_PATH))


def share_note(units: VectorUnits) -> Assumption:
    """What an answer rests on where cores compute."""
    what = "share of their peak at the base clock that cores reach"
    return Assumption(what=what, value=f"{units.share:g}", source=units.source)


def core_notes(units: VectorUnits) -> Iterator[Assumption]:
    """What the time of a forward pass on cores rests on: shares of their peak and of the memory."""
    yield share_note(units)
    what = "share of the memory's rate that cores reach"
    yield Assumption(what=what, value=f"{units.memory_share:g}", source=units.memory_source)


def vector_units_of(model: str) -> VectorUnits | None:
    """What the cores of a processor compute; None where its kind is not known.

    Parameters
    ----------
    model : str
        Name of its profile.
    """
    file = _processors()
    core = next((one for one in file.core if one.name in model), None)
    if core is None:
        return None
    matrix = next((one for one in file.matrix if any(name in model for name in one.names)), None)
    said = file.memory_source
    return VectorUnits(
        flop_per_cycle=core.flop_per_cycle,
        share=core.share,
        memory_share=file.memory_share,
        source=Source(reference=core.source, date=core.date, verified=core.verified),
        memory_source=Source(reference=said, date=file.memory_date, verified=False),
        matrix_per_cycle=None if matrix is None else matrix.flop_per_cycle,
    )
