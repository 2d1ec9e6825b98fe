"""The step program: the table of slots, its ledger, and the limits of the model.

To add a stage, write its class in a module of `simulator/pipeline/stages` and give it a slot here.
A stage without a slot is an error when this module is imported.

The ledger has the time of a rank by slot, a line for each slot that its device executes. Lines of
an entry add up to it, and `equations.step.step_time` of the entries is the step. A rank records all
its time, the running slot included, so that there is no remainder.

A scenario that the model does not cover is refused with the reason.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from simulator.errors import NotModelled, StepProgramError
from simulator.physics.device_time import Evidence, evidence_of
from simulator.physics.transformer import has_kernels, of_tokens
from simulator.pipeline import stages
from simulator.pipeline.stages.base import Actor, Entry, Per, Phase, Slot, StageDemands, ask
from simulator.pipeline.stages.communication import (
    AllReduce,
    Exchange,
    GradientNegotiation,
    SmContention,
)
from simulator.pipeline.stages.compute import (
    CpuTraining,
    DecodeOnDevice,
    DevicePass,
    HostOptimizer,
    Launch,
    StepOverhead,
)
from simulator.pipeline.stages.input import (
    Collate,
    Copy,
    Decode,
    PinMemory,
    Read,
    Result,
    Send,
    Write,
)
from simulator.pipeline.stages.waiting import Bubble, Checkpoint, SlowDeviceWait, StragglerWait
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.schema.transformers import Transformer
from simulator.units import Seconds

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
    Slot(Launch(), Actor.MAIN_THREAD, Per.BATCH, Entry.DATA_STALL, forward_only=True),
    Slot(DecodeOnDevice(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(CpuTraining(), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(
        Exchange("hidden exchange", hidden=True),
        Actor.COMMUNICATION_STREAM,
        Per.BATCH,
        Entry.COMMUNICATION,
    ),
    Slot(
        Exchange("hidden gradients", once=True, hidden=True),
        Actor.COMMUNICATION_STREAM,
        Per.STEP,
        Entry.COMMUNICATION,
    ),
    Slot(DevicePass("forward"), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE, forward_only=True),
    Slot(DevicePass("backward"), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMPUTE),
    Slot(AllReduce(), Actor.COMMUNICATION_STREAM, Per.BUCKET, Entry.COMMUNICATION),
    Slot(GradientNegotiation(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(StragglerWait(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER),
    Slot(Exchange("exchange"), Actor.COMPUTE_STREAM, Per.BATCH, Entry.COMMUNICATION),
    Slot(SlowDeviceWait(), Actor.COMPUTE_STREAM, Per.STEP, Entry.OTHER, after_late=True),
    Slot(Bubble(), Actor.COMPUTE_STREAM, Per.STEP, Entry.BUBBLE, shown="bubble"),
    Slot(
        Exchange("gradient exchange", once=True),
        Actor.COMPUTE_STREAM,
        Per.STEP,
        Entry.COMMUNICATION,
        shown="gather",
    ),
    Slot(SmContention(), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMPUTE),
    Slot(DevicePass("optimizer"), Actor.COMPUTE_STREAM, Per.STEP, Entry.COMPUTE),
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
    """Yield the names of the stages in `simulator.pipeline.stages` that have no slot."""
    placed = {type(slot.stage) for slot in slots}
    for info in pkgutil.iter_modules(stages.__path__, f"{stages.__name__}."):
        if info.name.endswith(".base"):
            continue
        for stage in vars(importlib.import_module(info.name)).values():
            defined = getattr(stage, "__module__", "") == info.name and hasattr(stage, "demands")
            if defined and stage not in placed:
                yield stage.__name__


def check_slots(slots: tuple[Slot, ...]) -> None:
    """Check that every stage has a slot, and that bucket slots follow the slot that fills them.

    Raises
    ------
    StepProgramError
        If a stage has no slot, or if the table is out of order.
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

    Stages that prepare a batch occur once for each group of machines that prepares batches.
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
    """Return the part of the demand table that workers execute; the rest is not computed."""
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
    """Return True if the training machines prepare batches themselves."""
    return scenario.job.remote is None or bool(np.any(scenario.job.input.workers))


DEVICE_STREAMS: Final = frozenset(
    {
        Actor.COPY_ENGINE,
        Actor.COMPUTE_STREAM,
        Actor.COMMUNICATION_STREAM,
        Actor.RESULT_ENGINE,
    }
)
"""Streams of a device; their slots are on its rank's timeline."""

DATA: Final = "data"
"""Line: data stall, at any slot of making a batch."""
OTHER_RANKS: Final = "other ranks"
"""Line: waiting for ranks that exchange gradients, or end an epoch, later."""

LINES: Final[Mapping[str, Entry]] = {
    DATA: Entry.DATA_STALL,
    **{slot.name: slot.entry for slot in USING if slot.stream in DEVICE_STREAMS},
    OTHER_RANKS: Entry.OTHER,
    **{slot.name: slot.entry for slot in CHECKPOINTING},
}
"""Lines of a ledger with their entries of the step."""

