"""What a candidate has to compete with while it is worked out: those that were predicted before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.scenario.goal import Objective
from simulator.studies.pareto import may_beat
from simulator.studies.scoring import Criteria


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rivals:
    """Candidates of earlier rounds; goes to other processes as a pickle.

    `found` has a row of scores for each, by `objectives`; `top` and `margin` are as for
    `pareto.may_beat`.
    """

    objectives: tuple[Objective, ...]
    found: NDArray[np.float64]
    top: int | None = None
    margin: float = 0.0

    def beat(self, best: Mapping[str, float]) -> bool:
        """Whether a candidate that is no better than this need not be known."""
        least = np.array([Criteria(self.objectives).least(best)])
        return not may_beat(least, self.found, top=self.top, margin=self.margin)[0]
