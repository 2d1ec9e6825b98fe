"""What stores cost over a run that is interrupted."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from simulator.results.outlook import LOST, USEFUL
from simulator.results.storage_bill import bill_of
from simulator.results.stores import Life, uses
from simulator.runs.progress import Array
from simulator.scenario.long_run import LongRun
from simulator.scenario.scenario import Scenario


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
