"""What exchanging gradients costs beside the bytes: agreement of the ranks, and shared devices.

Both are stated in the scenario, as figures of the software that hold for all models alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.equations import step
from simulator.physics.device_time import cost_model, uses_fitted_kernels
from simulator.pipeline.stages.allreduce import all_reduce_time, bucket_shares, gradient_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking, passing
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode
from simulator.terms import stated, term
from simulator.units import in_common


@dataclass(frozen=True, slots=True)
class Agree:
    """Ranks find out which gradients all of them have, pack and unpack them, once a step."""

    name: str = "agreement"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time that passes and uses nothing."""
        delay = scenario.job.train.exchange_delay
        if delay == 0.0 or not _exchanges(scenario):
            return ()
        return (passing(stated(exchange_delay=delay), Resource.CPU),)


@dataclass(frozen=True, slots=True)
class Share:
    """Kernels of the all-reduce take multiprocessors and bandwidth from compute beside them.

    The backward pass takes longer by a share of the communication that it hides.
    """

    name: str = "shared device"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream beyond those of the model alone."""
        share = scenario.job.train.exchange_contention
        time = cost_model(scenario).time
        if share == 0.0 or time is None or not _exchanges(scenario):
            return ()
        lost = term(
            step.contended,
            share=share,
            communication=all_reduce_time(scenario),
            before_last=1.0 - bucket_shares(scenario)[-1],
            backward=time.backward,
        )
        return (asking(lost, Resource.GPU, Path.COMPUTE),)


def _exchanges(scenario: Scenario) -> bool:
    """Whether several ranks with an accelerator each exchange gradients."""
    job = scenario.job
    known = job.model is not None and bool(np.any(np.asarray(gradient_bytes(scenario)) > 0.0))
    device = scenario.cluster.trainers.host.gpu is not None
    counted = uses_fitted_kernels(scenario)
    several = bool(in_common(scenario.ranks > 1))
    return job.mode is Mode.TRAIN and several and known and device and not counted
