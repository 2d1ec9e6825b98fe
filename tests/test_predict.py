"""What an answer hangs on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import dominant_uncertainties, predict
from simulator.reading.scenario import load_scenario
from simulator.schema.uncertainty import Rate


def test_the_limiting_rate_comes_first() -> None:
    """A job that waits for a volume hangs on the volume's rate."""
    found = dominant_uncertainties(predict(load_scenario("offline-preparation")))
    assert found[0].component.rate is Rate.STORAGE
    widths = [one.width for one in found]
    assert widths == sorted(widths, reverse=True)


def test_each_end_is_a_prediction_at_that_rate() -> None:
    """The closed form agrees with simulating at the slow rate."""
    scenario = load_scenario("resnet50-imagenet-p4d")
    prediction = predict(scenario)
    first = next(
        one for one in dominant_uncertainties(prediction) if one.component.rate is Rate.WORKERS
    )
    slow = 1.2815515655446004 * first.component.log_sd
    again = predict(scenario, intervals=False, speeds={Rate.WORKERS: 2.718281828459045**-slow})
    change = again.timing.total_time / prediction.timing.total_time - 1.0
    assert first.slow == pytest.approx(change, abs=0.02)


def test_nothing_in_doubt_is_nothing_to_hang_on() -> None:
    """Without uncertainties there is no list."""
    scenario = replace(load_scenario("resnet50-imagenet-p4d"), stated=None, uncertainties=())
    assert dominant_uncertainties(predict(scenario)) == ()
