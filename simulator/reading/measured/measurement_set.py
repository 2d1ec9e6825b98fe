"""The door from a measurement set's TOML and CSV files to a `MeasurementSet`.

Every mistake of both files is reported at once. What a row's scenario lacks only when its base
and all of its keys come together is found when it is predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from simulator.errors import InputError, Problem, UnknownName
from simulator.reading.document import Document, check, parse_document, read_document
from simulator.reading.keys import numeric_key
from simulator.reading.measured.rows import Context, Heading, described_by, rows_of
from simulator.reading.measured.runs_table import read_runs
from simulator.reading.measured.sections import FitTable, SetFile, ToleranceTable
from simulator.reading.merge_documents import chain_of
from simulator.reading.reading import refuse_irregular
from simulator.reading.service.mode import describes_service
from simulator.reading.shipped import (
    find_scenario,
    find_set,
    nearest_scenarios,
    nearest_sets,
    scenario_folder,
    set_folder,
    set_names,
)
from simulator.reading.table import Table, capped, parse_table, read_table
from simulator.schema.fields import nearest, nearest_hint
from simulator.uncertainty.measurement import MeasurementSet, Parameter, Row, SplitRule, Tolerance
from simulator.uncertainty.provenance import Source

_COLUMN_LISTS = ("configuration", "group_by", "baseline_by", "maker")
_LEVELS = ("median", "mean", "p90", "largest")


def load_set(name_or_path: str, scenario: str | None = None) -> MeasurementSet:
    """Read a measurement set.

    Parameters
    ----------
    name_or_path : str
        The set's TOML file, the name of a shipped set, or a table of runs of the `scenario`.
    scenario : str, optional
        What the rows of a table without a TOML file are runs of: a file or a shipped name.

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
    """Rows measured on a shipped scenario just as it is; none for a scenario of the user's own."""
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
    """Whether a set's rows name a scenario at all; reading every set takes seconds."""
    return f",{scenario}," in (set_folder() / f"{name}.csv").read_text(encoding="utf-8")


def _runs(path: Path, scenario: str | None) -> MeasurementSet:
    """A table of runs without a file that describes it."""
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
    return _converted(file, rows)


def parse_set(toml: str, rows: str, origin: str, folder: Path) -> MeasurementSet:
    """Read a set from memory, as if both files lay in `folder`. Raises as `load_set` does."""
    document = parse_document(toml.encode(), origin)
    return to_set(document, folder, lambda name: parse_table(rows.encode(), name))


def to_set(document: Document, folder: Path, table_of: Callable[[str], Table]) -> MeasurementSet:
    """The set that a document and its table describe; `table_of` reads the table by its name."""
    file = check(SetFile, document)
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
    return _converted(file, rows)


def _file_problems(document: Document, file: SetFile, heading: Heading) -> Iterator[Problem]:
    """What the TOML file says about columns and keys that cannot be."""
    yield from _name_problems(document, file, heading)
    if file.split is SplitRule.CONFIGURATION and not file.configuration:
        hint = "name the columns that make one configuration"
        yield document.problem(("configuration",), "is missing", hint=hint)
    if file.fit and "anchor" not in heading.table.columns:
        hint = "mark the rows that constants are fitted to, in a column anchor"
        yield document.problem(("fit",), "has no anchors to fit to", hint=hint, show=False)
    labels = heading.labels
    if file.regime is not None and file.regime not in labels:
        hint = nearest_hint(file.regime, labels)
        yield document.problem(("regime",), "is no label of the table", hint=hint)
    for i, table in enumerate(file.fit):
        yield from _fit_problems(document, i, table)
    for i, tolerance in enumerate(file.tolerance):
        yield from _tolerance_problems(document, i, tolerance, file, heading)


def _name_problems(document: Document, file: SetFile, heading: Heading) -> Iterator[Problem]:
    """Metrics without a measured column, and columns that the table lacks."""
    if not file.metrics:
        yield document.problem(("metrics",), "is empty", hint="name what is judged", show=False)
    columns = (*heading.labels, *heading.keys, "family", "id")
    lists = {
        "metrics": (heading.measured, "has no measured column"),
        "absolute": (heading.measured, "has no measured column"),
        **dict.fromkeys(_COLUMN_LISTS, (columns, "is no column of the table")),
    }
    for key, (allowed, message) in lists.items():
        for i, name in enumerate(getattr(file, key)):
            told = key not in _COLUMN_LISTS and (not allowed or heading.misspelt(name))
            if name not in allowed and not told:
                yield document.problem((key, i), message, hint=nearest_hint(name, allowed))


def _fit_problems(document: Document, number: int, table: FitTable) -> Iterator[Problem]:
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
    document: Document, number: int, table: ToleranceTable, file: SetFile, heading: Heading
) -> Iterator[Problem]:
    place = ("tolerance", number)
    wrong = [metric for metric in file.metrics if metric not in heading.measured]
    if table.metric not in file.metrics and nearest(table.metric, wrong) is None:
        hint = nearest_hint(table.metric, file.metrics)
        yield document.problem((*place, "metric"), "is not judged in this set", hint=hint)
    if all(getattr(table, level) is None for level in _LEVELS):
        hint = f"give at least one of {', '.join(_LEVELS)}"
        yield document.problem(place, "allows nothing", hint=hint, show=False)


def _family_problems(document: Document, file: SetFile, families: set[str]) -> Iterator[Problem]:
    for i, table in enumerate(file.tolerance):
        if table.family not in (None, "*", *families):
            hint = nearest_hint(str(table.family), sorted(families))
            yield document.problem(("tolerance", i, "family"), "is no family of the set", hint=hint)


def _converted(file: SetFile, rows: tuple[Row, ...]) -> MeasurementSet:
    return MeasurementSet(
        name=file.name,
        title=file.title,
        source=Source(
            reference=file.source, date=file.date, verified=file.verified, note=file.note or ""
        ),
        rows=rows,
        metrics=tuple(file.metrics),
        split_rule=file.split,
        configuration=tuple(file.configuration),
        group_by=tuple(file.group_by),
        anchor=file.anchor or "",
        fit=tuple(_parameter(table) for table in file.fit),
        tolerances=tuple(_tolerance(table) for table in file.tolerance),
        baseline=file.baseline,
        baseline_by=tuple(file.baseline_by),
        absolute=tuple(file.absolute),
        regime=file.regime or "",
        submitter=tuple(file.maker),
        misses={(one.family, one.metric): one.why for one in file.miss},
        serves=file.mode is not None,
    )


def _parameter(table: FitTable) -> Parameter:
    texts = {"why": table.why or "", "told_by": table.told_by or "", "pace": table.pace or ""}
    return Parameter(**{**asdict(table), **texts})


def _tolerance(table: ToleranceTable) -> Tolerance:
    return Tolerance(**{**asdict(table), "family": table.family or ""})
