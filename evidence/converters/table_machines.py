"""The machines that tables of measurements mean by their names, from ``scaling_tables.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).resolve().parent / "scaling_tables.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMachine:
    """A profile of a machine and its `devices`, for accelerators whose names begin the same."""

    accelerator: str
    machine: str
    devices: int
    heading: str = ""


@cache
def machines_of(table: str) -> tuple[TableMachine, ...]:
    """The machines of a table, in the order in which they are looked for."""
    entries = tomllib.loads(_FILE.read_text(encoding="utf-8"))[table]
    return tuple(TableMachine(**entry) for entry in entries)


def machine_of(table: str, accelerator: str, heading: str = "") -> TableMachine | None:
    """The machine that a row of a table ran on; None where none is known."""
    fitting = (
        one
        for one in machines_of(table)
        if accelerator.startswith(one.accelerator) and one.heading in heading
    )
    return next(fitting, None)
