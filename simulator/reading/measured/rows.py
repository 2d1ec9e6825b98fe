"""Measurement sets: the keys of their TOML file, and the rows and columns of their CSV file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem, UnitError
from simulator.reading.document import examine
from simulator.reading.merge_documents import parse_override
from simulator.reading.model_library import shape_keys
from simulator.reading.sections import ScenarioFile
from simulator.reading.shipped import find_base, nearest_bases
from simulator.reading.table import Line, Table
from simulator.reading.tables import FileTable, key_at, table_keys
from simulator.records import dataclass
from simulator.results.metrics import Metric, measurable, measurable_names
from simulator.schema.fields import (
    nearest,
    nearest_hint,
)
from simulator.schema.measurement import (
    MeasurementSet,
    Row,
    Split,
    SplitRule,
    held_out,
)
from simulator.units import Unit

OWN: Final = ("id", "base", "family", "split", "anchor", "exclude", "source")
"""Columns without a dot that have a meaning; the others are labels."""
MEASURED: Final = "measured."
SPREAD: Final = "spread."
_YES: Final = "yes"
_WHOLE: Final = re.compile(r"(?:0|[1-9][0-9]*)\.0+")
"""An integer as written by programs that store only floats."""

_SHARE: Final = "write a share, such as 0.93 for 93%"
_LONGEST_STEP: Final = "1 d"
_LONGEST: Final = "40000 d"
_SHORTEST: Final = "1 ns"
_LEAST_MEMORY: Final = "1 MB"
_STEP_PARTS: Final = ("step_time_s", "step_split_s", "communication_s", "bound_s")
_MOST: Final = 5e14
"""Larger than any count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The file of a set, its table, and the folder of both."""

    file: MeasurementSet
    table: Table
    folder: Path


def described_by(file: MeasurementSet) -> type[FileTable]:
    """Return the table that describes the scenario files of a set's rows: jobs or services."""
    if file.mode is None:
        return ScenarioFile
    from simulator.reading.service.sections import ServiceFile

    return ServiceFile


@dataclass(frozen=True)
class Heading:
    """The columns of a set by kind, and mistakes in their names.

    `model` is the table with the keys of the rows' scenario files.
    """

    table: Table
    model: type[FileTable] = ScenarioFile

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """Metrics with a measured column."""
        return self._after(MEASURED)

    @cached_property
    def spread(self) -> tuple[str, ...]:
        """Metrics with a column for the spread of repeats."""
        return self._after(SPREAD)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Columns that are keys of the scenario."""
        others = (MEASURED, SPREAD)
        return tuple(c for c in self.table.columns if "." in c and not c.startswith(others))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Columns that are not used for predictions."""
        return tuple(c for c in self.table.columns if "." not in c and c not in OWN)

    def misspelt(self, metric: str) -> bool:
        """Return whether a measured column is a misspelling of this metric."""
        wrong = [name for name in self.measured if measurable(name) is None]
        return nearest(metric, wrong) is not None

    def problems(self) -> Iterator[Problem]:
        """Yield mistakes in the columns."""
        table = self.table
        if "id" not in table.columns:
            yield Problem(origin=table.origin, line=1, key="id", message="is missing")
        if not self.measured:
            hint = f"name one like {MEASURED}step_time_s.mean"
            message = "has no measured column"
            yield Problem(origin=table.origin, line=1, message=message, hint=hint)
        yield from self._metric_problems()
        for key in self.keys:
            if key not in shape_keys() and key_at(self.model, tuple(key.split("."))) is None:
                hint = nearest_hint(key, all_keys(self.model))
                yield table.about(key, "is not a key of a scenario", hint)
        for label in self.labels:
            plain = label.lower()
            if plain in (*OWN, "measured", "spread"):
                yield table.about(label, "is nearly a column with a meaning", f"'{plain}'?")

    def _metric_problems(self) -> Iterator[Problem]:
        for prefix, names in ((MEASURED, self.measured), (SPREAD, self.spread)):
            for name in names:
                if measurable(name) is None:
                    hint = nearest_hint(name, measurable_names())
                    message = "is not a metric that can be measured"
                    yield self.table.about(prefix + name, message, hint)
        for name in self.spread:
            if name not in self.measured and not self.misspelt(name):
                message = "is the spread of a metric without a measured column"
                yield self.table.about(SPREAD + name, message)

    def _after(self, prefix: str) -> tuple[str, ...]:
        named = [c for c in self.table.columns if c.startswith(prefix)]
        return tuple(column.removeprefix(prefix) for column in named)


def all_keys(file: type[FileTable]) -> tuple[str, ...]:
    """Return all keys ``section.key`` of a scenario, including those of a model's shape."""
    named = (
        f"{section}.{name}"
        for section, each in table_keys(file).items()
        for name in (() if each.table is None else table_keys(each.table))
    )
    return (*named, *sorted(shape_keys()))


