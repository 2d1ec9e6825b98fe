"""The accelerator swapped with the machine held fixed: from which one on the job starves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.errors import BrokenInvariant, NotModelled, PlanError
from simulator.physics.device_time import cost_model, uses_fitted_kernels
from simulator.physics.footprint import Verdict
from simulator.pipeline.stages.base import Resource
from simulator.predict import predict
from simulator.results.metrics import unstarved_rate
from simulator.results.prediction import STARVED, Prediction
from simulator.schema.scenario import Job, Scenario
from simulator.studies.changes.levers import Read
from simulator.studies.changes.whatif import Progress, reason_of
from simulator.studies.search.outcome import BugLog, log_bug
from simulator.units import PerSecond

KEY: Final = "hardware.gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One accelerator in the machine; `prediction` is None where `reason` says why there is none.

    `own`: it is the one that the machine has.
    """

    gpu: str
    own: bool = False
    prediction: Prediction | None = None
    reason: str = ""

    @property
    def possible(self) -> PerSecond:
        """Samples a second it would take if every batch were ready; 0 where it cannot run."""
        return (unstarved_rate(self.prediction) or 0.0) if self.prediction is not None else 0.0

    @property
    def starved(self) -> bool:
        """Whether it waits for data so much that the machine limits the job, not it."""
        if self.prediction is None:
            return False
        timing = self.prediction.timing
        return timing.split.data_stall >= STARVED * timing.step_time.mean

    @property
    def cpu_bound(self) -> bool:
        """Whether it is the machine's processors that it waits for."""
        return (
            self.starved
            and self.prediction is not None
            and self.prediction.timing.bottleneck.endswith(Resource.CPU)
        )

    @property
    def fits(self) -> bool | None:
        """Whether the job fits into its memory; None where what it needs is not known."""
        memory = None if self.prediction is None else self.prediction.memory
        known = None if memory is None else memory.known_verdict
        return None if known is None else known is not Verdict.NO


def generations(
    read: Read,
    gpus: Sequence[str],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    met: BugLog | None = None,
) -> tuple[Generation, ...]:
    """The job on the same machine with each accelerator, slowest one first, refused ones last.

    Where the steps of the job were measured, they are taken to change as the computed device time
    of its model does from one accelerator to the other.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    gpus : sequence of str
        Names of accelerators; the machine's own is added.
    seed : int
        Of all draws.
    progress : callable, optional
        Told the share that is done.
    met : Met, optional
        Where bugs of ours that accelerators meet are noted; without it the first one is raised.

    Raises
    ------
    NotModelled
        If the scenario uses no accelerator.
    """
    scenario = read({})
    own = scenario.cluster.trainers.host.gpu
    if own is None or own.emulated or scenario.cluster.trainers.gpus_per_host == 0:
        msg = "the scenario uses no accelerator that could be another one"
        raise NotModelled(msg)
    names = tuple(dict.fromkeys((own.name, *gpus)))
    found = []
    for number, name in enumerate(names, start=1):
        found.append(_generation(read, scenario, name, seed, met))
        if progress is not None:
            progress(number / len(names))
    return tuple(sorted(found, key=lambda one: (one.prediction is None, one.possible)))


def turning_point(found: Sequence[Generation]) -> Generation | None:
    """The slowest accelerator that waits for the processors; None if none does."""
    return next((one for one in found if one.cpu_bound), None)


def _generation(
    read: Read, scenario: Scenario, name: str, seed: int, met: BugLog | None
) -> Generation:
    gpu = scenario.cluster.trainers.host.gpu
    own = gpu is not None and gpu.name == name
    try:
        other = scenario if own else _carried(scenario, read({KEY: name}))
        prediction = predict(other, seed=seed, intervals=False)
    except PlanError as error:
        return Generation(gpu=name, own=own, reason=reason_of(error))
    except BrokenInvariant as error:
        return Generation(gpu=name, own=own, reason=log_bug(error, met))
    return Generation(gpu=name, own=own, prediction=prediction)


def _carried(before: Scenario, after: Scenario) -> Scenario:
    """The changed scenario with its measured steps as much longer as the computed ones are."""
    times = after.job.step_times
    if times is None or uses_fitted_kernels(after):
        return after
    was, now = _computed(before), _computed(after)
    if was is None or now is None:
        msg = "its steps were measured, and no model says what they take elsewhere"
        raise NotModelled(msg)
    seconds = tuple(time * now / was for time in times.seconds)
    jobs = tuple(replace(job, step_times=replace(times, seconds=seconds)) for job in after.jobs)
    return replace(after, jobs=jobs)


def _computed(scenario: Scenario) -> float | None:
    """Device time of a batch by the model alone [s]; None where the model says nothing of it."""
    job: Job = replace(scenario.job, step_times=None)
    if job.model is None:
        return None
    found = cost_model(replace(scenario, jobs=(job,))).time
    total = None if found is None else float(found.total)
    return total or None
