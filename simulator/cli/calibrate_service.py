"""``plan calibrate`` with measured runs of a service."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.cli.output import complain, emit, write_file
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from simulator.uncertainty.measurement import MeasurementSet


def calibrated(
    sets: Sequence[MeasurementSet], output: Path | None, form: str, *, use_all: bool
) -> None:
    """Fit the factors of a service to its runs; write a service that extends it.

    Raises
    ------
    InputError
        If a set has no runs of services, runs are of several, or none may be fitted to.
    """
    from simulator.calibration.service_factors import calibrate_service, settings_of
    from simulator.reading.service.text import fitted_service
    from simulator.report.calibration import service_document
    from simulator.report.render import render
    from simulator.uncertainty.measurement import Split

    wanted = (Split.FIT, Split.TEST) if use_all else (Split.FIT,)
    rows = [r for one in sets for r in one.rows if r.split in wanted and not r.excluded]
    base = _base(sets, rows)
    metrics = dict.fromkeys(name for one in sets for name in one.metrics)
    found = calibrate_service(rows, tuple(metrics))
    if output is not None:
        path = Path(base)
        near = os.path.relpath(path, output.resolve().parent) if path.is_file() else base
        write_file(output, fitted_service(near, settings_of(found.factors), len(rows)), "--output")
    emit(render(service_document(found), form))
    if output is not None:
        complain(f"wrote {output}; use it with: plan simulate {output}")


def _base(sets: Sequence[MeasurementSet], rows: Sequence[object]) -> str:
    """The service that all rows are runs of."""
    jobs = [one.name for one in sets if not one.serves]
    bases = {row.base for one in sets for row in one.rows}
    if jobs:
        message, hint = f"{jobs[0]} has runs of jobs", "calibrate these by themselves"
    elif len(bases) > 1:
        message, hint = "rows are runs of several services", "give those of one"
    elif not rows:
        message = "hold no row that may be fitted to"
        hint = "rows of split fit are used; --all takes those held out for testing too"
    else:
        return bases.pop()
    raise InputError((Problem(origin="the sets", message=message, hint=hint),))
