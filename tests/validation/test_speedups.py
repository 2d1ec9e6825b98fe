"""Ratios of runs on two types of accelerators."""

from __future__ import annotations

from typing import Final

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.measurement import MeasurementSet, Row, Split, SplitRule
from simulator.validation.scores import Judged, Point
from simulator.validation.unseen import speedups

MEASURED: Final = {"a100": 4.0, "h100": 2.0, "h100 of 16": 1.0, "longer": 3.0, "again": 2.5}
PREDICTED: Final = {"a100": 4.4, "h100": 2.0, "h100 of 16": 1.0, "longer": 3.0, "again": 2.0}


def _row(name: str, machine: str, count: int, sequence: int) -> Row:
    return Row(
        id=name,
        base="llm-training",
        overrides=(
            f"hardware.machine={machine}",
            f"hardware.count={count}",
            f"model.shape.sequence={sequence}",
        ),
        measured={"step_time_s.mean": MEASURED[name]},
        family="series",
    )


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    """One job on A100 and, twice, on H100; one of more GPUs and one of longer sequences."""
    return (
        _row("a100", "node/dgx-a100-80gb", 1, 2048),
        _row("h100", "node/dgx-h100", 1, 2048),
        _row("again", "instance/aws/p5.48xlarge", 1, 2048),
        _row("h100 of 16", "node/dgx-h100", 2, 2048),
        _row("longer", "node/dgx-h100", 1, 4096),
    )


def test_pairs_differ_in_the_accelerator_alone(rows: tuple[Row, ...]) -> None:
    """A ratio is that of rates, from the slower to the faster; other jobs and counts make none."""
    found = MeasurementSet(
        name="made up",
        title="",
        source="none",
        date="undated",
        rows=rows,
        metrics=("step_time_s.mean",),
        split=SplitRule.TEST,
    )
    judged = [
        Judged(
            set=found.name,
            id=row.id,
            family=row.family,
            split=Split.TEST,
            metric="step_time_s.mean",
            point=Point(measured=MEASURED[row.id], predicted=PREDICTED[row.id]),
        )
        for row in rows
    ]
    pairs = {one.rows: one for one in speedups(found, judged, Catalogue.default())}
    assert set(pairs) == {("a100", "h100"), ("a100", "again")}
    one = pairs["a100", "h100"]
    assert (one.slower, one.faster) == ("gpu/a100-sxm4-80gb", "gpu/h100-sxm5-80gb")
    assert one.measured == pytest.approx(2.0)
    assert one.error == pytest.approx(0.1)
