"""Constants of a group of rows, fitted to its anchors and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from simulator.calibration.secant import solve
from simulator.uncertainty.measurement import Parameter, Row

MISSED: Final = 0.1
"""Log error of an anchor beyond which fallbacks are fitted."""


def anchored(
    rows: Sequence[Row],
    fit: Sequence[Parameter],
    metrics: Sequence[str],
    *,
    predictor: Predictor = predicted,
) -> tuple[str, ...]:
    """The overrides that make a group's anchors come out as measured.

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
        start; a fallback is left out unless it brings anchors nearer that are `MISSED` otherwise.
        Nothing where no anchor has any of the metrics.

    Raises
    ------
    InputError
        If a parameter cannot be fitted, or an anchor not be predicted.
    """
    seen = observations(rows, metrics)
    if not seen or not fit:
        return ()
    measured = {one.metric for one in seen}
    usual = [p for p in fit if not p.fallback and (not p.told_by or p.told_by in measured)]
    others = [parameter for parameter in fit if parameter not in usual]
    at_start = tuple(f"{p.key}={p.start}" for p in others if not p.fallback)
    overrides, worst, _ = _solved(_with(rows, at_start), usual, seen, predictor)
    overrides = (*at_start, *overrides)
    for parameter in others:
        if worst <= MISSED:
            break
        more, left, moved = _solved(_with(rows, overrides), [parameter], seen, predictor)
        if moved:
            kept = (text for text in overrides if not text.startswith(f"{parameter.key}="))
            overrides, worst = (*kept, *more), left
    return overrides


def _with(rows: Sequence[Row], overrides: tuple[str, ...]) -> list[Row]:
    return [replace(row, overrides=(*row.overrides, *overrides)) for row in rows]


def _solved(
    rows: Sequence[Row],
    fit: Sequence[Parameter],
    seen: tuple[Observation, ...],
    predictor: Predictor,
) -> tuple[tuple[str, ...], float, bool]:
    """Overrides, the largest log error they leave, and whether any parameter moved."""
    knobs = tuple(knob(parameter) for parameter in fit)
    errors = Errors(rows=tuple(rows), knobs=knobs, seen=seen, predictor=predictor)
    found = solve(errors, *box(knobs))
    overrides = tuple(k.override(float(x)) for k, x in zip(knobs, found.x, strict=True))
    return overrides, found.worst, any(found.moved)
