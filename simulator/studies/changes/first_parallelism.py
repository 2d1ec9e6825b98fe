"""A way to spread a language model over its devices that fits into their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from simulator.errors import InputError, NotModelled
from simulator.physics.footprint import Verdict, memory_fit
from simulator.schema.scenario import Scenario

Settings = Mapping[str, str]

_SHARDED: Final[Settings] = {"parallelism.sharding": "parameters"}
_RECOMPUTED: Final[tuple[Settings, ...]] = (
    {"train.recompute": "selective"},
    {"train.recompute": "full", "train.recompute_share": "0.5"},
    {"train.recompute": "full"},
)
"""What is computed again, the least first: attention, every second layer, all."""


def candidates(scenario: Scenario) -> Iterator[Settings]:
    """Ways to spread the model, the simplest first.

    Every device holds all of it; its state is sharded over all (FSDP, ZeRO-3); ever more of the
    activations are computed again; layers are split over the devices of a machine, and cut into
    stages over more and more machines.
    """
    group = scenario.cluster.trainers
    yield {}
    yield _SHARDED
    yield from _recomputed(_SHARDED)
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


def _recomputed(spread: Settings) -> Iterator[Settings]:
    return ({**spread, **again} for again in _RECOMPUTED)


def first_that_fits(
    scenario: Scenario, read: Callable[[Settings], Scenario]
) -> tuple[Settings, bool]:
    """The simplest way to spread the model that fits, and whether one does.

    Parameters
    ----------
    scenario : Scenario
        The job as it stands.
    read : callable
        The same job with some settings.
    """
    for settings in candidates(scenario):
        try:
            fit = memory_fit(read(settings))
        except (InputError, NotModelled):
            # A degree that does not divide this model's heads or layers.
            continue
        if fit is None or fit.verdict is Verdict.YES:
            return settings, True
    return {}, False
