"""Machines and frameworks as the table of language-model runs names them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from simulator.files.document import FileModel, check, read_document
from simulator.files.quantity import CountField, TextField

_FILE: Final = Path(__file__).resolve().parents[1] / "data" / "llm_runs.toml"


class MachineTable(FileModel):
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


class NetworkTable(FileModel):
    """A network that a row states in words."""

    words: TextField
    """The words."""
    rate: TextField
    """What each machine has of it."""


class RunsFile(FileModel):
    """What rows name in their own words."""

    machine: list[MachineTable]
    """Machines, the first that fits first."""
    network: list[NetworkTable]
    """Networks that are not those of the machine's profile."""
    frameworks: dict[str, str]
    """Framework of each series."""


@cache
def llm_runs() -> RunsFile:
    """What is known of the rows."""
    return check(RunsFile, read_document(_FILE))
