"""Pipelines in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.equations.pipeline import (
    back_layers,
    device_work,
    end_layers,
    front_layers,
    layer_time,
    middle_layers,
    overlapped,
    pipeline_bubble,
    slowest_stage,
)


@pytest.mark.parametrize(
    ("layers", "stages"), [(96.0, 8.0), (126.0, 16.0), (62.0, 8.0), (7.0, 1.0)]
)
def test_stages_hold_all_layers(layers: float, stages: float) -> None:
    """Ends and middles together are the model."""
    if stages == 1.0:
        assert end_layers(layers, stages) == layers
        return
    whole = 2.0 * end_layers(layers, stages) + (stages - 2.0) * middle_layers(layers, stages)
    assert whole == pytest.approx(layers)
    assert end_layers(layers, stages) <= middle_layers(layers, stages)


@pytest.mark.parametrize(("layers", "stages"), [(80.0, 32.0), (9.0, 8.0), (100.0, 64.0)])
def test_no_stage_holds_fewer_than_no_layers(layers: float, stages: float) -> None:
    """Where stages between are counted as full ones, those at the ends are left with none."""
    assert end_layers(layers, stages) == 0.0
    assert middle_layers(layers, stages) == math.ceil(layers / stages)


def dealt(layers: int, stages: int, head: float) -> list[int]:
    """Layers of each stage as nanotron's `build_model` deals blocks of given costs, one by one."""
    costs = np.cumsum([*[1.0] * layers, head])
    limits = [costs[-1] * (stage + 1) / stages for stage in range(stages - 1)] + [np.inf]
    counts, stage = [0] * stages, 0
    for block, whole in enumerate(costs):
        counts[stage] += block < layers
        stage += bool(whole > limits[stage])
    return counts


@pytest.mark.parametrize(
    ("layers", "stages", "head"),
    [(16, 2, 4.0), (32, 4, 2.2), (80, 16, 1.1), (80, 32, 1.1), (28, 2, 3.5), (12, 1, 3.0)],
)
def test_stages_dealt_by_compute_are_those_of_the_source(
    layers: int, stages: int, head: float
) -> None:
    """The closed form of both ends is what dealing block by block comes to."""
    counts = dealt(layers, stages, head)
    assert front_layers(float(layers), float(stages), head) == counts[0] == max(counts)
    assert back_layers(float(layers), float(stages), head) == counts[-1]


def test_the_slowest_of_two_stages_is_an_end() -> None:
    """A middle stage counts only where there is one."""
    stages = np.array([2.0, 3.0])
    assert list(slowest_stage(1.0, 5.0, 2.0, stages)) == [2.0, 5.0]


def test_the_bubble_is_the_published_share() -> None:
    """(p - 1) / (m v) of the ideal time, with equal stages."""
    stages, batches, chunks = 8.0, 64.0, 3.0
    bubble = pipeline_bubble(1.0, 1.0, 1.0, stages, chunks)
    assert bubble / batches == pytest.approx((stages - 1.0) / batches / chunks)
    assert pipeline_bubble(1.0, 1.0, 1.0, 1.0, 1.0) == 0.0


def test_overlap_lies_between_the_longer_and_the_sum() -> None:
    """Whatever the sharpness from 1 on."""
    for sharpness in (1.0, 2.9, 20.0):
        both = overlapped(2.0, 3.0, sharpness)
        assert 3.0 <= both <= 5.0 + 1e-12
    assert overlapped(2.0, 3.0, 1.0) == pytest.approx(5.0)
    assert overlapped(0.0, 3.0, 2.9) == pytest.approx(3.0)


def test_a_pass_of_a_layer_is_kernels_that_follow_one_another() -> None:
    """7.75 s of work, launched in no time but for half a second."""
    parts = {"products": 4.0, "attention": 1.0, "passes": 2.0, "starts": 0.5}
    device = device_work(**parts, again=0.0, accumulated=0.25)
    assert device == 7.75
    layer = layer_time(device, 0.0, 2.8, 0.5)
    assert layer == pytest.approx(8.25)
    assert layer_time(device, device, 1.0, 0.0) == pytest.approx(2.0 * device)
