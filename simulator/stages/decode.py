"""Decode and augment one batch on the CPU."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.cpu import core_cost, speed_ratio
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource
from simulator.units import Real
from simulator.workload.loader import CostBasis, Preparation
from simulator.workload.train import Mode


@dataclass(frozen=True, slots=True)
class Decode:
    """A worker turns the bytes of each sample into an array, and augments it."""

    name: str = "decode"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of this machine."""
        work = scenario.job.preprocessing
        if work.where is Preparation.BEFOREHAND and scenario.job.mode is not Mode.PREPARE:
            return ()
        batch = scenario.job.train.batch_size
        scale = core_scale(scenario)
        return (
            Demand(
                resource=Resource.CPU,
                path=Path.CORES,
                amount=batch * (work.decode + work.augment) * scale,
                threads=scenario.maker_threads,
                equation="batch_size x (decode + augment) x core-seconds per stated second",
                inputs={
                    "batch_size": batch,
                    "decode [s]": work.decode,
                    "augment [s]": work.augment,
                    "core-seconds per stated second": scale,
                },
            ),
        )


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
