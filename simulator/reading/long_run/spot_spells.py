"""Spells of spot capacity: recorded in a trace, or made up from their means."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.reliability import short_branch
from simulator.errors import InputError
from simulator.reading.table import Line, Table, read_table
from simulator.schema.long_run import Spells
from simulator.units import HOUR, Seconds

Pairs: TypeAlias = NDArray[np.float64]
"""A row of spells with machines over one of those without, in order."""
POINTS: Final = 400
"""Spells that stand for a distribution."""
PAIRS: Final = 20_000
"""Spells with machines of a made-up trace."""
TENDENCY: Final = 0.4
PERSISTENCE: Final = 0.9
"""Standard deviation of the logarithm of how much better or worse than usual a time is, and its
correlation from one spell to the next. Chosen among six pairs by replays of 20 recorded traces
(skypilot-org/spot-traces@221da1a, 2022-10 to 2023-08) of a job of 24 h: its 90% quantile is off by
6% in the median. With each trace left out of the choice it is 8%, within 10% for 13 of 20."""
WEEKS: Final = 28.0 * 24.0 * HOUR
"""How long a log is from which somebody has means of spells; recorded traces have 1 to 6 weeks."""
CUTS: Final = 9
ZONE_PAIRS: Final = (10, PAIRS // CUTS)
"""Stretches of one made-up trace that stand for zones, and the fewest and most spells in one."""
VARIATIONS: Final = (0.75, 1.0, 1.5)
ZONE_TENDENCY: Final = 0.6
"""What zones with the same means may be like otherwise: their variation over the usual one, and how
far their good and bad days are apart. Chosen among 15 by the score of the 80% intervals of P50 and
P90 of a job of 24 h on the same 20 traces; chosen on all traces but one, they hold 16 of the 20 P50
and 15 of the 20 P90 that were left out."""
SPELLS_APART: Final = (
    "spells are made up from their means, good and bad days together: means do not settle the "
    "tail, and plan goodput says how far zones with the same means differ; give a trace of your "
    "zone in spot.trace"
)
"""Of 20 recorded traces, each predicted from its means, 8 to 13 have their 90% quantile within 10%,
by what is lost in restarts; other laws of spells do no better."""
OTHER_WEEKS: Final = (
    "a trace says what its own weeks were like: in 19 recorded ones of 1 to 6 weeks the two halves "
    "differ by a factor of 1.7 in the median at the 90% quantile of a job of 24 h"
)
"""Replays of either half of the same traces, no time lost in restarts (2026-11-23)."""


@cache
def made_up(up: Seconds, down: Seconds, variation: float) -> Spells:
    """A made-up trace with these means of spells with and without machines [s], without notice.

    Good and bad days stay together: where spells with machines are long, those without are short.
    Its `others` are `WEEKS` each of zones with the same means, whose variation is one of
    `VARIATIONS` times this one.

    Examples
    --------
    >>> found = made_up(7200.0, 3600.0, 2.0)
    >>> round(sum(found.up) / len(found.up)), round(sum(found.down) / len(found.down))
    (7200, 3600)
    """
    random = np.random.default_rng(0)
    there, gone = _scaled(_days(variation, TENDENCY, random), up, down)
    pairs = int(np.clip(round(WEEKS / (up + down)), *ZONE_PAIRS))
    zones = [
        _scaled(days[:, PAIRS - cut * pairs :][:, :pairs], up, down)
        for factor in VARIATIONS
        for days in [_days(max(1.0, factor * variation), ZONE_TENDENCY, random)]
        for cut in range(1, CUTS + 1)
    ]
    others = Spells(
        up=tuple(time for zone, _ in zones for time in zone),
        down=tuple(time for _, zone in zones for time in zone),
        notice=0.0,
        in_order=True,
        zones=len(zones),
    )
    return Spells(up=there, down=gone, notice=0.0, in_order=True, others=others)


def _days(variation: float, tendency: float, random: np.random.Generator) -> Pairs:
    """Spells with machines, each with the one after it without, in good and bad days [1].

    The logarithm of the tendency to good days is a first-order autoregressive sequence.
    """
    shocks = random.standard_normal(PAIRS) * math.sqrt(1.0 - PERSISTENCE**2)
    course = np.empty(PAIRS)
    last = 0.0
    for number, shock in enumerate(shocks):
        last = course[number] = PERSISTENCE * last + float(shock)
    times = np.resize(np.asarray(hyperexponential(1.0, variation)), PAIRS)
    better = np.exp(tendency * course)
    return np.array([random.permutation(times) * better, random.permutation(times) / better])


def _scaled(pairs: Pairs, *means: Seconds) -> list[tuple[Seconds, ...]]:
    """Spells of both kinds with these means [s]."""
    return [
        tuple(float(time) for time in spells * mean / spells.mean())
        for spells, mean in zip(pairs, means, strict=True)
    ]


def read_trace(path: Path) -> Spells:
    """Spells of a recorded trace, in its order.

    Parameters
    ----------
    path : pathlib.Path
        A CSV file with a row for each spell: ``hours``, its length, and ``available``, 1 where all
        machines of the job could be had and 0 where not.

    Raises
    ------
    InputError
        If it cannot be read, or has no spell of each kind.
    """
    table = read_table(path)
    problems = [
        table.about(column, "is missing", hint="columns: hours, available")
        for column in ("hours", "available")
        if column not in table.columns
    ]
    if problems:
        raise InputError(tuple(problems))
    up, down = list[float](), list[float]()
    for line in table.lines:
        there, time = _spell(table, line)
        if there and len(up) == len(down):
            up.append(time)
        elif there:
            up[-1] += time
        elif up and len(down) < len(up):
            down.append(time)
        elif down:
            down[-1] += time
    pairs = min(len(up), len(down))
    if not pairs:
        raise InputError((table.about("available", "has no spell with and one without machines"),))
    return Spells(up=tuple(up[:pairs]), down=tuple(down[:pairs]), notice=0.0, in_order=True)


def _spell(table: Table, line: Line) -> tuple[bool, Seconds]:
    """Whether machines could be had, and for how long [s]."""
    there = line.cells["available"]
    if there not in {"0", "1"}:
        raise InputError((table.problem(line, "available", "is neither 0 nor 1"),))
    try:
        hours = float(line.cells["hours"])
    except ValueError:
        hours = math.nan
    if not 0.0 < hours < math.inf:
        raise InputError((table.problem(line, "hours", "is no length of a spell"),))
    return there == "1", hours * HOUR


def hyperexponential(mean: Seconds, variation: float) -> tuple[Seconds, ...]:
    """Times that stand for a two-branch exponential distribution with balanced means.

    Half of them are of the short branch and stand for its probability by being that many; each
    branch is cut into parts of equal probability, and a part counts with its mean.

    Examples
    --------
    >>> times = hyperexponential(2.0, 2.0)
    >>> round(sum(times) / len(times), 6)
    2.0
    """
    short = float(short_branch(variation))
    many = round(POINTS * short)
    times = [*_exponential(mean / (2.0 * short), many)]
    if many < POINTS:
        times += _exponential(mean / (2.0 * (1.0 - short)), POINTS - many)
    scale = mean / float(np.mean(times))
    return tuple(time * scale for time in times)


def _exponential(mean: Seconds, parts: int) -> list[float]:
    """Means of the parts of equal probability of an exponential distribution."""
    edges = -np.log1p(-np.arange(parts) / parts)
    # The integral of x exp(-x) from an edge on is (1 + edge) exp(-edge).
    beyond = np.append((1.0 + edges) * np.exp(-edges), 0.0)
    return [mean * float(value) for value in parts * (beyond[:-1] - beyond[1:])]
