"""What the machines of a long run cost: whatever is held, and of the rest what a provider bills."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.equations.cost import block_time
from simulator.results.outlook import CAPACITY
from simulator.runs.progress import Array, Lives
from simulator.scenario.hardware.price import Purchase
from simulator.scenario.long_run import LongRun
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
