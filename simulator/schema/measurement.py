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
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from simulator.schema.fields import NumberField, NumberOrZeroField, TextField
from simulator.schema.provenance import Source


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
class MeasurementSet:
    """Rows measured in one way, and the rules by which predictions of them are judged.

    `metrics` are the measured columns that are scored, most important first. `configuration` names
    the labels that make a configuration, whose rows stay together in a split. `group_by` names
    those that make a group with its own anchors, to which the parameters in `fit` are fitted before
    the group's other rows are predicted. `absolute` lists metrics whose error is a difference (a
    share such as accelerator utilization), not a fraction of the measured value. `regime` is the
    label with the regimes of a row: errors are shown for each as well. `submitter` names the labels
    of the submitter of a group, for predicting a group from the constants of others only. `misses`
    are the reasons of large errors, by family and metric. `serves`: its rows are runs of services,
    not of jobs.
    """

    name: str
    title: str
    source: Source
    rows: tuple[Row, ...]
    metrics: tuple[str, ...]
    split_rule: str
    configuration: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    anchor: str = ""
    fit: tuple[Parameter, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    baseline: Baseline = Baseline.CONSTANT
    baseline_by: tuple[str, ...] = ()
    absolute: tuple[str, ...] = ()
    regime: str = ""
    submitter: tuple[str, ...] = ()
    misses: Mapping[tuple[str, str], str] = field(default_factory=dict)
    serves: bool = False
