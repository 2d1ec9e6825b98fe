"""Constants of a group of rows, fitted to its anchors and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.confidence.measurement import Parameter, Row
from simulator.studies.fitting import Errors, Predictor, box, knob, observations, predicted
from simulator.studies.secant import solve


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
        start. Nothing where no anchor has any of the metrics.

    Raises
    ------
    InputError
        If a parameter cannot be fitted, or an anchor not be predicted.
    """
    seen = observations(rows, metrics)
    if not seen or not fit:
        return ()
    knobs = tuple(knob(parameter) for parameter in fit)
    errors = Errors(rows=tuple(rows), knobs=knobs, seen=seen, predictor=predictor)
    found = solve(errors, *box(knobs))
    return tuple(k.override(float(x)) for k, x in zip(knobs, found.x, strict=True))
