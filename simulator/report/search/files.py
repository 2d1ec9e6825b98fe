"""All candidates of a sweep for other programs: as CSV, Parquet, or one JSON object."""

from __future__ import annotations

import importlib.util
import io
import json
import math
from collections.abc import Mapping
from typing import Any, Final

from simulator.errors import PlanError
from simulator.report.format.table import as_csv
from simulator.report.search.text import all_candidates
from simulator.results.metrics import SOLVER, Value
from simulator.studies.search.findings import Findings, frame
from simulator.studies.search.outcome import Outcome, Status
from simulator.version import __version__


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


SCHEMA: Final = 1


def as_json(found: Findings, name: str) -> str:
    """The sweep of the scenario `name`; figures in SI units, null where there is no finite one."""
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "scenario": name,
        "objectives": [
            {"metric": objective.metric, "sense": str(objective.sense)}
            for objective in found.objectives
        ],
        "keys": list(found.values),
        "counts": {str(status): n for status, n in found.counts.items()},
        "solvers": {SOLVER: found.counts[Status.PREDICTED]},
        "without_effect": list(found.idle),
        "front": [
            {"candidate": place.outcome.candidate.index, "equal": list(place.equal)}
            for place in found.front
        ],
        "best": [outcome.candidate.index for outcome in found.best],
        "near": list(found.near),
        "prices": list(found.prices),
        "candidates": [_candidate(outcome) for outcome in found.outcomes],
    }
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False)


def _candidate(outcome: Outcome) -> dict[str, Any]:
    return {
        "candidate": outcome.candidate.index,
        "settings": outcome.candidate.settings,
        "status": str(outcome.status),
        "reason": outcome.reason,
        "metrics": {name: _plain(value) for name, value in outcome.figures.items()},
        "interval": {
            name: {point: _plain(value) for point, value in band.items()}
            for name, band in outcome.intervals.items()
        },
    }


def _plain(value: Value) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
