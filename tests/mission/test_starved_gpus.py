"""Rows A1 to A5 and A19: GPUs that wait for vCPUs, simulated."""

from __future__ import annotations

import pytest
from mission.machines import catalogue, managed, rented
from mission.starved import starved

from simulator.predict import predict
from simulator.schema.data_loading import Preparation
from simulator.units import HOUR

P4D, C5 = "ml.p4d.24xlarge", "ml.c5.18xlarge"


def test_a1_eight_gpus_on_96_vcpus() -> None:
    """160 are needed, 64 or 40% are missing, and the GPUs are busy 60% of the time."""
    found = predict(starved(managed(P4D), 20.0))
    assert found.cpu_need is not None
    assert found.cpu_need.per_gpu == pytest.approx(20.0)
    assert found.cpu_need.short == pytest.approx(64.0)
    assert found.cpu_need.short / (8 * found.cpu_need.per_gpu) == pytest.approx(0.4)
    assert found.timing.accelerator_utilization == pytest.approx(0.6, abs=0.005)
    assert found.timing.bottleneck == "cpu"


def test_a2_a_second_equal_machine() -> None:
    """Twice the machines: twice the samples, still 12 vCPUs a GPU, still 60%."""
    one, two = (predict(starved(managed(P4D), 20.0, count=n)) for n in (1, 2))
    host = managed(P4D)
    assert (2 * host.cpu.threads) / (2 * host.gpu_count) == 12
    assert two.timing.accelerator_utilization == pytest.approx(0.6, abs=0.005)
    assert two.timing.throughput == pytest.approx(2 * one.timing.throughput, rel=1e-6)
    assert two.cost.per_second == pytest.approx(2 * (one.cost.per_second or 0.0))


def test_a3_two_machines_that_make_batches() -> None:
    """240 vCPUs (the source prints 210) are 30 a GPU: GPUs full, CPUs 160/240 busy."""
    found = predict(starved(managed(P4D), 20.0, beside=managed(C5)))
    own, other = found.timing.usage["cpu"], found.timing.usage["data.cpu"]
    assert own.units + other.units == 240
    assert (own.units + other.units) / 8 == 30
    assert found.timing.accelerator_utilization == pytest.approx(1.0, abs=0.005)
    assert (own.total + other.total) / 240 == pytest.approx(160 / 240, abs=0.01)


def test_a3_no_vcpu_is_short() -> None:
    """240 vCPUs for GPUs that need 160: none is missing."""
    found = predict(starved(managed(P4D), 20.0, beside=managed(C5)))
    assert found.cpu_need is not None
    assert found.cpu_need.short == 0.0


def test_a3_the_gpus_are_the_bottleneck() -> None:
    """GPUs 100% busy and vCPUs 67%: the GPUs set the pace."""
    found = predict(starved(managed(P4D), 20.0, beside=managed(C5)))
    assert found.timing.bottleneck == "gpu"


@pytest.mark.parametrize("name", ["trn1.32xlarge", "p4d.24xlarge", "g5.48xlarge"])
def test_a5_no_machine_of_the_family_helps(name: str) -> None:
    """None has as many accelerators and more vCPUs for each; those that do have fewer of them."""
    host = rented(name)
    family = [
        other
        for known in catalogue().listed("instance/aws/")
        if (other := catalogue().host(known)).family == host.family and other.gpu_count
    ]
    ratio = host.cpu.threads / host.gpu_count
    better = [h for h in family if h.cpu.threads / h.gpu_count > ratio]
    assert host.name in {h.name for h in family}
    assert all(h.gpu_count < host.gpu_count for h in better)


@pytest.mark.parametrize("name", ["trn1.32xlarge", "p4d.24xlarge", "g5.48xlarge"])
def test_a5_machines_beside_it_help(name: str) -> None:
    """GPUs that need half as many vCPUs again are fed by two machines of 72, at their price."""
    host = rented(name)
    per_gpu = 1.5 * host.cpu.threads / host.gpu_count
    alone = predict(starved(host, per_gpu))
    more = predict(starved(host, per_gpu, beside=managed(C5), machines=2))
    gained = min(1.5, (host.cpu.threads + 144) / host.cpu.threads)
    assert alone.timing.accelerator_utilization == pytest.approx(1 / 1.5, abs=0.005)
    assert more.timing.throughput / alone.timing.throughput == pytest.approx(gained, rel=0.01)
    before, after = alone.cost.per_second, more.cost.per_second
    assert before is not None
    assert after is not None
    assert (after - before) * HOUR == pytest.approx(2 * 3.672)


@pytest.mark.parametrize("name", ["p4d.24xlarge", "g5.48xlarge"])
def test_a5_preparing_on_the_devices_helps(name: str) -> None:
    """A GPU that prepares 40 times as fast as a vCPU frees them, for part of its own time."""
    host = rented(name)
    per_gpu = 1.5 * host.cpu.threads / host.gpu_count
    alone = predict(starved(host, per_gpu))
    device = predict(starved(host, per_gpu, where=Preparation.DEVICE))
    gained = 1.5 / (1 + per_gpu / 40)
    assert device.timing.throughput / alone.timing.throughput == pytest.approx(gained, rel=0.01)
    assert device.timing.bottleneck == "gpu"
    assert device.cost.per_second == alone.cost.per_second


def test_a19_utilization_as_sum_and_as_mean() -> None:
    """100% for each vCPU and each GPU added up, or over their number; for both groups by name."""
    found = predict(starved(managed(P4D), 20.0, beside=managed(C5)))
    usage = found.timing.usage
    assert [usage[name].units for name in ("gpu", "cpu", "data.cpu")] == [8, 96, 144]
    assert usage["gpu"].total == pytest.approx(8.0, abs=0.05)
    for name in ("gpu", "cpu", "data.cpu"):
        assert usage[name].total == pytest.approx(usage[name].mean * usage[name].units)
        assert 0.0 < usage[name].mean <= 1.0
