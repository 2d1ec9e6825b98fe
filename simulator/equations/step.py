"""The training step: the sum of its parts, and the exposed part of each."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import (
    Bytes,
    BytesPerSecond,
    Real,
    Seconds,
    at_least,
    at_most,
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
    """Return the exposed exchange of one micro-batch on its stage.

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
