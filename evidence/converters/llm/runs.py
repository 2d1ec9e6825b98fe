"""Machines and frameworks as the table of language-model runs names them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from simulator.reading.document import check, read_document
from simulator.schema.fields import CountField, TextField

_FILE: Final = Path(__file__).resolve().parent / "runs.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTable:
    """A machine of the catalogue that a row ran on."""

    begins: TextField
    """How the name of its device begins."""
    wires: TextField | None = None
    """Words on the wires between machines; any by default."""
    name: TextField
    """The machine's profile."""
    gpu: TextField | None = None
    """Profile of its devices, where they are others than the machine's."""
    domain: CountField
    """Devices of one of them that rows use at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
    """A network that a row states in words."""

    words: TextField
    """The words."""
    rate: TextField
    """What each machine has of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareTable:
    """Software as rows name it, of which more is known than its name."""

    begins: TextField
    """How the name begins."""
    wires: TextField | None = None
    """Words on the wires between machines; any by default."""
    precision: TextField | None = None
    """Words of the precision; any by default."""
    model: TextField | None = None
    """How the model's name begins; any by default."""
    sharding: TextField | None = None
    """Words on the sharding; any by default."""
    framework: TextField
    """The framework whose kernel figures hold."""
    settings: TextField
    """What it does, by a name in `llm.software`."""
    memory_unit: Literal["GB", "GiB"] = "GB"
    """The unit that its reports call GB or GiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericTable:
    """Software of which no more is known than its name."""

    words: TextField
    """A part of the name, in small letters."""
    framework: TextField
    """The framework that it is or builds on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTable:
    """What figures may be fitted to, in addition to the split by configuration."""

    series: dict[str, Literal["fit", "test"]]
    """Series that are not split."""
    rows: dict[str, Literal["fit", "test"]]
    """Rows by their id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsFile:
    """What rows name in their own words."""

    machine: list[MachineTable]
    """Machines, the first that fits first."""
    network: list[NetworkTable]
    """Networks that are not those of the machine's profile."""
    software: list[SoftwareTable]
    """Software that is known well, the first that fits first."""
    generic: list[GenericTable]
    """Software that is known by name, the first that fits first."""
    split: SplitTable
    """Series and rows that are not split by their configuration."""


@cache
def llm_runs() -> RunsFile:
    """What is known of the rows."""
    return check(RunsFile, read_document(_FILE))
