"""The reports of ``plan doctor`` and ``plan probe``: installation and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from simulator.probe.machine import Installation, Machine, Package
from simulator.probe.reading import COUNT, SHARE, Reading
from simulator.probe.run import DEVICES, Probed
from simulator.report.document import Cell, Document, Row, Table, grid, notes, rows, section
from simulator.report.text import printable
from simulator.units import BYTE, show
from simulator.version import __version__

SCHEMA: Final = 1


def doctor(found: Installation, machine: Machine, folders: Sequence[Path]) -> Document:
    """Return the state of the installation as a document: packages, missing ones, machine.

    `folders` are the folders that profiles are searched in.
    """
    needed = [package for package in found.packages if not package.extra]
    return Document(
        title=f"plan {found.version} on Python {found.python}, {found.system}",
        question=(("in", str(found.place)),),
        verdict=(_verdict(found),),
        sections=(
            *section("Packages", rows((p.name, p.version or "missing") for p in needed)),
            *section("Extras", grid((), _extras(found.packages), "<<<")),
            *section("This machine", rows(_machine(machine))),
            *section("Profile folders", notes(str(folder) for folder in folders)),
        ),
        data=lambda: _doctor_object(found, machine, folders),
        table=lambda: _doctor_table(found, machine, folders),
    )


def _extras(packages: Sequence[Package]) -> list[tuple[str, str, str]]:
    """Return each group of optional packages, its state, and its missing packages."""
    lines = []
    for extra in dict.fromkeys(package.extra for package in packages if package.extra):
        own = [package for package in packages if package.extra == extra]
        missing = [package.name for package in own if package.version is None]
        state = "installed" if not missing else "not installed"
        lines.append((extra, state, f"lacks {', '.join(missing)}" if missing else ""))
    return lines


def _machine(machine: Machine) -> list[Row]:
    return [
        ("processor", machine.cpu),
        ("cores", f"{machine.cores} cores, {machine.threads} threads available to plan"),
        ("RAM", show(machine.ram, BYTE)),
        *(("limit", limit) for limit in machine.limits),
    ]


def _verdict(found: Installation) -> str:
    if not found.packages:
        return "This is a checkout that is not installed; run pip install ."
    if not found.missing:
        return "All required packages are installed."
    names = ", ".join(package.name for package in found.missing)
    return f"Missing: {names}. Install plan again."


def _doctor_table(found: Installation, machine: Machine, folders: Sequence[Path]) -> Table:
    """Return rows of group, name, value (None: missing), and the extra that requires it."""
    lines: list[tuple[Cell, ...]] = [
        ("plan", "version", found.version, ""),
        ("plan", "place", str(found.place), ""),
        ("plan", "python", found.python, ""),
        ("plan", "system", found.system, ""),
        *(("package", one.name, one.version, one.extra or "plan") for one in found.packages),
        ("machine", "processor", machine.cpu, ""),
        ("machine", "cores", machine.cores, ""),
        ("machine", "threads", machine.threads, ""),
        ("machine", "ram_bytes", machine.ram, ""),
        *(("machine", "limit", limit, "") for limit in machine.limits),
        *(("profiles", "folder", str(folder), "") for folder in folders),
    ]
    return Table(head=("group", "name", "value", "needed by"), rows=tuple(lines))


def _doctor_object(
    found: Installation, machine: Machine, folders: Sequence[Path]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": found.version,
        "python": found.python,
        "system": found.system,
        "place": str(found.place),
        "packages": [asdict(package) for package in found.packages],
        "missing": [package.name for package in found.missing],
        "machine": {
            "cpu": machine.cpu,
            "cores": machine.cores,
            "threads": machine.threads,
            "ram_bytes": machine.ram,
        },
        "profiles": [str(folder) for folder in folders],
    }


MAX_NOTE: Final = 62
"""Columns of a note; the JSON and the profiles have all of it."""


def probe(probed: Probed, written: Mapping[str, str], use: Sequence[str] = ()) -> Document:
    """Return the measurements of a probe as a document.

    Parameters
    ----------
    probed : Probed
        The measurements.
    written : mapping of str to str
        Paths of the written files by name of the profile.
    use : sequence of str
        Lines that say how to use the profiles.
    """
    here, found = probed.machine, probed.accelerator
    cores = f"{here.cores} core{'s' * (here.cores > 1)}, {here.threads} hardware threads"
    sockets = f"{here.sockets} socket{'s' * (here.sockets > 1)}"
    cpu = f"{printable(here.cpu)}, {sockets}, {cores}, {show(here.ram, BYTE)} of RAM"
    machine = ("virtual machine" if here.virtual else "machine", cpu)
    devices = "" if found is None else f"{found.count} x {printable(found.product)}"
    accelerators = "" if found is None else f"{devices}, {found.software}"
    return Document(
        question=(machine, ("accelerators", accelerators)),
        sections=(
            *(
                part
                for device in DEVICES
                for part in section(
                    device,
                    grid(
                        (),
                        [_reading(one) for one in probed.found.readings if one.device == device],
                        "<><",
                    ),
                )
            ),
            *section("", notes(use)),
        ),
        data=lambda: _probe_object(probed, written),
        table=lambda: Table(
            head=("device", "figure", "value", "unit", "note"),
            rows=tuple(
                (one.device, one.key, one.value, one.unit.symbol, one.note)
                for one in probed.found.readings
            ),
        ),
    )


def _reading(reading: Reading) -> tuple[str, str, str]:
    note = printable(reading.note)
    short = note if len(note) <= MAX_NOTE else f"{note[: MAX_NOTE - 3]}..."
    plain = reading.unit in (SHARE, COUNT)
    return (
        reading.key,
        f"{reading.value:.3g}" if plain else show(reading.value, reading.unit),
        short,
    )


def _probe_object(probed: Probed, written: Mapping[str, str]) -> dict[str, Any]:
    here, found = probed.machine, probed.accelerator
    devices: dict[str, dict[str, object]] = {}
    for reading in probed.found.readings:
        figure = {"value": reading.value, "unit": reading.unit.symbol, "note": reading.note}
        devices.setdefault(reading.device, {})[reading.key] = figure
    return {
        "schema": SCHEMA,
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
