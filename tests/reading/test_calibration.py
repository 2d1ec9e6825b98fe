"""Factors: each one is known everywhere, does one thing, and says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from simulator.physics.device_time import device_time
from simulator.pipeline.checkpoints import write_of
from simulator.pipeline.loads import alone
from simulator.pipeline.program import demand_table
from simulator.pipeline.stages.base import Path, Phase
from simulator.pipeline.stages.waiting import StragglerWait
from simulator.pipeline.topology import Location, build
from simulator.reading.scenario import load_scenario
from simulator.reading.sections import CalibrationSection
from simulator.reading.tables import table_keys
from simulator.schema.calibration import FACTORS
from simulator.schema.scenario import Scenario

BASE = "resnet50-imagenet-p4d"
MODEL = "model.name=resnet101"
"""Nobody measured a step of it, so that factors of rates count."""
TWO_MACHINES = (MODEL, "hardware.count=2")


def amounts(*paths: Path) -> Callable[[Scenario], float]:
    """Work that takes these ways."""

    def total(scenario: Scenario) -> float:
        table = demand_table(scenario, Phase.COLD)
        return sum(float(d.amount) for stage in table for d in stage.demands if d.path in paths)

    return total


def compute_only(scenario: Scenario) -> float:
    """Device time where memory is endlessly fast."""
    time = device_time(scenario)
    assert time is not None
    return 1.0 / float(time.inputs["matrix rate [FLOP/s]"])


def memory_only(scenario: Scenario) -> float:
    """Time of a byte of device memory."""
    time = device_time(scenario)
    assert time is not None
    return 1.0 / float(time.inputs["memory rate [B/s]"])


def store(scenario: Scenario) -> float:
    """Time of a byte from the store."""
    return 1.0 / scenario.cluster.trainers.storage.read_rate


def client(scenario: Scenario) -> float:
    """Time that the client of an object store adds to a request; its rate grows alike.

    65 ms and 100 MB/s of an unknown client: their product does not depend on its speed.
    """
    found = scenario.job.client
    assert found is not None
    assert found.stream_rate is not None
    assert found.request_time * found.stream_rate == pytest.approx(65e-3 * 100e6)
    return found.request_time


def card(scenario: Scenario) -> float:
    """Time of a byte over the network card."""
    network = scenario.cluster.trainers.host.network
    assert network is not None
    return 1.0 / network.bandwidth


def lateness(scenario: Scenario) -> float:
    """Time at the barrier of ranks that are late by chance, over that of their compute."""
    train = replace(scenario.job.train, straggling=0.05)
    late = replace(scenario, jobs=(replace(scenario.job, train=train),))
    (wait,), time = StragglerWait().demands(late, Phase.COLD), device_time(late)
    assert time is not None
    return float(wait.latency / time.total)


def writing(scenario: Scenario) -> float:
    """Time of writing a checkpoint, over that of its bytes at the rates of store and network."""
    topology = build(scenario)
    write = write_of(scenario, topology)
    assert write.demand is not None
    return float(write.stored / alone(topology, write.demand, Location(rank=0)))


EFFECTS = {
    "compute": compute_only,
    "device_memory": memory_only,
    "cpu": amounts(Path.CORES),
    "storage": store,
    "client": client,
    "network": card,
    "collective": amounts(Path.DEVICE_TO_DEVICE, Path.MACHINE_TO_MACHINE),
    "straggling": lateness,
    "checkpoint": writing,
}


def test_section_and_table_name_the_same_factors() -> None:
    """What a file may say is what the table explains."""
    assert [f.name for f in FACTORS] == [
        name for name in table_keys(CalibrationSection) if name != "overlay"
    ]
    assert all(f.low < 1.0 < f.high for f in FACTORS)


@pytest.mark.parametrize("name", list(EFFECTS))
def test_a_factor_speeds_up_its_resource_and_no_other(name: str) -> None:
    """Above 1 is faster, by that factor, in one place."""
    overrides = (*TWO_MACHINES, f"calibration.{name}=2")
    before = load_scenario(BASE, overrides=TWO_MACHINES)
    after = load_scenario(BASE, overrides=overrides)
    changed = {other: effect(after) / effect(before) for other, effect in EFFECTS.items()}
    assert changed == pytest.approx({other: 0.5 if other == name else 1.0 for other in EFFECTS})


def test_every_factor_of_the_table_is_tested() -> None:
    """A new factor needs an effect here."""
    assert set(EFFECTS) == {f.name for f in FACTORS}


def test_latencies_of_a_store_shrink_with_it() -> None:
    """A store twice as fast answers in half the time."""
    overrides = ("hardware.storage_latency=2 ms", "calibration.storage=2")
    storage = load_scenario(BASE, overrides=overrides).cluster.trainers.storage
    assert storage.read_latency == pytest.approx(0.001)


def test_a_measured_read_time_counts_as_the_store() -> None:
    """It stands in for the store's own rate."""
    overrides = ("data.read_time=2 ms", "calibration.storage=2")
    assert load_scenario(BASE, overrides=overrides).job.dataset.read_time == pytest.approx(0.001)


def test_a_scaled_figure_says_so() -> None:
    """The source of a store's rate names the factor, and the factor is an assumption."""
    scenario = load_scenario(
        BASE,
        overrides=(
            MODEL,
            "calibration.storage=0.5",
        ),
    )
    sources = scenario.cluster.trainers.storage.sources
    assert all(
        "calibration.storage = 0.5" in s.reference for k, s in sources.items() if "read" in k
    )
    assert [n.value for n in scenario.notes if n.what == "calibration.storage"] == ["0.5"]


def test_nothing_given_changes_nothing() -> None:
    """Factors of 1 are no factors."""
    plain = load_scenario(BASE)
    assert plain.calibration.factors == ()
    same = load_scenario(
        BASE,
        overrides=(
            MODEL,
            "calibration.cpu=1.0",
        ),
    )
    assert same.calibration == plain.calibration
