"""The TOML file of a measurement set: what was measured, and how predictions of it are judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from simulator.reading.service.sections import ServiceMode
from simulator.schema.fields import Choice, NumberField, NumberOrZeroField, Text, TextField
from simulator.uncertainty.measurement import Baseline, SplitRule

NameField = Annotated[str, Text(longest=100)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitTable:
    """A constant that is fitted to each group's anchors, between physical bounds."""

    key: TextField
    """Key of the scenario, such as hardware.storage_bandwidth."""
    start: TextField
    """Where the fit begins, with the key's unit, such as 2 GB/s."""
    low: TextField
    """Least value that makes sense."""
    high: TextField
    """Largest value that makes sense."""
    why: TextField | None = None
    """What bounds it, for people."""
    fallback: bool = False
    """Fitted only where anchors come out more than a tenth off without it, one after another."""
    told_by: TextField | None = None
    """Metric that tells it from other constants; a fallback for groups whose anchors lack it."""
    pace: TextField | None = None
    """Key of rows that says how fast cores are; other makers' values go with it (--unseen)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceTable:
    """How wrong a family may be on test rows; beyond it `plan validate` exits with 1."""

    metric: TextField
    """The measured metric that is judged."""
    family: TextField | None = None
    """The family it holds for; * for all rows of the set together; each family by default."""
    median: NumberField | None = None
    """Largest median of the absolute errors."""
    mean: NumberField | None = None
    """Largest mean of the absolute errors."""
    p90: NumberField | None = None
    """Largest 90th percentile of the absolute errors."""
    largest: NumberField | None = None
    """Largest absolute error."""
    target_median: NumberOrZeroField | None = None
    """The median that is aimed at."""
    target_mean: NumberOrZeroField | None = None
    """The mean that is aimed at."""
    target_p90: NumberOrZeroField | None = None
    """The 90th percentile that is aimed at."""
    target_largest: NumberOrZeroField | None = None
    """The largest error that is aimed at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissTable:
    """A family that predictions are far off from."""

    family: TextField
    """Its name."""
    metric: TextField
    """The measured metric."""
    why: TextField
    """Why, as far as it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFile:
    """A measurement set: rows of a CSV file, what they are, and how predictions are judged."""

    name: NameField
    """Short name of the set."""
    mode: Annotated[ServiceMode | None, Choice(ServiceMode)] = None
    """serve: rows are runs of services, and so are their bases; jobs by default."""
    title: TextField
    """One line that says what was measured."""
    data: TextField
    """The CSV file beside this one that holds the rows."""
    source: TextField
    """Who measured it, and where it was read."""
    date: TextField
    """When: a date, a month, a year, or undated."""
    metrics: list[TextField]
    """The measured metrics that are judged, most important first, such as step_time_s.mean."""
    verified: bool = True
    """Whether the figures were read or measured, not guessed."""
    note: TextField | None = None
    """Under which conditions it was measured."""
    base: TextField | None = None
    """Scenario that rows without a base of their own change."""
    family: TextField | None = None
    """Family of the rows without one of their own; the set's name by default."""
    absolute: list[TextField] = field(default_factory=list)
    """Metrics whose error is a difference, such as accelerator_utilization."""
    split: Annotated[SplitRule, Choice(SplitRule)] = SplitRule.GIVEN
    """Which rows nothing may be fitted to: given (by each row), configuration (hash), or test."""
    configuration: list[TextField] = field(default_factory=list)
    """Columns that make one configuration, whose rows stay together in a split."""
    group_by: list[TextField] = field(default_factory=list)
    """Columns that make one group, with anchors of its own."""
    anchor: TextField | None = None
    """Which row of a group is its anchor, in words."""
    fit: list[FitTable] = field(default_factory=list)
    """Constants fitted to each group's anchors."""
    regime: TextField | None = None
    """Column that names the regimes a row lies in, parted by "; "; errors are shown for each."""
    maker: list[TextField] = field(default_factory=list)
    """Columns that say who measured a group, or on which system; plan validate --unseen predicts
    its rows with the constants of the others."""
    miss: list[MissTable] = field(default_factory=list)
    """Families that predictions are far off from, with the reason."""
    baseline: Annotated[Baseline, Choice(Baseline)] = Baseline.CONSTANT
    """The naive predictor to compare with: constant, linear, slowest part, or constant MFU."""
    baseline_by: list[TextField] = field(default_factory=list)
    """Columns within whose values the baseline is one constant."""
    tolerance: list[ToleranceTable] = field(default_factory=list)
    """How wrong families may be."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Anything else worth keeping; not read."""
