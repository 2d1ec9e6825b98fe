"""Measured rows that a fit may use, and the constants fitted to the anchors of each group.

A group is the rows of a set with the same labels in its `group_by` columns. An anchor is a row of a
group that is measured only to fit the constants of that group, such as the run with one GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from simulator.calibration.fitting import (
    Errors,
    Observation,
    Predictor,
    box,
    knob,
    observations,
    predicted,
)
from simulator.calibration.solvers import solve
from simulator.errors import InputError, Problem
from simulator.reading.scenario import load_scenario
from simulator.records import dataclass
from simulator.schema.calibration import Envelope
from simulator.schema.measurement import MeasurementSet, Parameter, Row, Split

FALLBACK_ERROR: Final = 0.1
"""Largest log error of the anchors above which fallback parameters are fitted too."""


def anchored(
    rows: Sequence[Row],
    fit: Sequence[Parameter],
    metrics: Sequence[str],
    *,
    predictor: Predictor = predicted,
) -> tuple[str, ...]:
    """Fit parameters to the anchors of a group and return the fitted values as overrides.

    Parameters
    ----------
    rows : sequence of Row
        Anchors of the group: the rows that its constants are fitted to. No other rows.
    fit : sequence of Parameter
        Parameters to fit.
    metrics : sequence of str
        Metrics to fit to; an anchor may lack some of them.
    predictor : callable, optional
        Predicts a row; the model by default.

    Returns
    -------
    tuple of str
        ``key=value`` for each parameter. A parameter without effect on the anchors keeps its start
        value. A fallback parameter is fitted only if the largest log error without it exceeds
        `FALLBACK_ERROR`. Empty if no anchor has any of the metrics.

    Raises
    ------
    InputError
        If a parameter cannot be fitted, an anchor cannot be predicted, or all are fallbacks.
    """
    seen = observations(rows, metrics)
    if not seen or not fit:
        return ()
    measured = {one.metric for one in seen}
    usual = [p for p in fit if not p.fallback and (not p.told_by or p.told_by in measured)]
    if not usual:
        message = "shows none of the constants of its group but fallbacks"
        hint = f"fit a key that the set does not fit itself; left: {', '.join(p.key for p in fit)}"
        problem = Problem(origin=f"row {rows[0].id}", message=message, hint=hint)
        raise InputError((problem,))
    others = [parameter for parameter in fit if parameter not in usual]
    at_start = tuple(f"{p.key}={p.start}" for p in others if not p.fallback)
    overrides, worst, _ = _fitted_overrides(_with(rows, at_start), usual, seen, predictor)
    overrides = (*at_start, *overrides)
    for parameter in others:
        if worst <= FALLBACK_ERROR:
            break
        more, left, moved = _fitted_overrides(_with(rows, overrides), [parameter], seen, predictor)
        if moved:
            kept = (text for text in overrides if not text.startswith(f"{parameter.key}="))
            overrides, worst = (*kept, *more), left
    return overrides


def _with(rows: Sequence[Row], overrides: tuple[str, ...]) -> list[Row]:
    return [replace(row, overrides=(*row.overrides, *overrides)) for row in rows]


def _fitted_overrides(
    rows: Sequence[Row],
    fit: Sequence[Parameter],
    seen: tuple[Observation, ...],
    predictor: Predictor,
) -> tuple[tuple[str, ...], float, bool]:
    """Return fitted overrides, the largest log error, and true if any parameter had an effect."""
    knobs = tuple(knob(parameter) for parameter in fit)
    errors = Errors(rows=tuple(rows), knobs=knobs, seen=seen, predictor=predictor)
    found = solve(errors, *box(knobs))
    overrides = tuple(k.override(float(x)) for k, x in zip(knobs, found.x, strict=True))
    return overrides, found.worst, any(found.moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Rows to fit to, with their observations and, for each row, the name of its configuration.

    `seen` are the observations, `sets` the names of the measurement sets, and `envelope` is the
    range of hardware and sizes that the rows cover.
    """

    rows: tuple[Row, ...]
    seen: tuple[Observation, ...]
    configurations: tuple[str, ...]
    sets: tuple[str, ...]
    envelope: Envelope

    @property
    def distinct(self) -> tuple[str, ...]:
        """Names of the configurations without repetition, in the order of the rows."""
        return tuple(dict.fromkeys(self.configurations))


