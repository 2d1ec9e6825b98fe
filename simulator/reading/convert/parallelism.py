"""The [parallelism] section as degrees of parallelism, and what must agree with it.

`PARALLEL_CHECKS` has the form of `checks.CHECKS`, which it is part of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.reading.convert.framework_figures import habit
from simulator.reading.resolved import Check, Draft, check_of
from simulator.reading.sections import ParallelismSection
from simulator.reading.tables import table_keys
from simulator.schema.workload.parallelism import ONE_DEVICE, Parallelism, Sharding

Problems: TypeAlias = Iterator[Problem]


def parallelism_of(draft: Draft) -> Parallelism:
    """How the model is spread over devices; each holds all of it where nothing is said."""
    given, usual = draft.parallelism, habit(draft.software.framework)
    if given is None:
        return ONE_DEVICE
    said = {name: getattr(given, name) for name in table_keys(ParallelismSection)}
    for name in ("partition", "reduce_scatter"):
        if said[name] is None:
            said[name] = getattr(usual, name)
    return Parallelism(**said)


def _whole_replicas(draft: Draft) -> Problems:
    there = draft.gpus * draft.hardware.count
    degrees = parallelism_of(draft)
    if draft.host is None or degrees.devices == 1 or there % degrees.devices == 0:
        return
    message = f"a replica of {degrees.devices} devices (tensor x pipeline x context) doesn't divide"
    hint = f"the job has {there} accelerators"
    yield draft.document.problem(("parallelism",), message, hint=hint, show=False)


def _interleave(draft: Draft) -> Problems:
    degrees = parallelism_of(draft)
    if degrees.interleave > 1 and degrees.pipeline == 1:
        hint = "leave it out, or give parallelism.pipeline"
        path = ("parallelism", "interleave")
        yield draft.document.problem(path, "is given, but there is one stage", hint=hint)


def _tensor_only(draft: Draft) -> Problems:
    degrees = parallelism_of(draft)
    for key in ("sequence", "async_tensor"):
        if getattr(degrees, key) and degrees.tensor == 1:
            hint = "leave it out, or give parallelism.tensor"
            path = ("parallelism", key)
            yield draft.document.problem(path, "is given without tensor parallelism", hint=hint)


def _shard_group(draft: Draft) -> Problems:
    degrees, path = parallelism_of(draft), ("parallelism", "shard_group")
    group = degrees.shard_group
    if group is None or draft.host is None:
        return
    if degrees.sharding is Sharding.NONE:
        hint = "leave it out, or give parallelism.sharding"
        yield draft.document.problem(path, "is given, but nothing is sharded", hint=hint)
    elif draft.ranks % group:
        hint = f"a divisor of {draft.ranks}, the replicas"
        yield draft.document.problem(path, "doesn't divide the replicas", hint=hint)


_REPLICA: Final = (
    "hardware.machine hardware.gpus hardware.count train.copies "
    "parallelism.tensor parallelism.pipeline parallelism.context"
)

PARALLEL_CHECKS: Final[tuple[Check, ...]] = (
    check_of(_whole_replicas, _REPLICA, reads="hardware software parallelism host gpus"),
    check_of(
        _interleave, "parallelism.interleave parallelism.pipeline", reads="software parallelism"
    ),
    check_of(
        _tensor_only,
        "parallelism.tensor parallelism.sequence parallelism.async_tensor",
        reads="software parallelism",
    ),
    check_of(
        _shard_group,
        f"{_REPLICA} parallelism.sharding parallelism.shard_group",
        reads="software parallelism host ranks",
    ),
)
