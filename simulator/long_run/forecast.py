"""Forecast of a long run: its end and its cost over many simulated runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.equations.cost import block_time
from simulator.equations.reliability import best_checkpoint_interval, interruption_rate
from simulator.long_run.attempts import Array, SimulatedRuns, simulate_runs
from simulator.pipeline.checkpoints import checkpoint_times
from simulator.records import dataclass
from simulator.results.cost import (
    StoreActivity,
    bill_of,
    listed_price,
    machines_price,
    price_spread,
    prices_of,
    uses,
)
from simulator.results.prediction import (
    CAPACITY,
    LOST,
    PARTS,
    QUANTILES,
    USEFUL,
    Cause,
    Intervals,
    Outlook,
    Prediction,
)
from simulator.schema.cost import Purchase
from simulator.schema.long_run import (
    Failures,
    Interruptions,
    LongRun,
    Saving,
)
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import P90, Rate
from simulator.units import Seconds, Usd, UsdPerSecond

BY_THE_HOUR: Final = frozenset({Purchase.ON_DEMAND, Purchase.SPOT})
"""Purchases by the hour, where a lost machine is no longer paid."""


def bills(  # noqa: PLR0913 - what machines and how they are bought
    run: LongRun,
    drawn: SimulatedRuns,
    *,
    price: UsdPerSecond | Array,
    on_demand: UsdPerSecond = 0.0,
    purchase: Purchase,
    provisioning: Seconds = 0.0,
) -> Array:
    """Return the cost of each simulated run: machines and spares, for the time they are held [$].

    Spot machines are not held during outages. Machines rented by the hour are not paid while they
    are in repair; reserved and owned ones are. A capacity block is paid to its end.

    Parameters
    ----------
    run : LongRun
        The run, with its number of machines and spares.
    drawn : SimulatedRuns
        Its simulated runs.
    price : float or array
        Price of all machines of the job together, without spares, in each run [$/s].
    on_demand : float
        Price of all on-demand machines that replace spot machines in outages [$/s].
    purchase : Purchase
        Purchase model of the machines.
    provisioning : float
        Billed time before the run begins [s].

    Returns
    -------
    array
        Cost of each run [$]; infinite for a run that never ends.
    """
    spares = None if run.failures is None else run.failures.spares
    held = run.machines + (0 if spares is None else spares.count)
    ended = np.isfinite(drawn.finish)
    time = np.where(ended, drawn.finish - drawn.parts[CAPACITY], np.inf)
    elsewhere = np.where(ended, drawn.elsewhere, 0.0)
    paid = time - elsewhere + provisioning
    if purchase is Purchase.CAPACITY_BLOCK:
        paid = np.asarray(block_time(paid))
    paid = held * paid
    if purchase in BY_THE_HOUR:
        paid = paid - np.where(ended, drawn.away, 0.0)
    whole = paid * price + held * elsewhere * on_demand
    return np.asarray(whole / run.machines, dtype=np.float64)


def store_activity(run: LongRun, parts: Mapping[str, float], stops: float) -> StoreActivity:
    """Return a run's use of a store: checkpoints, loads after interruptions, repeated work.

    Parameters
    ----------
    run : LongRun
        The run, with its checkpoint interval.
    parts : mapping
        Shares of the run's time.
    stops : float
        Mean number of interruptions; each loads a checkpoint once one is written.
    """
    useful = parts[USEFUL]
    again = 1.0 if useful <= 0.0 else (useful + parts[LOST]) / useful
    if math.isinf(run.saving.interval):
        return StoreActivity(checkpoints=0.0, again=again)
    return StoreActivity(
        checkpoints=again * run.work / run.saving.interval, loads=stops, again=again
    )


def cost_of_stores(
    scenario: Scenario, activity: StoreActivity, finish: Array
) -> tuple[Array, tuple[str, ...]]:
    """Return the cost of stores for runs that end at different times.

    Returns
    -------
    tuple
        Known part of each cost [$], infinite for a run that never ends; and the names of unknown
        prices.
    """
    ended = np.isfinite(finish)
    bill = bill_of(scenario, uses(scenario, activity), finish[ended] + scenario.cost.provisioning)
    found = np.full(finish.shape, math.inf)
    found[ended] = bill.known
    return found, bill.missing


INTERVAL_FACTORS: Final = tuple(float(factor) for factor in np.geomspace(1 / 16, 4.0, 13))
"""Multiples of Daly's interval among which the best one is looked for."""
TRIAL_DRAWS: Final = 200
TRIAL_STOPS: Final = 300.0
"""Interruptions, in the mean, of the part of a run by which
intervals are tried."""
ZONE_DRAWS: Final = 100
ZONE_QUANTILES: Final = (0.5, 0.9)
"""SimulatedRuns in each zone, and the quantiles of the end whose range over zones is reported."""
NEVER: Final = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSimulation:
    """A long run with its checkpoint interval and its simulated runs, without prices."""

    run: LongRun
    intervals: Intervals | None
    drawn: SimulatedRuns
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """Costs of all simulated runs [$]; None if no price is known.

    `stores` is the part of it for stores, as far as known; `unpriced` has the names of missing
    prices.
    """

    bills: Array | None
    stores: Array
    unpriced: tuple[str, ...]


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
    """Forecast a predicted run with interruptions.

    Parameters
    ----------
    prediction : Prediction
        The prediction of the run without interruptions.
    told : Interruptions
        Failures, outages, and settings of checkpoints.
    draws : int
        Number of simulated runs.
    seed : int
        Seed of all random numbers.
    deadline, budget : float, optional
        Deadline [s] and budget [$] whose probability is computed; those of `told.terms` by
        default.
    rates_with_fewer : tuple of float
        Speed of the job with one machine missing, two missing and so on, relative to all.
    """
    found = simulation_of(
        prediction, told, draws=draws, seed=seed, rates_with_fewer=rates_with_fewer
    )
    terms = replace(
        told.terms,
        deadline=told.terms.deadline if deadline is None else deadline,
        budget=told.terms.budget if budget is None else budget,
    )
    paid = paid_for(prediction, found)
    return summary(prediction, replace(told, terms=terms), found, paid)


