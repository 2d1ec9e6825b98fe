"""The nearest rows: distances by hand, and the error of the rows that are found."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.reading.measured.measurement_set import parse_set
from simulator.reading.scenario import load_scenario
from simulator.validation.features import Features, features_of
from simulator.validation.local_coverage import MAX_DISTANCE, differences, distance, nearest

TOML = """
schema = 1
name = "mine"
title = "A test"
data = "mine.csv"
base = "resnet18-imagenet-one-worker"
source = "made up"
date = "2026-11"
metrics = ["step_time_s.mean"]
split = "test"
"""
ROWS = """id,base,input.workers,train.batch_size,measured.step_time_s.mean,exclude
far,resnet18-imagenet-one-worker,1,256,3.0,
near,resnet18-imagenet-one-worker,1,64,0.8,
same,resnet18-imagenet-one-worker,1,32,0.4,
other,resnet50-m40,,,0.3,
left,resnet18-imagenet-one-worker,1,32,,broken
"""
OWN = Features(
    devices=1,
    samples=1.0,
    operations=None,
    peak=None,
    numbers={"batch size": 8.0, "workers": 2.0},
    words={"accelerator": "gpu/a"},
)


def _away(batch: int, other: int) -> float:
    """The distance of two batch sizes, with the device times that come with them."""
    name, key = "resnet18-imagenet-one-worker", "device time a batch"
    times = [
        features_of(load_scenario(name, overrides=(f"train.batch_size={size}",))).numbers[key]
        for size in (batch, other)
    ]
    return math.hypot(math.log2(batch / other), math.log2(times[0] / times[1]))


def test_distances_are_factors_of_two() -> None:
    """Four times the batch is 2, half the workers 1, another accelerator 2: the root of 4+1+4."""
    other = replace(OWN, numbers={"batch size": 32.0, "workers": 1.0}, words={"accelerator": "b"})
    assert distance(OWN, other) == pytest.approx(3.0)
    assert distance(other, OWN) == pytest.approx(3.0)
    assert distance(OWN, OWN) == 0.0


def test_a_single_feature_counts_only_so_far() -> None:
    """A million times the batch is not farther than 32 times, and what one lacks counts 2."""
    huge = replace(OWN, numbers={"batch size": 8e6, "workers": 2.0})
    assert distance(OWN, huge) == MAX_DISTANCE
    assert distance(OWN, replace(OWN, numbers={"batch size": 8.0})) == 2.0


def test_what_differs_is_said_largest_first() -> None:
    """Ratios of numbers, and both words."""
    other = replace(OWN, numbers={"batch size": 64.0, "workers": 2.0}, words={"accelerator": "b"})
    assert differences(OWN, other) == {"batch size": "8x", "accelerator": "b, not gpu/a"}
    assert differences(OWN, OWN) == {}


def test_the_nearest_rows_and_their_error() -> None:
    """Equal rows first, then by batch, another machine last; excluded rows are not compared."""
    found = nearest(
        load_scenario("resnet18-imagenet-one-worker"),
        [parse_set(TOML, ROWS, "mine.toml", Path())],
        most=3,
        processes=1,
    )
    assert [near.row.id for near in found.rows] == ["same", "near", "far"]
    # Twice (and eight times) the batch also takes the device nearly so much longer.
    expected = [0.0, _away(64, 32), _away(256, 32)]
    assert [near.distance for near in found.rows] == pytest.approx(expected)
    assert found.compared == 4
    assert found.rows[1].apart == {"batch size": "2x", "device time a batch": "1.91x"}
    [judged] = found.rows[0].judged
    assert judged.error == pytest.approx(judged.point.predicted / 0.4 - 1.0)
    # One row is equal: the others, farther than a factor of two, say nothing of the error.
    assert found.reach == 1.0
    assert found.scores["step_time_s.mean"].rows == 1


@pytest.mark.parametrize(
    ("batch", "reach", "rows"),
    [(32, 1.0, 1), (44, 2.0 * _away(44, 32), 2), (2048, 3.0, 0)],
)
def test_errors_of_rows_too_far_are_not_mixed(batch: int, reach: float, rows: int) -> None:
    """Up to twice the distance of the nearest, and never farther than a factor of eight."""
    found = nearest(
        load_scenario("resnet18-imagenet-one-worker", overrides=(f"train.batch_size={batch}",)),
        [parse_set(TOML, ROWS, "mine.toml", Path())],
        processes=1,
    )
    assert found.reach == pytest.approx(reach, abs=0.01)
    assert sum(score.rows for score in found.scores.values()) == rows


def test_facts_describe_the_scenario() -> None:
    """Eight A100s, 2,048 samples a step, and what the model's shape says of its operations."""
    features = features_of(load_scenario("resnet50-imagenet-p4d"))
    assert (features.devices, features.words["accelerator"]) == (8, "gpu/a100-sxm4-40gb")
    assert features.samples == 8 * features.numbers["batch size"]
    assert features.operations is not None
    # A forward pass of ResNet-50 at 224 x 224 takes 8.2 GFLOP, a training step three times that.
    assert features.operations / features.samples == pytest.approx(3 * 8.2e9, rel=0.02)
    assert features.peak == pytest.approx(8 * 312e12)
    assert features.slowest is None


def test_a_machine_without_accelerators_counts_as_one_device() -> None:
    """A CPU job has neither operations on a device nor a peak."""
    features = features_of(load_scenario("offline-preparation"))
    assert (features.devices, features.peak) == (1, None)
    assert features.words["accelerator"] == "none"
