"""The step program: the table of slots, from reading samples to returning results.

To add a stage, write its class in a module of `simulator/pipeline/stages` and give it a slot here.
A stage without a slot is an error when this module is imported.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from simulator.errors import StepProgramError
from simulator.pipeline import stages
from simulator.pipeline.stages.base import Actor, Entry, Per, Phase, Slot, StageDemands, ask
from simulator.pipeline.stages.communication import (
    AllReduce,
    Exchange,
    GradientExchange,
    GradientNegotiation,
    HiddenExchange,
    HiddenGradients,
    SmContention,
)
from simulator.pipeline.stages.compute import (
    Backward,
    CpuTraining,
    DecodeOnDevice,
    Forward,
    HostOptimizer,
    StepOverhead,
    Update,
)
from simulator.pipeline.stages.input import Collate, Decode, Read, Send, Write
from simulator.pipeline.stages.transfer import Copy, PinMemory, Result
from simulator.pipeline.stages.waiting import Bubble, Checkpoint, SlowDeviceWait, StragglerWait
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode

MAKING: Final[tuple[Slot, ...]] = (
    Slot(
        Read(),
        Actor.WORKER,
        Per.BATCH,
        Entry.DATA_STALL,
        forward_only=True,
        reads=True,
        by_sample=True,
    ),
    Slot(Decode(), Actor.WORKER, Per.BATCH, Entry.DATA_STALL, forward_only=True, by_sample=True),
    Slot(Collate(), Actor.WORKER, Per.BATCH, Entry.DATA_STALL, forward_only=True),
)
"""Making of a batch by a worker; a device that waits for it has a data stall."""

_SENDING: Final[tuple[Slot, ...]] = (
    Slot(Send(), Actor.SENDER, Per.BATCH, Entry.DATA_STALL, forward_only=True),
)
"""Sending of batches from machines that only make them."""

USING: Final[tuple[Slot, ...]] = (
    Slot(PinMemory(), Actor.PIN_MEMORY, Per.BATCH, Entry.DATA_STALL, forward_only=True),
    Slot(Copy(), Actor.COPY_ENGINE, Per.BATCH, Entry.H2D, shown="h2d", forward_only=True),
    Slot(DecodeOnDevice(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(CpuTraining(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(HiddenExchange(), Actor.COMMUNICATION_STREAM, Per.BATCH, Entry.COMMUNICATION),
    Slot(HiddenGradients(), Actor.COMMUNICATION_STREAM, Per.STEP, Entry.COMMUNICATION),
    Slot(Forward(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(Backward(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE),
    Slot(AllReduce(), Actor.COMMUNICATION_STREAM, Per.BUCKET, Entry.COMMUNICATION),
    Slot(GradientNegotiation(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(StragglerWait(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(Exchange(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMMUNICATION),
    Slot(SlowDeviceWait(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER, after_late=True),
    Slot(Bubble(), Actor.COMPUTE_STREAM, Per.STEP, Entry.BUBBLE, shown="bubble"),
    Slot(GradientExchange(), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMMUNICATION, shown="gather"),
    Slot(SmContention(), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMPUTE),
    Slot(Update(), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMPUTE),
    Slot(HostOptimizer(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(StepOverhead(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(Result(), Actor.RESULT_ENGINE, Per.BATCH, Entry.OTHER, shown="d2h", forward_only=True),
)
"""Use of a batch, in order."""

PREPARATION: Final[tuple[Slot, ...]] = (
    *MAKING,
    Slot(Write(), Actor.WORKER, Per.BATCH, Entry.DATA_STALL),
)
"""Preprocessing of stored data, without training."""

CHECKPOINTING: Final[tuple[Slot, ...]] = (
    Slot(Checkpoint(), Actor.WRITER, Per.CHECKPOINT, Entry.CHECKPOINT),
)
"""A checkpoint, while training waits."""

TRAINING: Final = (*MAKING, *USING)
"""Batches made where they are used."""

REMOTE: Final = (*MAKING, *_SENDING)
"""Batches made on other machines."""

STEP: Final = (*MAKING, *_SENDING, *USING, PREPARATION[-1], *CHECKPOINTING)
"""All slots."""


def _without_slot(slots: Iterable[Slot]) -> Iterator[str]:
    """Yield the stages of `simulator.pipeline.stages` that no slot names."""
    placed = {type(slot.stage) for slot in slots}
    for info in pkgutil.iter_modules(stages.__path__, f"{stages.__name__}."):
        if info.name.endswith(".base"):
            continue
        for stage in vars(importlib.import_module(info.name)).values():
            defined = getattr(stage, "__module__", "") == info.name and hasattr(stage, "demands")
            if defined and stage not in placed:
                yield stage.__name__


def check_slots(slots: tuple[Slot, ...]) -> None:
    """Check that every stage has a slot, and that slots per bucket follow the one that fills them.

    Raises
    ------
    StepProgramError
        If a stage has none, or if the table is out of order.
    """
    missing = sorted(_without_slot(slots))
    if missing:
        msg = f"stage {', '.join(missing)} has no slot in simulator/pipeline/program.py"
        raise StepProgramError(msg)
    per = [slot.per for slot in slots]
    first, number = per.index(Per.BUCKET), per.count(Per.BUCKET)
    if set(per[first : first + number]) != {Per.BUCKET} or per[first - 1] is not Per.BATCH:
        msg = (
            "simulator/pipeline/program.py: slots per bucket must follow one another, directly "
            "behind the slot per batch that fills the buckets"
        )
        raise StepProgramError(msg)


check_slots(STEP)

FILLS_BUCKETS: Final = STEP[[slot.per for slot in STEP].index(Per.BUCKET) - 1]
"""The slot whose work makes gradients ready, bucket by bucket."""


def demand_table(scenario: Scenario, phase: Phase) -> tuple[StageDemands, ...]:
    """Return the demands of one batch of one rank at every stage of the job's pipeline.

    Stages that make a batch occur once per group of machines that makes batches.
    """
    job = scenario.job
    if job.mode is Mode.PREPARE:
        return ask(PREPARATION, scenario, phase)
    if job.remote is None:
        return ask(TRAINING, scenario, phase)
    here = ask(MAKING, scenario, phase) if makes_own_batches(scenario) else ()
    away = ask(REMOTE, replace(scenario, at=job.remote.name), phase)
    return (*here, *away, *ask(USING, scenario, phase))


def worker_table(scenario: Scenario, phase: Phase) -> tuple[StageDemands, ...]:
    """Return the part of the demand table that workers execute, without computing the rest."""
    job = scenario.job
    if job.mode is Mode.PREPARE:
        return ask(_by_workers(PREPARATION), scenario, phase)
    here = ask(_by_workers(MAKING), scenario, phase) if makes_own_batches(scenario) else ()
    if job.remote is None:
        return here
    there = replace(scenario, at=job.remote.name)
    return (*here, *ask(_by_workers(REMOTE), there, phase))


def _by_workers(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    return tuple(slot for slot in slots if slot.stream is Actor.WORKER)


def makes_own_batches(scenario: Scenario) -> bool:
    """Return True if the training machines make batches themselves."""
    return scenario.job.remote is None or bool(np.any(scenario.job.input.workers))
