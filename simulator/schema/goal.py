"""Axes and goals of searches: the sections ``[sweep]`` and ``[goal]``.

`reading.search` reads them, `studies` use them. Keys are the dotted keys of a scenario file,
metrics the dotted names of `metrics`; both are checked when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, TypeAlias

from simulator.records import dataclass
from simulator.schema.fields import (
    DEPENDS,
    DERIVED,
    Choice,
    CountField,
    CountOrZeroField,
    MoneyField,
    Number,
    Percent,
    RateField,
    TextField,
    TimeField,
    TimeOrZeroField,
)

Plain: TypeAlias = str | int | float | bool
"""A value as in a scenario file; quantities are text with their unit."""


class Sampling(StrEnum):
    """Selection of points among the axes."""

    GRID = "grid"
    """Every combination."""
    LATIN_HYPERCUBE = "latin-hypercube"
    """Random, with every axis covered evenly."""
    SOBOL = "sobol"
    """A scrambled Sobol sequence: even over all axes together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A continuous range of an axis, both ends included, in `unit` (empty: a plain number).

    `whole`: integers only; `logarithmic`: points are evenly spaced in the logarithm.
    """

    low: float
    high: float
    unit: str = ""
    whole: bool = False
    logarithmic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a search: one key, or several keys that vary together (zipped).

    `values` are the points along it, each with one value for every key; empty if `span` gives a
    range to sample from.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[Plain, ...], ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Axes of plan sweep: the section [sweep]."""

    sample: Annotated[Sampling, Choice(Sampling)] = Sampling.GRID
    """Every combination (grid), or points drawn evenly (latin-hypercube, sobol)."""
    points: CountField | None = None
    """Number of points drawn; required unless every combination is taken."""
    seed: CountOrZeroField = 0
    """Seed of the drawn points."""
    where: TextField = field(default="", metadata=DEPENDS)
    """Condition that candidates must meet, such as fits.gpu != 'no' and cost.usd_to_train < 500."""
    over: Mapping[str, object] = field(default_factory=dict)
    """Axes: dotted keys with a range, a list or a pattern, such as "input.workers" = "1..16"."""
    axes: tuple[Axis, ...] = field(default=(), metadata=DERIVED)
    """The axes that `over` describes."""


class Sense(StrEnum):
    """Direction in which a metric is better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A metric, or an expression over metrics, and the direction in which it is better."""

    metric: str
    sense: Sense


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Machines bought as spot capacity, which may be taken away."""

    interruptions: RateField
    """Interruptions of a machine, such as 0.05 /h."""
    restart: TimeOrZeroField
    """Billed time from an interruption to the first step after it, such as 5 min."""
    source: TextField
    """Source of these numbers."""
    date: TextField
    """Date of the source."""


NodesField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]
MarginField = Annotated[float, Percent(high=0.9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a configuration; None and empty: no limit."""

    deadline: TimeField | None = None
    """Longest time of the whole job, such as 12 h."""
    budget: MoneyField | None = None
    """Highest cost of the whole job, such as $500."""
    clouds: tuple[TextField, ...] = ()
    """Clouds to choose from; all by default."""
    regions: tuple[TextField, ...] = ()
    """Regions to choose from; all by default."""
    gpus: tuple[TextField, ...] = ()
    """Accelerators to choose from, by name or pattern; all by default."""
    nodes: NodesField | None = None
    """Most machines that train."""
    requires: tuple[TextField, ...] = ()
    """Features that the accelerator must have, such as cuda or bf16."""
    porting: tuple[TextField, ...] = ()
    """Software of accelerators to which the program would be ported, such as rocm or neuron; by
    default only accelerators are considered on which it runs unchanged."""
    ram_margin: MarginField = 0.0
    """Share of each machine's RAM that must stay free, such as 10%."""
    gpu_memory_margin: MarginField = 0.0
    """Share of each accelerator's memory that must stay free, such as 5%."""
    where: TextField = field(default="", metadata=DEPENDS)
    """Further condition on a configuration, such as utilization.gpu.mean > 0.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSection(Limits):
    """Objective and limits of plan recommend: the section [goal]."""

    maximize: TextField | None = None
    """A metric to maximize, such as cost.samples_per_usd, or an expression over metrics."""
    minimize: TextField | None = None
    """A metric to minimize, such as total_time_s, or an expression over metrics."""
    pins: dict[str, object] = field(default_factory=dict)
    """Keys fixed at a value at any cost; the report shows the cost of each."""
    search: dict[str, object] = field(default_factory=dict)
    """Axes instead of the default ones, as in sweep.over."""
    spot: Spot | None = None
    """Also consider spot capacity; only on-demand machines by default."""
    alternatives: dict[str, object] = field(default_factory=dict)
    """Other ways to run a CPU-bound job, by name: tables of dotted keys, such as "input.where" =
    "device" and "input.device_time" = "0.2 ms"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Objective, limits and search space of plan recommend.

    `pins` are keys that the user fixes at a value at any cost. `search` are axes instead of the
    default ones; `spot` is None if only on-demand machines are considered. `alternatives` are other
    ways to run the job, with figures that only the user knows, as settings by name.
    """

    objective: Objective
    limits: Limits = Limits()
    pins: Mapping[str, Plain] = field(default_factory=dict)
    search: tuple[Axis, ...] = ()
    spot: Spot | None = None
    alternatives: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
