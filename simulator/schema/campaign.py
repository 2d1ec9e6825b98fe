"""Jobs that share a pool of machines: data types only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.units import Seconds


class Order(StrEnum):
    """Who is next: the first come, or the most urgent of those who wait. Nobody is stopped."""

    FIFO = "fifo"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledJob:
    """A job that comes `count` times, each time taking `machines` for a while.

    The first comes at `start`, the others `every` so often: regularly, or at `random`, where that
    is the mean. Of those who wait, the lowest `priority` is the most urgent. `takes` are equally
    likely times of one run [s].
    """

    name: str
    machines: int
    takes: tuple[Seconds, ...]
    count: int = 1
    start: Seconds = 0.0
    every: Seconds = 0.0
    random: bool = False
    priority: int = 0
