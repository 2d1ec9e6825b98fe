"""What stores cost over a run that is interrupted."""

from __future__ import annotations

import math
from collections.abc import Mapping

from simulator.results.outlook import LOST, USEFUL
from simulator.results.storage_bill import bill_of
from simulator.results.stores import Life, uses
from simulator.scenario.long_run import LongRun
from simulator.scenario.scenario import Scenario
from simulator.units import Seconds, Usd


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


def cost_of_stores(
    scenario: Scenario, life: Life, finish: Mapping[float, Seconds]
) -> tuple[Mapping[float, Usd] | None, tuple[str, ...]]:
    """Bills of the stores by the chance of the time at which the run has ended.

    Returns
    -------
    tuple
        Bills [$], infinite where the run never ends, None where a price is not known; and the
        prices that are not known.
    """
    used = uses(scenario, life)
    found: dict[float, Usd] = {}
    for chance, time in finish.items():
        if math.isinf(time):
            found[chance] = math.inf
            continue
        bill = bill_of(scenario, used, time + scenario.cost.provisioning)
        if bill.total is None:
            return None, bill.missing
        found[chance] = bill.total
    return found, ()