def rows_of(context: Context, heading: Heading) -> tuple[tuple[Row, ...], tuple[Problem, ...]]:
    """Return the rows of a table with a valid heading, and the problems of their cells."""
    table = _with_whole_counts(context.table, heading)
    context = replace(context, table=table)
    bases, wrong = _bases(context)
    problems = [*wrong, *_repeats(table)]
    known: dict[tuple[str, str], tuple[Problem, ...]] = {}
    rows = []
    for line in table.lines:
        problems += _key_problems(table, line, heading, known)
        problems += _word_problems(table, line, context.file)
        numbers, bad = _numbers(table, line, heading, context.file)
        problems += bad
        rows.append(_row(context, heading, line, bases.get(_base(context, line), ""), numbers))
        if not rows[-1].excluded and not bad and not _judged(rows[-1], context.file):
            hint = "fill in one of the set's metrics, or say why in the column exclude"
            problems.append(replace(_here(table, line), message="measures nothing", hint=hint))
    return tuple(rows), tuple(problems)


def _with_whole_counts(table: Table, heading: Heading) -> Table:
    """Return the table with integers such as 8.0 written as 8 in columns of counts.

    Programs that store a column with gaps as floats write its counts so.
    """
    known: dict[tuple[str, str], str] = {}

    def counted(key: str, cell: str) -> str:
        if (key, cell) not in known:
            whole = cell.partition(".")[0]
            is_count = _is_count(key, cell, whole, heading.model)
            known[key, cell] = whole if is_count else cell
        return known[key, cell]

    keys = [key for key in heading.keys if any(_WHOLE.fullmatch(x.cells[key]) for x in table.lines)]
    lines = (
        replace(line, cells={**line.cells, **{key: counted(key, line.cells[key]) for key in keys}})
        for line in table.lines
    )
    return replace(table, lines=tuple(lines)) if keys else table


def _is_count(key: str, cell: str, whole: str, file: type[FileTable]) -> bool:
    sound = _WHOLE.fullmatch(cell) is not None and not _value_problems(key, whole, file)
    return sound and bool(_value_problems(key, cell, file))


def _judged(row: Row, file: MeasurementSet) -> bool:
    return any(metric in row.measured for metric in file.metrics)


def _here(table: Table, line: Line) -> Problem:
    return Problem(origin=table.origin, line=line.number, message="")


def _base(context: Context, line: Line) -> str:
    return line.cells.get("base") or context.file.base or ""


def _bases(context: Context) -> tuple[dict[str, str], list[Problem]]:
    """Return the scenario file of each base, and a problem for each that is not found."""
    found: dict[str, str] = {}
    problems = []
    for line in context.table.lines:
        name = _base(context, line)
        if name in found:
            continue
        path = find_base(name, context.folder) if name else None
        found[name] = "" if path is None else str(path)
        if not name:
            hint = "fill it in, or give the set a base"
            problems.append(context.table.problem(line, "base", "is empty", hint))
        elif path is None:
            hint = nearest_bases(name, context.folder)
            problem = context.table.problem(line, "base", "unknown scenario", hint)
            problems.append(replace(problem, found=repr(name)))
    return found, problems


def _repeats(table: Table) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for line in table.lines:
        name = line.cells["id"]
        if not name:
            yield table.problem(line, "id", "is empty", "give every row a name")
        elif name in first:
            yield table.problem(line, "id", "is given twice", f"first on line {first[name]}")
        first.setdefault(name, line.number)


def _key_problems(
    table: Table, line: Line, heading: Heading, known: dict[tuple[str, str], tuple[Problem, ...]]
) -> Iterator[Problem]:
    """Yield problems with the values of scenario keys; each value of a column is checked once."""
    for key in heading.keys:
        cell = line.cells[key]
        if cell and (key, cell) not in known:
            known[key, cell] = _value_problems(key, cell, heading.model)
        for problem in known.get((key, cell), ()):
            yield replace(problem, origin=table.origin, line=line.number, key=key)


def _value_problems(key: str, cell: str, file: type[FileTable]) -> tuple[Problem, ...]:
    """Return problems with a value alone; together with other keys it is checked with the base."""
    try:
        document = parse_override(f"{key}={cell}", file)
    except InputError as error:
        return error.problems
    whole = replace(document, data={"schema": 1, **document.data})
    problems = examine(file, whole)[1]
    return tuple(p for p in problems if p.key and (p.key == key or _is_below(p.key, key)))


def _is_below(path: str, key: str) -> bool:
    return path.startswith((f"{key}.", f"{key}["))


def _word_problems(table: Table, line: Line, file: MeasurementSet) -> Iterator[Problem]:
    splits = tuple(split.value for split in Split)
    split, anchor = line.cells.get("split", ""), line.cells.get("anchor", "")
    if split and split not in splits:
        yield table.problem(line, "split", "is not a valid choice", nearest_hint(split, splits))
    if anchor not in ("", _YES, "no"):
        yield table.problem(line, "anchor", "is neither yes nor no")
    if anchor == _YES and split == Split.TEST:
        yield table.problem(line, "split", "holds out an anchor", "constants are fitted to it")
    excluded = line.cells.get("exclude") or anchor == _YES
    if file.split is SplitRule.GIVEN and not split and not excluded:
        hint = "write fit or test, or give the set a rule"
        yield table.problem(line, "split", "is empty", hint)


