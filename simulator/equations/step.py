"""The training step: work on a batch, exposed parts, their sum, and waiting for the slowest."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.equations.storage import Flag
from simulator.units import (
    Bytes,
    BytesPerSecond,
    Real,
    Seconds,
    at_least,
    at_most,
    plain,
)

_FULL: Final = 4.0
"""Bytes of a weight or gradient in fp32 [B]."""
_HALF: Final = 2.0
"""Bytes of the weight that goes back to the device [B]."""


def step_time(  # noqa: PLR0913 - the parts of a step
    *,
    data_stall: Seconds | Real,
    h2d: Seconds | Real,
    compute: Seconds | Real,
    communication: Seconds | Real = 0.0,
    bubble: Seconds | Real = 0.0,
    checkpoint: Seconds | Real = 0.0,
    other: Seconds | Real = 0.0,
) -> Seconds | Real:
    """Return the step time as the sum of the exposed parts of a rank's timeline.

    ``data_stall + h2d + compute + communication + bubble + checkpoint + other``. `compute` is
    forward, backward and optimizer; `checkpoint` is spread over the steps between two; `other` is
    waiting for other ranks or for the program.

    Source: Isaev et al., "Calculon: a methodology and tool for high-level co-design of systems and
    large language models", 2023, https://doi.org/10.1145/3581784.3607102 (step time as a sum of
    named parts).

    >>> step_time(data_stall=0.5, h2d=0.125, compute=1.0, communication=0.25)
    1.875
    """
    waits = data_stall + h2d + communication + bubble + checkpoint + other
    return waits + compute


def exposed_communication(
    communication: Seconds | Real, window: Seconds | Real, last: Seconds | Real = 0.0
) -> Seconds | Real:
    """Return the communication that compute does not hide.

    ``max(last, communication - window)``. `last` is the last collective, which starts when the
    compute is over.

    Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training",
    2020, https://arxiv.org/abs/2006.15704 (gradient buckets reduced while the backward pass goes
    on).

    30 ms of collectives under 50 ms of backward, the last bucket takes 2 ms; then under 10 ms:

    >>> [round(float(exposed_communication(0.03, w, 0.002)), 9) for w in (0.05, 0.01)]
    [0.002, 0.02]
    """
    exposed: Real = np.maximum(last, communication - window)
    return exposed


def contended(
    share: Real, communication: Seconds | Real, before_last: Real, backward: Seconds | Real
) -> Seconds | Real:
    """Return the compute time lost to communication kernels that run at the same time.

    ``share * min(before_last * communication, backward)``. `share` is the time lost for each second
    of overlap, `before_last` the part of all `communication` that may overlap with the `backward`
    pass.

    Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training",
    2020, https://arxiv.org/abs/2006.15704.

    >>> float(contended(0.5, 0.25, 0.75, 0.5))
    0.09375
    """
    return share * at_most(before_last * communication, backward)


def optimizer_time(
    traffic: Bytes | Real, bandwidth: BytesPerSecond | Real, launches: Seconds | Real
) -> Seconds | Real:
    """Return the time of an optimizer update on the device.

    ``traffic / bandwidth + launches``. `launches` is the host's launch time once a step.

    Source: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
    Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785.

    >>> optimizer_time(1e9, 2e12, 0.0005)
    0.001
    """
    return traffic / bandwidth + launches


def waited_exchange(
    exposed: Seconds | Real, sent: Seconds | Real, slowness: Real
) -> Seconds | Real:
    """Return the exposed communication of one micro-batch on its pipeline stage.

    ``(max(0, exposed) + sent) * slowness``. `exposed` is the exchange that compute does not hide,
    negative where compute is longer; `sent` is the exposed part of sends between stages, `slowness`
    the factor of a slower machine.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, https://arxiv.org/abs/2104.04473.

    >>> float(waited_exchange(0.25, 0.25, 1.0))
    0.5
    """
    return (at_least(0.0, exposed) + sent) * slowness


def host_update_bytes(parameters: Real, state: Bytes | Real) -> Bytes | Real:
    """Return the host-memory traffic of an optimizer step on the host.

    ``parameters (4 + 2 (4 + state) + 2)``: the gradient is read, weight and state are read and
    written, all in fp32, and the weight is written once more in 16 bit for the device. Vector units
    of a few cores compute faster than memory delivers, so cores are not counted. `state` is the
    optimizer's, per parameter: 8 bytes for Adam.

    Source: Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021, section 5,
    https://arxiv.org/abs/2101.06840

    A billion parameters under Adam:

    >>> host_update_bytes(1e9, 8.0)
    30000000000.0
    """
    return parameters * (_FULL + 2.0 * (_FULL + state) + _HALF)


def late_copies(copies: Seconds | Real, behind: Seconds | Real, parts: Real) -> Seconds | Real:
    """Return the exposed time of copies that overlap with other work, part by part.

    ``max(copies / parts, copies - behind)``: gradients of the last layer that a backward pass
    reaches can hide behind nothing. `copies` is their time alone, `behind` the time of the work;
    the last of `parts` is ready only when the work has ended.

    Source: Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021, section
    4.2, https://arxiv.org/abs/2101.06840

    >>> float(late_copies(0.4, 1.0, 32.0)), float(late_copies(1.5, 1.0, 32.0))
    (0.0125, 0.5)
    """
    return at_least(copies / parts, copies - behind)


def batch_work(
    batch_size: Real, per_sample: Seconds | Real, per_batch: Seconds | Real = 0.0, scale: Real = 1.0
) -> Seconds | Real:
    """Return the CPU work of one batch.

    ``(batch_size * per_sample + per_batch) * scale``. `scale` converts seconds of the machine where
    the work was measured.

    Source: PyTorch documentation, torch.utils.data, "Working with collated and batched data",
    https://pytorch.org/docs/stable/data.html.

    >>> batch_work(32, 0.002, 0.016)
    0.08
    """
    return (batch_size * per_sample + per_batch) * scale


def decode_work(
    batch_size: Real, decode: Seconds | Real, augment: Seconds | Real, scale: Real = 1.0
) -> Seconds | Real:
    """Return the CPU work of decoding and augmenting one batch.

    ``batch_size * (decode + augment) * scale``. `decode` and `augment` are per sample; `scale` is
    as in `batch_work`.

    Source: PyTorch documentation, torch.utils.data, "Working with collated and batched data",
    https://pytorch.org/docs/stable/data.html.

    >>> decode_work(32, 0.0625, 0.0625)
    4.0
    """
    return batch_size * (decode + augment) * scale


def batch_bytes(batch_size: Real, bytes_per_sample: Bytes | Real) -> Bytes | Real:
    """Return the size of the samples of a batch.

    ``batch_size * bytes_per_sample``.

    Source: PyTorch documentation, torch.utils.data, "Working with collated and batched data",
    https://pytorch.org/docs/stable/data.html.

    >>> batch_bytes(32, 602112)
    19267584
    """
    return batch_size * bytes_per_sample


def copied_bytes(size: Bytes | Real) -> Bytes | Real:
    """Return the memory traffic of a copy within memory.

    ``2 * size``: one read and one write.

    Source: McCalpin, "STREAM: Sustainable Memory Bandwidth in High Performance Computers",
    https://www.cs.virginia.edu/stream/ (kernel Copy: one read and one write an element).

    >>> copied_bytes(1e6)
    2000000.0
    """
    return 2.0 * size


def mean_square_length(mean: Real) -> Real:
    """Return the mean square of sequence lengths that are uniform about their mean.

    ``mean^2 + w^2 / 3``: the second moment of a uniform distribution that reaches w to both
    sides, with ``w`` the lesser of ``mean`` and ``1 - mean``. It is the widest one of that mean.
    Lengths are relative to the longest possible one. Work on pairs of positions, as in attention,
    grows with the square of a sequence's length, so that a few long sequences among short ones cost
    more than the same number of mean length.

    Source: Krell et al., "Efficient Sequence Packing without Cross-contamination", 2021,
    https://arxiv.org/abs/2107.02027 (how lengths differ; own derivation).

    All lengths equally frequent; all of them full:

    >>> round(float(mean_square_length(0.5)), 4)
    0.3333
    >>> float(mean_square_length(1.0))
    1.0
    """
    reach = at_most(mean, 1.0 - mean)
    square: Real = mean**2 + reach**2 / 3.0
    return square


def iterations_per_epoch(samples: Real, batch: Real, *, drop_last: Flag) -> Real:
    """Return the steps of one pass over the data.

    ``floor(samples / batch)`` if the last is dropped, else ``ceil(samples / batch)``. `batch` is
    that of all ranks.

    Source: PyTorch documentation, torch.utils.data.DataLoader, argument drop_last,
    https://pytorch.org/docs/stable/data.html

    >>> [float(iterations_per_epoch(1_281_167, 32, drop_last=drop)) for drop in (True, False)]
    [40036.0, 40037.0]
    """
    batches = samples / batch
    count: Real = np.where(drop_last, np.floor(batches), np.ceil(batches))[()]
    return count


EULER = 0.5772156649015329
AHEAD = 8
"""Terms by which the series is shifted to where it converges fast."""


def harmonic(number: Real) -> Real:
    """Return the harmonic number, between whole numbers too.

    ``sum(1 / k for k in 1..number)``, from the asymptotic series of the digamma function eight
    terms on, right to 1e-11.

    Source: Abramowitz, Stegun, "Handbook of Mathematical Functions", 1964, 6.3.18.

    >>> round(float(harmonic(1)), 6), round(float(harmonic(4)), 6), round(float(harmonic(1000)), 4)
    (1.0, 2.083333, 7.4855)
    """
    on = number + AHEAD
    series = np.log(on) + EULER + 1.0 / (2.0 * on) - 1.0 / (12.0 * on**2) + 1.0 / (120.0 * on**4)
    series = series - 1.0 / (252.0 * on**6)
    total: Real = series - sum(1.0 / (number + term) for term in range(1, AHEAD + 1))
    return total


def wait_for_slowest(delay: Seconds | Real, ranks: Real) -> Seconds | Real:
    """Return the mean time that a rank waits at a barrier for randomly delayed ranks.

    ``delay * (harmonic(ranks) - 1)``: the largest of n exponential delays has the mean ``delay *
    harmonic(n)``. It grows with the logarithm of the ranks. `delay` is the mean of independent,
    exponential delays.

    Source: Renyi, "On the theory of order statistics", Acta Math. Hung. 4 (1953) 191-231,
    https://doi.org/10.1007/BF02127580

    >>> round(float(wait_for_slowest(0.24, 1)), 9), round(float(wait_for_slowest(0.24, 4)), 6)
    (0.0, 0.26)
    """
    wait: Real = np.maximum(0.0, delay * (harmonic(ranks) - 1.0))
    return wait


def left_to_wait(wait: Seconds | Real, lag: Seconds | Real) -> Seconds | Real:
    """Return the additional wait for slow devices after waiting for the latest rank.

    ``sqrt(wait ** 2 + lag ** 2) - lag``. The rank that is late is rarely the one whose device is
    slow: variances of independent causes add up, not their largest values. Exact where both are
    normal, and where one of them is zero. `wait` is how much longer than the mean the slowest
    device takes, `lag` how late the latest rank is for other reasons.

    Source: David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1: the largest of normal
    draws is a multiple of their deviation.

    >>> float(left_to_wait(3.0, 0.0)), float(left_to_wait(3.0, 4.0))
    (3.0, 1.0)
    """
    left: Real = np.hypot(wait, lag) - lag
    return left


def mean_delay(share: Real, batch: Seconds | Real, batches: Real) -> Seconds | Real:
    """Return the mean random delay of a rank in a step.

    ``share * batch * batches``. `share` is the delay over compute, `batch` the compute of one
    batch.

    Source: Renyi, "On the theory of order statistics", Acta Math. Hung. 4 (1953) 191-231,
    https://doi.org/10.1007/BF02127580

    >>> mean_delay(0.25, 0.5, 4.0)
    0.5
    """
    return share * batch * batches


def wait_for_slow_device(
    compute: Seconds | Real, slowest: Real, straggling: Real
) -> Seconds | Real:
    """Return the time that devices wait in a step for the slowest of them.

    ``compute * (slowest - 1) / straggling``. `slowest` is its time over the mean; `straggling` is
    the calibration, the predicted over the measured wait.

    Source: David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1

    >>> wait_for_slow_device(2.0, 1.25, 1.0)
    0.5
    """
    return compute * (slowest - 1.0) / straggling


def expected_slowest(ranks: Real) -> Real:
    """Return about how many standard deviations the slowest of `ranks` trails the mean.

    ``.7 sqrt(2 ln n)``: near the mean of the maximum of n normal draws up to some tens, to whose
    growth ``sqrt(2 ln n)`` belongs.

    Source: Cramer, "Mathematical Methods of Statistics", 1946, section 28.6, ISBN 0-691-00547-8

    >>> float(expected_slowest(1.0)), round(float(expected_slowest(8.0)), 2)
    (0.0, 1.43)
    """
    deviations: Real = 0.70 * plain(np.sqrt(at_least(0.0, 2.0 * np.log(ranks))))
    return deviations
