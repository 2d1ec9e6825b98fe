"""A table of one's own runs as a measurement set, without a second file that describes it.

Columns are keys of the scenario or of the service, short where that is clear (``workers``,
``concurrency``), and measured figures as people call them (``samples/s``, ``step``, ``ttft``) or as
metrics are named. All rows may be fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from simulator.errors import InputError, Problem
from simulator.reading.figures import NAMES, SERVICE_NAMES, figure_value
from simulator.reading.measured.rows import MEASURED, OWN, SPREAD, all_keys
from simulator.reading.measured.sections import SetFile
from simulator.reading.sections import ScenarioFile
from simulator.reading.service.sections import ServiceFile, ServiceMode
from simulator.reading.table import Line, Table, capped, read_table
from simulator.reading.tables import FileTable
from simulator.results.metrics import measurable
from simulator.schema.fields import nearest_hint
from simulator.uncertainty.measurement import Split, SplitRule
from simulator.units import Unit

NOTES: Final = frozenset({"comment", "date", "name", "note", "notes", "run"})
"""Columns that are for people; they are kept and not read."""


@dataclass(frozen=True, slots=True)
class _Words:
    """What columns of a table may be called.

    Keys of `sections` of the `file` may go by their last word, the first section that has it
    counts; `also` are other names of keys, `figures` those of what is measured.
    """

    file: type[FileTable]
    sections: tuple[str, ...]
    also: Mapping[str, str]
    figures: Mapping[str, str]
    mode: ServiceMode | None = None

    def meaning(self, column: str) -> str:
        """What a column is called in a set; empty for one that means nothing."""
        plain = column.strip().lower().replace(" ", "_")
        if plain in OWN or plain in NOTES or column.startswith((MEASURED, SPREAD)):
            return plain if plain in OWN or plain in NOTES else column
        figure = self.figures.get(plain, column)
        if measurable(figure) is not None:
            return f"{MEASURED}{figure}"
        known = all_keys(self.file)
        named = (self.also.get(plain), column, *(f"{each}.{plain}" for each in self.sections))
        return next((key for key in named if key in known), "")

    def known(self) -> tuple[str, ...]:
        """Figures and short names of keys."""
        keys = (key for key in all_keys(self.file) if key.startswith(self.sections))
        return (*self.figures, *(key.rpartition(".")[2] for key in keys))


_MACHINES: Final = {"machines": "hardware.count", "nodes": "hardware.count"}
_JOB: Final = _Words(
    ScenarioFile,
    ("hardware", "input", "data", "model", "train", "parallelism", "software"),
    _MACHINES,
    NAMES,
)
_SERVICE: Final = _Words(
    ServiceFile,
    ("load", "serving", "hardware", "model"),
    _MACHINES,
    SERVICE_NAMES,
    ServiceMode.SERVE,
)


def read_runs(path: Path, scenario: str, *, serves: bool = False) -> tuple[SetFile, Table]:
    """The set that a table of runs of a `scenario` is, and the table in a set's own words.

    With `serves` they are runs of a service.

    Raises
    ------
    InputError
        With every column that means nothing, and every measured value that is none.
    """
    words = _SERVICE if serves else _JOB
    plain = read_table(path)
    meant = {column: words.meaning(column) for column in plain.columns}
    problems = [*_column_problems(plain, meant, words)]
    if problems:
        raise InputError(capped(problems))
    table = _translated(plain, meant)
    problems = [*_value_problems(plain, meant)]
    if problems:
        raise InputError(capped(problems))
    keys = [c for c in table.columns if "." in c and not c.startswith((MEASURED, SPREAD))]
    metrics = [c.removeprefix(MEASURED) for c in table.columns if c.startswith(MEASURED)]
    file = SetFile(
        name=path.stem[:100],
        title=f"runs of {scenario}",
        data=path.name,
        source=f"{path.name}, your own runs",
        date="undated",
        base=scenario,
        metrics=metrics,
        split=SplitRule.GIVEN,
        configuration=keys,
    )
    return replace(file, mode=words.mode), table


def _column_problems(table: Table, meant: dict[str, str], words: _Words) -> Iterator[Problem]:
    """Columns that mean nothing, that mean the same, and that nothing was measured in."""
    first: dict[str, str] = {}
    for column, name in meant.items():
        if not name:
            hint = f"{nearest_hint(column, words.known())}; comments go into a column note"
            yield table.about(column, "is neither a key of a scenario nor a figure", hint)
        elif name in first:
            yield table.about(column, f"means the same as {first[name]}", f"both are {name}")
        first.setdefault(name, column)
    if not any(name.startswith(MEASURED) for name in meant.values()):
        yield Problem(
            origin=table.origin,
            line=1,
            message="has no measured column",
            hint=f"name one {', '.join(words.figures)}, or any of plan metrics",
        )


def _value_problems(table: Table, meant: dict[str, str]) -> Iterator[Problem]:
    for line in table.lines:
        for column, name in meant.items():
            cell = line.cells[column]
            unit = _unit(name)
            if name.startswith(MEASURED) and cell and figure_value(cell, unit) is None:
                hint = "write 45%" if unit is None else f"write a number, or one in {unit.symbol}"
                yield table.problem(line, column, "is no value of that", hint)


def _unit(name: str) -> Unit | None:
    metric = measurable(name.removeprefix(MEASURED))
    return None if metric is None else metric.unit


def _translated(plain: Table, meant: dict[str, str]) -> Table:
    """The table with the columns of a set: every row has a name, and may be fitted to."""
    lines = tuple(_line(line, meant) for line in plain.lines)
    return Table(origin=plain.origin, columns=tuple(lines[0].cells), lines=lines)


def _line(line: Line, meant: dict[str, str]) -> Line:
    cells = {"id": f"line {line.number}", "split": Split.FIT.value}
    for column, name in meant.items():
        cell = line.cells[column]
        if name.startswith(MEASURED):
            value = figure_value(cell, _unit(name)) if cell else None
            cells[name] = "" if value is None else repr(value)
        elif cell or name not in cells:
            cells[name] = cell
    return Line(number=line.number, cells=cells)
