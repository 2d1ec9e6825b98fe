"""Decode and augment one batch on the CPU."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.batch import decode_work
from simulator.equations.cpu import core_cost, speed_ratio
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario
from simulator.schema.workload.loader import CostBasis, Preparation
from simulator.schema.workload.train import Mode
from simulator.terms import term
from simulator.units import Real


@dataclass(frozen=True, slots=True)
class Decode:
    """A worker turns the bytes of each sample into an array, and augments it."""

    name: str = "decode"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of this machine."""
        work = scenario.job.preprocessing
        if work.where is Preparation.BEFOREHAND and scenario.job.mode is not Mode.PREPARE:
            return ()
        asked = term(
            decode_work,
            batch_size=scenario.job.train.batch_size,
            decode=work.decode,
            augment=work.augment,
            scale=core_scale(scenario),
        )
        return (asking(asked, Resource.CPU, Path.CORES, threads=scenario.producer_threads),)


def core_scale(scenario: Scenario) -> Real:
    """Core-seconds of this machine that one stated second of preprocessing takes."""
    work = scenario.job.preprocessing
    pool = scenario.site.host.cpu
    scale: Real = 1.0
    if work.basis is CostBasis.VCPU:
        scale = core_cost(1.0, pool.capacity, pool.threads)
    if work.coremark_per_vcpu is not None and pool.coremark is not None:
        scale = scale / speed_ratio(pool.coremark / pool.threads, work.coremark_per_vcpu)
    return scale
