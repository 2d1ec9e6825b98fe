"""Pipelined training in closed form: layers of stages, 1F1B, and timelines that overlap."""

from __future__ import annotations

from typing import Final

from simulator.units import (
    Real,
    Seconds,
    at_least,
    at_most,
    rounded_up,
    where,
)

_ENDS: Final = 2.0
"""Stages that hold the embedding or the head."""
_NEARLY: Final = 1e-9


def middle_layers(layers: Real, stages: Real) -> Real:
    """Return the layers of a stage between the first and the last.

    ``ceil(layers / stages)``: where they do not divide, the ends, which hold more, get fewer.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

    >>> float(middle_layers(126.0, 16.0))
    8.0
    """
    whole: Real = rounded_up(layers / stages - _NEARLY)
    return whole


def end_layers(layers: Real, stages: Real) -> Real:
    """Return the number of layers on the first stage, which equals that on the last.

    Half of the layers that ``middle_layers`` leaves, ``(layers - (stages - 2) middle) / 2``, and at
    least 0: where that would be negative, some middle stages have fewer layers. A single stage has
    all layers.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

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
    """Return the layers of the first stage where stages are balanced by compute.

    A stage takes layers until all together exceed its share, ``floor((layers + head) / stages) +
    1``, and all of them where there is one stage. `head` is the head's compute in layers.

    Source: huggingface/nanotron 0.4, ``models/base.py``, ``build_model``,
    https://pypi.org/project/nanotron/0.4/

    16 layers and a head as large as four of them on two stages:

    >>> float(front_layers(16.0, 2.0, 4.0)), float(front_layers(16.0, 1.0, 4.0))
    (11.0, 16.0)
    """
    part = (layers + head) / stages
    dealt: Real = at_most(rounded_up(part - 1.0 + _NEARLY) + 1.0, layers)
    return where(stages > 1.0, dealt, layers)


def back_layers(layers: Real, stages: Real, head: Real) -> Real:
    """Return the layers of the last stage, with the head, where stages are balanced by compute.

    What the stages before leave, ``layers - floor((stages - 1) (layers + head) / stages) - 1``, and
    no fewer than none. `head` is the head's compute in layers.

    Source: huggingface/nanotron 0.4, ``models/base.py``, ``build_model``,
    https://pypi.org/project/nanotron/0.4/

    >>> float(back_layers(16.0, 2.0, 4.0)), float(back_layers(80.0, 16.0, 1.1))
    (5.0, 3.0)
    """
    before = (stages - 1.0) * (layers + head) / stages
    left = at_least(layers - rounded_up(before - 1.0 + _NEARLY) - 1.0, 0.0)
    return where(stages > 1.0, left, layers)


def slowest_stage(
    first: Seconds | Real, middle: Seconds | Real, last: Seconds | Real, stages: Real
) -> Seconds | Real:
    """Return the time of the slowest stage for one micro-batch.

    ``max(first, middle, last)``; there is a middle stage from three on.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

    >>> float(slowest_stage(1.0, 9.0, 2.0, 2.0)), float(slowest_stage(1.0, 9.0, 2.0, 3.0))
    (2.0, 9.0)
    """
    between = where(stages > _ENDS, middle, 0.0)
    slow: Real = at_least(at_least(first, last), between)
    return slow


def pipeline_bubble(
    first: Seconds | Real, middle: Seconds | Real, last: Seconds | Real, stages: Real, chunks: Real
) -> Seconds | Real:
    """Return the time that the slowest stage waits for the others in a step of 1F1B.

    ``(first + last + (stages - 2) middle - slowest) / chunks``: each other stage once, or as much
    of it as a chunk is. `first`, `middle` and `last` are a micro-batch's times on those stages,
    `chunks` the chunks of layers on each device.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473

    Four equal stages of one second; the same with three chunks on each device:

    >>> float(pipeline_bubble(1.0, 1.0, 1.0, 4.0, 1.0))
    3.0
    >>> float(pipeline_bubble(1.0, 1.0, 1.0, 4.0, 3.0))
    1.0
    """
    total = first + last + (stages - _ENDS) * middle
    several = where(stages > 1.0, 1.0, 0.0)
    return several * (total - slowest_stage(first, middle, last, stages)) / chunks


def overlapped(one: Seconds | Real, other: Seconds | Real, sharpness: Real) -> Seconds | Real:
    """Return the time of two timelines that overlap imperfectly.

    ``(one^n + other^n)^(1/n)``: the longer one where they differ much, more where they are equal. A
    fitted form, not derived. At a `sharpness` of 1 both add up; the higher it is, the more the
    longer one decides.

    Source: Smooth maximum by the p-norm, "Smooth maximum",
    https://en.wikipedia.org/wiki/Smooth_maximum

    >>> float(overlapped(3.0, 4.0, 2.0))
    5.0
    """
    most = at_least(at_least(one, other), 1e-12)
    least = at_most(one, other) / most
    length: Real = most * (1.0 + least**sharpness) ** (1.0 / sharpness)
    return length


def device_work(  # noqa: PLR0913 - the parts of a pass
    *,
    products: Seconds | Real,
    attention: Seconds | Real,
    passes: Seconds | Real,
    starts: Seconds | Real,
    again: Seconds | Real,
    accumulated: Seconds | Real,
) -> Seconds | Real:
    """Return the device time of one pass of a layer or a whole model, kernel after kernel.

    ``products + attention + passes + starts + again + accumulated``: kernels of one stream follow
    one another. `products` are matrix products at the throttled clock, `passes` kernels that only
    move memory (norms, activations, dropout, casts), `starts` their start-up on the device, `again`
    recomputed forward work, `accumulated` gradients added to those of earlier micro-batches.

    Source: NVIDIA, "CUDA C++ Programming Guide", Streams,
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#streams

    >>> parts = {"products": 4.0, "attention": 1.0, "passes": 2.0, "starts": 0.5}
    >>> device_work(**parts, again=0.0, accumulated=0.25)
    7.75
    """
    return (products + (attention + passes + starts)) + (again + accumulated)


def layer_time(
    device: Seconds | Real, launches: Seconds | Real, sharpness: Real, in_turn: Seconds | Real
) -> Seconds | Real:
    """Return the time of one pass of a layer, on the device and on the host that launches it.

    ``overlapped(device, launches, sharpness) + in_turn``. `device` includes exposed exchange;
    `in_turn` is host work during which the device waits; `sharpness` is as in `overlapped`.

    Source: Smooth maximum by the p-norm, "Smooth maximum",
    https://en.wikipedia.org/wiki/Smooth_maximum

    >>> float(layer_time(3.0, 4.0, 2.0, 0.5))
    5.5
    """
    return overlapped(device, launches, sharpness) + in_turn
