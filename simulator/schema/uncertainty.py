"""Uncertainty components of a prediction, one for each uncertain rate.

An uncertainty is the standard deviation of the logarithm of a rate (of the device, the workers, the
store) relative to the figure used: 0.1 is about 10% either way. `confidence.uncertainty` derives
them for a scenario from the evidence behind each figure; `engine.intervals` turns them into
intervals.

Quasi-random points fill a cube evenly, for averages over many uncertain figures at once. They are
those of ``scipy.stats.qmc.Sobol``, with which a test compares them, and are computed here because
importing scipy's statistics alone takes longer than most predictions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.equations.uncertainty import doublings_outside, stretched_deviation
from simulator.records import dataclass
from simulator.schema.provenance import Source
from simulator.units import Seconds

LARGEST: Final = 2.0
"""Largest log deviation: a factor of 170 between P10 and P90."""
P90: Final = 1.2815515655446008
"""90% quantile of the standard normal distribution."""


class Rate(StrEnum):
    """An uncertain rate; each one is a dimension of the ensemble."""

    DEVICE = "device"
    """Compute on the accelerator, or on the cores for training on CPUs."""
    WORKERS = "workers"
    """CPU work of the workers."""
    HANDOVER = "handover"
    """CPU work of passing batches on: the pin-memory thread, senders."""
    STORAGE = "storage"
    """Reads and writes of stores, both bandwidth and latency."""
    NETWORK = "network"
    PCIE = "pcie"
    NVLINK = "nvlink"
    HOST_MEMORY = "host memory"
    COLLECTIVES = "collectives"
    """Collectives and other exchange between devices, on any link."""
    WAITING = "waiting"
    """Idle time in a step: waiting for other ranks, for the program, in queues."""
    START = "start"
    """The first step, while workers and queues fill, which is known less well than later ones."""
    STEP = "step"
    """The whole step: error that no single rate explains."""
    LAUNCH = "launch"
    """Launching of kernels by a main thread that also loads batches; never slower than the
    device."""
    CLIENT = "client"
    """Reads of an object store through its client: the time of a request, the rate of a reader."""
    CLIENT_CPU = "CPU work of the client"
    """CPU work of a client of an object store."""
    CHECKPOINT = "checkpoint"
    """Writing of checkpoints: serialization, negotiation, and the store below."""


class Grade(StrEnum):
    """The evidence behind a figure."""

    STATED = "stated"
    """Stated by the scenario's author, as measured there."""
    CALIBRATED = "calibrated"
    """Fitted to measured runs of the same system."""
    MEASURED = "measured"
    """Measured on another system."""
    COMPUTED = "computed"
    """Computed by a model whose constants were fitted to other runs."""
    FITTED = "fitted kernels"
    """Computed from kernels and exchanges fitted to other runs of such devices and software."""
    EXPERTS = "fitted kernels of experts"
    """Computed from fitted kernels of experts, whose load and exchange depend on the data."""
    CARRIED = "kernels carried over"
    """Added if nothing was fitted to the framework, so that another framework's kernels are
    used."""
    CARRIED_KERNELS = "small kernels carried over"
    """Added then in proportion to the share of norms and activations in a step, as frameworks
    differ most in the number of these kernels."""
    CARRIED_LAUNCHES = "launches carried over"
    """Added then in proportion to the share of a step that is launch-bound, as launch times differ
    between frameworks."""
    GATHERED = "gathers between machines, as another framework's"
    """Sharded parameters gathered over a network by a framework without such a measured run."""
    TABLES = "exchange of rows that is not counted"
    """All-to-all of embedding rows that are sharded over devices, which is not modelled."""
    OPENING = "reads of metadata"
    """Operations that open files, in proportion to their share of the operations of a read."""
    COPIES = "copies on the compute stream"
    """Copies of pinned batches, which PyTorch does not overlap with compute by itself."""
    UNKNOWN_REQUEST = "requests of an unknown client"
    """Time of a request to an object store through any client, in proportion to its share of a
    read."""
    UNKNOWN_STREAM = "streams of an unknown client"
    """Rate of a reader of an object store through any client, in proportion to its share of a
    read."""
    UNKNOWN_CPU = "CPU work of an unknown client"
    """CPU work of reading an object store through any client."""
    SISTER = "measured on a sister card"
    """Measured on another card of the same chip."""
    OTHER_CARD = "measured on another card"
    """Measured on a card of another chip, for a model given by its totals."""
    RELATIVE = "kernels of a relative"
    """Kernels of the most similar measured device, for an unmeasured device."""
    PROFILED = "profiled kernels"
    """Computed from a sum of kernels timed one by one."""
    ON_CORES = "computed on cores"
    """Computed from the arithmetic rate of processor cores, of which few were measured."""
    DATASHEET = "data sheet"
    """The data sheet, reduced to the usual efficiency of such hardware."""
    ASSUMED = "assumed"
    """A default of plan."""
    PEERS = "cards without links of their own"
    """Exchange between cards over PCIe, whose path and rate were neither stated nor measured."""
    CROWDED = "busy cores of a server"
    """Slowdown of busy cores, taken from other servers."""
    CROWDED_SMALL = "busy cores of a small machine"
    """Slowdown of busy cores of a machine with few cores, which varies more."""