def simulation_of(
    prediction: Prediction,
    told: Interruptions,
    *,
    draws: int,
    seed: int,
    rates_with_fewer: tuple[float, ...] = (),
) -> RunSimulation:
    """Return the simulated runs of a prediction; arguments are those of `outlook`."""
    run, intervals = _long_run(prediction, told, seed, rates_with_fewer)
    drawn = simulate_runs(run, draws=draws, seed=seed)
    return RunSimulation(run=run, intervals=intervals, drawn=drawn, seed=seed)


def paid_for(prediction: Prediction, found: RunSimulation) -> Paid:
    """Return the costs of simulated runs, with the purchase model of the scenario."""
    run, drawn, cost = found.run, found.drawn, prediction.scenario.cost
    activity = store_activity(run, _shares(drawn), sum(_causes(drawn).values()))
    stores, unpriced = cost_of_stores(prediction.scenario, activity, drawn.finish)
    price, on_demand = _prices(prediction, found), 0.0
    if run.outages is not None and run.outages.fallback:
        rent = machines_price(on_demand_instead(prediction.scenario))
        price, on_demand = (None if rent is None else price), rent or 0.0
    if price is None:
        return Paid(bills=None, stores=stores, unpriced=unpriced)
    machines = bills(
        run,
        drawn,
        price=price,
        on_demand=on_demand,
        purchase=cost.purchase,
        provisioning=cost.provisioning,
    )
    return Paid(bills=stores + machines, stores=stores, unpriced=unpriced)


def on_demand_instead(scenario: Scenario) -> Scenario:
    """Return the scenario with on-demand machines instead of spot machines."""
    spot = listed_price(scenario, scenario.cluster.trainers)
    region = scenario.cost.region if spot is None else spot.region
    cost = replace(scenario.cost, purchase=Purchase.ON_DEMAND, price=None, region=region)
    return replace(scenario, cost=cost)


