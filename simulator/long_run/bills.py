"""What a long run costs: machines as long as held or billed, and stores, stops included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from simulator.equations.cost import block_time
from simulator.long_run.progress import Array, Lives
from simulator.results.outlook import CAPACITY, LOST, USEFUL
from simulator.results.storage_bill import bill_of
from simulator.results.stores import Life, uses
from simulator.schema.hardware.price import Purchase
from simulator.schema.long_run import LongRun
from simulator.schema.scenario import Scenario
from simulator.units import Seconds, UsdPerSecond

BY_THE_HOUR: Final = frozenset({Purchase.ON_DEMAND, Purchase.SPOT})
"""Ways to buy hours of machines of which nobody pays for one that is gone."""


def bills(  # noqa: PLR0913 - what machines and how they are bought
    run: LongRun,
    drawn: Lives,
    *,
    price: UsdPerSecond | Array,
    on_demand: UsdPerSecond = 0.0,
    purchase: Purchase,
    provisioning: Seconds = 0.0,
) -> Array:
    """Bill of each life: machines of the job and the spares that stand by, as long as held.

    Spot machines are not held while they cannot be had. Those rented by the hour are not paid while
    they are away; those that are reserved or owned are. A capacity block is paid to its end.

    Parameters
    ----------
    run : LongRun
        With its number of machines and spares.
    drawn : Lives
        How long each life takes, and how long machines are away in it.
    price : float or array
        Of all machines of the job together, without spares, in each life [$/s].
    on_demand : float
        The same of machines bought on demand while no spot ones can be had [$/s].
    purchase : Purchase
        How their hours are bought.
    provisioning : float
        Billed before the run begins [s].

    Returns
    -------
    array
        Dollars; infinite for a life that never ends.
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


def life_of(run: LongRun, parts: Mapping[str, float], stops: float) -> Life:
    """What a store sees of a run: checkpoints, loads after stops, and work that is done again.

    Parameters
    ----------
    run : LongRun
        With the work between two checkpoints.
    parts : mapping
        Shares of the run's time.
    stops : float
        Mean number of interruptions; each loads a checkpoint once one is written.
    """
    useful = parts[USEFUL]
    again = 1.0 if useful <= 0.0 else (useful + parts[LOST]) / useful
    if math.isinf(run.saving.interval):
        return Life(checkpoints=0.0, again=again)
    return Life(checkpoints=again * run.work / run.saving.interval, loads=stops, again=again)


def cost_of_stores(scenario: Scenario, life: Life, finish: Array) -> tuple[Array, tuple[str, ...]]:
    """Bills of the stores of runs that end at different times.

    Returns
    -------
    tuple
        What of each bill is known [$], infinite where the run never ends; and the prices that are
        not known.
    """
    ended = np.isfinite(finish)
    bill = bill_of(scenario, uses(scenario, life), finish[ended] + scenario.cost.provisioning)
    found = np.full(finish.shape, math.inf)
    found[ended] = bill.known
    return found, bill.missing
