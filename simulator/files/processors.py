"""What the cores of a processor compute, by its name: the file `data/processors.toml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from simulator.confidence.provenance import Assumption, Source
from simulator.files.document import FileModel, check, read_document
from simulator.files.quantity import NumberField, PositiveShareField, TextField
from simulator.scenario.hardware.host import VectorUnits

_PATH: Final = Path(__file__).resolve().parents[1] / "data" / "processors.toml"


class CoreTable(FileModel):
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


class ProcessorFile(FileModel):
    """The file."""

    memory_share: PositiveShareField
    """Of the memory's rate."""
    memory_source: TextField
    """Who says so; nobody measured it."""
    core: list[CoreTable]
    """The first whose name fits counts."""


@cache
def _processors() -> ProcessorFile:
    return check(ProcessorFile, read_document(_PATH))


def share_note(units: VectorUnits) -> Assumption:
    """What an answer rests on where cores compute."""
    what = "share of their peak at the base clock that cores reach"
    return Assumption(what=what, value=f"{units.share:g}", source=units.source)


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
    return VectorUnits(
        flop_per_cycle=core.flop_per_cycle,
        share=core.share,
        memory_share=file.memory_share,
        source=Source(reference=core.source, date=core.date, verified=core.verified),
    )
