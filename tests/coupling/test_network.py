"""One network card carries samples, gradients and finished batches."""

from __future__ import annotations

import csv
import math
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from coupling.build import with_data, with_group
from coupling.on_links import copies_and_gradients
from coupling.on_network import (
    CARD,
    COMPUTE,
    READ,
    SENT,
    batches_from_helpers,
    storage_cap,
    two_trainers,
)
from simpy import Environment, Event

from simulator.engine.flows import FlowNetwork
from simulator.pipeline.program import demand_table
from simulator.pipeline.stages.base import Demand, Phase
from simulator.pipeline.stages.base import Path as Way
from simulator.pipeline.topology import Location, build
from simulator.predict import predict
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope

AGREEMENT = 1e-6
REFERENCE = Path(__file__).parents[1] / "theory" / "data" / "simgrid_reference.csv"
Flows = list[tuple[float, Demand, Location]]
"""When a demand of whom starts [s]."""


def simgrid(case: str) -> list[dict[str, str]]:
    """The rows of a case as SimGrid answered it."""
    with REFERENCE.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["case"] == case]


def demand(job: Scenario, path: Way) -> Demand:
    """The one demand of a job that goes this way and asks for something."""
    (found,) = (
        demand
        for stage in demand_table(job, Phase.COLD)
        for demand in stage.demands
        if demand.path is path and float(demand.amount) > 0.0
    )
    return found


def finish_times(job: Scenario, flows: Flows) -> list[float]:
    """When these demands end on the machine as the model lays it out [s]."""
    env, topology = Environment(), build(job)
    network = FlowNetwork(
        env, {name: float(unit.capacity) for name, unit in topology.units.items()}
    )
    finish = [math.nan] * len(flows)

    def carry(
        number: int, start: float, asked: Demand, place: Location
    ) -> Generator[Event, None, None]:
        yield env.timeout(start)
        route = [(unit, float(use)) for unit, use in topology.way(asked, place)]
        yield network.transfer(float(asked.amount), route)
        finish[number] = env.now

    for number, (start, asked, place) in enumerate(flows):
        env.process(carry(number, start, asked, place))
    env.run()
    return finish


def test_reads_and_gradients_end_when_simgrid_says() -> None:
    """One machine that stands for two gives the times of both machines simulated."""
    rows = simgrid("reads and all-reduce on one card, both read")
    job = two_trainers()
    read, ring = demand(job, Way.STORE_TO_HOST), demand(job, Way.MACHINE_TO_MACHINE)
    ready = COMPUTE + 100e6 / 235e9
    ours = finish_times(
        job,
        [(0.0, read, Location(rank=rank)) for rank in range(2)]
        + [(ready, ring, Location(rank=rank)) for rank in range(2)],
    )
    theirs = [float(row["finish"]) for row in rows]
    assert ours[:2] == pytest.approx(theirs[:2], rel=AGREEMENT)
    assert ours[:2] == pytest.approx(theirs[2:4], rel=AGREEMENT)
    assert ours[2:] == pytest.approx(theirs[4:6], rel=AGREEMENT)


def test_steady_steps_of_the_run_are_those_of_simgrid() -> None:
    """In the steady run reads and reductions take as long as SimGrid says, to a millionth."""
    rows = simgrid("reads and all-reduce on one card, both read")
    trace = predict(two_trainers(), trace=True).timing.trace
    assert trace is not None
    by_start = sorted(trace.slices, key=lambda s: s.start)
    reads = [s.length for s in by_start if s.name == "read"][40:48]
    reductions = [s.length for s in by_start if s.name == "all-reduce"][40:48]
    # reading starts with a step, the reduction 40 ms later; its part within the machine runs beside
    # that between machines, where SimGrid was told to wait for it, and so does not spare the reads
    within = 100e6 / 235e9
    assert reads == pytest.approx([float(rows[0]["finish"]) + within] * 8, rel=AGREEMENT)
    assert reductions == pytest.approx([float(rows[4]["finish"]) - COMPUTE] * 8, rel=AGREEMENT)


def test_batches_and_gradients_in_the_pcie_tree_end_when_simgrid_says() -> None:
    """Copies to four devices and the ring between them share two switches."""
    rows = simgrid("PCIe tree, batches and ring")
    job = copies_and_gradients().job
    copy, ring = demand(job, Way.HOST_TO_DEVICE), demand(job, Way.DEVICE_TO_DEVICE)
    flows = [(0.0, copy, Location(rank=rank)) for rank in range(4)]
    flows += [(0.01, ring, Location(rank=rank)) for rank in range(4)]
    theirs = [float(row["finish"]) for row in rows]
    assert finish_times(job, flows) == pytest.approx(theirs, rel=AGREEMENT)


