"""Measurement sets from their TOML and CSV files, or from a table of runs alone.

Every mistake of both files is reported at once; only keys that are missing once a row is merged
with its base are found when the row is predicted.

A table of one's own runs needs no second file: its columns are keys of the scenario or of the
service, without section if that is unique (``workers``, ``concurrency``), and measured figures
under common names (``samples/s``, ``step``, ``ttft``) or those of metrics.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from simulator.errors import InputError, Problem, UnknownName
from simulator.reading.document import Document, check, parse_document, read_document
from simulator.reading.keys import numeric_key
from simulator.reading.measured.rows import (
    MEASURED,
    OWN,
    SPREAD,
    Context,
    Heading,
    all_keys,
    described_by,
    rows_of,
)
from simulator.reading.merge_documents import chain_of, describes_service
from simulator.reading.reading import refuse_irregular
from simulator.reading.sections import ScenarioFile
from simulator.reading.shipped import (
    find_base,
    find_scenario,
    find_set,
    nearest_scenarios,
    nearest_sets,
    scenario_folder,
    set_folder,
    set_names,
)
from simulator.reading.table import (
    NAMES,
    SERVICE_NAMES,
    Line,
    Table,
    capped,
    figure_value,
    parse_table,
    read_table,
)
from simulator.reading.tables import FileTable
from simulator.records import dataclass
from simulator.results.metrics import measurable
from simulator.schema.fields import nearest, nearest_hint
from simulator.schema.measurement import (
    MeasurementSet,
    Parameter,
    Row,
    Split,
    SplitRule,
    Tolerance,
)
from simulator.schema.scenario import Scenario
from simulator.schema.training import ServiceMode
from simulator.units import Unit

FIRST = ("id", "base", "family")
LAST = ("split", "anchor", "exclude", "source")


def set_csv(rows: Iterable[Mapping[str, str]], needed: Sequence[str] = ()) -> str:
    """Return rows as CSV, with columns in the order ids, labels, keys, measurements, use.

    Parameters
    ----------
    rows : iterable of mapping of str to str
        Cells by column; cells may be missing.
    needed : sequence of str
        Columns that are always included.
    """
    every = list(rows)
    filled = {column for row in every for column, cell in row.items() if cell}
    order = dict.fromkeys(column for row in every for column in row)
    columns = [c for c in dict.fromkeys((*order, *needed)) if c in filled or c in needed]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, fieldnames=sorted(columns, key=_place), restval="", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows({c: row.get(c, "") for c in columns} for row in every)
    return text.getvalue()


def _place(column: str) -> int:
    """Return the sort key of a column's kind; a stable sort preserves the order within a kind."""
    if column in FIRST:
        return FIRST.index(column)
    if column in LAST:
        return 100 + LAST.index(column)
    kinds = {"measured.": 12, "spread.": 13}
    kind = next((n for prefix, n in kinds.items() if column.startswith(prefix)), None)
    return kind if kind is not None else 11 if "." in column else 10


NOTES: Final = frozenset({"comment", "date", "name", "note", "notes", "run"})
"""Columns with remarks, which are ignored."""


@dataclass(frozen=True, slots=True)
class _Words:
    """Accepted names of the columns of a table.

    Keys of `sections` of the `file` may be named by their last part, of the first section that has
    it; `also` are other names of keys, `figures` those of measured figures.
    """

    file: type[FileTable]
    sections: tuple[str, ...]
    also: Mapping[str, str]
    figures: Mapping[str, str]
    mode: ServiceMode | None = None

    def meaning(self, column: str) -> str:
        """Return the name of a column in a set; empty for an unknown one."""
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
        """Return the names of figures and the short names of keys."""
        keys = (key for key in all_keys(self.file) if key.startswith(self.sections))
        return (*self.figures, *(key.rpartition(".")[2] for key in keys))


_MACHINES: Final = {"machines": "hardware.count", "nodes": "hardware.count"}
_JOB: Final = _Words(
    ScenarioFile,
    ("hardware", "input", "data", "model", "train", "parallelism", "software"),
    _MACHINES,
    NAMES,
)


def _words(*, serves: bool) -> _Words:
    """Return the accepted names of columns in a table of jobs or of services."""
    if not serves:
        return _JOB
    from simulator.reading.service.sections import ServiceFile

    sections = ("load", "serving", "hardware", "model")
    return _Words(ServiceFile, sections, _MACHINES, SERVICE_NAMES, ServiceMode.SERVE)


