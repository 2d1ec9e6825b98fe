"""Measured runs: what was run, what was seen, and how a set of them is judged.

A measurement set is a CSV file of rows next to a TOML file that describes it. A row is a base
scenario with some keys overridden, and the figures measured on such a run, named as
in ``--json``. `files.measured.measurement_set` reads and writes sets; `studies.validation.validate`
predicts every row, `studies.calibration.calibrate` fits named parameters to rows.

A row's labels (plain columns: submitter, system, decoder) group rows and name them for people.
They are never read by a prediction: the description of the run is in the overrides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Final

from simulator.records import dataclass
from simulator.schema.fields import (
    DERIVED,
    REQUIRED,
    Choice,
    NumberField,
    NumberOrZeroField,
    Text,
    TextField,
)
from simulator.schema.training import ServiceMode

NameField = Annotated[str, Text(longest=100)]


class Split(StrEnum):
    """Use of a row: parameters may be fitted to it, or it is for testing only."""

    FIT = "fit"
    TEST = "test"


class SplitRule(StrEnum):
    """Rule that splits rows into fit and test where they don't state it."""

    GIVEN = "given"
    """Every row states it."""
    CONFIGURATION = "configuration"
    """Rows of a configuration stay together, split by `held_out`."""
    TEST = "test"
    """All rows are for testing."""


REGIME_SEPARATOR: Final = "; "
"""Separator between the regimes of a row."""
SEPARATOR: Final = "|"
"""Separator between the parts of a configuration's key."""
HELD_OUT: Final = 4
"""Number of configurations in ten, on average, that are held out for testing."""


