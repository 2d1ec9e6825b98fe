"""What a machine has left for loaders beside the programs that train on it."""

from __future__ import annotations

from pathlib import Path

import pytest

import simulator
from simulator.pipeline.stages.base import Demand, Resource
from simulator.pipeline.stages.base import Path as Route
from simulator.pipeline.topology import Location, at_rest, build
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


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize(("socket", "crossings"), [("1", 1.0), ("0", 0.0)])
def test_copies_cross_between_sockets_only_from_the_other_one(
    way: str, socket: str, crossings: float
) -> None:
    """All four devices are on socket 0: a batch in memory of socket 1 crosses once, else never."""
    job = load_scenario("device-on-remote-socket", overrides=(f"input.socket={socket}",))
    path = Route.HOST_TO_DEVICE if way == "down" else Route.DEVICE_TO_HOST
    topology = build(job)
    for rank in range(4):
        demand = Demand(resource=Resource.PCIE, path=path, amount=1.0)
        route = topology.way(demand, Location(rank=rank))
        over = [use for unit, use in route if unit == f"socket link {way}"]
        assert sum(over) == crossings
        assert (f"pcie gpu{rank} {way}", 1.0) in route