def _numbers(
    table: Table, line: Line, heading: Heading, file: MeasurementSet
) -> tuple[dict[str, float], list[Problem]]:
    """Return the measured and spread figures of a row by column, and problems with the others."""
    numbers: dict[str, float] = {}
    problems = []
    for prefix, names in ((MEASURED, heading.measured), (SPREAD, heading.spread)):
        for name in names:
            column, metric = prefix + name, measurable(name)
            cell = line.cells[column]
            if not cell or metric is None:
                continue
            value, message, hint = _number(cell, metric.unit)
            if not message and prefix == SPREAD:
                message, hint = _implausible_spread(value)
            elif not message:
                message, hint = _implausible(value, name, metric, zero=name in file.absolute)
            if message:
                problems.append(table.problem(line, column, message, hint))
            numbers[column] = value
    return numbers, problems


def _number(cell: str, unit: Unit | None) -> tuple[float, str, str]:
    """Return the number in a cell; if invalid, also the mistake and a hint."""
    try:
        value = float(cell)
    except ValueError:
        return math.nan, "is not a bare number", _advice(cell, unit)
    if not math.isfinite(value):
        return value, "is not a finite number", "leave it empty if it was not measured"
    return value, "", ""


def _advice(cell: str, unit: Unit | None) -> str:
    if unit is None:
        percent = cell.endswith("%")
        return _SHARE if percent else "write a number with a point and nothing else"
    try:
        return f"write {units.parse(cell, unit):.12g}, in {unit.symbol}"
    except UnitError:
        return f"write the number in {unit.symbol}, with a point and nothing else"


def _implausible(value: float, name: str, metric: Metric, *, zero: bool) -> tuple[str, str]:
    """Return the mistake in an implausible measured value and a hint; empty texts if plausible."""
    if value < 0.0:
        return "is negative", "what was measured cannot be negative"
    if value == 0.0:
        return ("", "") if zero else ("is zero", "an error relative to it means nothing")
    if _is_share(name):
        return ("is above 1", _SHARE) if value > 1.0 else ("", "")
    low, high = _range(name, metric)
    unit = metric.unit
    if unit is None:
        return ("is too large to be meant", "") if value > _MOST else ("", "")
    if value > high:
        most = f"at most {units.show(high, unit)}; bare numbers are in {unit.symbol}"
        return "is too large to be meant", most
    least = f"at least {units.show(low, unit)}; bare numbers are in {unit.symbol}"
    return ("is too small to be meant", least) if value < low else ("", "")


def _is_share(name: str) -> bool:
    *_, group, _, last = ("", "", *name.split("."))
    return last == "accelerator_utilization" or (group == "utilization" and last == "mean")


def _range(name: str, metric: Metric) -> tuple[float, float]:
    """Return the smallest and largest plausible value of a metric."""
    if metric.unit is units.SECOND:
        longest = _LONGEST_STEP if name.partition(".")[0] in _STEP_PARTS else _LONGEST
        return units.parse(_SHORTEST, units.SECOND), units.parse(longest, units.SECOND)
    if metric.unit is units.BYTE:
        whole = not metric.name.endswith(".items")
        return units.parse(_LEAST_MEMORY, units.BYTE) if whole else 1.0, _MOST
    return 1.0 / _MOST, _MOST


def _implausible_spread(value: float) -> tuple[str, str]:
    if value < 0.0:
        return "is negative", "a spread cannot be negative"
    return (
        ("is above 1", "write a relative spread, such as 0.05 for 5%") if value > 1.0 else ("", "")
    )


def _row(
    context: Context, heading: Heading, line: Line, base: str, numbers: Mapping[str, float]
) -> Row:
    file, cells = context.file, line.cells
    row = Row(
        id=cells["id"],
        base=base,
        overrides=tuple(f"{key}={cells[key]}" for key in heading.keys if cells[key]),
        measured=_under(MEASURED, numbers),
        spread=_under(SPREAD, numbers),
        family=cells.get("family") or file.family or file.name,
        source=cells.get("source") or file.source,
        labels={label: cells[label] for label in heading.labels if cells[label]},
        anchor=cells.get("anchor") == _YES,
        excluded=cells.get("exclude", ""),
    )
    return replace(row, split=split_of(row, cells.get("split", ""), file.split, file.configuration))


def split_of(row: Row, given: str, rule: SplitRule, configuration: tuple[str, ...]) -> Split:
    """Return the split of a row: as stated, fit for anchors, else by the set's rule."""
    if row.anchor or given == Split.FIT:
        return Split.FIT
    if given or rule is not SplitRule.CONFIGURATION:
        return Split.TEST
    return Split.TEST if held_out(row.key(configuration)) else Split.FIT


def _under(prefix: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {
        column.removeprefix(prefix): value
        for column, value in numbers.items()
        if column.startswith(prefix)
    }
