"""Measured rows that a fit may use, with the constants of their group fitted to its anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from simulator.schema.calibration import Envelope
from simulator.schema.measurement import MeasurementSet, Parameter, Row, Split

FALLBACK_ERROR: Final = 0.1
"""Log error of an anchor beyond which fallbacks are fitted."""


def anchored(
    rows: Sequence[Row],
    fit: Sequence[Parameter],
    metrics: Sequence[str],
    *,
    predictor: Predictor = predicted,
) -> tuple[str, ...]:
    """Return the overrides with which a group's anchors are predicted as measured.

    Parameters
    ----------
    rows : sequence of Row
        The group's anchors, and nothing else.
    fit : sequence of Parameter
        What is fitted to them.
    metrics : sequence of str
        Measured columns that count; those an anchor lacks are passed over.
    predictor : callable, optional
        What predicts a row; the model by default.

    Returns
    -------
    tuple of str
        ``key=value`` for each parameter. One that the anchors say nothing about stands at its
        start; a fallback is left out unless it brings anchors nearer that are `FALLBACK_ERROR`
        otherwise. Nothing where no anchor has any of the metrics.

    Raises
    ------
    InputError
        If a parameter cannot be fitted, an anchor not be predicted, or only fallbacks are left.
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
    """Return overrides, the largest log error they leave, and true if any parameter moved."""
    knobs = tuple(knob(parameter) for parameter in fit)
    errors = Errors(rows=tuple(rows), knobs=knobs, seen=seen, predictor=predictor)
    found = solve(errors, *box(knobs))
    overrides = tuple(k.override(float(x)) for k, x in zip(knobs, found.x, strict=True))
    return overrides, found.worst, any(found.moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Rows to fit to, what was measured on them, and which configuration each belongs to."""

    rows: tuple[Row, ...]
    seen: tuple[Observation, ...]
    configurations: tuple[str, ...]
    sets: tuple[str, ...]
    envelope: Envelope

    @property
    def distinct(self) -> tuple[str, ...]:
        """The configurations, each once, in the order of the rows."""
        return tuple(dict.fromkeys(self.configurations))


def samples_of(
    sets: Sequence[MeasurementSet],
    fit: Sequence[Parameter],
    predictor: Predictor,
    *,
    use_all: bool = False,
    profiles: tuple[Path, ...] = (),
) -> Samples:
    """Return the rows of `sets` that parameters may be fitted to.

    Rows that are excluded are left out, and so are those held out for testing unless `use_all`.
    A row of a group with anchors gets the group's constants first, except those in `fit`.

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
    """Return rows with the constants of their group put after their own keys."""
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
    """Refuse rows that set a fitted key: they leave nothing to fit."""
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
    """Return the range of the rows: accelerators, machines, sizes of jobs and batches."""
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