def summary(
    prediction: Prediction, told: Interruptions, found: RunSimulation, paid: Paid
) -> Outlook:
    """Return quantiles, shares and probabilities over simulated runs."""
    scenario, run, drawn = prediction.scenario, found.run, found.drawn
    causes, latest, most = _causes(drawn), told.terms.deadline, told.terms.budget
    bill, ended = paid.bills, np.isfinite(drawn.finish)
    struck = sum(causes.values()) * int(ended.sum())
    bought = [scenario]
    if run.outages is not None and run.outages.fallback:
        bought.append(on_demand_instead(scenario))
    return Outlook(
        name=scenario.name,
        seed=found.seed,
        run=run,
        plain=prediction.timing.total_time,
        saving=run.saving,
        intervals=found.intervals,
        finish=_quantiles(drawn.finish),
        bill=None if bill is None else _quantiles(bill),
        parts=_shares(drawn),
        between=_between(run, float(drawn.finish[ended].sum()) / struck if struck else NEVER),
        causes=causes,
        unending=1.0 - float(ended.mean()),
        in_time=None if latest is None else float((drawn.finish <= latest).mean()),
        in_budget=None if most is None or bill is None else float((bill <= most).mean()),
        notes=told.notes,
        stores=None if paid.unpriced else _quantiles(paid.stores),
        unpriced=paid.unpriced,
        prices=prices_of(bought),
        write_doubt=max(
            (one.log_sd for one in scenario.uncertainties if one.rate is Rate.CHECKPOINT),
            default=0.0,
        ),
    )


def _between(run: LongRun, simulated: Seconds) -> Seconds:
    """Return the mean time between interruptions [s], at the rates as given.

    Runs at higher rates last longer and count more in the simulated mean, which is used where
    spares, outages or machines of their own rate decide.
    """
    failures = run.failures
    if run.outages is not None or failures is None:
        return simulated
    if failures.spares is not None or failures.lemons is not None:
        return simulated
    rate = _rate(run) + failures.planned
    return 1.0 / rate if rate > 0.0 else NEVER


def finish_range(found: RunSimulation) -> dict[float, tuple[Seconds, Seconds]]:
    """Return the 80% interval of quantiles of the end, over zones with the same mean outages.

    Empty if outage lengths come from a trace, or machines are not spot instances.
    """
    outages = found.run.outages
    if outages is None or outages.others is None:
        return {}
    zones = outages.others.zones
    others = replace(outages.others, notice=outages.notice, fallback=outages.fallback)
    run = replace(found.run, outages=others)
    finish = simulate_runs(run, draws=zones * ZONE_DRAWS, seed=found.seed).finish
    of_zones = [_quantiles(finish[zone::zones]) for zone in range(zones)]
    ranges = {q: _quantiles(np.array([one[q] for one in of_zones])) for q in ZONE_QUANTILES}
    return {q: (one[0.1], one[0.9]) for q, one in ranges.items()}


def _prices(prediction: Prediction, found: RunSimulation) -> Array | None:
    """Return the price of the held machines in each simulated run [$/s]; None if unknown.

    Owned machines use the power draw of the uninterrupted run. A varying price is drawn between the
    lowest and the highest seen, at the same quantile in all simulated runs of one seed.
    """
    cost, draws = prediction.cost, found.drawn.finish.size
    if cost.per_second is None:
        return None
    price = cost.per_second
    if cost.electricity is not None:
        price += cost.electricity / prediction.timing.total_time
    place = np.random.default_rng((found.seed, 1)).random(draws) - 0.5
    return np.asarray(price + place * price_spread(prediction.scenario), dtype=np.float64)


def _causes(drawn: SimulatedRuns) -> dict[Cause, float]:
    """Return the mean number of interruptions of a finished run, by cause."""
    ended = np.isfinite(drawn.finish)
    many = max(1, int(ended.sum()))
    return {cause: float(count[ended].sum()) / many for cause, count in drawn.interruptions.items()}


def finishes(prediction: Prediction, *, seed: int = 0) -> tuple[Seconds, ...]:
    """Return equally likely run times [s], with failures, or only with the uncertainty of steps."""
    found = prediction.outlook
    if found is None:
        found = outlook(prediction, Interruptions(), draws=TRIAL_DRAWS, seed=seed)
    drawn = simulate_runs(found.run, draws=TRIAL_DRAWS, seed=seed)
    return tuple(float(time) for time in drawn.finish)


