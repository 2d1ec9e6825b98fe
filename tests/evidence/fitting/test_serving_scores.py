"""How far services are off: rates from latencies, and deviations whose intervals hold 80%."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fitting import serving_scores as scores
from fitting.serving_scores import Checked, Predicted
from tests.support.serving_rows import ROW


def made(errors: np.ndarray, beside: float = 0.0) -> Checked:
    """Rows whose tokens and first tokens are off by these logarithms."""
    return Checked(
        mean=errors,
        per_token=errors,
        first_token=errors,
        rate=-errors,
        beside=np.full(len(errors), beside),
        scripted=np.ones(len(errors), dtype=bool),
    )


def test_rates_follow_from_both_latencies() -> None:
    """A service that takes twice as long for everything writes half as many tokens a second."""
    row = replace(ROW, first_token=0.2, per_token=0.01)
    twice = Predicted(
        per_token=np.array([0.02]), first_token=np.array([0.4]), beside=np.array([0.1])
    )
    one = scores.checked([row], np.zeros(1), twice)
    assert one.rate == pytest.approx([-np.log(2.0)])
    assert one.beside == pytest.approx([0.25])


def test_intervals_hold_four_of_five_rows() -> None:
    """Errors of a known spread give it back; the time outside iterations adds to it."""
    errors = np.random.default_rng(1).normal(0.0, 0.2, 4000)
    found = scores.deviations({"one": made(errors)})
    assert found["forward_pass"] == pytest.approx(0.2, rel=0.05)
    wide = np.random.default_rng(2).normal(0.0, 0.6, 4000)
    half = replace(made(errors, beside=1.0), first_token=wide)
    assert scores.deviations({"one": half})["request"] == pytest.approx(0.6, rel=0.05)


def test_each_model_counts_alike() -> None:
    """A model of many rows does not drown one of few."""
    many, few = made(np.full(900, 0.01)), made(np.full(30, 0.5))
    found = scores.deviations({"many": many, "few": few})
    assert found["forward_pass"] == pytest.approx(0.5 / scores.P90)


def test_coverage_is_that_of_intervals_from_other_models() -> None:
    """Models that are off equally cover each other by 80%; one that is off more is covered less."""
    draw = np.random.default_rng(3)
    alike = {name: made(draw.normal(0.0, 0.2, 2000)) for name in ("a", "b")}
    lines = [*scores.coverage({**alike, "c": made(draw.normal(0.0, 1.0, 2000))})]
    share = float(lines[2].split("token")[1].split("%")[0])
    assert "c" in lines[2]
    assert share < 40.0
