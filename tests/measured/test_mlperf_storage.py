"""MLPerf Storage: what one run of a store says about another one, on some of the shipped rows."""

from __future__ import annotations

from functools import cache

import pytest
from support.stages import sampled

from simulator.calibration.samples import anchored
from simulator.predict import predict
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import number_at
from simulator.schema.measurement import MeasurementSet, Row

GROUP = "mlperf_storage"
UTILIZATION = f"{GROUP}.accelerator_utilization"
RATE = f"{GROUP}.throughput_v1_samples_per_s"
FIRST = f"{GROUP}.first_step_s"


@cache
def shipped() -> MeasurementSet:
    """The set."""
    return load_set("mlperf_storage")


@cache
def figures(base: str, overrides: tuple[str, ...]) -> dict[str, float]:
    """What is predicted, each scenario once."""
    found = predict(load_scenario(base, overrides=overrides))
    return {name: number_at(found, name) or 0.0 for name in (UTILIZATION, RATE, FIRST)}


def runs(system: str, workload: str) -> tuple[Row, Row]:
    """The first repeat of the anchor of a store under a workload, and of another run."""
    rows = [row for row in shipped().rows if system in row.id and row.family == workload]
    return next(row for row in rows if row.anchor), next(row for row in rows if not row.anchor)


def forecast(anchor: Row, other: Row) -> dict[str, float]:
    """The other run, with what the anchor says about the store."""
    found = shipped()
    overrides = anchored(
        [anchor],
        found.fit,
        found.metrics,
        predictor=lambda row, more, _: figures(row.base, (*row.overrides, *more)),
    )
    return figures(other.base, (*other.overrides, *overrides))


@pytest.mark.parametrize(
    ("system", "workload", "points", "first"),
    [
        ("2xHDR200_Nclient1", "cosmoflow", 2.0, 0.15),
        *sampled(
            [
                ("Micron_9400", "unet3d", 2.5, 0.15),
                ("F9000X_10x7000GiB_nvme_2xNDR400_Nclient1", "unet3d", 1.6, 0.15),
                ("1-client-intel-nvme-tcp-dpu", "resnet50", 1.5, None),
            ],
            0,
        ),
    ],
)
def test_a_store_is_told_by_its_smallest_run(
    system: str, workload: str, points: float, first: float | None
) -> None:
    """Utilization, throughput and first step of a bigger run, all from one description."""
    anchor, other = runs(system, workload)
    found = forecast(anchor, other)
    assert 100.0 * found[UTILIZATION] == pytest.approx(
        100.0 * other.measured[UTILIZATION], abs=points
    )
    assert found[RATE] == pytest.approx(other.measured[RATE], rel=0.03)
    if first is not None:
        assert found[FIRST] == pytest.approx(other.measured[FIRST], rel=first)


def test_without_the_barrier_nobody_waits() -> None:
    """411 accelerators, measured with the barrier and without: 92.0% and 97.8%."""
    rows = [row for row in shipped().rows if row.labels.get("store") == "File-Direct"]
    meeting = next(row for row in rows if row.anchor)
    alone = next(row for row in rows if not row.anchor)
    found = forecast(meeting, alone)
    assert found[UTILIZATION] == pytest.approx(alone.measured[UTILIZATION], abs=0.015)
    assert alone.measured[UTILIZATION] - meeting.measured[UTILIZATION] > 0.05


def test_nothing_measured_stands_in_a_scenario() -> None:
    """Bases and overrides say what was run; a store's rate is in none of them."""
    for row in shipped().rows:
        assert not any(text.startswith("hardware.storage_bandwidth") for text in row.overrides)
