"""Constants of a group, and fallbacks where its anchors are missed without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import simulator
from simulator.calibration.samples import anchored
from simulator.schema.measurement import Parameter, Row

BASE = str(Path(simulator.__file__).parent / "data" / "measured" / "bases" / "loader-alone.toml")
RATE = "throughput_samples_per_s"
STORE = Parameter(key="hardware.storage_bandwidth", start="2 TB/s", low="1 GB/s", high="10 TB/s")
READER = Parameter(key="calibration.storage", start="1", low="1", high="20", fallback=True)


def row(measured: float) -> Row:
    """A run of which one rate is known."""
    return Row(id="anchor", base=BASE, overrides=(), measured={RATE: measured}, family="made up")


def slowest(row: Row, overrides: tuple[str, ...], metrics: Sequence[str]) -> dict[str, float]:
    """Readers make 50 samples a second, times what they are faster; the store 0.1 a GB/s."""
    del metrics
    said = dict(override.split("=") for override in (*row.overrides, *overrides))
    store = float(said["hardware.storage_bandwidth"].removesuffix(" TB/s")) * 100.0
    return {RATE: min(store, 50.0 * float(said.get("calibration.storage", "1")))}


@pytest.mark.parametrize("measured", [20.0, 50.0, 52.0])
def test_a_fallback_is_left_alone_where_anchors_are_met(measured: float) -> None:
    """A slow store, a store that limits nothing, and a miss that is small."""
    found = anchored([row(measured)], (STORE, READER), (RATE,), predictor=slowest)
    assert [override.partition("=")[0] for override in found] == ["hardware.storage_bandwidth"]


def test_a_store_delivers_what_its_anchor_measured() -> None:
    """Readers four times as fast as elsewhere are taken for such, and not for a slow store."""
    found = anchored([row(200.0)], (STORE, READER), (RATE,), predictor=slowest)
    said = dict(override.split("=") for override in found)
    assert float(said["calibration.storage"]) == pytest.approx(4.0, rel=0.05)
    assert said["hardware.storage_bandwidth"] == "2 TB/s"
