"""Defaults of the [parallelism] section, and what must agree with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.memo import cached
from simulator.reading.convert.framework_figures import habit
from simulator.reading.unresolved import Check, UnresolvedScenario
from simulator.schema.workload.parallelism import Parallelism, Sharding

Problems: TypeAlias = Iterator[Problem]


@cached()
def parallelism_of(stated: Parallelism, framework: str) -> Parallelism:
    """Fill in what the framework does unless it is told otherwise."""
    if not stated.sources:
        return stated
    usual = habit(framework)
    return replace(
        stated,
        partition=stated.partition if stated.states("partition") else usual.partition,
        reduce_scatter=stated.reduce_scatter
        if stated.states("reduce_scatter")
        else usual.reduce_scatter,
    )


def _whole_replicas(file: UnresolvedScenario) -> Problems:
    there = file.gpus * file.hardware.count
    degrees = file.parallelism
    if degrees.devices == 1 or there % degrees.devices == 0:
        return
    message = f"a replica of {degrees.devices} devices (tensor x pipeline x context) doesn't divide"
    hint = f"the job has {there} accelerators"
    yield file.problem(("parallelism",), message, hint=hint, show=False)


def _interleave(file: UnresolvedScenario) -> Problems:
    degrees = file.parallelism
    if degrees.interleave > 1 and degrees.pipeline == 1:
        hint = "leave it out, or give parallelism.pipeline"
        path = ("parallelism", "interleave")
        yield file.problem(path, "is given, but there is one stage", hint=hint)


def _tensor_only(file: UnresolvedScenario) -> Problems:
    degrees = file.parallelism
    for key in ("sequence", "async_tensor"):
        if getattr(degrees, key) and degrees.tensor == 1:
            hint = "leave it out, or give parallelism.tensor"
            path = ("parallelism", key)
            yield file.problem(path, "is given without tensor parallelism", hint=hint)


def _shard_group(file: UnresolvedScenario) -> Problems:
    degrees, path = file.parallelism, ("parallelism", "shard_group")
    group = degrees.shard_group
    if group is None:
        return
    if degrees.sharding is Sharding.NONE:
        hint = "leave it out, or give parallelism.sharding"
        yield file.problem(path, "is given, but nothing is sharded", hint=hint)
    elif file.ranks % group:
        hint = f"a divisor of {file.ranks}, the replicas"
        yield file.problem(path, "doesn't divide the replicas", hint=hint)


PARALLEL_CHECKS: Final[tuple[Check, ...]] = (
    _whole_replicas,
    _interleave,
    _tensor_only,
    _shard_group,
)
