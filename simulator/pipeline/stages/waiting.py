"""Stages that wait: pipeline bubble, stragglers, slow devices, checkpoints.

The time of a device has a factor that is constant over a run, and a factor of each step; the mean
of both is 1. A step waits for the largest product of the two among all devices. In any one step the
products are independent draws of one distribution, so the mean over steps and runs is that of the
largest of them: it is computed from order statistics, at a cost that does not grow with the number
of devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.cost import upload_requests
from simulator.equations.step import (
    harmonic,
    left_to_wait,
    mean_delay,
    wait_for_slow_device,
    wait_for_slowest,
)
from simulator.physics.device_time import DeviceTime, device_time
from simulator.physics.footprint import CheckpointShares, checkpoint_shares
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking, passing
from simulator.pipeline.stages.communication import step_of
from simulator.records import dataclass
from simulator.schema.fields import Shape, Spread
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode
from simulator.terms import Term, term
from simulator.units import Real, Seconds, in_common

MAX_SCORE: Final = 9.0
"""Normal score beyond which a factor is too rare to matter, among any number of devices."""
MIN_FACTOR: Final = 1e-7
"""Factor, as a share of the largest, that is as good as none."""


@cache
def slowest_factor(device: Spread, step: Spread, devices: int) -> float:
    """Return the expected largest factor on the step time among several devices.

    Parameters
    ----------
    device, step : Spread
        Distributions of the factor over devices, and over steps.
    devices : int
        Number of devices that wait for each other, at least 1.

    Returns
    -------
    float
        Time of the slowest device relative to the mean device [1], at least 1.

    Examples
    --------
    >>> two = Spread(shape=Shape.UNIFORM, relative_deviation=3**-0.5)
    >>> round(slowest_factor(two, Spread(), 2), 6)
    1.333333
    """
    varying = [spread for spread in (device, step) if spread.varies]
    if devices == 1 or not varying:
        return 1.0
    if len(varying) == 1:
        return _largest(varying[0], devices)
    if device.shape is step.shape is Shape.LOGNORMAL:
        return _largest(_together(device, step), devices)
    less, more = sorted(varying, key=lambda spread: spread.deviation)
    first, second = _quantile(less), _quantile(more)
    ends = np.array([-MAX_SCORE, MAX_SCORE])
    least, most = first(ends) * second(ends)
    within = float(max(least, most * MIN_FACTOR)), float(most)
    return expected_largest_product(first, _share_below(more), devices, within)


def _largest(spread: Spread, devices: int) -> float:
    if spread.shape is Shape.EXPONENTIAL:
        return float(harmonic(devices))
    return expected_largest(_quantile(spread), devices)


def _together(one: Spread, other: Spread) -> Spread:
    """Return the distribution of the product of two lognormal factors."""
    square = (1.0 + one.deviation**2) * (1.0 + other.deviation**2)
    return Spread(shape=Shape.LOGNORMAL, relative_deviation=float(np.sqrt(square - 1.0)))


def _quantile(spread: Spread) -> Curve:
    """Return the quantile function of a distribution, as a function of normal scores."""
    deviation = spread.deviation
    curves: dict[Shape, Callable[[Values], Values]] = {
        Shape.LOGNORMAL: lambda score: _lognormal(score, deviation),
        Shape.UNIFORM: lambda score: 1.0 + deviation * np.sqrt(3.0) * (1.0 - 2.0 * _above(score)),
        Shape.EXPONENTIAL: lambda score: -np.log(_above(score)),
        Shape.GAMMA: lambda score: _gamma(score, deviation),
        Shape.CONSTANT: np.ones_like,
    }
    return curves[spread.shape]


def _share_below(spread: Spread) -> Curve:
    """Return the cumulative distribution function of a distribution."""
    from scipy.special import gammainc, ndtr  # noqa: PLC0415 - slow to load, and rarely needed

    deviation = spread.deviation
    sigma, half = _sigma(deviation), deviation * np.sqrt(3.0)
    curves: dict[Shape, Callable[[Values], Values]] = {
        Shape.LOGNORMAL: lambda amount: ndtr(np.log(amount) / sigma + sigma / 2.0),
        Shape.UNIFORM: lambda amount: np.clip((amount - 1.0 + half) / (2.0 * half), 0.0, 1.0),
        Shape.EXPONENTIAL: lambda amount: -np.expm1(-amount),
        Shape.GAMMA: lambda amount: gammainc(deviation**-2.0, amount / deviation**2.0),
    }
    return curves[spread.shape]


def _sigma(deviation: float) -> float:
    """Return the standard deviation of the logarithm of a lognormal factor."""
    return float(np.sqrt(np.log1p(deviation**2)))


def _lognormal(score: Values, deviation: float) -> Values:
    sigma = _sigma(deviation)
    factor: Values = np.exp(sigma * score - sigma**2 / 2.0)
    return factor


def _gamma(score: Values, deviation: float) -> Values:
    from scipy.special import gammainccinv, gammaincinv  # noqa: PLC0415 - slow to load, and rarely needed

    shape, above = deviation**-2.0, _above(score)
    # Each from the side where the share is small, as 1 less a small number is 1.
    low, high = gammaincinv(shape, _above(-score)), gammainccinv(shape, above)
    factor: Values = np.where(above > 1.0 / 2.0, low, high) * deviation**2.0
    return factor


def _above(score: Values) -> Values:
    """Return the share of a normal distribution above scores."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow to load, and rarely needed

    share: Values = ndtr(-score)
    return share