def read_runs(path: Path, scenario: str, *, serves: bool = False) -> tuple[MeasurementSet, Table]:
    """Read a table of runs of a `scenario` as a set, with its columns renamed to those of a set.

    With `serves` the runs are those of a service.

    Raises
    ------
    InputError
        With all unknown columns and all invalid measured values.
    """
    words = _words(serves=serves)
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
    file = MeasurementSet(
        name=path.stem[:100],
        title=f"runs of {scenario}",
        data=path.name,
        source=f"{path.name}, your own runs",
        date="undated",
        base=scenario,
        metrics=tuple(metrics),
        split=SplitRule.GIVEN,
        configuration=tuple(keys),
    )
    return replace(file, mode=words.mode), table


def _column_problems(table: Table, meant: dict[str, str], words: _Words) -> Iterator[Problem]:
    """Yield unknown columns, columns with the same meaning, and a table without measurements."""
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
                yield table.problem(line, column, "is not a value of this column", hint)


def _unit(name: str) -> Unit | None:
    metric = measurable(name.removeprefix(MEASURED))
    return None if metric is None else metric.unit


def _translated(plain: Table, meant: dict[str, str]) -> Table:
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


_COLUMN_LISTS = ("configuration", "group_by", "baseline_by", "maker")
_LEVELS = ("median", "mean", "p90", "largest")


def load_set(name_or_path: str, scenario: str | None = None) -> MeasurementSet:
    """Read a measurement set.

    Parameters
    ----------
    name_or_path : str
        The set's TOML file, the name of a shipped set, or a table of runs of the `scenario`.
    scenario : str, optional
        Scenario of the rows of a table without a TOML file: a file or a shipped name.

    Raises
    ------
    InputError
        With all mistakes of both files at once.
    UnknownName
        If there is no such set.
    """
    path = find_set(name_or_path, scenario)
    if path is None:
        advice = nearest_sets(name_or_path)
        msg = f"there is no measurement set '{name_or_path}', neither a file nor shipped; {advice}"
        raise UnknownName(msg)
    refuse_irregular(path)
    if path.suffix.lower() == ".csv":
        return _runs(path, scenario)
    return to_set(read_document(path), path.parent, lambda name: read_table(path.parent / name))


def published(name_or_path: str) -> tuple[Row, ...]:
    """Return the rows that were measured on a shipped scenario without any changes.

    Empty for a scenario of the user's own.
    """
    path = find_scenario(name_or_path)
    if path is None or path.parent.resolve() != scenario_folder().resolve():
        return ()
    return tuple(
        row
        for name in set_names()
        if _mentions(name, path.stem)
        for row in load_set(name).rows
        if Path(row.base).stem == path.stem and not row.overrides and not row.excluded
    )


def _mentions(name: str, scenario: str) -> bool:
    return f",{scenario}," in (set_folder() / f"{name}.csv").read_text(encoding="utf-8")


def _runs(path: Path, scenario: str | None) -> MeasurementSet:
    """Return a table of runs of a scenario as a set."""
    if scenario is None:
        message = "is a table without a file that describes it"
        hint = (
            "name the TOML file that describes it; or plan calibrate with the job that its rows "
            "are runs of, --scenario my-job.toml"
        )
        raise InputError((Problem(origin=str(path), message=message, hint=hint),))
    base = find_scenario(scenario)
    if base is None:
        msg = f"there is no scenario '{scenario}', neither a file nor shipped; "
        raise UnknownName(msg + nearest_scenarios(scenario))
    serves = describes_service(chain_of(scenario))
    file, table = read_runs(path, str(base.resolve()), serves=serves)
    heading = Heading(table, described_by(file))
    rows, wrong = rows_of(Context(file=file, table=table, folder=path.parent), heading)
    problems = [*heading.problems(), *wrong]
    if problems:
        raise InputError(capped(problems))
    return replace(file, rows=rows)


def parse_set(toml: str, rows: str, origin: str, folder: Path) -> MeasurementSet:
    """Read a set from memory, as if both files were in `folder`.

    Raises the errors of `load_set`.
    """
    document = parse_document(toml.encode(), origin)
    return to_set(document, folder, lambda name: parse_table(rows.encode(), name))


def to_set(document: Document, folder: Path, table_of: Callable[[str], Table]) -> MeasurementSet:
    """Return the set that a document and its table describe.

    `table_of` reads the table by its name.
    """
    file = check(MeasurementSet, document)
    table = table_of(file.data)
    heading = Heading(table, described_by(file))
    problems = [*heading.problems(), *_file_problems(document, file, heading)]
    if problems:
        raise InputError(capped(problems))
    rows, wrong = rows_of(Context(file=file, table=table, folder=folder), heading)
    families = {row.family for row in rows}
    problems = [*wrong, *_family_problems(document, file, families)]
    if problems:
        raise InputError(capped(problems))
    return replace(file, rows=rows)


