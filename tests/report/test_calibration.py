"""The report of a calibration, from a hand-made one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from simulator.calibration.calibrate import Calibrated, Estimate, Residual, identifiability
from simulator.calibration.samples import Samples
from simulator.report.calibration import document
from simulator.report.document import Format, render
from simulator.schema.calibration import Envelope
from simulator.schema.measurement import Parameter


def as_text(calibrated: Calibrated, worst: int = 5) -> str:
    """Return the report as text."""
    return render(document(calibrated, worst), Format.TABLE)


CPU = Parameter(key="calibration.cpu", start="1", low="0.1", high="10")
DECODE = Parameter(key="input.decode", start="5 ms", low="1 ms", high="20 ms")
STORE = Parameter(
    key="hardware.storage_bandwidth",
    start="2 GB/s",
    low="10 MB/s",
    high="1 TB/s",
    why="one disk to a large file system",
)
NETWORK = Parameter(key="calibration.network", start="1", low="0.05", high="2")
STEP = "step_time_s.mean"
JACOBIAN = np.array([[-1.0, 1.0, 0.0, 0.0], [-0.9, 0.9, 0.0, 0.0], [-0.2, 0.2, -0.8, 0.0]])


@pytest.fixture
def calibrated() -> Calibrated:
    """Two parameters that only count together, one at a bound, one that does nothing."""
    names = [p.key for p in (CPU, DECODE, STORE, NETWORK)]
    rows = (
        ("w1", 0.2, 0.3, 0.205, 0.21),
        ("w2", 0.1, 0.15, 0.097, 0.09),
        ("w4", 0.08, 0.08, 0.08, None),
    )
    return Calibrated(
        samples=Samples(
            rows=(),
            seen=(),
            configurations=("a", "b", "c"),
            sets=("first", "second"),
            envelope=Envelope(
                rows=3,
                configurations=3,
                gpus=("gpu/test",),
                machines=("node/test",),
                devices=(1, 8),
                batch_size=(32, 32),
            ),
        ),
        estimates=(
            Estimate(parameter=CPU, value="0.71", log_sd=0.05, p10="0.65", p90="0.78"),
            Estimate(parameter=DECODE, value="5.1234 ms", log_sd=0.1, p10="4.4 ms", p90="6 ms"),
            Estimate(parameter=STORE, value="0.01 GB/s", at_bound="low"),
            Estimate(parameter=NETWORK, value="1", identified=False),
        ),
        covariance=((0.0025, 0.0, 0.0, 0.0), (0.0, 0.01, 0.0, 0.0), (0.0,) * 4, (0.0,) * 4),
        identifiability=identifiability(names, JACOBIAN, np.full(4, 0.004)),
        residuals=tuple(
            Residual(
                row=row,
                configuration=row,
                metric=STEP,
                measured=measured,
                before=before,
                fitted=fitted,
                held_out=held,
            )
            for row, measured, before, fitted, held in rows
        ),
        folds=2,
        predictions=1234,
    )


def test_the_report_reads_as_it_should(
    calibrated: Calibrated, golden: Callable[[str, str], None]
) -> None:
    """Values, intervals, bounds, what cannot be told apart, errors, worst rows."""
    golden("calibration-hand-made", as_text(calibrated))


def test_everything_doubtful_is_said(calibrated: Calibrated) -> None:
    """Each kind of ignorance has its sentence."""
    text = " ".join(as_text(calibrated).split())
    assert "hardware.storage_bandwidth is at its lower bound (one disk" in text
    assert "calibration.network has no effect on these rows" in text
    assert "input.decode and calibration.cpu (correlation +1.000)" in text
    alone = replace(calibrated, folds=0, all_rows=True)
    text = " ".join(as_text(alone).split())
    assert "Not cross-validated" in text
    assert "none is left to test on" in text


def test_long_lists_are_wrapped(calibrated: Calibrated) -> None:
    """Many machines take several lines, none of them too long."""
    machines = tuple(f"instance/somewhere/number-{i}.24xlarge" for i in range(9))
    reach = replace(calibrated.samples.envelope, machines=machines)
    text = as_text(replace(calibrated, samples=replace(calibrated.samples, envelope=reach)))
    assert all(machine in text for machine in machines)
    assert max(map(len, text.splitlines())) <= 100


def test_only_the_rows_asked_for_are_listed(calibrated: Calibrated) -> None:
    """None at all, or the worst one."""
    assert "Largest errors as fitted" not in as_text(calibrated, worst=0)
    assert [name in as_text(calibrated, worst=1) for name in ("w1 ", "w2 ")] == [False, True]


def test_json_holds_the_same_figures(calibrated: Calibrated) -> None:
    """SI values, null where nothing is known, and keys of the caller's own."""
    tree = json.loads(render(document(calibrated, written="over.toml"), Format.JSON))
    assert tree["written"] == "over.toml"
    decode = tree["parameters"][1]
    assert decode["value"] == pytest.approx(0.0051234)
    assert (decode["low"], decode["at_bound"]) == (0.001, None)
    assert tree["parameters"][2]["p10"] is None
    assert tree["errors"]["held_out"]["mean"] == pytest.approx((0.05 + 0.1) / 2)
    assert tree["errors"]["fitted"]["largest"] == pytest.approx(0.03)
    assert tree["identifiability"]["alike"][0]["correlation"] == pytest.approx(1.0, abs=1e-3)
    assert [r["held_out"] for r in tree["residuals"]] == [0.21, 0.09, None]
