"""When a run of a scenario ends and what it costs, once interruptions are counted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.equations.cost import best_checkpoint_interval
from simulator.equations.reliability import interruption_rate
from simulator.pipeline.run_length import checkpoints
from simulator.results.outlook import PARTS, QUANTILES, Intervals, Outlook
from simulator.results.prediction import Prediction
from simulator.results.price_age import dated_prices
from simulator.runs.attempts import lives
from simulator.runs.bills import bills
from simulator.runs.checkpoint_io import WRITE_LOG_SD, checkpoint_times
from simulator.runs.progress import Lives
from simulator.runs.store_costs import cost_of_stores, life_of
from simulator.scenario.long_run import (
    Checkpoints,
    Failures,
    Interruptions,
    LongRun,
    Saving,
)
from simulator.units import Seconds, Usd, UsdPerSecond

TRIED: Final = tuple(float(factor) for factor in np.geomspace(1 / 16, 4.0, 13))
"""Multiples of Daly's interval among which the best one is looked for."""
TRIAL_DRAWS: Final = 200
NEVER: Final = math.inf
_Z90: Final = 1.2815515655446004
"""Quantile of the normal distribution at 90%."""


def outlook(  # noqa: PLR0913 - what is asked
    prediction: Prediction,
    told: Interruptions,
    *,
    draws: int = 1000,
    seed: int = 0,
    deadline: Seconds | None = None,
    budget: Usd | None = None,
    rates_with_fewer: tuple[float, ...] = (),
) -> Outlook:
    """What interruptions do to a predicted run.

    Parameters
    ----------
    prediction : Prediction
        The run as it goes if nothing happens.
    told : Interruptions
        What may happen, and how checkpoints are written.
    draws : int
        How many lives of the run are drawn.
    seed : int
        Of all random numbers.
    deadline, budget : float, optional
        Time [s] and money [$] whose chances are wanted; those of `told.terms` by default.
    rates_with_fewer : tuple of float
        How fast the job goes on without one machine, two and so on, over its rate with all.
    """
    scenario = prediction.scenario
    latest = told.terms.deadline if deadline is None else deadline
    most = told.terms.budget if budget is None else budget
    run, intervals = _long_run(prediction, told, seed, rates_with_fewer)
    drawn = lives(run, draws=draws, seed=seed)
    price, cost = _price(prediction), scenario.cost
    ended = np.isfinite(drawn.finish)
    spent = float(drawn.finish[ended].sum())
    struck = {cause: float(count[ended].sum()) for cause, count in drawn.interruptions.items()}
    causes = {cause: count / max(1, int(ended.sum())) for cause, count in struck.items()}
    finish, parts = _quantiles(drawn.finish), _shares(drawn, ended)
    life = life_of(run, parts, sum(causes.values()))
    stores, unpriced = cost_of_stores(scenario, life, drawn.finish)
    paid = (
        None
        if price is None
        else stores
        + bills(run, drawn, price=price, purchase=cost.purchase, provisioning=cost.provisioning)
    )
    return Outlook(
        name=scenario.name,
        seed=seed,
        run=run,
        plain=run.work,
        saving=run.saving,
        intervals=intervals,
        finish=finish,
        bill=None if paid is None else _quantiles(paid),
        parts=parts,
        between=spent / sum(struck.values()) if sum(struck.values()) else NEVER,
        causes=causes,
        unending=1.0 - float(ended.mean()),
        in_time=None if latest is None else float((drawn.finish <= latest).mean()),
        in_budget=None if most is None or paid is None else float((paid <= most).mean()),
        notes=told.notes,
        stores=None if unpriced else _quantiles(stores),
        unpriced=unpriced,
        prices=tuple(dated_prices(scenario)),
        write_doubt=WRITE_LOG_SD if told.checkpoints.blocking is None else 0.0,
    )


def _price(prediction: Prediction) -> UsdPerSecond | None:
    """What machines cost while they are held [$/s]: owned ones draw as in the undisturbed run."""
    cost = prediction.cost
    if cost.per_second is None or cost.electricity is None:
        return cost.per_second
    return cost.per_second + cost.electricity / prediction.timing.total_time


