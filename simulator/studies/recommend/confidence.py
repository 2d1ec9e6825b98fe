"""How sure the winner is: the share of plausible worlds in which each choice is best.

Every choice's value is known to an interval. Drawn values are lognormal with its quantiles. Choices
that the same part of the same make limits err alike: what is not known of that part is not known
for both. All others err independently of one another. That is an assumption, and the report says
so: a shared error (of the model's arithmetic, say) would make the winner surer than this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from simulator.engine.quasi_random import MOST_DIMENSIONS, normal_points
from simulator.results.metrics import METRICS, Value
from simulator.schema.goal import Objective, Sense
from simulator.studies.recommend.choice import Choice, number
from simulator.studies.recommend.ranking import Worth
from simulator.uncertainty.components import P90

BITS: Final = 12
"""Logarithm of the number of worlds drawn."""
GPU: Final = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sureness:
    """How often each is best, in the order given, and how often the first keeps its limits.

    `limits` is None where no limit depends on a figure uncertain.
    """

    best: tuple[float, ...]
    limits: float | None = None


def cause(choice: Choice) -> tuple[object, ...]:
    """What limits a choice, and of which make: choices of one cause err alike."""
    limit = choice.figures.get("bottleneck")
    if limit == GPU:
        return (limit, choice.machine.gpu)
    return (limit, choice.machine.family or choice.machine.name)


def sureness(
    variants: Sequence[Sequence[Choice]],
    objective: Objective,
    worth: Worth,
    limits: Mapping[str, float],
    seed: int = 0,
) -> Sureness:
    """How often each of several machines is best, in whichever of its variants.

    Parameters
    ----------
    variants : sequence of sequences of Choice
        Variants of each machine, the winner the first of all; each cause after the first eleven
        shares a draw with an earlier one.
    objective, worth : Objective, Worth
        The goal.
    limits : mapping of str to float
        The most that each figure uncertain may be: deadline and budget.
    seed : int
        Of the draws.
    """
    choices = [choice for group in variants for choice in group]
    whose = [place for place, group in enumerate(variants) for _ in group]
    causes = list(dict.fromkeys(cause(choice) for choice in choices))
    places = {one: min(i, MOST_DIMENSIONS - 1) for i, one in enumerate(causes)}
    draws = normal_points(BITS, min(len(causes), MOST_DIMENSIONS), seed)
    values = np.array(
        [_values(choice, worth, draws[:, places[cause(choice)]]) for choice in choices]
    )
    signed = values if objective.sense is Sense.MAXIMIZE else -values
    held = np.array([_keeps(choice, limits, draws[:, places[cause(choice)]]) for choice in choices])
    signed = np.where(held, signed, -np.inf)
    first = np.asarray(whose)[np.argmax(signed, axis=0)[held.any(axis=0)]]
    wins = np.bincount(first, minlength=len(variants))
    share = wins / draws.shape[0]
    uncertain = any(name in choices[0].outcome.intervals for name in limits)
    return Sureness(best=tuple(share.tolist()), limits=float(held[0].mean()) if uncertain else None)


def chance_kept(choice: Choice, limits: Mapping[str, float]) -> float:
    """How probable it is that a choice keeps its limits; 1 where none is on a figure uncertain."""
    reach = [
        math.log(most / told) / deviation
        for told, deviation, most in _uncertain(choice, limits)
        if deviation > 0.0
    ]
    return float(ndtr(min(reach))) if reach else 1.0


def _uncertain(choice: Choice, limits: Mapping[str, float]) -> Iterator[tuple[float, float, float]]:
    """Figures uncertain with a limit: what is told, the deviation of its logarithm, the limit."""
    for name, most in limits.items():
        told, band = number(choice.figures, name), choice.outcome.intervals.get(name)
        if told is not None and band is not None and band["p10"] > 0.0 < told:
            yield told, math.log(band["p90"] / band["p10"]) / (2.0 * P90), most


def _values(choice: Choice, worth: Worth, draw: NDArray[np.float64]) -> NDArray[np.float64]:
    """The goal's value in each world, between and beyond its three points.

    Even in the logarithm where all three are positive.
    """
    middle = 0.0 if choice.value is None else choice.value
    fast, slow = (_at(choice, worth, side) for side in ("p10", "p90"))
    far = draw / P90
    if min(fast, middle, slow) > 0.0:
        ratio = np.where(draw >= 0.0, slow / middle, middle / fast)
        values: NDArray[np.float64] = middle * ratio**far
        return values
    return middle + far * np.where(draw >= 0.0, slow - middle, middle - fast)


def _at(choice: Choice, worth: Worth, side: str) -> float:
    """The goal's value where all that is uncertain is slow (p90) or fast (p10) together."""
    moved: dict[str, Value] = dict(choice.figures)
    for name, band in choice.outcome.intervals.items():
        moved[name] = _quantile(choice, name, band, side)
    value = worth(moved)
    return (choice.value or 0.0) if value is None else value


def _quantile(choice: Choice, name: str, band: Mapping[str, float], side: str) -> float:
    """A quantile as the figures count it: rates fall where times rise."""
    taken = {"p10": "p90", "p90": "p10"}[side] if name in _FALLS else side
    told, middle = number(choice.figures, name), band["p50"]
    return band[taken] if told is None or middle <= 0.0 else told * band[taken] / middle


_FALLS: Final = frozenset(metric.name for metric in METRICS if metric.better == "high")
"""Figures that fall where a run gets slower."""


def _keeps(
    choice: Choice, limits: Mapping[str, float], draw: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """In which worlds the choice keeps the limits."""
    kept = np.ones(draw.shape, dtype=np.bool_)
    for told, deviation, most in _uncertain(choice, limits):
        kept &= told * np.exp(deviation * draw) <= most
    return kept
