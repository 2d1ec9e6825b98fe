"""Candidates of parallelism: degrees that a search tries, and the first split that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from simulator.errors import InputError, NotModelled
from simulator.physics.footprint import Verdict, memory_fit
from simulator.records import dataclass
from simulator.schema.goal import Plain
from simulator.schema.scenario import Scenario
from simulator.schema.training import Sharding
from simulator.uncertainty.scenario import with_uncertainties

Degrees = dict[str, Plain]
"""Degrees of parallelism."""

MIN_TOKENS: Final = 8192
"""Tokens of a part of a sample: shorter ones are not worth an exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Dimensions of a model that limit parallelism: layers, tokens of a sample, experts of a layer.

    `experts` is 0 for dense models.
    """

    depth: int
    tokens: int = 0
    experts: int = 0


def ways(gpus: int, machines: int, shape: Shape, batch: int) -> Iterator[Degrees]:
    """Yield degrees of parallelism as settings of a scenario.

    Fully sharded data parallelism over all accelerators; tensor parallelism by powers of two within
    a machine, with state sharded over the replicas; pipelines with the largest tensor parallelism
    and half of it. That order is the first take-away of Narayanan et al., "Efficient Large-Scale
    Language Model Training on GPU Clusters Using Megatron-LM", https://arxiv.org/abs/2104.04473:
    tensor parallelism up to the size of a machine, pipelines across machines. Long samples are
    split (context parallelism), and experts are distributed over replicas, each with a few degrees.

    Parameters
    ----------
    gpus, machines : int
        Accelerators per machine, and number of machines.
    shape : Shape
        Dimensions of the model.
    batch : int
        Samples per step over all ranks, an upper bound on the number of replicas.
    """
    devices = gpus * machines
    for tensor, pipeline in _cuts(gpus, machines, shape):
        for context in _contexts(gpus // tensor, shape):
            replicas = devices // (tensor * pipeline * context)
            whole = replicas * tensor * pipeline * context == devices
            if not whole or replicas > batch or devices == 1:
                continue
            yield from (
                _way(tensor, pipeline, context, expert, sharding)
                for expert in _experts(replicas * context, gpus, shape)
                for sharding in _shardings(tensor, pipeline, replicas * context)
            )


def _cuts(gpus: int, machines: int, shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield pairs of tensor and pipeline parallelism."""
    widest = max(_powers(gpus), default=1)
    for tensor in _powers(gpus):
        deep = tensor in (widest, widest // 2)
        most = min(shape.depth, gpus * machines // tensor) if deep else 1
        yield from ((tensor, stages) for stages in _powers(most) if shape.depth % stages == 0)


def _contexts(most: int, shape: Shape) -> Iterator[int]:
    yield from (
        parts for parts in _powers(most) if parts == 1 or shape.tokens >= parts * MIN_TOKENS
    )


def _experts(most: int, gpus: int, shape: Shape) -> Iterator[int]:
    possible = [n for n in _powers(min(most, shape.experts)) if shape.experts % n == 0]
    within = [n for n in possible if n <= gpus]
    yield from sorted({1, *within[-1:], *possible[-1:]})


def _shardings(tensor: int, pipeline: int, sharers: int) -> Iterator[Sharding]:
    """Return the state to shard: all, unless a pipeline would gather it repeatedly."""
    if sharers == 1:
        yield Sharding.NONE
        return
    if pipeline == 1:
        yield Sharding.PARAMETERS
    if tensor * pipeline > 1:
        yield Sharding.OPTIMIZER


def _way(tensor: int, pipeline: int, context: int, expert: int, sharding: Sharding) -> Degrees:
    """Return the settings of these degrees, with rarely used ones only if above 1."""
    way: Degrees = {
        "parallelism.tensor": tensor,
        "parallelism.pipeline": pipeline,
        "parallelism.sharding": sharding.value,
    }
    if tensor > 1:
        way["parallelism.sequence"] = True
    if context > 1:
        way["parallelism.context"] = context
    if expert > 1:
        way["parallelism.expert"] = expert
    return way


def _powers(most: int) -> tuple[int, ...]:
    return tuple(2**k for k in range(most.bit_length()))


TextSettings = Mapping[str, str]

_SHARDED_STATE: Final[TextSettings] = {"parallelism.sharding": "parameters"}
_RECOMPUTED: Final[tuple[TextSettings, ...]] = (
    {"train.recompute": "selective"},
    {"train.recompute": "full", "train.recompute_share": "0.5"},
    {"train.recompute": "full"},
)
"""Amounts of recomputation in increasing order: attention, every second layer, all layers."""


def splits_by_simplicity(scenario: Scenario) -> Iterator[TextSettings]:
    """Yield settings that split the model over devices, the simplest first.

    Without a split; with state sharded over all devices (FSDP, ZeRO-3); with increasing
    recomputation; with layers split over the devices of a machine, and pipelines over increasingly
    many machines.
    """
    group = scenario.cluster.trainers
    yield {}
    yield _SHARDED_STATE
    yield from _recomputed(_SHARDED_STATE)
    if group.gpus_per_host <= 1:
        return
    stages = 1
    while stages <= group.count:
        split = {
            "parallelism.tensor": str(group.gpus_per_host),
            "parallelism.sequence": "true",
            "parallelism.pipeline": str(stages),
            "parallelism.sharding": "optimizer",
            "train.accumulation": str(4 * stages),
        }
        yield {key: value for key, value in split.items() if value != "1"}
        yield from _recomputed(split)
        stages *= 2


def _recomputed(spread: TextSettings) -> Iterator[TextSettings]:
    return ({**spread, **again} for again in _RECOMPUTED)


def first_that_fits(
    scenario: Scenario, read: Callable[[TextSettings], Scenario]
) -> tuple[TextSettings, bool]:
    """Return the settings of the simplest split of the model that fits, and true if one fits.

    Parameters
    ----------
    scenario : Scenario
        Job without changes.
    read : callable
        Returns the job with some settings.
    """
    for settings in splits_by_simplicity(scenario):
        try:
            fit = memory_fit(with_uncertainties(read(settings)))
        except (InputError, NotModelled):
            # A degree that does not divide this model's heads or layers.
            continue
        if fit is None or fit.verdict is Verdict.YES:
            return settings, True
    return {}, False