def finishes(prediction: Prediction, *, seed: int = 0) -> tuple[Seconds, ...]:
    """Equally likely times of a predicted run [s]: with its failures, or its step's doubt alone."""
    found = prediction.outlook
    if found is None:
        found = outlook(prediction, Interruptions(), draws=TRIAL_DRAWS, seed=seed)
    drawn = lives(found.run, draws=TRIAL_DRAWS, seed=seed)
    return tuple(float(time) for time in drawn.finish)


def _quantiles(values: NDArray[np.float64]) -> dict[float, float]:
    ordered = np.sort(values)
    # No interpolation: between a finite and an infinite time there is no number.
    places = [min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1) for q in QUANTILES]
    return {q: float(ordered[place]) for q, place in zip(QUANTILES, places, strict=True)}


def _shares(drawn: Lives, ended: NDArray[np.bool_]) -> dict[str, float]:
    whole = sum(float(drawn.parts[name][ended].sum()) for name in PARTS)
    if not whole:
        return dict.fromkeys(PARTS, 0.0)
    return {name: float(drawn.parts[name][ended].sum()) / whole for name in PARTS}


def _long_run(
    prediction: Prediction,
    told: Interruptions,
    seed: int,
    rates_with_fewer: tuple[float, ...],
) -> tuple[LongRun, Intervals | None]:
    scenario, given = prediction.scenario, told.checkpoints
    times = checkpoint_times(scenario, given, prediction.timing)
    blocking = times.blocking + times.dragged
    failures = _with_load(told.failures, times.load)
    machines = sum(group.count for group in scenario.cluster.groups)
    written = float(checkpoints(scenario))
    own = checkpoint_times(scenario, Checkpoints()).blocking if written else 0.0
    saving = Saving(
        interval=NEVER,
        blocking=blocking,
        durable=max(blocking, times.durable),
        near=times.near,
    )
    run = LongRun(
        work=prediction.timing.total_time - written * own,
        work_doubt=_doubt(prediction),
        machines=machines,
        saving=saving,
        failures=failures,
        spells=told.spells,
        rates_with_fewer=rates_with_fewer,
    )
    rate = _rate(run)
    if rate <= 0.0 or blocking <= 0.0:
        return run, None
    daly = min(run.work, float(best_checkpoint_interval(rate, blocking)))
    young = min(run.work, math.sqrt(2.0 * blocking / rate))
    best = _best_interval(run, daly, seed)
    every = scenario.job.train.checkpointing
    used = given.interval
    if used is None:
        step = prediction.timing.step_time.mean
        used = best if every is None else every.every_steps * step
    found = Intervals(used=used, young=young, daly=daly, simulated=best)
    return replace(run, saving=replace(run.saving, interval=used)), found


def _rate(run: LongRun) -> float:
    """Interruptions that cost work [/s]."""
    failures = run.failures
    rate = 0.0
    if failures is not None:
        rate = float(interruption_rate(run.machines, failures.per_machine, failures.per_job))
    return rate if run.spells is None else rate + 1.0 / float(np.mean(run.spells.up))


def _best_interval(run: LongRun, daly: Seconds, seed: int) -> Seconds:
    """The interval with the shortest mean time at the rates as given, one write at a time."""
    failures = None if run.failures is None else replace(run.failures, doubt=0.0)
    sure = replace(run, failures=failures, work_doubt=0.0)

    def mean(interval: Seconds) -> float:
        tried = replace(sure, saving=replace(run.saving, interval=interval))
        return float(lives(tried, draws=TRIAL_DRAWS, seed=seed).finish.mean())

    saving = run.saving
    least = (saving.durable if saving.near is None else saving.near.durable) - saving.blocking
    choices = sorted({min(run.work, max(least, daly * factor)) for factor in TRIED})
    return min(choices, key=mean)


def _doubt(prediction: Prediction) -> float:
    """Standard deviation of the logarithm of the run's time without interruptions."""
    band = prediction.interval.get("total_time_s", {})
    if "p10" not in band or "p90" not in band or band["p10"] <= 0.0:
        return 0.0
    return math.log(band["p90"] / band["p10"]) / (2.0 * _Z90)


def _with_load(failures: Failures | None, load: Seconds) -> Failures | None:
    if failures is None:
        return None
    return replace(failures, restart=replace(failures.restart, load=load))
