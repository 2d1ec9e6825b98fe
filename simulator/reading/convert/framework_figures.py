"""What software reaches of a device's rates in training, with its sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Final

from simulator.reading.convert.model_sections import SourcedTable
from simulator.reading.document import check, read_document
from simulator.reading.shipped import DATA
from simulator.schema.fields import Choice, TextField
from simulator.schema.workload.parallelism import Partition

_FILE: Final = DATA / "software.toml"
_ANY: Final = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitTable(SourcedTable):
    """How a framework spreads a model over devices unless it is told otherwise.

    What is left out is as in most frameworks.
    """

    framework: TextField
    """Framework."""
    partition: Annotated[Partition, Choice(Partition)] = Partition.UNIFORM
    """How it deals layers to stages."""
    reduce_scatter: bool = True
    """Whether a replica gets only its part of summed gradients where the optimizer is sharded."""
    overlap_sharded: bool = True
    """Whether it exchanges gradients beside the backward pass where the optimizer is sharded."""
    joined_projections: bool = False
    """Whether one product computes queries, keys and values, and one both halves of a gated MLP."""
    scores_all: bool = False
    """Whether its encoders score all positions in training, not only those that are masked."""
    fuses_attention: bool = False
    """Whether attention is one kernel, whatever the model of the library was trained with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareFile:
    """What software is worth on a device."""

    frameworks: list[TextField] = field(default_factory=list)
    """Frameworks that nothing was fitted to, which a scenario may name."""
    habit: list[HabitTable] = field(default_factory=list)
    """Of frameworks that differ from most."""


@cache
def _shipped() -> SoftwareFile:
    return check(SoftwareFile, read_document(_FILE))


def named_frameworks() -> frozenset[str]:
    """Frameworks that a scenario may name whatever its model; `any` is one of them."""
    return frozenset(_shipped().frameworks)


_USUAL: Final = HabitTable(framework=_ANY, source="most frameworks", date="2026-11-23")


def habit(framework: str) -> HabitTable:
    """How a framework spreads a model over devices unless it is told otherwise.

    Examples
    --------
    >>> habit("nanotron").partition.value, habit("megatron-lm").partition.value
    ('compute', 'uniform')
    """
    name = framework.lower()
    return next((own for own in _shipped().habit if own.framework == name), _USUAL)
