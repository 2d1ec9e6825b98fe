"""Naive predictors, each against a figure worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.schema.measurement import Baseline, MeasurementSet, Row, Split, SplitRule
from simulator.validation.features import Features
from simulator.validation.scores import Seen, baseline, is_speed

STEP, RATE = "step_time_s.mean", "throughput_samples_per_s"
SET = MeasurementSet(
    name="made up",
    title="made up",
    source="made up",
    date="2026-11",
    rows=(),
    metrics=(STEP,),
    split=SplitRule.GIVEN,
    group_by=("machine",),
    baseline_by=("machine",),
)


def seen(  # noqa: PLR0913 - each figure of a row
    name: str,
    value: float,
    *,
    metric: str = STEP,
    machine: str = "m",
    split: Split = Split.TEST,
    anchor: bool = False,
    devices: int = 1,
    samples: float = 32.0,
    operations: float | None = 32e12,
    slowest: float | None = None,
) -> Seen:
    """A row with its facts; each device does 100 TFLOP/s."""
    row = Row(
        id=name,
        base="",
        overrides=(),
        measured={metric: value},
        family="f",
        split=split,
        labels={"machine": machine},
        anchor=anchor,
    )
    features = Features(
        devices=devices,
        samples=samples,
        operations=operations,
        peak=1e14 * devices,
        numbers={},
        words={},
        slowest=slowest,
    )
    return Seen(row=row, features=features)


def test_a_constant_is_the_median_of_the_fit_rows_alike() -> None:
    """Fit rows of the same machine: 1, 2 and 6; another machine has no fit row, so all count."""
    rows = [seen(f"f{i}", v, split=Split.FIT) for i, v in enumerate((1.0, 2.0, 6.0))]
    rows += [seen("t", 100.0), seen("o", 7.0, machine="n"), seen("p", 9.0, machine="n")]
    found = baseline(SET, rows, STEP)
    assert (found["t"], found["f0"], found["o"]) == (2.0, 2.0, 8.0)


def test_a_constant_rate_counts_per_device() -> None:
    """100 samples/s on one device are 800 on eight."""
    rows = [seen("f", 100.0, metric=RATE, split=Split.FIT), seen("t", 1.0, metric=RATE, devices=8)]
    assert baseline(SET, rows, RATE)["t"] == 800.0


def test_a_constant_does_not_see_test_rows() -> None:
    """What was measured on a test row changes nothing where there are fit rows."""
    rows = [seen("f", 1.0, split=Split.FIT), seen("t", 5.0)]
    other = [rows[0], seen("t", 50.0)]
    assert baseline(SET, rows, STEP) == baseline(SET, other, STEP)


@pytest.mark.parametrize(
    ("metric", "anchor", "expected"),
    [
        # One device makes 320 samples/s. Eight of them, of 32 samples a step each, need the same
        # 0.1 s a step; make 2,560 samples/s.
        (STEP, 0.1, 0.1),
        (RATE, 320.0, 2560.0),
    ],
)
def test_linear_scaling(metric: str, anchor: float, expected: float) -> None:
    """Throughput grows with the devices from the smallest anchor on."""
    linear = replace(SET, baseline=Baseline.LINEAR)
    rows = [
        seen("big", 9.9, metric=metric, anchor=True, devices=4, samples=128.0),
        seen("one", anchor, metric=metric, anchor=True),
        seen("t", 0.2, metric=metric, devices=8, samples=256.0),
        seen("alone", 0.2, metric=metric, machine="n"),
    ]
    found = baseline(linear, rows, metric)
    assert found["t"] == pytest.approx(expected)
    assert "alone" not in found


def test_linear_scaling_of_one_batch_shared_by_more() -> None:
    """The same 32 samples on four devices take a quarter of the time."""
    linear = replace(SET, baseline=Baseline.LINEAR)
    rows = [seen("one", 0.1, anchor=True), seen("t", 0.2, devices=4)]
    assert baseline(linear, rows, STEP)["t"] == pytest.approx(0.025)


def test_the_slowest_part() -> None:
    """A step takes what its slowest part takes; a rate is samples over that."""
    slow = replace(SET, baseline=Baseline.SLOWEST_PART)
    assert baseline(slow, [seen("t", 1.0, slowest=0.25)], STEP)["t"] == pytest.approx(0.25)
    rate = baseline(slow, [seen("t", 1.0, metric=RATE, slowest=0.25)], RATE)
    assert rate["t"] == pytest.approx(128.0)


def test_one_mfu_for_all() -> None:
    """Fit rows reach 40%, 50% and 80% of the peak: 50% of it on two devices take 0.32 s."""
    mfu = replace(SET, baseline=Baseline.CONSTANT_MFU)
    ideal = 0.32
    rows = [
        seen(f"f{i}", ideal / share, split=Split.FIT) for i, share in enumerate((0.4, 0.5, 0.8))
    ]
    rows += [seen("t", 99.0, devices=2), seen("none", 1.0, operations=None)]
    found = baseline(mfu, rows, STEP)
    assert found["t"] == pytest.approx(0.32)
    assert found["f2"] == pytest.approx(0.64)
    assert "none" not in found


@pytest.mark.parametrize("kind", [Baseline.LINEAR, Baseline.SLOWEST_PART, Baseline.CONSTANT_MFU])
def test_a_baseline_of_speed_says_nothing_of_a_share(kind: Baseline) -> None:
    """Utilization has only the constant to be compared with."""
    rows = [seen("t", 0.5, metric="accelerator_utilization", anchor=True, slowest=0.1)]
    assert baseline(replace(SET, baseline=kind), rows, "accelerator_utilization") == {}


def test_every_baseline_has_its_rule() -> None:
    """No kind of baseline is forgotten."""
    rows = [seen("t", 0.5, anchor=True, slowest=0.1)]
    for kind in Baseline:
        assert set(baseline(replace(SET, baseline=kind), rows, STEP)) == {"t"}


def test_what_is_a_speed() -> None:
    """Steps and rates by whatever name, not parts of a step and not shares."""
    assert all(is_speed(m) for m in (STEP, RATE, "storage.step_time_s", "x.v2_samples_per_s"))
    others = ("step_time_s.p95", "first_step_s", "step_split_s.h2d", "accelerator_utilization")
    assert not any(is_speed(m) for m in others)
