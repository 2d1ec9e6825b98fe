"""Sentences on a step that is bound by a part of it in which no resource is busy."""

from __future__ import annotations

from typing import Final

from simulator.pipeline.stages.base import Resource
from simulator.report.format.called import batch_called
from simulator.report.format.rounded import rate_known, share_known
from simulator.results.binding import Part, part_time
from simulator.results.metrics import waiting_for_ranks
from simulator.results.prediction import Prediction

_BOUND: Final = {
    Part.COMMUNICATION: "Communication-bound: exchange between the {device}s",
    Part.BUBBLE: "Pipeline-bound: waiting for other stages of the pipeline",
    Part.CHECKPOINT: "Checkpoint-bound: writing checkpoints",
    Part.WAITING: "Held up: waiting {cause}",
}
_NEXT: Final = {
    Part.COMMUNICATION: "communication",
    Part.BUBBLE: "the pipeline's bubble",
    Part.CHECKPOINT: "writing checkpoints",
    Part.WAITING: "waiting {cause}",
}
_ADVICE: Final = {
    Part.COMMUNICATION: "",
    Part.BUBBLE: " More micro-batches a step (train.accumulation) make that share smaller.",
    Part.CHECKPOINT: " Fewer checkpoints (train.checkpoint_every_steps) or a faster store help.",
    Part.WAITING: "",
}
IDLE: Final = 0.01
"""Utilization below which a resource is not worth naming."""
_LINKS: Final = (Resource.NETWORK, Resource.NVLINK, Resource.PCIE)
_CAUSES: Final = {
    "program": "for the training program (train.step_overhead)",
    "optimizer on the host": "for the optimizer on the host",
    "slowest device": "for the slowest device",
}
"""What is waited for, by the line of the ledger."""


def share(part: Part, prediction: Prediction) -> float:
    """Share of the mean step that a part takes."""
    timing = prediction.timing
    return part_time(part, timing.split) / timing.step_time.mean


def bound_by(part: Part, prediction: Prediction, device: str) -> str:
    """What binds, how much of a step it takes, the rate, and what would make it less."""
    timing = prediction.timing
    said = _BOUND[part].format(device=device, cause=_cause(prediction))
    batch = batch_called(prediction.scenario)
    computing = timing.accelerator_utilization
    work = "" if computing is None else f", and the {device}s compute {share_known(computing)}"
    return (
        f"{said} takes {share_known(share(part, prediction))} of a {batch}{work}; "
        f"{rate_known(prediction)} samples/s.{_links(part, prediction)}{_ADVICE[part]}"
    )


def _links(part: Part, prediction: Prediction) -> str:
    """How busy the links are where communication binds and their load is known."""
    used = prediction.timing.usage
    links = {name: used[name].busiest for name in _LINKS if name in used}
    fullest = max(links, key=lambda name: links[name], default=None)
    if part is not Part.COMMUNICATION or fullest is None or links[fullest] < IDLE:
        return ""
    return f" The fullest link, {fullest}, is {share_known(links[fullest])} busy."


def next_part(part: Part, prediction: Prediction) -> str:
    """A part that would bind next, with its share of a step."""
    said = _NEXT[part].format(cause=_cause(prediction))
    return (
        f"{said} ({share_known(share(part, prediction))} of a {batch_called(prediction.scenario)})"
    )


def _cause(prediction: Prediction) -> str:
    """What the devices wait for, beside data, exchange and checkpoints."""
    times = {stage: prediction.timing.ledger.get(stage, 0.0) for stage in _CAUSES}
    longest = max(times, key=lambda stage: times[stage])
    if times[longest] >= prediction.timing.split.other / 2.0:
        return _CAUSES[longest]
    if waiting_for_ranks(prediction) > 0.0:
        return "for one another"
    return "for results on their way back"
