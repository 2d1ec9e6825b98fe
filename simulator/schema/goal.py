"""What a search varies and what it looks for: the sections [sweep] and [goal].

`reading.search` reads them, `studies` use them. Keys are the dotted keys of a scenario file,
metrics the dotted names of `metrics`; both are checked where they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, TypeAlias

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
    """What plan sweep varies: the section [sweep]."""

    sample: Annotated[Sampling, Choice(Sampling)] = Sampling.GRID
    """Every combination (grid), or points drawn evenly (latin-hypercube, sobol)."""
    points: CountField | None = None
    """How many points are drawn; required unless every combination is taken."""
    seed: CountOrZeroField = 0
    """Seed of the drawn points."""
    where: TextField = field(default="", metadata=DEPENDS)
    """What a candidate must meet, such as fits.gpu != 'no' and cost.usd_to_train < 500."""
    over: Mapping[str, object] = field(default_factory=dict)
    """Axes: dotted keys with a range, a list or a pattern, such as "input.workers" = "1..16"."""
    axes: tuple[Axis, ...] = field(default=(), metadata=DERIVED)
    """The axes that `over` describes."""


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
    """Machines bought as spot capacity, which may be taken away."""

    interruptions: RateField
    """How often a machine is taken away, such as 0.05 /h."""
    restart: TimeOrZeroField
    """Billed time from an interruption to the first step after it, such as 5 min."""
    source: TextField
    """Who says so."""
    date: TextField
    """When it was said."""


NodesField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]
MarginField = Annotated[float, Percent(high=0.9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a configuration; None and empty: no limit."""

    deadline: TimeField | None = None
    """Most time the whole job may take, such as 12 h."""
    budget: MoneyField | None = None
    """Most the whole job may cost, such as $500."""
    clouds: tuple[TextField, ...] = ()
    """Clouds to choose from; all by default."""
    regions: tuple[TextField, ...] = ()
    """Regions to choose from; all by default."""
    gpus: tuple[TextField, ...] = ()
    """Accelerators to choose from, by name or pattern; all by default."""
    nodes: NodesField | None = None
    """Most machines that train."""
    requires: tuple[TextField, ...] = ()
    """What the accelerator must be capable of, such as cuda or bf16."""
    porting: tuple[TextField, ...] = ()
    """Software of accelerators that the program would be ported to, such as rocm or neuron; by
    default only accelerators are looked at that it runs on as it is."""
    ram_margin: MarginField = 0.0
    """Share of each machine's RAM that must stay free, such as 10%."""
    gpu_memory_margin: MarginField = 0.0
    """Share of each accelerator's memory that must stay free, such as 5%."""
    where: TextField = field(default="", metadata=DEPENDS)
    """What a configuration must meet besides, such as utilization.gpu.mean > 0.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSection(Limits):
    """What plan recommend looks for: the section [goal]."""

    maximize: TextField | None = None
    """A metric to make large, such as cost.samples_per_usd, or an expression over metrics."""
    minimize: TextField | None = None
    """A metric to make small, such as total_time_s, or an expression over metrics."""
    pins: dict[str, object] = field(default_factory=dict)
    """Keys kept at a value at any cost; the price of each is shown."""
    search: dict[str, object] = field(default_factory=dict)
    """Axes instead of the usual ones, as in sweep.over."""
    spot: Spot | None = None
    """Also consider spot capacity; only on-demand machines by default."""
    alternatives: dict[str, object] = field(default_factory=dict)
    """Other ways to run the job where its processors hold it up, by name: tables of dotted keys,
    such as "input.where" = "device" and "input.device_time" = "0.2 ms"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the best configuration is, what it must keep, and among which it is looked for.

    `pins` are keys that the user wants kept at a value at any cost. `search` are axes
    instead of the usual ones; `spot` is None where only on-demand machines are considered.
    `alternatives` are ways to run the job that only the user knows the figures of, as settings by
    name.
    """

    objective: Objective
    limits: Limits = Limits()
    pins: Mapping[str, Plain] = field(default_factory=dict)
    search: tuple[Axis, ...] = ()
    spot: Spot | None = None
    alternatives: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