def held_out(key: tuple[str, ...]) -> bool:
    """Return whether a configuration is held out: SHA-256 of its key modulo 10 is below 4.

    Parameters
    ----------
    key : tuple of str
        The cells that make the configuration, joined by `SEPARATOR` and encoded as UTF-8.

    Examples
    --------
    >>> held_out(("node-a", "1")), held_out(("node-a", "2"))
    (False, True)
    """
    digest = hashlib.sha256(SEPARATOR.join(key).encode()).hexdigest()
    return int(digest, 16) % 10 < HELD_OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured configuration.

    `base` is a scenario file or shipped name, `overrides` are ``section.key=value`` as for
    ``--set``. `measured` maps names of metrics to SI values, `spread` some of them to the relative
    spread of repeats. An `anchor` is the row of its group to which per-group constants are fitted.
    `excluded` is the reason why a row is not predicted; empty for a predicted row.
    """

    id: str
    base: str
    overrides: tuple[str, ...]
    measured: Mapping[str, float]
    family: str
    split: Split = Split.TEST
    source: str = ""
    spread: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    anchor: bool = False
    excluded: str = ""

    def key(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the row's cells in `columns`: the key of its group or configuration."""
        keys = dict(override.split("=", 1) for override in self.overrides)
        cells = {"id": self.id, "family": self.family, **keys, **self.labels}
        return tuple(cells.get(column, "") for column in columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A key of a scenario that may be fitted between bounds, such as to each group's anchors."""

    key: TextField
    """Key of the scenario, such as hardware.storage_bandwidth."""
    start: TextField
    """Start of the fit, with the key's unit, such as 2 GB/s."""
    low: TextField
    """Lowest plausible value."""
    high: TextField
    """Highest plausible value."""
    why: TextField = ""
    """Reason of the bounds."""
    fallback: bool = False
    """Fitted only where anchors are more than a tenth off without it, one after another."""
    told_by: TextField = ""
    """Metric that distinguishes it from other constants; a fallback for groups whose anchors lack
    it."""
    pace: TextField = ""
    """Key of rows with a time that is a measure of the cores' speed: a value fitted on another
    submitter's system is scaled in proportion to it (--unseen)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Largest errors of a family on test rows; larger ones make `plan validate` exit with 1."""

    metric: TextField
    """The measured metric that is judged."""
    family: TextField = ""
    """Family it is for; * for all rows of the set together; each family by default."""
    median: NumberField | None = None
    """Largest median of the absolute errors."""
    mean: NumberField | None = None
    """Largest mean of the absolute errors."""
    p90: NumberField | None = None
    """Largest 90th percentile of the absolute errors."""
    largest: NumberField | None = None
    """Largest absolute error."""
    target_median: NumberOrZeroField | None = None
    """Target of the median."""
    target_mean: NumberOrZeroField | None = None
    """Target of the mean."""
    target_p90: NumberOrZeroField | None = None
    """Target of the 90th percentile."""
    target_largest: NumberOrZeroField | None = None
    """Target of the largest error."""


class Baseline(StrEnum):
    """The naive predictor a set is compared with."""

    CONSTANT = "constant"
    """The median over the fit rows (all rows if none) of the same `baseline_by` labels; of rates,
    per device."""
    LINEAR = "linear"
    """The anchor's throughput times the ratio of devices: linear scaling."""
    SLOWEST_PART = "slowest part"
    """The slowest of device, CPU and store, each for itself: the largest closed-form load."""
    CONSTANT_MFU = "constant MFU"
    """One share of the devices' peak for all rows, fitted on the fit rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissTable:
    """A family of rows whose predictions are known to be inaccurate."""

    family: TextField
    """Name of the family."""
    metric: TextField
    """The measured metric."""
    why: TextField
    """Reason, as far as known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSet:
    """A measurement set: rows of a CSV file, their description, and how predictions are judged."""

    name: NameField
    """Short name of the set."""
    mode: Annotated[ServiceMode | None, Choice(ServiceMode)] = None
    """serve: rows are runs of services, and so are their bases; jobs by default."""
    title: TextField = field(default="", metadata=REQUIRED)
    """One line on the measurement."""
    data: TextField = field(default="", metadata=REQUIRED)
    """The CSV file in the same folder that holds the rows."""
    source: TextField
    """Author of the measurement, and where it was published."""
    date: TextField
    """Date of the measurement: a date, a month, a year, or undated."""
    metrics: tuple[TextField, ...]
    """The measured metrics that are judged, most important first, such as step_time_s.mean."""
    verified: bool = True
    """Whether the figures were read or measured, not guessed."""
    note: TextField = ""
    """Conditions of the measurement."""
    base: TextField | None = None
    """Default base scenario of rows."""
    family: TextField | None = None
    """Default family of rows; the set's name by default."""
    absolute: tuple[TextField, ...] = ()
    """Metrics whose error is a difference, such as accelerator_utilization."""
    split: Annotated[SplitRule, Choice(SplitRule)] = SplitRule.GIVEN
    """Rule for rows that are for testing only: given (by each row), configuration (hash), or
    test."""
    configuration: tuple[TextField, ...] = ()
    """Columns that identify a configuration, whose rows stay together in a split."""
    group_by: tuple[TextField, ...] = ()
    """Columns that identify a group, which has its own anchors."""
    anchor: TextField = ""
    """Description of the row that is the anchor of a group."""
    fit: tuple[Parameter, ...] = ()
    """Constants fitted to each group's anchors."""
    regime: TextField = ""
    """Column with the regimes of a row, separated by "; "; errors are shown for each."""
    maker: tuple[TextField, ...] = ()
    """Columns that identify who measured a group, or its system; plan validate --unseen predicts
    its rows with the constants of the others."""
    miss: tuple[MissTable, ...] = ()
    """Families whose predictions are known to be inaccurate, with the reason."""
    baseline: Annotated[Baseline, Choice(Baseline)] = Baseline.CONSTANT
    """Naive predictor to compare with: constant, linear, slowest part, or constant MFU."""
    baseline_by: tuple[TextField, ...] = ()
    """Labels with separate constants of the baseline."""
    tolerance: tuple[Tolerance, ...] = ()
    """Largest errors of families."""
    notes: Mapping[str, object] = field(default_factory=dict)
    """Further notes, which are ignored."""

    rows: tuple[Row, ...] = field(default=(), metadata=DERIVED)
    """The rows of the CSV file."""

    @property
    def serves(self) -> bool:
        """True if its rows are runs of services, not of jobs."""
        return self.mode is not None

    @property
    def misses(self) -> Mapping[tuple[str, str], str]:
        """Reasons why predictions are far off, by family and metric."""
        return {(one.family, one.metric): one.why for one in self.miss}
