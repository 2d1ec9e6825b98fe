"""Where the evidence ends: what measured runs covered, and what of a scenario lies beyond.

Only what the prediction rests on counts: with a step time that somebody measured on the device,
neither the kind of accelerator nor the precision is in question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.compute.device_time import is_measured, is_timed
from simulator.confidence.doubts import Axis, Doubt, Rate, Reach, stretched
from simulator.confidence.provenance import Source
from simulator.scenario.scenario import Scenario
from simulator.scenario.workload.loader import LoaderKind
from simulator.scenario.workload.train import Mode

GPU: Final = "accelerator"
PRECISION: Final = "precision"
FRAMEWORK: Final = "framework"
ERA: Final = "software era"
LISTED: Final = (GPU, PRECISION, FRAMEWORK, ERA)
"""What is either covered or not; an `Axis` is covered between two values."""


SCALE: Final = frozenset({Axis.MACHINES, Axis.RANKS, Axis.EXCHANGING})
"""Axes along which another resource may become the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Things that were measured, and how much less is known of any other one.

    `log_sd` is the log deviation that anything not in `names` adds to `rate`.
    """

    kind: str
    names: frozenset[str]
    rate: Rate
    log_sd: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range that was measured, and how much less is known of `rate` beyond it."""

    reach: Reach
    rate: Rate
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What all evidence together covers."""

    listed: tuple[Listed, ...]
    spans: tuple[Span, ...]


def outside(scenario: Scenario, envelope: Envelope, widest: float = 0.0) -> tuple[Doubt, ...]:
    """A doubt, with a warning that names it, for everything that lies outside of the envelope.

    Parameters
    ----------
    scenario, envelope : Scenario, Envelope
        What is predicted, and what was measured.
    widest : float
        Log deviation of the least known rate of the scenario. On more devices than anyone
        measured that rate may be what limits, whatever the model says limits there.
    """
    return (*_unlisted(scenario, envelope.listed), *_beyond(scenario, envelope.spans, widest))


def _unlisted(scenario: Scenario, listed: Sequence[Listed]) -> Iterator[Doubt]:
    names = named(scenario)
    for one in listed:
        name = names.get(one.kind)
        if name is not None and name not in one.names:
            known = ", ".join(sorted(one.names)) or "none"
            yield Doubt(
                name=f"{one.kind} outside the evidence",
                rate=one.rate,
                log_sd=one.log_sd,
                source=one.source,
                warning=f"outside the evidence: {one.kind} {name} (measured: {known})",
            )


def _beyond(scenario: Scenario, spans: Sequence[Span], widest: float) -> Iterator[Doubt]:
    place = placed(scenario)
    for span in spans:
        reach, rate = span.reach, span.rate
        value = place.get(reach.axis)
        if value is not None and not reach.low <= value <= reach.high:
            far = stretched(0.0, (reach,), place)
            yield Doubt(
                name=f"{reach.axis} outside the evidence",
                rate=rate,
                log_sd=far,
                least=widest + far if reach.axis in SCALE and value > reach.high else 0.0,
                source=span.source,
                warning=(
                    f"outside the evidence: {reach.axis} {value:,.4g} "
                    f"(measured: {reach.low:,.4g} to {reach.high:,.4g})"
                ),
            )


def named(scenario: Scenario) -> Mapping[str, str]:
    """What a scenario computes on and with, as far as its device time is computed.

    The era is the major version of the framework, where the scenario names one.
    """
    gpu, job = scenario.cluster.trainers.host.gpu, scenario.job
    if gpu is None or not is_computed(scenario):
        return {}
    framework = job.software.framework.lower()
    names = {GPU: gpu.name, PRECISION: str(job.train.precision), FRAMEWORK: framework}
    era = job.software.version.partition(".")[0]
    return {**names, ERA: f"{framework} {era}"} if era else names


def placed(scenario: Scenario) -> Mapping[Axis, float]:
    """Where a scenario lies along each axis that its step depends on."""
    job, place = scenario.job, dict[Axis, float]()
    if scenario.cluster.trainers.count > 1:
        place[Axis.MACHINES] = float(scenario.cluster.trainers.count)
    if job.mode is Mode.TRAIN and scenario.ranks > 1:
        place[Axis.RANKS] = float(scenario.ranks)
        if job.model is not None:
            place[Axis.EXCHANGING] = float(scenario.ranks)
    if job.loader.workers > 0 and job.loader.kind is not LoaderKind.ACTORS:
        place[Axis.WORKERS] = float(job.loader.workers)
    if is_computed(scenario):
        place[Axis.BATCH] = float(job.train.batch_size)
        if job.model is not None:
            place[Axis.PARAMETERS] = float(job.model.parameters)
        if job.parallelism.tensor > 1:
            place[Axis.TENSOR] = float(job.parallelism.tensor)
        if job.parallelism.pipeline > 1:
            place[Axis.PIPELINE] = float(job.parallelism.pipeline)
    return place


def is_computed(scenario: Scenario) -> bool:
    """Whether the device's time comes from a roofline and not from a measured step."""
    return is_timed(scenario) and not is_measured(scenario)
