"""What a device does in a step, added up in closed form: every slot on its streams, in turn.

The floors of a search and the estimate both ask here. They differ in how long they take a demand to
be: `time_of` says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from simulator.equations.step import exposed_communication
from simulator.pipeline.program import FILLS_BUCKETS
from simulator.pipeline.stages.base import Actor, Demand, Per, StageDemands
from simulator.units import Real, Seconds

SERIAL_STREAMS: Final = frozenset({Actor.COMPUTE_STREAM, Actor.RESULT_ENGINE})
"""Streams that a device works through one after another."""

TimeOf: TypeAlias = Callable[[Demand], Seconds | Real]
"""How long a demand takes by itself [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStep:
    """What the device does for each batch, once a step, and waits for of the buckets' exchange [s].

    Copies to the device are not among it: they may pass beside it.
    """

    per_batch: Seconds | Real
    per_step: Seconds | Real
    exposed: Seconds | Real

    def of(self, batches: Real) -> Seconds | Real:
        """A step of so many batches [s]."""
        return batches * self.per_batch + self.per_step + self.exposed


def device_step(
    stages: Sequence[StageDemands],
    time_of: TimeOf,
    shares: Callable[[], Sequence[float]],
    last: Real = 1.0,
) -> DeviceStep:
    """Add up the slots of a device's serial streams, and what buckets expose.

    Parameters
    ----------
    stages : sequence of StageDemands
        The demand table.
    time_of : callable
        How long a demand takes by itself [s].
    shares : callable
        Gives the buckets' parts of the gradients; asked only where buckets are exchanged.
    last : float or array
        Size of a step's last batch over a full one, beside whose work buckets are exchanged [1].
    """
    serial = [stage for stage in stages if stage.actor in SERIAL_STREAMS]
    return DeviceStep(
        per_batch=_total(serial, Per.BATCH, time_of),
        per_step=_total(serial, Per.STEP, time_of),
        exposed=_exposed(stages, time_of, shares, last),
    )


def _total(stages: Iterable[StageDemands], per: Per, time_of: TimeOf) -> Real:
    own = (stage for stage in stages if stage.slot.per is per)
    return sum((time_of(demand) for stage in own for demand in stage.demands), 0.0)


def _exposed(
    stages: Sequence[StageDemands],
    time_of: TimeOf,
    shares: Callable[[], Sequence[float]],
    last: Real,
) -> Real:
    """Exchange of buckets that the work which fills them cannot hide [s]."""
    whole: Real = 0.0
    for stage in stages:
        if stage.slot.per is Per.BUCKET:
            for demand in stage.demands:
                whole = np.maximum(whole, time_of(demand))
    if not np.any(whole):
        return 0.0
    filling = [stage for stage in stages if stage.slot is FILLS_BUCKETS]
    hiding = _total(filling, Per.BATCH, time_of)
    parts = shares()
    window = (1.0 - parts[0]) * hiding * np.minimum(1.0, last)
    return exposed_communication(whole, window, parts[-1] * whole)
