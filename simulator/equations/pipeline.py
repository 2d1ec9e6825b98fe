"""Closed forms of pipelined training: stages, 1F1B, and two timelines that overlap."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import Real, at_least, at_most, plain, rounded_up, where

_ENDS: Final = 2.0
"""Stages that hold the embedding or the head."""
_NEARLY: Final = 1e-9


def middle_layers(layers: Real, stages: Real) -> Real:
    """Layers of a stage between the first and the last.

    Parameters
    ----------
    layers : float or array
        Layers of the model [1].
    stages : float or array
        Stages of the pipeline [1].

    Returns
    -------
    float or array
        Layers [1].

    Notes
    -----
    ``ceil(layers / stages)``: where they do not divide, the ends, which hold more, get fewer.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> float(middle_layers(126.0, 16.0))
    8.0
    """
    whole: Real = rounded_up(layers / stages - _NEARLY)
    return whole


def end_layers(layers: Real, stages: Real) -> Real:
    """Layers of the first stage, and of the last.

    Parameters
    ----------
    layers : float or array
        Layers of the model [1].
    stages : float or array
        Stages of the pipeline [1].

    Returns
    -------
    float or array
        Layers [1].

    Notes
    -----
    Half of what ``middle_layers`` leaves, ``(layers - (stages - 2) middle) / 2``, and no fewer than
    none: where that would be negative, not all stages between hold as many. All of them on a
    single stage.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> float(end_layers(126.0, 16.0)), float(end_layers(126.0, 1.0))
    (7.0, 126.0)

    80 layers over 32 stages, up to three on each of those between:

    >>> float(end_layers(80.0, 32.0))
    0.0
    """
    left = at_least((layers - (stages - _ENDS) * middle_layers(layers, stages)) / _ENDS, 0.0)
    several = where(stages > 1.0, 1.0, 0.0)
    return several * left + (1.0 - several) * layers


def front_layers(layers: Real, stages: Real, head: Real) -> Real:
    """Layers of the first stage where stages are dealt by what layers compute.

    Parameters
    ----------
    layers : float or array
        Layers of the model [1].
    stages : float or array
        Stages of the pipeline [1].
    head : float or array
        What the head computes, in layers [1].

    Returns
    -------
    float or array
        Layers [1].

    Notes
    -----
    A stage takes layers until all together exceed its share,
    ``floor((layers + head) / stages) + 1``, and all of them where there is one stage.

    References
    ----------
    .. [1] huggingface/nanotron 0.4, ``models/base.py``, ``build_model``,
       https://pypi.org/project/nanotron/0.4/

    Examples
    --------
    16 layers and a head as large as four of them on two stages:

    >>> float(front_layers(16.0, 2.0, 4.0)), float(front_layers(16.0, 1.0, 4.0))
    (11.0, 16.0)
    """
    part = (layers + head) / stages
    dealt: Real = at_most(rounded_up(part - 1.0 + _NEARLY) + 1.0, layers)
    return where(stages > 1.0, dealt, layers)


def back_layers(layers: Real, stages: Real, head: Real) -> Real:
    """Layers of the last stage, which has the head, where stages are dealt by what layers compute.

    Parameters
    ----------
    layers : float or array
        Layers of the model [1].
    stages : float or array
        Stages of the pipeline [1].
    head : float or array
        What the head computes, in layers [1].

    Returns
    -------
    float or array
        Layers [1].

    Notes
    -----
    What the stages before leave,
    ``layers - floor((stages - 1) (layers + head) / stages) - 1``, and no fewer than none.

    References
    ----------
    .. [1] huggingface/nanotron 0.4, ``models/base.py``, ``build_model``,
       https://pypi.org/project/nanotron/0.4/

    Examples
    --------
    >>> float(back_layers(16.0, 2.0, 4.0)), float(back_layers(80.0, 16.0, 1.1))
    (5.0, 3.0)
    """
    before = (stages - 1.0) * (layers + head) / stages
    left = at_least(layers - rounded_up(before - 1.0 + _NEARLY) - 1.0, 0.0)
    return where(stages > 1.0, left, layers)


def slowest_stage(first: Real, middle: Real, last: Real, stages: Real) -> Real:
    """Time of the slowest stage for one micro-batch.

    Parameters
    ----------
    first : float or array
        Time of the first stage [s].
    middle : float or array
        Time of one between [s].
    last : float or array
        Time of the last one [s].
    stages : float or array
        Stages of the pipeline [1].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``max(first, middle, last)``; there is a middle stage from three on.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> float(slowest_stage(1.0, 9.0, 2.0, 2.0)), float(slowest_stage(1.0, 9.0, 2.0, 3.0))
    (2.0, 9.0)
    """
    between = where(stages > _ENDS, middle, 0.0)
    slow: Real = at_least(at_least(first, last), between)
    return slow


def pipeline_bubble(first: Real, middle: Real, last: Real, stages: Real, chunks: Real) -> Real:
    """Time the slowest stage waits for the others in a step of 1F1B.

    Parameters
    ----------
    first : float or array
        Time of a micro-batch on the first stage [s].
    middle : float or array
        Time on one between [s].
    last : float or array
        Time on the last one [s].
    stages : float or array
        Stages of the pipeline [1].
    chunks : float or array
        Chunks of layers that a device holds [1].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``(first + last + (stages - 2) middle - slowest) / chunks``: each other stage once, or as much
    of it as a chunk is.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

    Examples
    --------
    Four equal stages of one second; the same with three chunks on each device:

    >>> float(pipeline_bubble(1.0, 1.0, 1.0, 4.0, 1.0))
    3.0
    >>> float(pipeline_bubble(1.0, 1.0, 1.0, 4.0, 3.0))
    1.0
    """
    total = first + last + (stages - _ENDS) * middle
    several = where(stages > 1.0, 1.0, 0.0)
    return several * (total - slowest_stage(first, middle, last, stages)) / chunks


def overlapped(one: Real, other: Real, sharpness: Real) -> Real:
    """Time of two timelines that run ahead of each other imperfectly.

    Parameters
    ----------
    one : float or array
        Length of one of them [s].
    other : float or array
        Length of the other [s].
    sharpness : float or array
        How sharply the longer one decides; 1: both add up [1].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``(one^n + other^n)^(1/n)``: the longer one where they differ much, more where they are
    alike. A fitted form, not derived.

    References
    ----------
    .. [1] Smooth maximum by the p-norm, "Smooth maximum",
       https://en.wikipedia.org/wiki/Smooth_maximum

    Examples
    --------
    >>> float(overlapped(3.0, 4.0, 2.0))
    5.0
    """
    most = at_least(at_least(one, other), 1e-12)
    least = at_most(one, other) / most
    length: Real = most * (1.0 + least**sharpness) ** (1.0 / sharpness)
    return length


def device_work(  # noqa: PLR0913 - the parts of a pass
    *,
    products: Real,
    attention: Real,
    passes: Real,
    starts: Real,
    again: Real,
    accumulated: Real,
) -> Real:
    """Work of a device in one pass of a layer, or of a whole model, kernel after kernel.

    Parameters
    ----------
    products : float or array
        Matrix products, with the clock that they sink to [s].
    attention : float or array
        Attention, in one kernel or with its scores in memory [s].
    passes : float or array
        Kernels that only move memory: norms, activations, dropout, casts [s].
    starts : float or array
        What kernels take to start on the device [s].
    again : float or array
        Forward work that a backward pass does once more [s].
    accumulated : float or array
        Gradients added to those of micro-batches before [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``products + attention + passes + starts + again + accumulated``: kernels of one stream follow
    one another.

    References
    ----------
    .. [1] NVIDIA, "CUDA C++ Programming Guide", Streams,
       https://docs.nvidia.com/cuda/cuda-c-programming-guide/#streams

    Examples
    --------
    >>> parts = {"products": 4.0, "attention": 1.0, "passes": 2.0, "starts": 0.5}
    >>> device_work(**parts, again=0.0, accumulated=0.25)
    7.75
    """
    return (products + (attention + passes + starts)) + (again + accumulated)


def layer_time(device: Real, launches: Real, sharpness: Real, in_turn: Real) -> Real:
    """One pass of a layer on the timelines of the device and of the host that launches for it.

    Parameters
    ----------
    device : float or array
        Work of the device, with exchange it waits for [s].
    launches : float or array
        The host's time to launch it [s].
    sharpness : float or array
        How sharply the longer one decides; 1: both add up [1].
    in_turn : float or array
        What the host does while the device waits [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``overlapped(device, launches, sharpness) + in_turn``.

    References
    ----------
    .. [1] Smooth maximum by the p-norm, "Smooth maximum",
       https://en.wikipedia.org/wiki/Smooth_maximum

    Examples
    --------
    >>> float(layer_time(3.0, 4.0, 2.0, 0.5))
    5.5
    """
    return overlapped(device, launches, sharpness) + in_turn


def stage_time(layers: Real, layer: Real, ends: Real) -> Real:
    """One pass of a micro-batch over a stage of the pipeline.

    Parameters
    ----------
    layers : float or array
        Layers of the stage [1].
    layer : float or array
        The pass of one of them [s].
    ends : float or array
        The embedding, the head and the loss, as far as the stage has them [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``layers * layer + ends``.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", 2021,
       section 2.2, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> stage_time(32.0, 0.25, 1.0)
    9.0
    """
    return layer * layers + ends


def expected_slowest(ranks: Real) -> Real:
    """How many deviations the slowest of some ranks is behind the mean, about.

    Parameters
    ----------
    ranks : float or array
        Ranks that wait for one another [1].

    Returns
    -------
    float or array
        Standard deviations [1].

    Notes
    -----
    ``.7 sqrt(2 ln n)``: near the mean of the maximum of n normal draws up to some tens, to whose
    growth ``sqrt(2 ln n)`` belongs.

    References
    ----------
    .. [1] Cramer, "Mathematical Methods of Statistics", 1946, section 28.6, ISBN 0-691-00547-8

    Examples
    --------
    >>> float(expected_slowest(1.0)), round(float(expected_slowest(8.0)), 2)
    (0.0, 1.43)
    """
    deviations: Real = 0.70 * plain(np.sqrt(at_least(0.0, 2.0 * np.log(ranks))))
    return deviations
