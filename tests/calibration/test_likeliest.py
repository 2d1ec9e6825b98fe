"""Without named parameters, the factor that made the runs is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from simulator.calibration.calibrate import likeliest
from simulator.errors import InputError
from simulator.predict import predict
from simulator.reading.measured.measurement_set import parse_set
from simulator.reading.scenario import load_scenario

JOB = "cpu-starved-p4d"
TRUTH = 0.7


@pytest.mark.slow
def test_slow_cores_are_found() -> None:
    """Runs made with slower cores at several numbers of workers are explained by cpu alone."""
    lines = ["id,input.workers,train.epochs,measured.step_time_s.mean,split"]
    for workers in (1, 2, 8):
        overrides = (f"input.workers={workers}", "train.epochs=1", f"calibration.cpu={TRUTH}")
        step = predict(
            load_scenario(JOB, overrides=overrides), intervals=False
        ).timing.step_time.mean
        lines.append(f"w{workers},{workers},1,{step},fit")
    described = (
        f'schema = 1\nname = "own"\ntitle = "own"\ndata = "own.csv"\nbase = "{JOB}"\n'
        'source = "made"\ndate = "2026-11"\nmetrics = ["step_time_s.mean"]\n'
    )
    one = parse_set(described, "\n".join(lines) + "\n", "own.toml", Path())
    tried = likeliest([one])
    assert tried[0].kind.name == "cpu"
    assert tried[0].factor == pytest.approx(TRUTH, rel=0.03)
    assert tried[0].error < 0.03
    assert all(later.cost >= tried[0].cost for later in tried)
    nothing = replace(one, rows=tuple(replace(row, excluded="broken") for row in one.rows))
    with pytest.raises(InputError, match="no row that may be fitted to"):
        likeliest([nothing])
