"""What a probe measured, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from simulator import units
from simulator.probe.reading import COUNT, SHARE, Reading
from simulator.probe.run import DEVICES, Probed
from simulator.report.format.table import Table, as_markdown
from simulator.report.text import columns, printable, section
from simulator.version import __version__

_SCHEMA: Final = 1
_NOTE: Final = 62
"""Columns of a note; what is longer stands in the JSON and in the profiles."""


def as_text(probed: Probed) -> str:
    """The machine, and a table of figures for each device."""
    here = probed.machine
    cores = f"{here.cores} core{'s' * (here.cores > 1)}, {here.threads} hardware threads"
    kind = "virtual machine" if here.virtual else "machine"
    sockets = f"{here.sockets} socket{'s' * (here.sockets > 1)}"
    ram = units.show(here.ram, units.BYTE)
    lines = [f"{kind}: {printable(here.cpu)}, {sockets}, {cores}, {ram} of RAM"]
    found = probed.accelerator
    if found is not None:
        lines.append(f"accelerators: {found.count} x {printable(found.product)}, {found.software}")
    for device in DEVICES:
        rows = [_row(reading) for reading in probed.found.readings if reading.device == device]
        lines += section(device, columns(rows, "<><"))
    return "\n".join(lines)


def _row(reading: Reading) -> tuple[str, str, str]:
    note = printable(reading.note)
    short = note if len(note) <= _NOTE else f"{note[: _NOTE - 3]}..."
    return reading.key, shown(reading), short


def shown(reading: Reading) -> str:
    """The figure with its unit, as people read it."""
    if reading.unit in (SHARE, COUNT):
        return f"{reading.value:.3g}"
    return units.show(reading.value, reading.unit)


def as_table(probed: Probed) -> Table:
    """Every figure in SI units."""
    rows = tuple(
        (one.device, one.key, one.value, one.unit.symbol, one.note) for one in probed.found.readings
    )
    return Table(head=("device", "figure", "value", "unit", "note"), rows=rows)


def as_page(probed: Probed) -> str:
    """Every figure as people read it, as Markdown."""
    rows = tuple((one.device, one.key, shown(one), one.note) for one in probed.found.readings)
    return as_markdown(Table(head=("device", "figure", "value", "note"), rows=rows))


def as_json(probed: Probed, written: Mapping[str, str]) -> str:
    """One object, in SI units; `written` are the files written, by name of the profile."""
    here, found = probed.machine, probed.accelerator
    devices: dict[str, dict[str, object]] = {}
    for reading in probed.found.readings:
        figure = {"value": reading.value, "unit": reading.unit.symbol, "note": reading.note}
        devices.setdefault(reading.device, {})[reading.key] = figure
    told = {
        "schema": _SCHEMA,
        "version": __version__,
        "date": probed.date,
        "machine": {
            "cpu": here.cpu,
            "sockets": here.sockets,
            "cores": here.cores,
            "threads": here.threads,
            "ram_bytes": here.ram,
            "virtual": here.virtual,
        },
        "accelerator": None
        if found is None
        else {"product": found.product, "count": found.count, "software": found.software},
        "other_load_cores": probed.others,
        "stolen_cores": probed.stolen,
        **devices,
        "warnings": list(probed.found.warnings),
        "profiles": dict(written),
    }
    return json.dumps(told, indent=2, allow_nan=False)
