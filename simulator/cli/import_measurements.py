"""``plan import measurements``: rows of a known table as a measurement set."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from simulator.cli.output import check_writable, emit, write_file

if TYPE_CHECKING:
    from simulator.importers.measurements import Imported

_TOLD: Final = 12
"""Reasons that are told one by one."""


@click.command()
@click.option(
    "--from", "table", required=True, metavar="TABLE", help="The table whose columns FILE has."
)
@click.option(
    "-o",
    "--output",
    "output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="SET",
    help="The set's TOML file; its rows are written beside it as CSV.",
)
@click.option(
    "--split",
    type=click.Choice(["configuration"]),
    help="Hold out configurations by their hash; without it every row but anchors is held out.",
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def measurements(*, table: str, output: Path, split: str | None, file: Path) -> None:
    """Convert the CSV FILE, which has the columns of TABLE, to a measurement set.

    What groups rows, which of them constants are fitted to, and how wrong predictions may be, is
    taken from the shipped set of the TABLE. A column split in FILE says fit or test itself.
    """
    if output.suffix == ".csv":
        output = output.with_suffix(".toml")
    elif output.suffix != ".toml":
        output = output.with_name(f"{output.name}.toml")
    for path in (output, output.with_suffix(".csv")):
        check_writable(path, "--output")
    from simulator.importers.measurements import import_table

    made = import_table(table, file, output, by_configuration=split is not None)
    write_file(made.csv_path, made.csv, "--output")
    if not made.declared:
        write_file(made.toml_path, made.toml, "--output")
    emit("\n".join(_summary(made)))


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
    return [
        *(f"wrote {path}" for path in written),
        ", ".join(f"{count:,} {name}" for name, count in counts.items()),
        *_reasons(made),
        f"see how well it is predicted with: plan validate {made.toml_path}",
    ]


def _reasons(made: Imported) -> list[str]:
    """Why rows are left out, the commonest reason first."""
    from simulator.report.layout import wrapped

    reasons = Counter(row.excluded for row in made.found.rows if row.excluded)
    first = {row.excluded: row.id for row in reversed(made.found.rows)}
    lines: list[str] = []
    for reason, count in reasons.most_common(_TOLD):
        which = first[reason] if count == 1 else f"{count:,} rows, the first {first[reason]}"
        lines += wrapped(f"  left out: {reason} ({which})", hang="    ")
    if len(reasons) > _TOLD:
        more = sum(reasons.values()) - sum(n for _, n in reasons.most_common(_TOLD))
        lines.append(f"  left out: {more:,} rows more for other reasons; see the column exclude")
    return lines