_NUMBERS: Final = {name: number for number, name in enumerate(LINES)}

DATA_LINE: Final = _NUMBERS[DATA]
OTHER_RANKS_LINE: Final = _NUMBERS[OTHER_RANKS]


def line_of(slot: Slot) -> int:
    """Return the index of the ledger line of a slot."""
    return _NUMBERS[slot.name]


class Ledger:
    """Time of a rank so far, by line [s]; `hidden` is communication that overlapped with compute.

    Each record begins at the end of the last one, so that all lines add up to the elapsed time.
    `line` is the index of the running line.
    """

    __slots__ = ("hidden", "line", "spent", "until")

    def __init__(self) -> None:
        self.spent = [0.0] * len(LINES)
        self.hidden = 0.0
        self.until = 0.0
        self.line = DATA_LINE

    def add(self, line: int, seconds: Seconds, until: Seconds) -> None:
        """Add `seconds` that end at `until` to a line."""
        self.spent[line] += seconds
        self.until = until

    def totals(self, now: Seconds) -> tuple[float, ...]:
        """Return the time of all lines up to `now`, followed by hidden communication [s]."""
        spent = self.spent.copy()
        spent[self.line] += now - self.until
        return (*spent, self.hidden)


OWN_WORK: Final = (Entry.DATA_STALL, Entry.H2D, Entry.COMPUTE)
"""Entries without waiting for other ranks."""


def by_line(totals: Sequence[float]) -> dict[str, Seconds]:
    """Return the time of each line of a ledger by name [s], without hidden communication."""
    return dict(zip(LINES, totals, strict=False))


def entries(lines: Mapping[str, Seconds]) -> dict[str, Seconds]:
    """Return the time of each ledger entry [s]: the arguments of `equations.step.step_time`."""
    found = {str(entry): 0.0 for entry in Entry}
    for name, seconds in lines.items():
        found[LINES[name]] += seconds
    return found


def check_modelled(scenario: Scenario) -> None:
    """Raise an error for a scenario that the model does not cover.

    Raises
    ------
    NotModelled
        For combinations of machines and jobs that the model does not cover, and for a neural
        network on CPU cores of unknown rate without a measured step time.
    """
    name = scenario.name
    job, trainers = scenario.job, scenario.cluster.trainers
    if trainers.count > 1 and job.copies > 1:
        msg = (
            f"{name}: several machines that train, each several jobs, are not modelled; set "
            "hardware.count = 1"
        )
        raise NotModelled(msg)
    if trainers.gpus_per_host and trainers.gpus_per_host % job.copies:
        msg = (
            f"{name}: {trainers.gpus_per_host} accelerators cannot be shared equally by "
            f"{job.copies} jobs"
        )
        raise NotModelled(msg)
    if job.parallelism.splits_model:
        reason = next(_not_spread(scenario), None)
        if reason is not None:
            msg = f"{name}: a model spread over several accelerators is not modelled {reason}"
            raise NotModelled(msg)
    if trainers.host.gpu is None and _needs_device(scenario):
        model = "" if job.model is None else job.model.name
        msg = (
            f"{name}: no rate is known at which these cores compute '{model}' in "
            f"{job.train.precision}; give model.step_times measured there, or train.precision = "
            "fp32, which is computed for the kinds of processors that are known"
        )
        raise NotModelled(msg)


_ENDS: Final = 2
"""Chunks that may hold no layer: one with the embedding alone, one with the head."""


def _not_spread(scenario: Scenario) -> Iterator[str]:
    """Yield the reasons for which a model-parallel job cannot be predicted."""
    job, degrees = scenario.job, scenario.job.parallelism
    if job.mode is not Mode.TRAIN:
        yield f"with train.mode = {job.mode}"
    if job.step_times is not None:
        yield "from model.step_times: they don't tell compute from exchange"
    if not isinstance(job.model, Transformer) or not of_tokens(job.model):
        yield "but for transformers over tokens: families bert, gpt, llama and moe"
    elif job.software.kernels is None or not job.software.kernels.of_layers:
        yield (
            f"for the framework '{job.software.framework}' on this accelerator: no kernel "
            "figures were fitted to it; docs/internals/spread.md lists those there are"
        )
    elif not has_kernels(scenario):
        yield (
            f"in {job.train.precision}: no kernel figures were fitted to it; allowed: bf16, fp16, "
            "fp8, fp4, tf32, fp32"
        )
    elif job.model.depth + _ENDS < degrees.pipeline * degrees.interleave:
        yield "with more stages, or chunks of them, than layers, embedding and head"
    host = scenario.cluster.trainers.host
    if degrees.offload_optimizer and host.memory_bandwidth is None:
        yield (
            f"with parallelism.offload_optimizer on {host.name}: the bandwidth of its memory is "
            "not known"
        )


def _needs_device(scenario: Scenario) -> bool:
    """Return True if the model's time is unknown without an accelerator."""
    job = scenario.job
    if job.model is None or job.mode is Mode.PREPARE or job.model.cpu_seconds > 0.0:
        return False
    return evidence_of(scenario) is Evidence.NONE
