"""The pipeline: what each stage asks of which resource for one batch of one rank.

A stage says once what it demands, as amounts; solvers (`bounds`, `engine`) decide how long that
takes. The tuples below *are* the pipelines: a stage takes part by standing in one of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.scenario import Scenario
from simulator.stages.agree import Agree, Share
from simulator.stages.allreduce import AllReduce
from simulator.stages.base import Actor, Phase, Stage, StageDemands, ask
from simulator.stages.bubble import Bubble
from simulator.stages.checkpoint import Checkpoint
from simulator.stages.collate import Collate
from simulator.stages.compute import Backward, Forward, Update
from simulator.stages.copy import Copy
from simulator.stages.decode import Decode
from simulator.stages.decode_on_device import DecodeOnDevice
from simulator.stages.exchange import Exchange, GradientExchange
from simulator.stages.fit import Fit
from simulator.stages.offload import HostOptimizer
from simulator.stages.program import Program
from simulator.stages.read import Read
from simulator.stages.receive import Receive
from simulator.stages.result import Result
from simulator.stages.send import Send
from simulator.stages.slowest import Slowest, SlowestDevice
from simulator.stages.write import Write
from simulator.workload.train import Mode

MAKING: tuple[Stage, ...] = (Read(), Decode(), Collate())
"""What a worker does to make a batch."""

USING: tuple[Stage, ...] = (
    Receive(),
    Copy(),
    DecodeOnDevice(),
    Fit(),
    Forward(),
    Backward(),
    Exchange(),
    Bubble(),
    GradientExchange(),
    AllReduce(),
    Agree(),
    Share(),
    Slowest(),
    SlowestDevice(),
    Update(),
    HostOptimizer(),
    Program(),
    Result(),
)
"""What becomes of a batch; all-reduce and optimizer run once a step, after its last batch."""

TRAINING: tuple[Stage, ...] = (*MAKING, *USING)
"""Batches made where they are used."""

REMOTE: tuple[Stage, ...] = (*MAKING, Send())
"""Batches made on other machines."""

PREPARATION: tuple[Stage, ...] = (*MAKING, Write())
"""Data read, worked on and written back; nothing is trained."""

CHECKPOINTING: tuple[Stage, ...] = (Checkpoint(),)
"""What happens at a checkpoint, while training waits."""


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


def _by_workers(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(stage for stage in stages if stage.actor is Actor.WORKER)


def makes_own_batches(scenario: Scenario) -> bool:
    """Whether the machine that trains makes batches too."""
    return scenario.job.remote is None or bool(np.any(scenario.job.loader.workers))
