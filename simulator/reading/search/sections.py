"""The sections of a scenario file on a search: what varies, and what is looked for.

The grammar of axes and expressions stands in docs/search.md; `axes` and `expression` read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from simulator.schema.fields import (
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
from simulator.schema.goal import Sampling

NodesField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]
MarginField = Annotated[float, Percent(high=0.9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSection:
    """What plan sweep varies."""

    sample: Annotated[Sampling, Choice(Sampling)] = Sampling.GRID
    """Every combination (grid), or points drawn evenly (latin-hypercube, sobol)."""
    points: CountField | None = None
    """How many points are drawn; required unless every combination is taken."""
    seed: CountOrZeroField = 0
    """Seed of the drawn points."""
    where: TextField | None = None
    """What a candidate must meet, such as fits.gpu != 'no' and cost.usd_to_train < 500."""
    over: dict[str, object] = field(default_factory=dict)
    """Axes: dotted keys with a range, a list or a pattern, such as "input.workers" = "1..16"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTable:
    """Machines bought as spot capacity, which may be taken away."""

    interruptions: RateField
    """How often a machine is taken away, such as 0.05 /h."""
    restart: TimeOrZeroField
    """Billed time from an interruption to the first step after it, such as 5 min."""
    source: TextField
    """Who says so."""
    date: TextField
    """When it was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSection:
    """What plan recommend looks for."""

    maximize: TextField | None = None
    """A metric to make large, such as cost.samples_per_usd, or an expression over metrics."""
    minimize: TextField | None = None
    """A metric to make small, such as total_time_s, or an expression over metrics."""
    deadline: TimeField | None = None
    """Most time the whole job may take, such as 12 h."""
    budget: MoneyField | None = None
    """Most the whole job may cost, such as $500."""
    clouds: list[TextField] = field(default_factory=list)
    """Clouds to choose from; all by default."""
    regions: list[TextField] = field(default_factory=list)
    """Regions to choose from; all by default."""
    gpus: list[TextField] = field(default_factory=list)
    """Accelerators to choose from, by name or pattern; all by default."""
    nodes: NodesField | None = None
    """Most machines that train."""
    requires: list[TextField] = field(default_factory=list)
    """What the accelerator must be capable of, such as cuda or bf16."""
    porting: list[TextField] = field(default_factory=list)
    """Software of accelerators that the program would be ported to, such as rocm or neuron; by
    default only accelerators are looked at that it runs on as it is."""
    ram_margin: MarginField = 0.0
    """Share of each machine's RAM that must stay free, such as 10%."""
    gpu_memory_margin: MarginField = 0.0
    """Share of each accelerator's memory that must stay free, such as 5%."""
    where: TextField | None = None
    """What a configuration must meet besides, such as utilization.gpu.mean > 0.9."""
    pins: dict[str, object] = field(default_factory=dict)
    """Keys kept at a value whatever it costs; the price of each is shown."""
    search: dict[str, object] = field(default_factory=dict)
    """Axes in place of the usual ones, as in sweep.over."""
    spot: SpotTable | None = None
    """Also consider spot capacity; only on-demand machines by default."""
    alternatives: dict[str, object] = field(default_factory=dict)
    """Other ways to run the job where its processors hold it up, by name: tables of dotted keys,
    such as "input.where" = "device" and "input.device_time" = "0.2 ms"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalFile:
    """A goal in a file of its own."""

    goal: GoalSection
    """What plan recommend looks for."""
