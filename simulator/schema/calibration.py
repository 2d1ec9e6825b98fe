"""Calibration: the factors that exist, the factors of a scenario, and fitted parameters.

A factor multiplies the speed of one resource; above 1 means faster. Each factor is applied in one
place only, which the table `FACTORS` names, so that a fitted factor has one meaning. An `Overlay`
is the file that `plan calibrate` writes: fitted values of any numeric keys of a scenario, how well
the measurements determine them, and the rows they were fitted to.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Final, Literal

from simulator.records import dataclass
from simulator.schema.fields import (
    DERIVED,
    REQUIRED,
    CountField,
    CountOrZeroField,
    Length,
    NumberOrZeroField,
    TextField,
)
from simulator.schema.provenance import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorKind:
    """A factor of ``[calibration]``: what it speeds up, where it is applied, and its bounds.

    `low` and `high` bound how much hardware and software may differ from their description: a
    factor far below would hide a wrong description.
    """

    name: str
    meaning: str
    home: str
    low: float
    high: float
    why: str


FACTORS: Final = (
    FactorKind(
        name="compute",
        meaning="rates of device arithmetic, matrix and other",
        home="physics.operators: rates of the roofline, and with them step times that others "
        "measured; step times of the scenario stay as measured, at other batch sizes too",
        low=0.1,
        high=4.0,
        why="a tenth for kernels that fit badly; the shares of peak it multiplies are 0.2 to 0.6",
    ),
    FactorKind(
        name="device_memory",
        meaning="bandwidth of device memory",
        home="physics.operators: memory rate of the roofline, with the same step times",
        low=0.1,
        high=3.0,
        why="a tenth for scattered access; caches can beat the traffic that was counted",
    ),
    FactorKind(
        name="cpu",
        meaning="work on the host's cores: decode, collate, receive, send",
        home="pipeline.stages.base.ask: core-seconds of every demand",
        low=0.1,
        high=10.0,
        why="ten years of processors, or another decoder",
    ),
    FactorKind(
        name="storage",
        meaning="stores: rates, operations and requests; latencies and read times shrink likewise",
        home="reading.calibration: the description of every store",
        low=0.01,
        high=20.0,
        why="a hundredth for a store shared with others; above 1 for caches that are not described",
    ),
    FactorKind(
        name="client",
        meaning="reads of object stores through the client: time of a request, rate of a reader",
        home="reading.calibration: the description of the client",
        low=0.01,
        high=20.0,
        why="clients of one store differ by a factor of a hundred for small objects",
    ),
    FactorKind(
        name="network",
        meaning="network cards: all flows together and single ones",
        home="reading.calibration: the description of every machine's network",
        low=0.05,
        high=2.0,
        why="a twentieth for a congested network; a card cannot beat its line rate for long",
    ),
    FactorKind(
        name="collective",
        meaning="exchange between devices and between machines that train: bytes and latency",
        home="pipeline.stages.base.ask: demands from device to device and from machine to machine",
        low=0.05,
        high=4.0,
        why="a twentieth for a badly placed ring; above 1 for reduction in the switches",
    ),
    FactorKind(
        name="straggling",
        meaning="waiting for the slowest rank: random delays of a rank's step, above 1 shorter",
        home="pipeline.stages.waiting: delays by train.straggling, device_spread and step_jitter",
        low=0.3,
        high=3.0,
        why="a crowded host delays its ranks more, a quiet one less; beyond that look elsewhere",
    ),
    FactorKind(
        name="checkpoint",
        meaning="writing of checkpoints: the copy to the host and the write to the store",
        home="pipeline.checkpoints: times of a checkpoint",
        low=0.02,
        high=20.0,
        why="a fiftieth for a writer of one file at a time; above 1 for writers that use all links",
    ),
)
"""All factors of the section ``[calibration]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A named multiplier of a rate (above 1: faster), with its source."""

    name: str
    value: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One fitted parameter; without an interval the measurements do not determine it."""

    key: TextField
    """Dotted key of a scenario, such as calibration.cpu or hardware.storage_bandwidth."""
    value: TextField
    """The fitted value, as a scenario would have it."""
    p10: TextField | None = None
    """10th percentile of the value."""
    p90: TextField | None = None
    """90th percentile of the value."""
    log_sd: NumberOrZeroField | None = None
    """Standard deviation of the value's logarithm."""
    at_bound: Literal["low", "high"] | None = None
    """The bound that limits the value, if one does."""


RangeField = Annotated[tuple[CountOrZeroField, ...], Length(2, 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Range covered by the fitted rows; outside of it a fitted value is an extrapolation."""

    rows: CountField
    """Number of rows that parameters were fitted to."""
    configurations: CountField
    """Number of different configurations among the rows."""
    gpus: tuple[TextField, ...] = ()
    """Accelerators in the rows."""
    machines: tuple[TextField, ...] = ()
    """Machines in the rows."""
    devices: RangeField
    """Fewest and most accelerators of a job."""
    batch_size: RangeField
    """Smallest and largest batch of a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The file that plan calibrate writes: fitted parameters with their evidence."""

    kind: Literal["calibration"] = field(default="calibration", metadata=REQUIRED)
    """Kind of the file, always "calibration"."""
    source: TextField
    """Sets, rows and errors of the fit."""
    date: TextField
    """Date of the fit."""
    version: TextField = field(default="", metadata=REQUIRED)
    """Version of plan that fitted it."""
    parameter: Annotated[tuple[Fitted, ...], Length(1)]
    """The fitted parameters."""
    covariance: tuple[tuple[float, ...], ...]
    """Covariance of the logarithms, in the order of the parameters; zero for parameters that the
    rows do not determine."""
    envelope: Envelope
    """Range covered by the rows."""
    file: str = field(default="", metadata=DERIVED)
    """Name of the file."""

    @property
    def cited(self) -> Source:
        """Source of the fitted values."""
        name = f" ({self.file})" if self.file else ""
        return Source(reference=f"{self.source}{name}", date=self.date)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Factors that a prediction applies, by name, and the overlay whose parameters it includes."""

    factors: tuple[Factor, ...] = ()
    overlay: Overlay | None = None

    def value(self, name: str) -> float:
        """Return the factor called `name`; 1.0 if none was fitted."""
        return next((f.value for f in self.factors if f.name == name), 1.0)


IDENTITY = Calibration()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferError:
    """A key whose value was fitted on other systems, with its uncertainty on this one.

    `log_sd` is the standard deviation of the logarithm of the value here over the fitted one;
    `shared` are the correlations of its speed with the speeds of other keys.
    """

    key: str
    log_sd: float
    shared: tuple[tuple[str, float], ...] = ()
