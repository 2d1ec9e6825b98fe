"""All candidates of a sweep as files for other programs."""

from __future__ import annotations

import importlib.util
import io

from simulator.errors import PlanError
from simulator.report.sweep import all_candidates
from simulator.report.table import as_csv
from simulator.studies.findings import Findings
from simulator.studies.frame import frame


def csv_text(found: Findings) -> str:
    """Every candidate in a line, under the columns of the frame."""
    return f"{as_csv(all_candidates(found))}\n"


def check_parquet() -> None:
    """Refuse early what `parquet_bytes` could not write.

    Raises
    ------
    PlanError
        If the library is missing.
    """
    if importlib.util.find_spec("pyarrow") is None:
        msg = "--parquet needs the package 'pyarrow': pip install 'plan-simulator[parquet]'"
        raise PlanError(msg)


def parquet_bytes(found: Findings) -> bytes:
    """The frame as Parquet; a column whose values are of several kinds is text.

    Raises
    ------
    PlanError
        If the library is missing.
    """
    check_parquet()
    table = frame(found.outcomes)
    for name in table.columns:
        kinds = {type(value) for value in table[name].dropna()}
        if len(kinds) > 1 and not kinds <= {int, float}:
            table[name] = table[name].map(str, na_action="ignore")
    content = io.BytesIO()
    table.to_parquet(content, engine="pyarrow")
    return content.getvalue()
