"""Constants of a group of rows, fitted to its anchors and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from simulator.confidence.measurement import Parameter, Row
from simulator.studies.fitting import (
    Errors,
    Observation,
    Predictor,
    box,
    knob,
    observations,
    predicted,
)
from simulator.studies.secant import solve

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
    usual = [parameter for parameter in fit if not parameter.fallback]
    overrides, worst, _ = _solved(rows, usual, seen, predictor)
    for parameter in (parameter for parameter in fit if parameter.fallback):
        if worst <= MISSED:
            break
        with_those = [replace(row, overrides=(*row.overrides, *overrides)) for row in rows]
        more, left, moved = _solved(with_those, [parameter], seen, predictor)
        if moved:
            overrides, worst = (*overrides, *more), left
    return overrides


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