Values: TypeAlias = NDArray[np.float64]
Curve: TypeAlias = Callable[[Values], Values]

MAX_SCORE_OF_DRAWS: Final = 16.0
"""Normal score that nothing exceeds in any number of draws."""
SCORE_STEP: Final = 0.02
"""Distance of normal scores at which quantiles are added up: less than the largest varies."""
COARSE_SCORE_STEP: Final = 0.1
"""Distance of normal scores of the first of two factors; sums over a bell converge fast."""
POINTS: Final = 1600
"""Points at which the largest of many products is looked at."""


def expected_largest(quantile: Curve, draws: float) -> float:
    """Return the expected largest of independent draws of one distribution.

    Parameters
    ----------
    quantile : callable
        Quantile function of the distribution, as a function of normal scores.
    draws : float
        Number of draws [1], at least 1.

    Returns
    -------
    float
        Expected value of the largest draw, in the unit of the quantiles.

    Notes
    -----
    ``integral of quantile(z) * d(Phi(z) ** draws)``, by the trapezoidal rule: for integrands that
    vanish smoothly at both ends it is right to many digits. It costs the same for any number.

    References
    ----------
    .. [1] David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1.

    Examples
    --------
    Standard normal draws, 1.5388 and 2.5076 in tables:

    >>> [round(expected_largest(lambda score: score, n), 4) for n in (1, 10, 100)]
    [0.0, 1.5388, 2.5076]
    """
    scores, chances = _scores(SCORE_STEP, draws)
    return float(np.sum(quantile(scores) * chances))


def expected_largest_product(
    first: Curve, share_below: Curve, draws: float, within: tuple[float, float]
) -> float:
    """Return the expected largest product of two positive random factors.

    Parameters
    ----------
    first : callable
        Quantile function of the first factor, as a function of normal scores.
    share_below : callable
        Cumulative distribution function of the second factor [1].
    draws : float
        Number of independent pairs of draws [1].
    within : pair of float
        Range of the products, up to a negligible probability; above 0.

    Returns
    -------
    float
        Expected value of the largest product.

    Notes
    -----
    ``integral of 1 - P(x) ** draws`` over amounts x, where ``P(x)`` is the mean of
    ``share_below(x / first)``. Both sums are trapezoidal; the first factor ought to vary less
    than the second, so that the mean is over a smooth curve.

    References
    ----------
    .. [1] David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1.

    Examples
    --------
    Where the first factor is 1, what is left is the largest of the second, exponential ones:

    >>> def below(amount):
    ...     return -np.expm1(-amount)
    >>> round(expected_largest_product(np.ones_like, below, 4, (1e-6, 60.0)), 3)
    2.083
    """
    amounts = np.geomspace(*within, POINTS)
    below = np.zeros(POINTS)
    for score, chance in zip(*_scores(COARSE_SCORE_STEP, 1.0), strict=True):
        factor = first(score)
        below = below + chance * (share_below(amounts / factor) if factor > 0.0 else 1.0)
    above = 1.0 - np.minimum(1.0, below) ** draws
    return float(amounts[0] + np.sum((above[1:] + above[:-1]) / 2.0 * np.diff(amounts)))


@cache
def _scores(apart: float, draws: float) -> tuple[Values, Values]:
    """Return normal scores, and for each the probability that it is the largest of `draws`."""
    scores = np.arange(-MAX_SCORE_OF_DRAWS, MAX_SCORE_OF_DRAWS, apart)
    less = [math.log(math.erfc(-score / math.sqrt(2.0)) / 2.0) for score in scores]
    density = -(scores**2) / 2.0 - math.log(2.0 * math.pi) / 2.0
    chances = draws * np.exp(density + (draws - 1.0) * np.array(less))
    return scores, chances * apart


