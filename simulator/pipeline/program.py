"""The table of slots: what a step consists of, from reading samples to returning results.

To add a stage, write it in `simulator/pipeline/stages` and give it a slot here. A stage without a
slot is an error when this module is imported.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from simulator.pipeline import stages
from simulator.pipeline.stages.allreduce import AllReduce
from simulator.pipeline.stages.base import Actor, Entry, Per, Phase, Slot, StageDemands, ask
from simulator.pipeline.stages.bubble import Bubble
from simulator.pipeline.stages.checkpoint import Checkpoint
from simulator.pipeline.stages.collate import Collate
from simulator.pipeline.stages.compute import Backward, Forward, Update
from simulator.pipeline.stages.copy import Copy
from simulator.pipeline.stages.cpu_training import Fit
from simulator.pipeline.stages.decode import Decode
from simulator.pipeline.stages.decode_on_device import DecodeOnDevice
from simulator.pipeline.stages.exchange import (
    Exchange,
    GradientExchange,
    HiddenExchange,
    HiddenGradients,
)
from simulator.pipeline.stages.gradient_sync import Agree, Share
from simulator.pipeline.stages.offload import HostOptimizer
from simulator.pipeline.stages.program import Program
from simulator.pipeline.stages.read import Read
from simulator.pipeline.stages.receive import PinMemory
from simulator.pipeline.stages.result import Result
from simulator.pipeline.stages.send import Send
from simulator.pipeline.stages.slowest import Slowest, SlowestDevice
from simulator.pipeline.stages.write import Write
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode

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
"""What a worker does to make a batch; a device that waits for it stalls."""

_SENDING: Final[tuple[Slot, ...]] = (
    Slot(Send(), Actor.SENDER, Per.BATCH, Entry.DATA_STALL, forward_only=True),
)
"""What a machine that only makes batches does with them."""

USING: Final[tuple[Slot, ...]] = (
    Slot(PinMemory(), Actor.PIN_MEMORY, Per.BATCH, Entry.DATA_STALL, forward_only=True),
    Slot(Copy(), Actor.COPY_ENGINE, Per.BATCH, Entry.H2D, shown="h2d", forward_only=True),
    Slot(DecodeOnDevice(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(Fit(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(HiddenExchange(), Actor.COMMUNICATION_STREAM, Per.BATCH, Entry.COMMUNICATION),
    Slot(HiddenGradients(), Actor.COMMUNICATION_STREAM, Per.STEP, Entry.COMMUNICATION),
    Slot(Forward(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(Backward(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE),
    Slot(AllReduce(), Actor.COMMUNICATION_STREAM, Per.BUCKET, Entry.COMMUNICATION),
    Slot(Agree(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(Slowest(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(Exchange(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMMUNICATION),
    Slot(SlowestDevice(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER, after_late=True),
    Slot(Bubble(), Actor.COMPUTE_STREAM, Per.STEP, Entry.BUBBLE, shown="bubble"),
    Slot(GradientExchange(), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMMUNICATION, shown="gather"),
    Slot(Share(), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMPUTE),
    Slot(Update(), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMPUTE),
    Slot(HostOptimizer(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(Program(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(Result(), Actor.RESULT_ENGINE, Per.BATCH, Entry.OTHER, shown="d2h", forward_only=True),
)
"""What becomes of a batch, in this order."""

PREPARATION: Final[tuple[Slot, ...]] = (
    *MAKING,
    Slot(Write(), Actor.WORKER, Per.BATCH, Entry.DATA_STALL),
)
"""Data read, worked on and written back; nothing is trained."""

CHECKPOINTING: Final[tuple[Slot, ...]] = (
    Slot(Checkpoint(), Actor.WRITER, Per.CHECKPOINT, Entry.CHECKPOINT),
)
"""What happens at a checkpoint, while training waits."""

TRAINING: Final = (*MAKING, *USING)
"""Batches made where they are used."""

REMOTE: Final = (*MAKING, *_SENDING)
"""Batches made on other machines."""

STEP: Final = (*MAKING, *_SENDING, *USING, PREPARATION[-1], *CHECKPOINTING)
"""Every slot there is."""


def _without_slot(slots: Iterable[Slot]) -> Iterator[str]:
    """Stages that no slot names: files of them, and classes in files whose others have slots."""
    placed = {type(slot.stage) for slot in slots}
    modules = {found.__module__ for found in placed}
    for module in pkgutil.iter_modules(stages.__path__, f"{stages.__name__}."):
        if module.name not in modules and not module.name.endswith(".base"):
            yield module.name
    for name in sorted(modules):
        for found in vars(sys.modules[name]).values():
            own = getattr(found, "__module__", "") == name and hasattr(found, "demands")
            if own and found not in placed:
                yield f"{name}.{found.__name__}"


def check_slots(slots: tuple[Slot, ...]) -> None:
    """See that every stage has a slot, and that each bucket's slots follow what fills the buckets.

    Raises
    ------
    ImportError
        If a stage has none, since every solver would leave it out, or if the table is out of order.
    """
    lost = sorted(_without_slot(slots))
    if lost:
        msg = f"no slot in simulator/pipeline/program.py for {', '.join(lost)}"
        raise ImportError(msg)
    per = [slot.per for slot in slots]
    first, number = per.index(Per.BUCKET), per.count(Per.BUCKET)
    if set(per[first : first + number]) != {Per.BUCKET} or per[first - 1] is not Per.BATCH:
        msg = "slots per bucket stand together, behind the slot per batch that fills the buckets"
        raise ImportError(msg)


check_slots(STEP)

FILLS_BUCKETS: Final = STEP[[slot.per for slot in STEP].index(Per.BUCKET) - 1]
"""The slot whose work makes gradients ready, bucket by bucket."""


def demand_table(scenario: Scenario, phase: Phase) -> tuple[StageDemands, ...]:
    """What one batch of one rank asks for at every stage of the job's pipeline.

    Stages of making a batch stand there once for each group of machines that makes batches.
    """
    job = scenario.job
    if job.mode is Mode.PREPARE:
        return ask(PREPARATION, scenario, phase)
    if job.remote is None:
        return ask(TRAINING, scenario, phase)
    here = ask(MAKING, scenario, phase) if makes_own_batches(scenario) else ()
    away = ask(REMOTE, replace(scenario, at=job.remote.group), phase)
    return (*here, *away, *ask(USING, scenario, phase))


def worker_table(scenario: Scenario, phase: Phase) -> tuple[StageDemands, ...]:
    """The part of the demand table that workers do, without working out the rest."""
    job = scenario.job
    if job.mode is Mode.PREPARE:
        return ask(_by_workers(PREPARATION), scenario, phase)
    here = ask(_by_workers(MAKING), scenario, phase) if makes_own_batches(scenario) else ()
    if job.remote is None:
        return here
    there = replace(scenario, at=job.remote.group)
    return (*here, *ask(_by_workers(REMOTE), there, phase))


def _by_workers(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    return tuple(slot for slot in slots if slot.stream is Actor.WORKER)


def makes_own_batches(scenario: Scenario) -> bool:
    """Whether the machine that trains makes batches too."""
    return scenario.job.remote is None or bool(np.any(scenario.job.loader.workers))
