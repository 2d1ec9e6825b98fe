"""What a search varies and what it looks for: the `[sweep]` and `[goal]` sections as plain data.

`files` fills them, `studies` use them. Keys are the dotted keys of a scenario file, metrics the
dotted names of `metrics`; both are checked where they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from simulator.schema.provenance import Source
from simulator.units import PerSecond, Seconds, Usd

Plain: TypeAlias = str | int | float | bool
"""A value as a scenario file may hold it; quantities are text with their unit."""


class Sampling(StrEnum):
    """How points are chosen among the axes."""

    GRID = "grid"
    """Every combination."""
    LATIN_HYPERCUBE = "latin-hypercube"
    """Random, with every axis covered evenly."""
    SOBOL = "sobol"
    """A scrambled Sobol sequence: even over all axes together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A continuous range of an axis, both ends included, in `unit` (empty: a bare number).

    `whole`: only whole numbers; `logarithmic`: even in the logarithm.
    """

    low: float
    high: float
    unit: str = ""
    whole: bool = False
    logarithmic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a search: several keys if they vary together (zipped).

    `values` are the points along it, each with one value for every key; empty where `span` gives
    a range to sample from.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[Plain, ...], ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Everything a sweep varies.

    `points` is how many are drawn where not every combination is; `where` an expression over
    metrics and keys that a candidate must meet (empty: none).
    """

    axes: tuple[Axis, ...]
    sampling: Sampling = Sampling.GRID
    points: int | None = None
    seed: int = 0
    where: str = ""


class Sense(StrEnum):
    """Which way a figure is better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A metric, or an expression over metrics, and which way it is better."""

    metric: str
    sense: Sense


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Interruptions of machines bought as spot capacity: how often one is taken away [1/s].

    `restart` is the billed time from an interruption to the first step after it [s].
    """

    rate: PerSecond
    restart: Seconds
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a configuration must keep; None and empty: no limit.

    `most_nodes` machines of the group that trains. `requires` are capabilities of the
    accelerator, such as cuda or bf16; `porting` are kinds of software to which the user would port
    the program, such as rocm. Margins are the share of RAM and of accelerator memory that
    must stay free.
    """

    deadline: Seconds | None = None
    budget: Usd | None = None
    regions: tuple[str, ...] = ()
    clouds: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    most_nodes: int | None = None
    requires: tuple[str, ...] = ()
    porting: tuple[str, ...] = ()
    ram_margin: float = 0.0
    gpu_memory_margin: float = 0.0
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the best configuration is, what it must keep, and among which it is looked for.

    `pins` are keys that the user wants kept at a value at any cost. `search` are axes in
    place of the usual ones; `spot` is None where only on-demand machines are considered.
    `alternatives` are ways to run the job that only the user knows the figures of, as settings by
    name.
    """

    objective: Objective
    limits: Limits = Limits()
    pins: Mapping[str, Plain] = field(default_factory=dict)
    search: tuple[Axis, ...] = ()
    spot: Spot | None = None
    alternatives: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
