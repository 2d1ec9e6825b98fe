"""What an answer hangs on: each figure in doubt, and how far the run's time goes with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from simulator.engine.intervals import all_doubts, figures
from simulator.predict import question_of
from simulator.results.prediction import Prediction
from simulator.uncertainty.doubts import LARGEST, P90, Doubt, Rate

METRIC: Final = "total_time_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hanging:
    """One doubt alone: the run's time with the rate at its P90 and at its P10, as shares of it.

    `fast` is the change with the faster rate (at most 0, nearly always), `slow` with the slower.
    """

    doubt: Doubt
    fast: float
    slow: float

    @property
    def width(self) -> float:
        """How far the two lie apart."""
        return abs(self.slow - self.fast)


def hanging(prediction: Prediction) -> tuple[Hanging, ...]:
    """What is in doubt, what moves the run's time most first.

    Parameters
    ----------
    prediction : Prediction
        Of any job; nothing is simulated again, the closed form of intervals says what rates do.
    """
    question = question_of(prediction.scenario)
    doubts = _by_rate(all_doubts(question, prediction))
    if not doubts:
        return ()
    ends = [end for doubt in doubts for end in _ends(doubt)]
    speeds = {
        rate: np.array(
            [end if doubts[place // 2].rate is rate else 1.0 for place, end in enumerate(ends)]
        )
        for rate in dict.fromkeys(doubt.rate for doubt in doubts)
    }
    times = figures(question, prediction, speeds).get(METRIC)
    if times is None:
        return ()
    changes = np.asarray(times) / prediction.timing.total_time - 1.0
    found = [
        Hanging(doubt=doubt, fast=float(changes[2 * n]), slow=float(changes[2 * n + 1]))
        for n, doubt in enumerate(doubts)
    ]
    return tuple(sorted(found, key=lambda one: -one.width))


def _ends(doubt: Doubt) -> tuple[float, float]:
    """How many times as fast the rate is in one case of ten, and how slow in another."""
    far = math.exp(P90 * min(LARGEST, doubt.log_sd))
    return far, 1.0 / far


def _by_rate(doubts: Sequence[Doubt]) -> tuple[Doubt, ...]:
    """One doubt a rate: the widest one's name with the deviation of all of them."""
    found = []
    for rate in Rate:
        own = [doubt for doubt in doubts if doubt.rate is rate and doubt.log_sd > 0.0]
        if own:
            whole = math.sqrt(sum(doubt.log_sd**2 for doubt in own))
            found.append(replace(max(own, key=lambda doubt: doubt.log_sd), log_sd=whole))
    return tuple(found)
