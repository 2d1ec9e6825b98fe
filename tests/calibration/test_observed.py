"""What must be true of a job for it to show what was observed."""

from __future__ import annotations

from pathlib import Path

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


WITHOUT_WORKERS = """
schema = 1
hardware = { machine = "node/workstation", gpu = "v100-pcie-32gb", gpus = 1, vcpus = 40 }
data = { samples = 50000, bytes_per_sample = "3 kB", cache = "preloaded" }
model = { name = "resnet50", step_time = "100 ms", step_time_batch = 32 }
train = { batch_size = 32, precision = "fp32", launch_time = "0 s" }
input = { workers = 0, decode = "2 ms", output_bytes_per_sample = "0 B" }
"""


def test_a_loop_that_waits_each_step_explains_a_step_in_series(tmp_path: Path) -> None:
    """64 ms of loading hide under 100 ms of compute; 164 ms were seen, their sum."""
    path = tmp_path / "job.toml"
    path.write_text(WITHOUT_WORKERS)

    found = explained(str(path), "step_time_s.mean", 0.164)
    assert found.predicted == pytest.approx(0.1, rel=0.01)
    assert [one.setting for one in found.alternatives] == ["train.sync_every_step=true"]
    assert found.alternatives[0].predicted == pytest.approx(0.164, rel=0.01)
