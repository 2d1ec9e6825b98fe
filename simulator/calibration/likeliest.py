"""Which factor of [calibration] explains a few measured runs best, where nobody says what to fit.

Each factor is fitted alone. The one taken leaves small errors and does not have to be far from
its description, each measured by how well it is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator.calibration.calibrate import Calibrated, calibrate
from simulator.calibration.observed import known_within
from simulator.calibration.parameters import parameters_of
from simulator.errors import InputError, Problem
from simulator.reading.keys import numeric_key
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.uncertainty.calibration import FACTORS, FactorKind
from simulator.uncertainty.measurement import MeasurementSet, Split

REPEATS: Final = 0.05
"""How far runs of one configuration lie apart, as a share: what no factor has to explain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A factor fitted alone: its value, the mean error it leaves, and what speaks against it.

    `cost` is twice the negative logarithm of how likely it is, up to a constant: errors in units
    of `REPEATS` and the factor's distance from 1 in units of how well its rates are known.
    """

    kind: FactorKind
    factor: float
    error: float
    cost: float
    fit: Calibrated


def likeliest(
    sets: Sequence[MeasurementSet],
    *,
    use_all: bool = False,
    profiles: tuple[Path, ...] = (),
    processes: int = 1,
    progress: Callable[[float], None] | None = None,
) -> tuple[Tried, ...]:
    """Every factor that has an effect on the rows, fitted alone, the likeliest first.

    Parameters
    ----------
    sets : sequence of MeasurementSet
        Whose rows of split ``fit`` are used.
    use_all : bool
        Use rows held out for testing too.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles that come before the usual ones.
    processes : int
        How many processes predict rows at once.
    progress : callable, optional
        Told how far it is, 0 to 1.

    Raises
    ------
    InputError
        If no factor has an effect on any row, or the rows cannot be used.
    """
    job = _first_job(sets, profiles, use_all=use_all)
    found = []
    for number, kind in enumerate(FACTORS):
        fit = parameters_of([kind.name], sets, {})
        done = calibrate(
            sets, fit, use_all=use_all, folds=1, profiles=profiles, processes=processes
        )
        if done.estimates[0].identified:
            found.append(_tried(kind, done, job))
        if progress is not None:
            progress((number + 1) / len(FACTORS))
    if not found:
        message = "no factor of [calibration] has an effect on any row"
        raise InputError((Problem(origin="the sets", message=message),))
    return tuple(sorted(found, key=lambda one: one.cost))


def _first_job(
    sets: Sequence[MeasurementSet], profiles: tuple[Path, ...], *, use_all: bool
) -> Scenario:
    """The job of the first row that may be used: it says how well its rates are known."""
    splits = (Split.FIT, Split.TEST) if use_all else (Split.FIT,)
    rows = [row for one in sets for row in one.rows if row.split in splits and not row.excluded]
    if not rows:
        message, hint = "hold no row that may be fitted to", "--all takes those held out too"
        raise InputError((Problem(origin="the sets", message=message, hint=hint),))
    return load_scenario(rows[0].base, overrides=rows[0].overrides, profiles=profiles)


def _tried(kind: FactorKind, fit: Calibrated, job: Scenario) -> Tried:
    one = fit.estimates[0]
    factor = numeric_key(one.parameter.key).value(one.value)
    logs = [math.log(residual.fitted / residual.measured) for residual in fit.residuals]
    surprise = math.log(factor) / known_within(kind, job)
    return Tried(
        kind=kind,
        factor=factor,
        error=sum(abs(math.expm1(log)) for log in logs) / len(logs),
        cost=sum((log / REPEATS) ** 2 for log in logs) + surprise**2,
        fit=fit,
    )
