"""What the cores of a machine compute where it has no accelerator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.errors import NotModelled
from simulator.physics.device_time import Evidence, device_time, evidence_of
from simulator.physics.rates import core_rates
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.uncertainty.components import Grade, Rate

_ON_CORES = (
    "hardware.machine=instance/aws/c7i.48xlarge",
    "hardware.storage=storage/ebs-gp3",
    "train.precision=fp32",
    "train.batch_size=64",
    "input.pin_memory=false",
    "train.mixed_precision=false",
)


def on_cores(*more: str) -> Scenario:
    """ResNet-50 on 96 cores of two sockets."""
    return load_scenario("resnet50-imagenet-p4d", overrides=(*_ON_CORES, *more))


def test_cores_are_the_device_of_a_machine_without_one() -> None:
    """96 cores x base clock x 64 FLOP at half: three passes of 8.2 GFLOP a picture."""
    scenario = on_cores()
    host = scenario.cluster.trainers.host
    rates, time = core_rates(host), device_time(scenario)
    assert evidence_of(scenario) is Evidence.CORES
    assert rates is not None
    assert time is not None
    assert host.cpu.base_clock is not None
    assert rates.matrix == pytest.approx(0.5 * 96 * host.cpu.base_clock * 64)
    least = 3.0 * 8.178e9 * 64 / rates.matrix
    assert least < time.total < 2.0 * least


def test_half_the_cores_compute_half_as_fast() -> None:
    """A forward pass that arithmetic bounds."""
    scenario = on_cores("train.mode=infer")
    host = scenario.cluster.trainers.host
    half = replace(host, cpu=replace(host.cpu, cores=host.cpu.cores / 2))
    full, fewer = core_rates(host), core_rates(half)
    assert full is not None
    assert fewer is not None
    assert fewer.matrix == pytest.approx(full.matrix / 2)
    assert fewer.memory == full.memory


def test_a_step_on_cores_is_what_they_take_and_is_doubted() -> None:
    """The step is no shorter than its compute, and the interval a factor of two either way."""
    scenario = on_cores()
    time = device_time(scenario)
    assert time is not None
    found = predict(scenario)
    assert found.timing.step_time.mean >= float(time.total) * (1.0 - 1e-9)
    grades = {
        component.grade for component in scenario.uncertainties if component.rate is Rate.DEVICE
    }
    assert grades == {Grade.ON_CORES}


def test_other_formats_are_not_known_of_cores() -> None:
    """Nobody said what they compute in 16 bit."""
    with pytest.raises(NotModelled, match="no rate is known at which these cores compute"):
        predict(on_cores("train.precision=bf16"))


def test_a_measured_step_wins() -> None:
    """What somebody timed there is what it takes."""
    scenario = on_cores('model.step_times=[{batch_size=64, time="400 ms"}]')
    time = device_time(scenario)
    assert evidence_of(scenario) is Evidence.MEASURED
    assert time is not None
    assert time.total == pytest.approx(0.4)
