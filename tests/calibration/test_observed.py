"""What must be true of a job for it to show what was observed."""

from __future__ import annotations

import pytest

from simulator.calibration.observed import Explained, explain_observation
from simulator.errors import NotModelled
from simulator.predict import predict
from simulator.reading.search.candidates import CandidateReader
from simulator.results.metrics import number_at

RATE = "throughput_samples_per_s"


def explained(name: str, metric: str, value: float, *overrides: str) -> Explained:
    """A shipped scenario and an observation."""
    reader = CandidateReader(name, overrides=overrides)
    return explain_observation(lambda given: reader.read(given).scenario, metric, value)


def shown(name: str, metric: str, *overrides: str) -> float:
    """What a shipped scenario shows with some settings."""
    found = number_at(predict(CandidateReader(name, overrides=overrides).read({}).scenario), metric)
    assert found is not None
    return found


def test_what_was_changed_is_found() -> None:
    """A job whose CPUs are slower than described: the factor comes out of its samples/s."""
    name = "cpu-starved-p4d"
    seen = shown(name, RATE, "calibration.cpu=0.8")
    found = explained(name, RATE, seen)
    factors = {one.kind.name: one.factor for one in found.explanations}
    assert factors["cpu"] == pytest.approx(0.8, rel=0.02)
    for one in found.explanations:
        assert number_at(one.prediction, RATE) == pytest.approx(seen, rel=0.02)


def test_the_likeliest_comes_first() -> None:
    """Surprises rise, and the observation is met by each."""
    found = explained("llama3-8b-fsdp", RATE, 0.8 * shown("llama3-8b-fsdp", RATE))
    surprises = [one.surprise for one in found.explanations]
    assert len(surprises) > 1
    assert surprises == sorted(surprises)
    assert "storage" not in {one.kind.name for one in found.explanations}


def test_a_prediction_that_agrees_needs_nothing() -> None:
    """Within a hundredth nothing is explained."""
    name = "cpu-starved-p4d"
    found = explained(name, RATE, 1.005 * shown(name, RATE))
    assert found.agrees
    assert found.explanations == ()


def test_what_no_rate_explains() -> None:
    """A thousand times as many samples: nothing alone can be so wrong."""
    found = explained("cpu-starved-p4d", RATE, 1000.0 * shown("cpu-starved-p4d", RATE))
    assert not found.agrees
    assert found.explanations == ()


def test_a_job_without_the_figure() -> None:
    """A job without an accelerator has no utilization of one."""
    with pytest.raises(NotModelled, match="no accelerator_utilization"):
        explained("svm-cpu-only", "accelerator_utilization", 0.5)
