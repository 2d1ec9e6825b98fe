"""What an attempt achieves before it ends: work done, work kept, and what a life comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.results.outlook import Cause
from simulator.schema.long_run import LongRun, Saving
from simulator.units import Seconds

Array: TypeAlias = NDArray[np.float64]
PATIENCE: Final = 10.0
"""A run that takes so many times its undisturbed time, beside pauses, is said never to end."""
PAUSES: Final = 100.0
"""As many typical pauses are waited for besides, so that a short run may wait for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """What the draws came to, an entry for each.

    `finish` is the time to the end (infinite: it never ends) and `parts` how it was spent, both
    [s]; `interruptions` says how often each was interrupted, by cause. `away` is how long machines
    were in repair or not yet replaced, the times of all of them added up, and `elsewhere` how long
    the job was on machines bought on demand because no spot ones could be had [s].
    """

    finish: Array
    parts: Mapping[str, Array]
    interruptions: Mapping[Cause, Array]
    away: Array
    elsewhere: Array


def undisturbed(run: LongRun, work: Array) -> Array:
    """Time for so much work with its checkpoints and without an interruption [s]."""
    return work + _marks(work, run.saving) * run.saving.blocking


def longest(run: LongRun, work: Array, pause: Seconds) -> Array:
    """When a run of so much work and of such pauses is said never to end [s]."""
    return PATIENCE * undisturbed(run, work) + PAUSES * pause


def goes_on(
    run: LongRun, clock: Array, done: Array, work: Array, latest: Array
) -> NDArray[np.bool_]:
    """Whether each of some draws may still end by its `latest` time.

    One that after a tenth of that time would not get there at 1.5 times its pace so far is given
    up, but not on spot capacity, whose waits may be as long.
    """
    in_time: NDArray[np.bool_] = clock < latest
    if run.spells is not None:
        return in_time
    return in_time & ((clock < 0.1 * latest) | (1.5 * done * latest >= work * clock))


def _marks(work: Array, saving: Saving) -> Array:
    """Checkpoints before so much work is done; none after its end."""
    return np.maximum(0.0, np.ceil(work / saving.interval - 1e-9) - 1.0)


def kept(run: LongRun, passed: Array, cause: NDArray[np.int_]) -> tuple[Array, Array]:
    """Work done in an attempt that is cut off, and what of it a checkpoint holds [s]."""
    saving = run.saving
    if np.isinf(saving.interval):
        progress, durable = passed, np.zeros_like(passed)
    else:
        period = saving.interval + saving.blocking
        whole = np.floor(passed / period)
        rest = np.minimum(passed - whole * period, saving.interval)
        progress = whole * saving.interval + rest
        durable = _durable(run.saving, passed, period)
        if saving.near is not None:
            late = saving.near.durable - saving.blocking
            close = np.floor(np.maximum(0.0, passed - late) / period) * saving.interval
            durable = np.where(leaves_near(run.saving, cause), np.maximum(close, durable), durable)
    notice = 0.0 if run.spells is None else run.spells.notice
    warned = (cause == int(Cause.CAPACITY)) & (notice >= saving.durable)
    saved = np.maximum(durable, progress - np.where(warned, saving.durable, 0.0))
    return progress, np.where(warned | is_announced(cause), saved, durable)


def is_announced(cause: NDArray[np.int_]) -> NDArray[np.bool_]:
    """Whether each of these waits until training has saved what it did."""
    moved = (cause == int(Cause.RETURNED)) | (cause == int(Cause.MOVED))
    told: NDArray[np.bool_] = (cause == int(Cause.PLANNED)) | moved
    return told


def _durable(saving: Saving, passed: Array, period: Seconds) -> Array:
    """Work that a checkpoint in the store holds [s]; it takes one write at a time."""
    late = saving.durable - saving.blocking
    stride = max(1.0, np.ceil(late / period - 1e-9)) * period
    work = stride / period * saving.interval
    return np.asarray(np.floor(np.maximum(0.0, passed - late) / stride) * work)


def leaves_near(saving: Saving, cause: NDArray[np.int_]) -> NDArray[np.bool_]:
    """Whether a nearer copy than the store's is left after each of these."""
    near = saving.near
    if near is None:
        return np.zeros(cause.shape, dtype=bool)
    # A job that moves to other machines leaves what they keep behind.
    here = is_announced(cause) & (cause != Cause.MOVED)
    stays: NDArray[np.bool_] = (cause == Cause.JOB) | here
    outlived: NDArray[np.bool_] = (cause == Cause.MACHINE) & near.outlives_machine
    return np.logical_or(stays, outlived)
