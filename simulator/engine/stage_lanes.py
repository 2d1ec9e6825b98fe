"""The slots of a pipeline's stages in one steady step, for a trace.

The engine simulates a model that is spread over a pipeline on its slowest stage, with the bubble
as one wait. Its schedule says slot by slot what each stage does meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from simulator.compute.device_time import pipeline_of
from simulator.compute.schedule import Pipeline, Stretch, timelines
from simulator.compute.step import TrainingStep
from simulator.engine.recorder import Epoch
from simulator.pipeline.stages.exchange import step_of
from simulator.results.prediction import PIPELINE, Slice
from simulator.scenario.scenario import Scenario
from simulator.scenario.workload.parallelism import Parallelism
from simulator.units import Seconds, in_common

ALL_SHOWN: Final = 4
"""Stages of which all are shown; of longer pipelines the first, a middle one and the last."""


def stage_slices(scenario: Scenario, epoch: Epoch) -> Iterator[Slice]:
    """What stages of the pipeline do in the last step of the steady window; nothing without any."""
    degrees = scenario.job.parallelism
    if in_common(degrees.pipeline) == 1:
        return
    step = step_of(scenario)
    start = _begin(epoch)
    if step is None or start is None:
        return
    found = timelines(degrees.schedule, _as_late(step, degrees), int(step.micro_batches))
    for stage in _shown(len(found)):
        track = f"{PIPELINE} stage {stage + 1} of {len(found)}"
        for stretch in found[stage]:
            yield Slice(
                track=track,
                name=_name(stretch),
                start=start + stretch.start,
                length=stretch.length,
                step=epoch.last - 1,
                batch=None if stretch.slot is None else stretch.slot.micro_batch,
                process=PIPELINE,
            )


def _as_late(step: TrainingStep, degrees: Parallelism) -> Pipeline:
    """The pipeline with passes as long as those of the step's slowest stage are."""
    pipeline = pipeline_of(step, degrees)
    passes = [a + b for a, b in zip(pipeline.forward, pipeline.backward, strict=True)]
    slowest = max(passes) * pipeline.chunks
    late = float(step.forward + step.backward + step.exchange) / slowest
    return Pipeline(
        devices=pipeline.devices,
        forward=_times(late, pipeline.forward),
        backward=_times(late, pipeline.backward),
        weights=_times(late, pipeline.weights),
        send=late * pipeline.send,
    )


def _times(factor: float, lengths: Sequence[Seconds]) -> list[Seconds]:
    return [factor * length for length in lengths]


def _begin(epoch: Epoch) -> Seconds | None:
    """When the last steady step begins to compute [s from the epoch's start]."""
    starts = [s.start for s in epoch.slices if s.name == "forward" and s.step == epoch.last - 1]
    return min(starts, default=None)


def _shown(stages: int) -> tuple[int, ...]:
    return tuple(range(stages)) if stages <= ALL_SHOWN else (0, stages // 2, stages - 1)


def _name(stretch: Stretch) -> str:
    if stretch.slot is None:
        return "bubble"
    return "gradients of weights" if stretch.put_off else stretch.slot.kind.value
