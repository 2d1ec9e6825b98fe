"""Why an alternative lost, in words, from its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from simulator.pipeline.stages.base import Resource
from simulator.results.binding import LIMITS, Part
from simulator.results.prediction import STARVED
from simulator.schema.goal import Objective
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number
from simulator.studies.recommend.limits import Rule
from simulator.studies.recommend.ranking import CLOSE, by_factor, ratio
from simulator.studies.search.outcome import Status

_BOUND: Final[Mapping[str, str]] = {
    Resource.GPU: "its accelerators are busy",
    Resource.CPU: "CPU-bound",
    Resource.STORAGE: "storage-bound",
    Resource.NETWORK: "network-bound",
    Resource.PCIE: "PCIe-bound",
    Resource.NVLINK: "bound by links between accelerators",
    Resource.HOST_MEMORY: "bound by host memory",
    Part.COMMUNICATION: "bound by communication",
    Part.BUBBLE: "held up by the pipeline's bubble",
    Part.CHECKPOINT: "held up by checkpoints",
    Part.WAITING: "held up by waiting",
}


def why(choice: Choice, winner: Choice, objective: Objective, rules: Sequence[Rule]) -> str:
    """Why a choice lost to the winner."""
    if not choice.is_predicted:
        return choice.outcome.reason or "its best case is worse than what others reach"
    parts = [*_limits(choice, rules), *_worse(choice, winner, objective), _limited(choice)]
    return "; ".join(part for part in parts if part)


def _limits(choice: Choice, rules: Sequence[Rule]) -> Iterator[str]:
    texts = {rule.name: rule.text for rule in rules}
    for name in choice.broken:
        yield f"breaks {texts.get(name, name)}"


def _worse(choice: Choice, winner: Choice, objective: Objective) -> Iterator[str]:
    """In the goal's own terms, and in time and money where they are not the goal."""
    if choice.value is not None and winner.value is not None:
        factor = ratio(objective, winner.value, choice.value)
        if factor is not None and factor > CLOSE:
            yield f"{by_factor(factor, 'worse')} by the goal"
        elif factor is not None and factor < 1.0 / CLOSE:
            yield f"{by_factor(1.0 / factor, 'better')} by the goal"
    for name, word in ((MONEY, "the cost"), (TIME, "as long")):
        if name == objective.metric:
            continue
        own, best = number(choice.figures, name), number(winner.figures, name)
        if own is not None and best and own > CLOSE * best:
            yield f"{own / best:.3g}x {word}"


def _limited(choice: Choice) -> str:
    """What limits it, and how busy that leaves the accelerators."""
    limit = str(choice.figures.get("bottleneck") or "")
    group, _, resource = limit.rpartition(".")
    busy = number(choice.figures, "accelerator_utilization")
    if resource not in LIMITS:
        return ""
    words = _BOUND[resource] + (f" at '{group}'" if group else "")
    if busy is None:
        return words
    if resource == Resource.GPU:
        return f"{words} {busy:.0%} of the time"
    return f"{words}: accelerators busy {busy:.0%}"


def is_cpu_bound(choice: Choice) -> bool:
    """Whether the processors that make batches hold the accelerators up."""
    stall = number(choice.figures, "step_split_s.data_stall")
    step = number(choice.figures, "step_time_s.mean")
    limit = str(choice.figures.get("bottleneck") or "").rpartition(".")[2]
    waits = stall is not None and step is not None and stall > STARVED * step
    return choice.outcome.status is Status.PREDICTED and waits and limit == Resource.CPU