def samples_of(
    sets: Sequence[MeasurementSet],
    fit: Sequence[Parameter],
    predictor: Predictor,
    *,
    use_all: bool = False,
    profiles: tuple[Path, ...] = (),
) -> Samples:
    """Return the rows of `sets` that may be used to fit the parameters `fit`.

    Excluded rows are left out, and so are rows held out for testing unless `use_all`. The constants
    of a group, fitted to its anchors, are appended to the overrides of its rows, except those in
    `fit`.

    Raises
    ------
    InputError
        If no row is left, or a row sets a fitted key itself.
    """
    wanted = (Split.FIT, Split.TEST) if use_all else (Split.FIT,)
    rows: list[Row] = []
    seen: list[Observation] = []
    configurations: list[str] = []
    for one in sets:
        own = [row for row in one.rows if row.split in wanted and not row.excluded]
        own = _with_constants(one, own, fit, predictor)
        seen += [replace(o, row=o.row + len(rows)) for o in observations(own, one.metrics)]
        configurations += [_configuration(one, row) for row in own]
        rows += own
    if not seen:
        advice = "rows of split fit are used; --all takes those held out for testing too"
        message = "hold no row that may be fitted to"
        raise InputError((Problem(origin="the sets", message=message, hint=advice),))
    _refuse_clashes(rows, fit)
    return Samples(
        rows=tuple(rows),
        seen=tuple(seen),
        configurations=tuple(configurations),
        sets=tuple(one.name for one in sets),
        envelope=_envelope(rows, len(set(configurations)), profiles),
    )


def _configuration(one: MeasurementSet, row: Row) -> str:
    cells = row.key(one.configuration) if one.configuration else (row.id,)
    return " ".join((one.name, *cells))


def _with_constants(
    one: MeasurementSet, rows: list[Row], fit: Sequence[Parameter], predictor: Predictor
) -> list[Row]:
    """Append the fitted constants of its group to the overrides of each row, so that they win."""
    keys = {parameter.key for parameter in fit}
    constants = tuple(parameter for parameter in one.fit if parameter.key not in keys)
    if not constants:
        return rows
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for group in {row.key(one.group_by) for row in rows}:
        anchors = [row for row in one.rows if row.anchor and row.key(one.group_by) == group]
        found[group] = anchored(anchors, constants, one.metrics, predictor=predictor)
    return [replace(row, overrides=(*row.overrides, *found[row.key(one.group_by)])) for row in rows]


def _refuse_clashes(rows: Sequence[Row], fit: Sequence[Parameter]) -> None:
    """Raise an error for rows that set a fitted key, as they would override the fitted value."""
    problems = []
    for parameter in fit:
        own = [r.id for r in rows if any(o.startswith(f"{parameter.key}=") for o in r.overrides)]
        if own:
            message = f"is set by {len(own)} of {len(rows)} rows, such as {own[0]}"
            hint = "fit a factor of [calibration] instead, which multiplies what rows say"
            problems.append(Problem(origin="--fit", key=parameter.key, message=message, hint=hint))
    if problems:
        raise InputError(tuple(problems))


def _envelope(rows: Sequence[Row], configurations: int, profiles: tuple[Path, ...]) -> Envelope:
    """Return the accelerators, machines, numbers of devices and batch sizes that the rows cover."""
    scenarios = [
        load_scenario(row.base, overrides=row.overrides, profiles=profiles) for row in rows
    ]
    trainers = [scenario.cluster.trainers for scenario in scenarios]
    devices = [group.count * group.gpus_per_host for group in trainers]
    batches = [int(scenario.job.train.batch_size) for scenario in scenarios]
    return Envelope(
        rows=len(rows),
        configurations=configurations,
        gpus=tuple(sorted({group.host.gpu.name for group in trainers if group.host.gpu})),
        machines=tuple(sorted({group.host.name for group in trainers})),
        devices=(min(devices), max(devices)),
        batch_size=(min(batches), max(batches)),
    )
