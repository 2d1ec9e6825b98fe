"""Closed forms of pipelined training: stages, 1F1B, and two timelines that overlap.

References
----------
.. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", section 2.2, https://arxiv.org/abs/2104.04473
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import Real, Seconds


def stage_layers(layers: Real, stages: Real) -> tuple[Real, Real]:
    """Layers of the two end stages and of those between.

    Equal where they divide; else the ends, which hold embedding and head, get fewer.

    Examples
    --------
    >>> ends, between = stage_layers(126.0, 16.0)
    >>> float(ends), float(between)
    (7.0, 8.0)
    """
    between = np.ceil(layers / stages - 1e-9)
    ends = np.where(stages > 1, (layers - (stages - 2) * between) / 2.0, layers)
    return ends, between


_ENDS: Final = 2.0
"""Stages that hold the embedding or the head."""


def slowest_stage(first: Real, middle: Real, last: Real, stages: Real) -> Real:
    """Time of the slowest stage; there is a middle one from three stages on [s].

    Examples
    --------
    >>> float(slowest_stage(1.0, 9.0, 2.0, 2.0)), float(slowest_stage(1.0, 9.0, 2.0, 3.0))
    (2.0, 9.0)
    """
    slow: Real = np.maximum(np.maximum(first, last), np.where(stages > _ENDS, middle, 0.0))
    return slow


def pipeline_bubble(
    first: Real, middle: Real, last: Real, stages: Real, chunks: Real
) -> Seconds | Real:
    """Time the slowest stage waits in a step of 1F1B: each other stage once [1]_ [s].

    With `chunks` chunks of layers on a device it waits only for a chunk of each.

    Examples
    --------
    Four equal stages of one second: three seconds, or one with three chunks.

    >>> float(pipeline_bubble(1.0, 1.0, 1.0, 4.0, 1.0))
    3.0
    >>> float(pipeline_bubble(1.0, 1.0, 1.0, 4.0, 3.0))
    1.0
    """
    slow = slowest_stage(first, middle, last, stages)
    total = np.where(stages > 1, first + last + (stages - _ENDS) * middle, first)
    bubble: Real = np.where(stages > 1, np.maximum(0.0, total - slow) / chunks, 0.0)
    return bubble


def overlapped(one: Real, other: Real, sharpness: float) -> Real:
    """Time of two timelines that run ahead of each other imperfectly [s].

    (a^n + b^n)^(1/n): the longer one where they differ much, more where they are alike.

    Examples
    --------
    >>> float(overlapped(3.0, 4.0, 2.0))
    5.0
    """
    most = np.maximum(np.maximum(one, other), 1e-12)
    least = np.minimum(one, other) / most
    length: Real = most * (1.0 + least**sharpness) ** (1.0 / sharpness)
    return length


def expected_slowest(ranks: Real) -> Real:
    """How many deviations the slowest of some ranks is above the mean, about.

    .7 sqrt(2 ln n), near the mean of the maximum of n normal deviates up to some tens.

    Examples
    --------
    >>> float(expected_slowest(1.0)), round(float(expected_slowest(8.0)), 2)
    (0.0, 1.43)
    """
    deviations: Real = 0.70 * np.sqrt(np.maximum(0.0, 2.0 * np.log(ranks)))
    return deviations