class Axis(StrEnum):
    """A direction in which a prediction may be outside of the measured range."""

    MACHINES = "machines"
    RANKS = "ranks"
    EXCHANGING = "ranks that exchange gradients"
    WORKERS = "workers"
    BATCH = "batch"
    TOKENS = "tokens of a micro-batch"
    SEQUENCE = "sequence length"
    PARAMETERS = "parameters"
    TENSOR = "tensor-parallel degree"
    PIPELINE = "pipeline stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Measured range along an axis, and the uncertainty added by each doubling beyond it.

    `per_doubling` is a log deviation for each factor of two below `low` or above `high`.
    """

    axis: Axis
    low: float
    high: float
    per_doubling: float


def either_way(log_sd: float) -> str:
    """Format a standard deviation of a logarithm as a range in per cent.

    Examples
    --------
    >>> either_way(0.15)
    '-14% to +16% (1 sigma)'
    """
    less, more = 1.0 - math.exp(-log_sd), math.exp(log_sd) - 1.0
    return f"-{less:.0%} to +{more:.0%} (1 sigma)"


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyComponent:
    """The uncertainty of one rate.

    `log_sd` is the standard deviation of its logarithm; `seconds` the part of the deviation of a
    step that does not grow with the step, such as the time of a program between two steps. `shared`
    are correlations (-1 to 1) with other uncertainties by name. `least`: lower bound on the log
    deviation of the step as a whole. `outside`: it is due to the distance of the scenario from the
    measured range. `warning` is the text for the user, if any. `grade` is the evidence behind the
    figure, if that is the reason of the uncertainty.
    """

    name: str
    rate: Rate
    log_sd: float
    source: Source
    seconds: Seconds = 0.0
    shared: Mapping[str, float] = field(default_factory=dict)
    least: float = 0.0
    outside: bool = False
    warning: str = ""
    grade: Grade | None = None

    def for_step(self, step: Seconds) -> UncertaintyComponent:
        """Return the uncertainty with `seconds` included in `log_sd`, for a step of `step` [s]."""
        if self.seconds == 0.0 or step <= 0.0:
            return self
        return replace(self, log_sd=math.hypot(self.log_sd, self.seconds / step), seconds=0.0)


def stretched(log_sd: float, reaches: Sequence[Reach], place: Mapping[Axis, float]) -> float:
    """Return a log deviation at `place`, widened by its distance from the measured ranges.

    Parameters
    ----------
    log_sd : float
        Log deviation inside the measured ranges.
    reaches : sequence of Reach
        The measured ranges; axes that `place` lacks don't count.
    place : mapping of Axis to float
        Where the figure is used.
    """
    wide = log_sd
    for reach in reaches:
        if reach.axis in place:
            beyond = doublings_outside(place[reach.axis], reach.low, reach.high)
            wide = float(stretched_deviation(wide, reach.per_doubling, beyond))
    return wide


def covariance(
    uncertainties: Sequence[UncertaintyComponent], rates: Sequence[Rate]
) -> NDArray[np.float64]:
    """Return the covariance of the logarithms of `rates`, shape (rates, rates).

    Uncertainties of the same rate add up; those of different rates covary by their stated
    correlations. A correlation may be stated by either of the two.
    """
    table = np.zeros((len(rates), len(rates)))
    for one in uncertainties:
        for other in uncertainties:
            share = (
                1.0 if one is other else one.shared.get(other.name, other.shared.get(one.name, 0.0))
            )
            i, j = rates.index(one.rate), rates.index(other.rate)
            table[i, j] += share * one.log_sd * other.log_sd
    return table


def within_reason(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance with deviations limited to `LARGEST`; correlations are unchanged."""
    wide = np.sqrt(np.diag(table))
    less = LARGEST / np.maximum(LARGEST, wide)
    return table * np.outer(less, less)