def _file_problems(document: Document, file: MeasurementSet, heading: Heading) -> Iterator[Problem]:
    """Yield mistakes in the columns and keys that the TOML file names."""
    yield from _name_problems(document, file, heading)
    if file.split is SplitRule.CONFIGURATION and not file.configuration:
        hint = "name the columns that make one configuration"
        yield document.problem(("configuration",), "is missing", hint=hint)
    if file.fit and "anchor" not in heading.table.columns:
        hint = "mark the rows that constants are fitted to, in a column anchor"
        yield document.problem(("fit",), "has no anchors to fit to", hint=hint, show=False)
    labels = heading.labels
    if file.regime and file.regime not in labels:
        hint = nearest_hint(file.regime, labels)
        yield document.problem(("regime",), "is not a label of the table", hint=hint)
    for i, table in enumerate(file.fit):
        yield from _fit_problems(document, i, table)
    for i, tolerance in enumerate(file.tolerance):
        yield from _tolerance_problems(document, i, tolerance, file, heading)


def _name_problems(document: Document, file: MeasurementSet, heading: Heading) -> Iterator[Problem]:
    """Yield metrics without a measured column, and columns that the table lacks."""
    if not file.metrics:
        yield document.problem(("metrics",), "is empty", hint="name what is judged", show=False)
    columns = (*heading.labels, *heading.keys, "family", "id")
    lists = {
        "metrics": (heading.measured, "has no measured column"),
        "absolute": (heading.measured, "has no measured column"),
        **dict.fromkeys(_COLUMN_LISTS, (columns, "is not a column of the table")),
    }
    for key, (allowed, message) in lists.items():
        for i, name in enumerate(getattr(file, key)):
            told = key not in _COLUMN_LISTS and (not allowed or heading.misspelt(name))
            if name not in allowed and not told:
                yield document.problem((key, i), message, hint=nearest_hint(name, allowed))


def _fit_problems(document: Document, number: int, table: Parameter) -> Iterator[Problem]:
    place = ("fit", number)
    try:
        key = numeric_key(table.key, "fit")
    except InputError as error:
        for problem in error.problems:
            yield document.problem((*place, "key"), problem.message, hint=problem.hint)
        return
    values = {}
    for name in ("low", "start", "high"):
        try:
            values[name] = key.value(getattr(table, name))
        except InputError as error:
            for problem in error.problems:
                yield document.problem((*place, name), problem.message, hint=problem.hint)
    order = [values[name] for name in ("low", "start", "high") if name in values]
    if len(order) == len(values) and order != sorted(order):
        hint = f"low {table.low}, high {table.high}"
        yield document.problem((*place, "start"), "does not lie between its bounds", hint=hint)


def _tolerance_problems(
    document: Document, number: int, table: Tolerance, file: MeasurementSet, heading: Heading
) -> Iterator[Problem]:
    place = ("tolerance", number)
    wrong = [metric for metric in file.metrics if metric not in heading.measured]
    if table.metric not in file.metrics and nearest(table.metric, wrong) is None:
        hint = nearest_hint(table.metric, file.metrics)
        yield document.problem((*place, "metric"), "is not judged in this set", hint=hint)
    if all(getattr(table, level) is None for level in _LEVELS):
        hint = f"give at least one of {', '.join(_LEVELS)}"
        yield document.problem(place, "allows nothing", hint=hint, show=False)


def _family_problems(
    document: Document, file: MeasurementSet, families: set[str]
) -> Iterator[Problem]:
    for i, table in enumerate(file.tolerance):
        if table.family not in ("", "*", *families):
            hint = nearest_hint(table.family, sorted(families))
            yield document.problem(
                ("tolerance", i, "family"), "is not a family of the set", hint=hint
            )


Plain: TypeAlias = str | float
CLOSE: Final = 0.05
"""Largest relative difference between two numbers that are considered equal."""
_MOST_BASES: Final = 10
"""Longest chain of files that extend each other; shipped ones are shorter."""


def rows_alike(scenario: Scenario) -> tuple[tuple[str, Row], ...]:
    """Return the rows that contradict no key of a scenario, each with its set's name.

    Without such rows it takes about 30 ms.
    """
    group, job = scenario.cluster.trainers, scenario.job
    keys: dict[str, Plain] = {
        "train.batch_size": float(job.train.batch_size),
        "train.accumulation": float(job.train.accumulation),
        "train.precision": str(job.train.precision),
        "software.framework": job.software.framework,
        "hardware.count": float(group.count),
        "hardware.gpus": float(group.gpus_per_host),
        "input.workers": float(job.input.workers),
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
    """Return whether a cell has the value of a key, or is empty."""
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
    """Return the keys of a base and of the files it extends, as text."""
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
