"""Factors of a service from a few measured runs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.calibration.service_factors import (
    FACTORS,
    SPREADS,
    Figures,
    calibrate_service,
    predicted,
)
from simulator.errors import InputError
from simulator.reading.shipped import find_base
from simulator.schema.measurement import Row
from simulator.schema.software import ServiceFactors

METRICS = ("per_token_s.mean", "first_token_s.mean")


def made(row: Row, factors: ServiceFactors, wanted: Sequence[str]) -> Figures:
    """A service whose every token waits for memory and engine, and whose first one for the rest."""
    count = float(row.id)
    every = {
        "per_token_s.mean": 0.01 / factors.device_memory + 0.001 * count / factors.engine,
        "first_token_s.mean": 0.01 * count / factors.compute + 0.05 / factors.request,
    }
    return {name: every[name] for name in wanted}


def runs(factors: ServiceFactors, counts: Sequence[int]) -> list[Row]:
    """Runs of the made service with these factors."""
    plain = Row(id="", base="", overrides=(), measured={}, family="made")
    named = [replace(plain, id=str(count)) for count in counts]
    return [replace(row, measured=made(row, factors, METRICS)) for row in named]


def test_three_runs_tell_of_the_others() -> None:
    """Factors of the truth's kind bring a run that was not fitted within a few per cent."""
    true = ServiceFactors(compute=0.8, device_memory=1.1, engine=0.7, request=0.5)
    found = calibrate_service(runs(true, (1, 8, 40)), METRICS, made)
    (other,) = runs(true, (20,))
    told, before = made(other, found.factors, METRICS), made(other, ServiceFactors(), METRICS)
    for name in METRICS:
        assert told[name] == pytest.approx(other.measured[name], rel=0.05)
        assert abs(told[name] - other.measured[name]) < abs(before[name] - other.measured[name])


def test_what_runs_do_not_tell_stays() -> None:
    """First tokens alone say nothing of memory and engine, which stay 1 and as unsure as before."""
    true = ServiceFactors(compute=0.8, request=0.5)
    found = calibrate_service(runs(true, (1, 8)), METRICS[1:], made)
    for name in ("device_memory", "engine"):
        assert getattr(found.factors, name) == pytest.approx(1.0)
        assert found.deviations[name] == pytest.approx(SPREADS[name])
    assert found.deviations["compute"] < SPREADS["compute"]


def test_runs_without_a_figure_are_refused() -> None:
    """Nothing measured is nothing to fit to; what is not predicted is named."""
    (row,) = runs(ServiceFactors(), (1,))
    with pytest.raises(InputError, match="no measured figure"):
        calibrate_service([row], ("end_to_end_s.mean",), made)
    with pytest.raises(InputError, match="is not predicted"):
        calibrate_service([row], METRICS, lambda *_: {})


def test_every_factor_makes_a_service_faster(chat: Row) -> None:
    """A factor of 2 shortens the first token or the further ones; the other is not longer."""
    plain = predicted(chat, ServiceFactors(), METRICS)
    for name in FACTORS:
        faster = predicted(chat, ServiceFactors(**{name: 2.0}), METRICS)
        assert all(faster[metric] < 1.001 * plain[metric] for metric in METRICS)
        assert any(faster[metric] < 0.99 * plain[metric] for metric in METRICS)


@pytest.fixture
def chat() -> Row:
    """A closed loop of the base of the shipped set."""
    load = ("load.arrivals=closed", "load.concurrency=4", "load.requests=20")
    lengths = ("load.prompt={ tokens = 500 }", "load.output={ tokens = 50 }")
    overrides = (*load, *lengths, "hardware.gpus=1")
    base = str(find_base("serving-run", Path()))
    return Row(id="chat", base=base, overrides=overrides, measured={}, family="made")