_POLYNOMIALS: Final = (
    (0, (1,)),
    (1, (1, 3)),
    (1, (1, 3, 1)),
    (2, (1, 1, 1)),
    (1, (1, 1, 3, 3)),
    (4, (1, 3, 5, 13)),
    (2, (1, 1, 5, 5, 17)),
    (4, (1, 1, 5, 5, 5)),
    (7, (1, 1, 7, 11, 19)),
    (11, (1, 1, 5, 1, 1)),
    (13, (1, 1, 1, 3, 11)),
    (14, (1, 3, 5, 5, 31)),
    (1, (1, 3, 3, 9, 7, 49)),
    (13, (1, 1, 1, 15, 21, 21)),
    (16, (1, 3, 1, 13, 27, 49)),
)
"""Coefficients and first direction numbers of the dimensions after the first: S. Joe and F. Y. Kuo,
new-joe-kuo-6.21201, https://web.maths.unsw.edu.au/~fkuo/sobol/."""

MOST_DIMENSIONS: Final = len(_POLYNOMIALS) + 1


def sobol(bits: int, dimensions: int) -> NDArray[np.int64]:
    """Return the first ``2**bits`` points of the Sobol sequence, as integers below ``2**bits``.

    Parameters
    ----------
    bits : int
        Logarithm of the number of points.
    dimensions : int
        At most `MOST_DIMENSIONS`.

    Returns
    -------
    numpy.ndarray
        Shape (points, dimensions); divided by ``2**bits`` they lie in the unit cube. Each column
        holds every integer once.
    """
    numbers = np.arange(2**bits)
    order = numbers ^ (numbers >> 1)
    points = np.zeros((len(numbers), dimensions), dtype=np.int64)
    for column in range(dimensions):
        for bit, direction in enumerate(_directions(column, bits)):
            points[:, column] ^= np.where((order >> bit) & 1, direction, 0)
    return points


def _directions(column: int, bits: int) -> list[int]:
    """Return the direction numbers of dimension `column`, as integers of `bits` bits."""
    if column == 0:
        return [1 << (bits - 1 - i) for i in range(bits)]
    coefficients, first = _POLYNOMIALS[column - 1]
    degree = len(first)
    found = list(first[:bits])
    for i in range(degree, bits):
        new = found[i - degree] ^ (found[i - degree] << degree)
        for k in range(1, degree):
            if (coefficients >> (degree - 1 - k)) & 1:
                new ^= found[i - k] << k
        found.append(new)
    return [number << (bits - 1 - i) for i, number in enumerate(found)]


@cache
def _classes(bits: int) -> NDArray[np.float64]:
    normal, count = NormalDist(), 2**bits
    return np.array([normal.inv_cdf((i + 0.5) / count) for i in range(count)])


@cache
def _sobol(bits: int, dimensions: int) -> NDArray[np.int64]:
    return sobol(bits, dimensions)


def normal_points(bits: int, dimensions: int, seed: int) -> NDArray[np.float64]:
    """Return quasi-random standard normal points with a random shift.

    Parameters
    ----------
    bits : int
        Logarithm of the number of points, to base 2.
    dimensions : int
        At most `MOST_DIMENSIONS`.
    seed : int
        Seed of the shift; the same seed gives the same points.

    Returns
    -------
    numpy.ndarray
        Shape (points, dimensions). Each dimension has exactly one point in each of ``2**bits``
        equally likely classes of the normal distribution.
    """
    shift = np.random.default_rng(seed).integers(0, 2**bits, size=dimensions)
    points: NDArray[np.float64] = _classes(bits)[_sobol(bits, dimensions) ^ shift]
    return points