def _quantiles(values: NDArray[np.float64]) -> dict[float, float]:
    ordered = np.sort(values)
    # No interpolation: it is undefined between a finite and an infinite time.
    places = [min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1) for q in QUANTILES]
    return {q: float(ordered[place]) for q, place in zip(QUANTILES, places, strict=True)}


def _shares(drawn: SimulatedRuns) -> dict[str, float]:
    ended = np.isfinite(drawn.finish)
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
    scenario, timing = prediction.scenario, prediction.timing
    usage = {name: use.mean for name, use in timing.usage.items()}
    times = timing.saving or checkpoint_times(scenario, usage)
    blocking, work, own = times.blocking + times.dragged, timing.total_time, None
    if timing.checkpoints:
        # Those of the prediction, evenly spaced, so that both agree on the time of the run.
        blocking = timing.split.checkpoint * prediction.total_steps / timing.checkpoints
        work -= timing.checkpoints * blocking
        own = _own_interval(prediction, work)
    run = LongRun(
        work=work,
        work_doubt=_doubt(prediction),
        machines=sum(group.count for group in scenario.cluster.groups),
        saving=Saving(
            interval=NEVER if own is None else own,
            blocking=blocking,
            durable=max(blocking, times.durable),
            near=times.near,
        ),
        failures=_with_load(told.failures, times.load),
        outages=told.outages,
        rates_with_fewer=rates_with_fewer,
    )
    rate = _rate(run)
    if rate <= 0.0 or blocking <= 0.0:
        return run, None
    daly = min(run.work, float(best_checkpoint_interval(rate, blocking)))
    young = min(run.work, math.sqrt(2.0 * blocking / rate))
    best = _best_interval(run, daly, TRIAL_STOPS / rate, seed)
    used = best if own is None else own
    found = Intervals(used=used, young=young, daly=daly, simulated=best)
    return replace(run, saving=replace(run.saving, interval=used)), found


def _own_interval(prediction: Prediction, work: Seconds) -> Seconds:
    """Return the training between two checkpoints of a prediction of `work` seconds of training."""
    scenario = prediction.scenario
    every, stated = scenario.job.train.checkpoint_every_steps, scenario.checkpoints.interval
    if stated is not None or every is None:
        return work if stated is None else stated
    return work * every / prediction.total_steps


def _rate(run: LongRun) -> float:
    """Return the rate of interruptions that lose work [/s]."""
    failures = run.failures
    rate = 0.0
    if failures is not None:
        rate = float(interruption_rate(run.machines, failures.per_machine, failures.per_job))
    if run.outages is None:
        return rate
    apart = float(np.mean(run.outages.up))
    return rate + 1.0 / (
        apart + (float(np.mean(run.outages.down)) if run.outages.fallback else 0.0)
    )


def _best_interval(run: LongRun, daly: Seconds, long: Seconds, seed: int) -> Seconds:
    """Return the checkpoint interval with the shortest mean run time [s].

    Candidates are multiples of `daly`; runs of at most `long` of work are simulated [s].
    """
    failures = None if run.failures is None else replace(run.failures, doubt=0.0)
    sure = replace(run, failures=failures, work_doubt=0.0, work=min(run.work, long))

    def mean(interval: Seconds) -> float:
        tried = replace(sure, saving=replace(run.saving, interval=interval))
        return float(simulate_runs(tried, draws=TRIAL_DRAWS, seed=seed).finish.mean())

    saving = run.saving
    least = (saving.durable if saving.near is None else saving.near.durable) - saving.blocking
    choices = sorted({min(run.work, max(least, daly * factor)) for factor in INTERVAL_FACTORS})
    return min(choices, key=mean)


def _doubt(prediction: Prediction) -> float:
    """Return the uncertainty (log standard deviation) of the uninterrupted run time."""
    band = prediction.interval.get("total_time_s", {})
    if "p10" not in band or "p90" not in band or band["p10"] <= 0.0:
        return 0.0
    return math.log(band["p90"] / band["p10"]) / (2.0 * P90)


def _with_load(failures: Failures | None, load: Seconds) -> Failures | None:
    if failures is None:
        return None
    return replace(failures, restart=replace(failures.restart, load=load))
