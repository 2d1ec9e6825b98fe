"""What interruptions make of a long run: the types of an answer. `runs.forecast` works it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from simulator.schema.hardware.price import Purchase
from simulator.schema.long_run import LongRun, Saving
from simulator.units import Seconds, Usd

USEFUL: Final = "useful work"
BLOCKED: Final = "checkpoints"
LOST: Final = "lost work"
REPAIR: Final = "waiting for a machine"
FEWER: Final = "fewer machines"
CAPACITY: Final = "waiting for capacity"
LOADING: Final = "load"
DETECTION: Final = "detection"
REPLACEMENT: Final = "replacement"
RESTARTING: Final = (DETECTION, REPLACEMENT, "start", LOADING)
PARTS: Final = (USEFUL, BLOCKED, LOST, *RESTARTING, REPAIR, CAPACITY, FEWER)
"""What the time of a run goes to, by name."""
QUANTILES: Final = (0.1, 0.5, 0.9, 0.99)


class Cause(IntEnum):
    """Why an attempt ends before the run does.

    `RETURNED`: a machine that was away joins again; `MOVED`: from machines on demand to spot ones.
    """

    MACHINE = 0
    JOB = 1
    PLANNED = 2
    CAPACITY = 3
    RETURNED = 4
    MOVED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Work between two checkpoints [s]: what is used, and what would be best by each account."""

    used: Seconds
    young: Seconds
    daly: Seconds
    simulated: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How a long run goes.

    `name` is the scenario's and `seed` that of the draws. `plain` is its time without interruptions
    and checkpoints [s]; `finish` and `bill` are quantiles of `QUANTILES` [s, $]; `parts` the share
    of each in the time of all draws together, which add up to 1, and `between` the mean time
    between interruptions [s]. Shares, bills and `between` leave out draws that never end;
    `unending` is their share. `stores` is what of that bill is for stores, at the same chances;
    None where a price is not known, which `unpriced` names: the bill has what is known. `prices`
    say whose prices are in it, where they hold and when they were read.
    `write_doubt` is the standard deviation of the logarithm of what a checkpoint takes. `ways` are
    all ways to buy the machines, held against each other. `finish_range` has the 80% interval of
    some of `finish` over zones whose spells have the same means, where only means are known [s].
    """

    name: str
    seed: int
    run: LongRun
    plain: Seconds
    saving: Saving
    intervals: Intervals | None
    finish: Mapping[float, Seconds]
    bill: Mapping[float, Usd] | None
    parts: Mapping[str, float]
    between: Seconds
    causes: Mapping[Cause, float]
    unending: float
    in_time: float | None = None
    in_budget: float | None = None
    notes: tuple[str, ...] = ()
    stores: Mapping[float, Usd] | None = None
    unpriced: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    write_doubt: float = 0.0
    ways: tuple[Way, ...] = ()
    finish_range: Mapping[float, tuple[Seconds, Seconds]] = field(default_factory=dict)

    @property
    def goodput(self) -> float:
        """Share of the time that is work which counts (ETTR)."""
        return self.parts[USEFUL]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to buy the machines of a long run, and how the run goes with it.

    `fallback`: spot machines, and machines on demand where there are none. `outlook` is None where
    nothing says when such machines can be had, and its bill where their price is not known;
    `missing` says what is. `cheapest` is the share of the draws in which this way has the lowest
    bill of all that have one; None where no other has.
    """

    purchase: Purchase
    fallback: bool = False
    outlook: Outlook | None = None
    missing: str = ""
    cheapest: float | None = None
