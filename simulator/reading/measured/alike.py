"""Rows of the shipped sets that may be runs of a given job, found without reading any scenario.

Only cells that a row or its base spells out are looked at, so a row that says nothing of a key
may be alike; who asks reads the few that are found in full.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from simulator.reading.document import read_document
from simulator.reading.measured.measurement_set import to_set
from simulator.reading.shipped import find_base, set_folder, set_names
from simulator.reading.table import Line, Table
from simulator.schema.scenario import Scenario
from simulator.uncertainty.measurement import Row

Plain: TypeAlias = str | float
CLOSE: Final = 0.05
"""Relative difference up to which two numbers are the same."""
_MOST_BASES: Final = 10
"""Files that one may extend in a row; no shipped one has so many."""


def rows_alike(scenario: Scenario) -> tuple[tuple[str, Row], ...]:
    """Rows that are not excluded and contradict no key of a scenario, each with its set's name.

    It takes a thirtieth of a second where there are none.
    """
    group, job = scenario.cluster.trainers, scenario.job
    keys: dict[str, Plain] = {
        "train.batch_size": float(job.train.batch_size),
        "train.accumulation": float(job.train.accumulation),
        "train.precision": str(job.train.precision),
        "software.framework": job.software.framework,
        "hardware.count": float(group.count),
        "hardware.gpus": float(group.gpus_per_host),
        "input.workers": float(job.loader.workers),
    }
    return tuple((name, row) for name in set_names() for row in _of_set(name, keys))


def _of_set(name: str, keys: Mapping[str, Plain]) -> Iterator[Row]:
    path = set_folder() / f"{name}.toml"
    plain = tomllib.loads(path.read_text(encoding="utf-8"))
    usual = str(plain.get("base", ""))
    if "mode" in plain:
        return
    with (path.parent / str(plain["data"])).open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        columns = tuple(next(reader))
        places = [(columns.index(key), keys[key]) for key in keys if key in columns]
        found = [
            Line(number=reader.line_num, cells=dict(zip(columns, cells, strict=True)))
            for cells in reader
            if cells and all(_same(cells[place], value) for place, value in places)
        ]
    found = [line for line in found if _may_be(line.cells, usual, path.parent, keys)]
    if not found:
        return
    table = Table(origin=name, columns=columns, lines=tuple(found))
    # Tolerances name families that have to be there, and only a few rows are.
    document = read_document(path)
    few = replace(document, data={k: v for k, v in document.data.items() if k != "tolerance"})
    yield from (row for row in to_set(few, path.parent, lambda _: table).rows if not row.excluded)


def _may_be(cells: Mapping[str, str], usual: str, folder: Path, keys: Mapping[str, Plain]) -> bool:
    given = _given(cells.get("base") or usual, folder)
    return all(cells.get(key) or _same(given.get(key, ""), value) for key, value in keys.items())


def _same(cell: str, value: Plain) -> bool:
    """Whether a cell says the same, or nothing."""
    if not cell:
        return True
    if isinstance(value, str):
        return cell.lower() == value.lower()
    try:
        return abs(float(cell) - value) <= CLOSE * max(abs(value), 1.0)
    except ValueError:
        return True


@cache
def _given(base: str, folder: Path) -> Mapping[str, str]:
    """What a base and the files it extends spell out, as text by key."""
    path, found = find_base(base, folder), dict[str, str]()
    for _ in range(_MOST_BASES):
        if path is None:
            break
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
        for section, table in tree.items():
            if isinstance(table, dict):
                found = {f"{section}.{k}": str(v) for k, v in table.items()} | found
        path = find_base(str(tree["extends"]), path.parent) if "extends" in tree else None
    return found