@dataclass(frozen=True, slots=True)
class Bubble:
    """Pipeline bubble: fill and drain of a pipeline of devices, once a step."""

    name: str = "pipeline bubble"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the idle wait of the bubble; empty without pipeline parallelism."""
        step, degrees = step_of(scenario), scenario.job.parallelism
        if step is None or in_common(degrees.pipeline) == 1:
            return ()
        return (passing(step.terms["bubble"], Resource.GPU),)


@dataclass(frozen=True, slots=True)
class StragglerWait:
    """Wait of all ranks of a job for the slowest rank, once a step.

    Only the expected maximum of their random delays is counted, so that a run without other
    randomness stays deterministic and its cost does not grow with the number of ranks.
    """

    name: str = "slowest rank"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the idle wait for the slowest rank."""
        time = device_time(scenario)
        if scenario.job.train.straggling == 0.0 or time is None or not _meets(scenario):
            return ()
        return (passing(_wait_for_rank(scenario, time), Resource.NETWORK),)


@dataclass(frozen=True, slots=True)
class SlowDeviceWait:
    """Wait of all devices of a job for the slowest device, once a step.

    Their speeds differ by `train.device_spread` and `train.step_jitter`. Devices that split a
    replica wait for each other as replicas do: within a layer, or as stages of a pipeline, where
    the slowest determines the time of all micro-batches. All devices count equally, with the
    compute of the slowest stage; fill and drain of a pipeline are not extended. Waits for late
    ranks (`StragglerWait`) have other causes, so that only the excess over them is counted.
    """

    name: str = "slowest device"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the idle wait for the slowest device."""
        train, time = scenario.job.train, device_time(scenario)
        varies = train.device_spread.varies or train.step_jitter.varies
        if not varies or time is None or scenario.devices == 1 or not _meets(scenario):
            return ()
        longer = term(
            wait_for_slow_device,
            compute=(time.forward + time.backward) * train.accumulation + time.optimizer,
            slowest=slowest_factor(train.device_spread, train.step_jitter, scenario.devices),
            straggling=scenario.calibration.value("straggling"),
        )
        late = _wait_for_rank(scenario, time) if train.straggling else 0.0
        return (passing(term(left_to_wait, wait=longer, lag=late), Resource.GPU),)


def _meets(scenario: Scenario) -> bool:
    """Return True if ranks end their steps together."""
    return scenario.job.mode is Mode.TRAIN


def _share(scenario: Scenario) -> Real:
    """Return the mean random delay of a rank, relative to its compute time [1]."""
    return scenario.job.train.straggling / scenario.calibration.value("straggling")


def _wait_for_rank(scenario: Scenario, time: DeviceTime) -> Term:
    """Return the wait for the slowest rank, due to random delays [s]."""
    delay = term(
        mean_delay,
        share=_share(scenario),
        batch=time.total,
        batches=scenario.job.train.accumulation,
    )
    return term(wait_for_slowest, delay=delay, ranks=scenario.ranks)


AGREEING: Final[Seconds] = 0.45
"""Time in which processes negotiate which of them writes what [s].

The geometric mean of 0.59 and 0.34 s that ByteCheckpoint blocks on 8,960 and 1,488 GPUs, where the
copies alone take 10 ms (arXiv 2407.20143 table 8, 2024-07). Not used for it: 20 GB written by 1, 2
and 4 machines of eight processes take 0.59 s and what falls as one over their number
(pytorch/torchsnapshot@df45917d12b1, benchmarks/ddp, local NVMe). Other software blocks for seconds:
`checkpoint.blocking` states that.
"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Blocking checkpoint: devices copy their shares to the host, and machines write them.

    Replicated state is written once. The process of a device serializes its share while it writes,
    so that its own rate is an upper limit. Several writing processes first negotiate their shares.
    """

    name: str = "checkpoint"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the bytes over PCIe, and the bytes to the store."""
        train = scenario.job.train
        if train.checkpoint_every_steps is None or scenario.job.model is None:
            return ()
        shares, group = checkpoint_shares(scenario), scenario.cluster.trainers
        write = asking(
            shares.machine,
            Resource.STORAGE,
            Path.HOST_TO_STORE,
            operations=_uploads(group.storage, shares),
            latency=group.storage.write_latency + _agreeing(shares),
            ceiling=train.checkpoint_process_rate * shares.processes,
            sharers=shares.writers,
        )
        host = group.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return (write,)
        latency = host.host_link.latency
        down = asking(shares.device, Resource.PCIE, Path.DEVICE_TO_HOST, latency=latency)
        return (down, write)


def _agreeing(shares: CheckpointShares) -> Real:
    """Return the time that writing processes negotiate [s]; 0 for a single process."""
    several: Real = np.where(shares.writers * shares.processes > 1.0, AGREEING, 0.0)
    return several


def _uploads(store: Storage, shares: CheckpointShares) -> Real:
    """Return the number of upload requests of a machine; 0 unless the store is an object store."""
    if store.scope is not Scope.OBJECT:
        return 0.0
    part = store.operation_size or float("inf")
    return upload_requests(shares.device.value, part) * shares.processes
