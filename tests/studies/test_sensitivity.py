"""A tornado, against functions whose answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import P90, Rate, UncertaintyComponent
from simulator.studies.sensitivity import deviations, tornado
from tests.support.scenarios import SOURCE
from tests.support.what_if import made_up


def uncertain(**uncertainties: float) -> Scenario:
    """Two workers of 0.1 s a batch, a device of 0.021 s, and uncertainties by name of the rate."""
    found = tuple(
        UncertaintyComponent(name=name, rate=Rate[name.upper()], log_sd=sd, source=SOURCE)
        for name, sd in uncertainties.items()
    )
    return replace(made_up()({}), uncertainties=found)


def test_tornado_of_the_rate_that_limits() -> None:
    """The step is as many times as long or short as its workers are slow or fast."""
    found = tornado(uncertain(workers=0.1, device=0.1), "step_time_s.mean")
    assert found is not None
    widest, other = found.bars
    assert (widest.rate, other.rate) == (Rate.WORKERS, Rate.DEVICE)
    assert widest.slow / found.base == pytest.approx(math.exp(0.1 * P90), rel=1e-3)
    assert widest.fast / found.base == pytest.approx(math.exp(-0.1 * P90), rel=1e-3)
    assert other.width == pytest.approx(0.0, abs=1e-6)


def test_tornado_simulates_what_closed_forms_leave_out() -> None:
    """A device so slow that it becomes the limit shows in the simulated end."""
    found = tornado(uncertain(device=1.0), "step_time_s.mean")
    assert found is not None
    assert found.bars[0].slow == pytest.approx(0.021 * math.exp(P90), rel=1e-2)


def test_the_step_as_a_whole_stretches() -> None:
    """What no rate explains multiplies the step by itself."""
    found = tornado(uncertain(step=0.1), "step_time_s.mean")
    assert found is not None
    (whole,) = found.bars
    assert whole.slow / found.base == pytest.approx(math.exp(0.1 * P90))


def test_doubts_about_one_rate_add_up() -> None:
    """Two uncertainties of 3% and 4% about a rate are one of 5%."""
    uncertainties = [
        UncertaintyComponent(name=str(sd), rate=Rate.DEVICE, log_sd=sd, source=SOURCE)
        for sd in (0.03, 0.04, 0.0)
    ]
    assert deviations(uncertainties) == {Rate.DEVICE: pytest.approx(0.05)}
    assert deviations([]) == {}


def test_a_metric_without_a_value_has_no_sensitivity() -> None:
    """What the job has no figure for cannot depend on anything."""
    assert tornado(uncertain(workers=0.1), "cost.usd_to_train") is None


def test_a_file_states_no_uncertainty_but_its_tornado_has_bars() -> None:
    """The rates that are varied are those that the prediction assessed."""
    found = tornado(load_scenario("remote-workers-mnist-alone"), "step_time_s.mean")
    assert found is not None
    assert found.bars
