"""What a machine has left for loaders beside the programs that train on it."""

from __future__ import annotations

from pathlib import Path

import simulator
from simulator.pipeline.topology import at_rest, build
from simulator.reading.scenario import load_scenario

BASES = Path(simulator.__file__).parent / "data" / "measured" / "bases"
STARVED = "resnet50-imagenet-p4d"


def taken(*overrides: str, name: str = STARVED) -> float:
    """Hardware threads that the programs of a shipped scenario keep busy."""
    return float(build(load_scenario(name, overrides=overrides)).host.cpu.taken)


def test_programs_spin_while_their_devices_work() -> None:
    """Eight of them: all the time where devices never wait for data, else as long as they work."""
    assert taken("input.decode=0.1 ms") == 8.0
    assert 0.0 < taken() < 8.0
    assert taken("input.decode=20 ms") < taken()
    assert taken("train.host_threads=2") > 1.5 * taken()


def test_who_does_not_spin() -> None:
    """Programs that are said not to, and costs that were measured with programs running."""
    assert taken("train.host_threads=0") == 0.0
    assert taken("input.cost_basis=vcpu") == 0.0


def test_one_program_cannot_load_and_wait_at_once() -> None:
    """Without workers it makes its own batches; the same job with a worker spins."""
    alone = build(load_scenario("inference-batch1-gpu"))
    assert load_scenario("inference-batch1-gpu").job.train.host_threads == 1.0
    assert alone.host.cpu.taken == 0.0


def test_emulated_devices_are_slept_for() -> None:
    """A benchmark's program sleeps as long as a device would compute."""
    assert load_scenario(str(BASES / "unet3d-h100.toml")).job.train.host_threads == 0.0


def test_nothing_is_taken_while_nothing_trains() -> None:
    """Data are prepared beforehand by all threads of the machine."""
    training = build(load_scenario(STARVED))
    assert at_rest(training).host.cpu.taken == 0.0
    assert at_rest(training).host.cpu.capacity > training.host.cpu.capacity