@pytest.mark.parametrize("machines", [2, 3, 4, 8])
def test_the_ring_grows_with_the_machines(machines: int) -> None:
    """Each sends 2 (n - 1) / n of 100 MB beside the 200 MB that it reads."""
    base = two_trainers()
    many = with_data(base, samples=machines * base.job.dataset.samples)
    job = with_group(many, count=machines)
    expected = (2 * READ + 2 * (machines - 1) / machines * 100e6) / CARD
    assert predict(job).timing.step_time.mean == pytest.approx(expected, rel=0.02)


def test_rdma_spares_host_memory() -> None:
    """With 2.5 GB/s of host memory plain TCP is held up by it, RDMA by the card.

    Samples, 200 MB, pass memory in both cases, gradients, 100 MB, only without RDMA:
    300 MB / 2.5 GB/s = 120 ms. With it 101 MB of samples pass memory in the 40.4 ms until the
    gradients come, and both fill the card from then on: 199 MB / 3.125 GB/s = 63.7 ms more.
    """
    job = two_trainers()
    machine = replace(job.cluster.trainers.host, memory_bandwidth=2.5e9)
    assert machine.network is not None
    plain = with_group(job, host=machine)
    rdma = with_group(job, host=replace(machine, network=replace(machine.network, rdma=True)))
    assert predict(plain).timing.step_time.mean == pytest.approx(0.12, rel=0.02)
    ready = COMPUTE + SENT / 235e9
    expected = ready + (2 * READ - 2.5e9 * ready + SENT) / CARD
    assert predict(rdma).timing.step_time.mean == pytest.approx(expected, rel=0.02)


def test_machines_share_a_remote_store() -> None:
    """Two machines of two devices read 400 MB a step from a store of 2 GB/s: 200 ms."""
    job = two_trainers()
    slow = replace(job.cluster.trainers.storage, read_bandwidth=2e9)
    step = predict(with_group(job, storage=slow)).timing.step_time.mean
    assert step == pytest.approx(4 * READ / 2e9, rel=1e-3)


def test_a_cap_above_the_volume_does_not_matter() -> None:
    """A machine's limit of 4 GB/s leaves a volume of 1 GB/s as it is: 64 ms."""
    job = storage_cap().job
    machine = job.cluster.trainers.host
    assert machine.network is not None
    wide = replace(machine, network=replace(machine.network, storage_cap=4e9))
    slow = replace(job.cluster.trainers.storage, read_bandwidth=1e9)
    step = predict(with_group(job, host=wide, storage=slow)).timing.step_time.mean
    assert step == pytest.approx(0.064, rel=1e-3)


@pytest.mark.parametrize("scope", [Scope.OBJECT, Scope.NETWORK])
def test_the_cap_is_for_volumes_only(scope: Scope) -> None:
    """Objects and files come over the ordinary network: the 40 ms of compute remain."""
    job = storage_cap().job
    other = replace(job.cluster.trainers.storage, scope=scope)
    step = predict(with_group(job, storage=other)).timing.step_time.mean
    assert step == pytest.approx(0.04, rel=1e-3)


def test_senders_of_narrow_cards_are_the_limit_themselves() -> None:
    """Two cards of 1 GB/s send 100 MB a batch in 50 ms; the pin-memory thread needs 32 ms."""
    job = batches_from_helpers(output_bytes=100e6 / 32, compute=0.005, batch_cpu=0.01)
    trainers, helpers = job.cluster.groups
    assert helpers.host.network is not None
    narrow = replace(helpers.host, network=replace(helpers.host.network, bandwidth=1e9))
    groups = (trainers, replace(helpers, host=narrow))
    prediction = predict(replace(job, cluster=replace(job.cluster, groups=groups)))
    assert prediction.timing.step_time.mean == pytest.approx(0.05, rel=0.02)
    assert prediction.timing.bottleneck == "data.network"


def test_one_flow_can_be_slower_than_the_card() -> None:
    """A flow of at most 100 MB/s takes a second for a batch: with 16 to 18 under way near 60 ms."""
    job = batches_from_helpers(output_bytes=100e6 / 32, compute=0.005, batch_cpu=0.0)
    trainers, helpers = job.cluster.groups
    assert helpers.host.network is not None
    capped = replace(helpers.host, network=replace(helpers.host.network, per_flow=1e8))
    groups = (trainers, replace(helpers, host=capped))
    step = predict(replace(job, cluster=replace(job.cluster, groups=groups))).timing.step_time
    assert 0.98 / 18 < step.mean < 1.02 / 16


def test_the_trainer_names_its_card_as_the_bottleneck() -> None:
    """Sixteen remote workers fill the card of the machine that trains."""
    job = batches_from_helpers(output_bytes=100e6 / 32, compute=0.005, batch_cpu=0.01)
    prediction = predict(job)
    assert prediction.timing.bottleneck == "network"
    assert prediction.timing.usage["network"].busiest > 0.98
