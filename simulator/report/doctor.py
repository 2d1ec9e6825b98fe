"""What is installed and what this machine has, for a report of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simulator.probe.machine import Installation, Machine, Package
from simulator.report.format.table import Cell, Table
from simulator.report.text import columns, section
from simulator.units import BYTE, show


def as_text(found: Installation, machine: Machine, folders: Sequence[Path]) -> str:
    """The report: what is installed, what is missing, what the machine has."""
    needed = [package for package in found.packages if not package.extra]
    lines = [
        f"plan {found.version} on Python {found.python}, {found.system}",
        f"in {found.place}",
        *section("Packages", columns([_row(package) for package in needed], "<<")),
        *section("Extras", columns(_extras(found.packages), "<<<")),
        *section("This machine", columns(_machine(machine), "<<")),
        *section("Profiles are looked for in", [str(folder) for folder in folders]),
        "",
        _verdict(found),
    ]
    return "\n".join(lines)


def _row(package: Package) -> tuple[str, str]:
    return package.name, package.version or "missing"


def _extras(packages: Sequence[Package]) -> list[tuple[str, str, str]]:
    """Each extra, whether all of it is there, and what is not."""
    rows = []
    for extra in dict.fromkeys(package.extra for package in packages if package.extra):
        own = [package for package in packages if package.extra == extra]
        missing = [package.name for package in own if package.version is None]
        state = "installed" if not missing else "not installed"
        rows.append((extra, state, f"lacks {', '.join(missing)}" if missing else ""))
    return rows


def _machine(machine: Machine) -> list[tuple[str, str]]:
    return [
        ("processor", machine.cpu),
        ("cores", f"{machine.cores} cores, {machine.threads} threads that plan may use"),
        ("RAM", show(machine.ram, BYTE)),
        *(("limit", limit) for limit in machine.limits),
    ]


def _verdict(found: Installation) -> str:
    if not found.packages:
        return "This is a checkout that is not installed; pip install . installs it."
    if not found.missing:
        return "Everything that is needed is there."
    names = ", ".join(package.name for package in found.missing)
    return f"Missing: {names}; install plan again."


def as_table(found: Installation, machine: Machine, folders: Sequence[Path]) -> Table:
    """The same as rows: a group, a name, what is there (nothing: missing), what needs it."""
    rows: list[tuple[Cell, ...]] = [
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
    return Table(head=("group", "name", "value", "needed by"), rows=tuple(rows))


def as_object(found: Installation, machine: Machine, folders: Sequence[Path]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "schema": 1,
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
