"""Converts a table of measurements to a measurement set.

    python evidence/convert.py TABLE FILE.csv -o SET [--split configuration]

TABLE names the columns that FILE has (a module of `converters`). What groups rows, which of them
constants are fitted to, and how wrong predictions may be, is taken from the shipped set of the
TABLE. A column split in FILE says fit or test itself; else every row but anchors is held out, or
configurations are by their hash with ``--split configuration``. A shipped set comes out again, its
declaration kept, with ``-o simulator/data/measured/TABLE``; how it is split stands there.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from converters.converter import Imported, import_table, table_names
from simulator.cli.output import check_writable, write_file
from simulator.errors import InputError, PlanError

_TOLD: Final = 12
"""Reasons that are listed one by one."""
_MISTAKE: Final = 2
"""Exit code where the arguments or the table are wrong."""


def main(argv: Sequence[str] | None = None) -> int:
    """Convert, and return the exit code: 0, or 2 where something in the table is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", metavar="TABLE", help=", ".join(table_names()))
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.add_argument("-o", "--output", metavar="SET", type=Path, required=True)
    parser.add_argument("--split", choices=["configuration"])
    parser.add_argument(
        "--only",
        metavar="COLUMN=BEGINNING",
        action="append",
        default=[],
        help="convert the rows alone whose cell begins so",
    )
    given = parser.parse_args(argv)
    try:
        only = dict(one.partition("=")[::2] for one in given.only)
        made = converted(given.table, given.file, given.output, split=given.split, only=only)
    except InputError as error:
        sys.stderr.writelines(f"{problem}\n" for problem in error.problems)
        return _MISTAKE
    except PlanError as error:
        sys.stderr.write(f"{error}\n")
        return _MISTAKE
    sys.stdout.write("\n".join([*_summary(made), ""]))
    return 0


def converted(
    table: str, file: Path, output: Path, *, split: str | None, only: Mapping[str, str]
) -> Imported:
    """Convert a file and write the set: its rows, and its declaration where it has none yet.

    Raises
    ------
    InputError
        With all mistakes of the file at once, or if the set cannot be written.
    UnknownName
        If there is no such table.
    """
    if output.suffix == ".csv":
        output = output.with_suffix(".toml")
    elif output.suffix != ".toml":
        output = output.with_name(f"{output.name}.toml")
    for path in (output, output.with_suffix(".csv")):
        check_writable(path, "--output")
    made = import_table(table, file, output, by_configuration=split is not None or None, only=only)
    write_file(made.csv_path, made.csv, "--output")
    if not made.declared:
        write_file(made.toml_path, made.toml, "--output")
    return made


def _summary(made: Imported) -> list[str]:
    rows = made.found.rows
    counts = {
        "rows": len(rows),
        "left out": sum(bool(row.excluded) for row in rows),
        "anchors": sum(row.anchor for row in rows),
        "fit": sum(row.split == "fit" for row in rows),
        "test": sum(row.split == "test" for row in rows),
    }
    written = [made.csv_path] if made.declared else [made.csv_path, made.toml_path]
    assumed = {row.id: row.labels.get("assumed", "") for row in rows if not row.excluded}
    return [
        *(f"wrote {path}" for path in written),
        ", ".join(f"{count:,} {name}" for name, count in counts.items()),
        *_told("assumed", assumed),
        *_told("left out", {row.id: row.excluded for row in rows}),
        f"see how well it is predicted with: plan validate {made.toml_path}",
    ]


def _told(what: str, reasons: dict[str, str]) -> list[str]:
    """What is said of rows, the commonest first: `reasons` by the id of the row."""
    counts = Counter(reason for reason in reasons.values() if reason)
    first = {reason: name for name, reason in reversed(reasons.items())}
    lines = []
    for reason, count in counts.most_common(_TOLD):
        which = first[reason] if count == 1 else f"{count:,} rows, the first {first[reason]}"
        lines.append(f"  {what}: {reason} ({which})")
    if len(counts) > _TOLD:
        more = sum(counts.values()) - sum(n for _, n in counts.most_common(_TOLD))
        lines.append(f"  {what}: {more:,} rows more for other reasons; see the column of the set")
    return lines


if __name__ == "__main__":
    sys.exit(main())
