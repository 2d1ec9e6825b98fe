"""A store with several caps is as busy as its busiest cap: more of any of them is never slower."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import host, scenario, store

from simulator.pipeline.loads import limiting_time, unit_loads
from simulator.pipeline.program import demand_table
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import NETWORK_OPERATIONS, OPERATIONS, REQUESTS, build
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.schema.data_loading import CachePolicy
from simulator.schema.machines import Network
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode

CAPS = st.sampled_from([None, 500.0, 16000.0, 1e6])
ON_STORE = (
    *("read_bandwidth", "write_bandwidth", "read_operations", "write_operations"),
    "request_limit",
)
ON_NETWORK = ("bandwidth", "storage_cap", "storage_operations_cap")


@st.composite
def capped(draw: st.DrawFn) -> Scenario:
    """Jobs that read, or read and write, through a store with any of the caps there are."""
    disk = replace(
        store(rate=draw(st.sampled_from([5e7, 1e9]))),
        scope=draw(st.sampled_from([Scope.VOLUME, Scope.NETWORK, Scope.OBJECT])),
        write_bandwidth=draw(st.sampled_from([None, 1e8, 2e9])),
        read_operations=draw(CAPS),
        write_operations=draw(CAPS),
        request_limit=draw(CAPS),
    )
    card = Network(
        bandwidth=draw(st.sampled_from([1e8, 1e10])),
        storage_cap=draw(st.sampled_from([None, 5e8])),
        storage_operations_cap=draw(CAPS),
    )
    job = scenario(
        machine=replace(host(), network=card),
        storage=disk,
        cache=CachePolicy.NONE,
        workers=4,
        batch_cpu=0.001,
        sample_bytes=draw(st.sampled_from([1e3, 1e6])),
        output_bytes=draw(st.sampled_from([1e3, 1e6])),
    )
    mode = draw(st.sampled_from([Mode.TRAIN, Mode.PREPARE]))
    return replace(job, jobs=(replace(job.job, mode=mode),))


def more(job: Scenario, cap: str, times: float) -> Scenario:
    """The scenario with one cap of its store or of its network so many times as high."""
    group = job.cluster.groups[0]

    def raised(part: Storage | Network) -> float | None:
        value: float | None = getattr(part, cap)
        return None if value is None else value * times

    if cap in ON_STORE:
        group = replace(group, storage=replace(group.storage, **{cap: raised(group.storage)}))  # type: ignore[arg-type]
    elif group.host.network is not None:
        card = replace(group.host.network, **{cap: raised(group.host.network)})  # type: ignore[arg-type]
        group = replace(group, host=replace(group.host, network=card))
    return replace(job, cluster=replace(job.cluster, groups=(group,)))


def step(job: Scenario) -> float:
    """Step time that the slowest resource imposes [s]."""
    return float(limiting_time(job, build(job), demand_table(job, Phase.COLD)))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(capped(), st.sampled_from((*ON_STORE, *ON_NETWORK)), st.sampled_from([1.5, 60.0]))
def test_more_of_any_cap_is_never_slower(job: Scenario, cap: str, times: float) -> None:
    """What the slowest resource imposes does not grow with any cap of the store or its network."""
    assert step(more(job, cap, times)) <= step(job) * (1 + 1e-12)


def test_each_cap_counts_writes_in_its_own_way() -> None:
    """32 writes: 8 ms of a disk of 4,000 writes/s; the machine's 500 /s take 64 ms, reads aside."""
    disk = replace(store(operations=16000.0), scope=Scope.VOLUME, write_operations=4000.0)
    disk = replace(disk, request_limit=1000.0)
    card = Network(bandwidth=1e10, storage_operations_cap=500.0)
    job = scenario(
        machine=replace(host(), network=card), storage=disk, sample_bytes=1.0, output_bytes=1e3
    )
    job = replace(job, jobs=(replace(job.job, mode=Mode.PREPARE),))
    loads = unit_loads(build(job), demand_table(job, Phase.WARM))
    assert loads[OPERATIONS] == pytest.approx(32 / 4000)
    assert loads[REQUESTS] == pytest.approx(32 / 1000)
    assert loads[NETWORK_OPERATIONS] == pytest.approx(32 / 500)


@pytest.mark.slow
@pytest.mark.parametrize("operations", ["1000000", "3000000"])
def test_preparing_data_gains_by_operations(operations: str) -> None:
    """With more operations a second a shipped job takes as long as with fewer, within 2%."""
    few, many = (
        predict(
            load_scenario(
                "offline-preparation", overrides=(f"hardware.storage_operations={n} IOPS",)
            ),
            intervals=False,
        ).timing.total_time
        for n in ("20000", operations)
    )
    assert many <= few * 1.02
