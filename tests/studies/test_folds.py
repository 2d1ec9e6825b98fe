"""Cross-validation by whole configuration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.made_up import CPU, STEP, made_up, model

from simulator.studies.fitting import Errors, knob
from simulator.studies.folds import folds_of, held_out_errors
from simulator.studies.samples import samples_of

NAMES = st.lists(st.text(max_size=3), min_size=1, max_size=30)


@given(NAMES, st.integers(min_value=1, max_value=8))
def test_every_configuration_is_in_exactly_one_part(names: list[str], count: int) -> None:
    """None twice, none forgotten, parts of nearly equal size, the same every time."""
    parts = folds_of(names, count)
    assert sorted(name for part in parts for name in part) == sorted(set(names))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert folds_of(list(reversed(names)), count) == parts


def test_a_fold_is_fitted_without_its_rows() -> None:
    """Rows held out can say anything: the fit that predicts them does not change."""
    clean = made_up(noise=0.0, truth=("calibration.cpu=0.5",))
    samples = samples_of([clean], [CPU], model)
    held = frozenset({"made-up 1"})
    found = []
    for wrong in (1.0, 7.0):
        seen = tuple(
            type(o)(row=o.row, metric=STEP, measured=o.measured * (wrong if o.row < 2 else 1.0))
            for o in samples.seen
        )
        errors = Errors(rows=samples.rows, knobs=(knob(CPU),), seen=seen, predictor=model)
        out = held_out_errors(errors, samples.configurations, held, np.array([0.0]))
        assert set(out) == {0, 1}
        found.append(np.exp([out[0] + np.log(wrong), out[1] + np.log(wrong)]))
    assert found[0] == pytest.approx(found[1], rel=1e-6)
