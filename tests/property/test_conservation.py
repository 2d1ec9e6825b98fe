"""Bytes are conserved: utilization x rate x step is what a step reads and sends, by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import BATCH, host, inputs_of, scenario, store

from simulator.engine.run import usage_of_units
from simulator.pipeline.topology import STORE
from simulator.predict import predict
from simulator.results.prediction import Prediction
from simulator.schema.data_loading import CachePolicy
from simulator.schema.machines import Network
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage

BATCHES: Final = 2000
IDLE: Final = 0.05
"""Utilization below which a resource is called idle."""
LEAST_STEADY: Final = 20
"""Steps of a window from which on a comparison says something."""


@dataclass(frozen=True)
class Rates:
    """Rates of what a batch passes: store, network card, host memory, PCIe link [B/s]."""

    store: float
    network: float
    memory: float
    pcie: float

    def job(self, **changes: object) -> Scenario:
        """A job that reads its samples through all of them."""
        machine = host(memory_bandwidth=self.memory, pcie=self.pcie, cores=16.0)
        machine = replace(machine, network=Network(bandwidth=self.network))
        disk: Storage = replace(store(rate=self.store), scope=Scope.NETWORK)
        return scenario(
            machine=machine,
            storage=disk,
            cache=CachePolicy.NONE,
            batches=BATCHES,
            **changes,  # type: ignore[arg-type]
        )


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Rates, dict[str, object]]:
    """Jobs limited by anything: store, network, cores or device."""
    rates = Rates(
        store=draw(st.floats(2e7, 2e10)),
        network=draw(st.floats(2e7, 2e10)),
        memory=draw(st.floats(1e10, 2e11)),
        pcie=draw(st.floats(1e9, 3e10)),
    )
    return rates, {
        "workers": draw(st.integers(1, 8)),
        "prefetch": draw(st.integers(1, 3)),
        "batch_cpu": draw(st.floats(0.0, 0.2)),
        "compute": draw(st.floats(0.005, 0.1)),
        "sample_bytes": draw(st.floats(1e4, 1e6)),
        "output_bytes": draw(st.floats(1e4, 1e6)),
    }


@settings(max_examples=40)
@given(drawn=jobs())
def test_each_link_carries_the_bytes_of_a_step(drawn: tuple[Rates, dict[str, object]]) -> None:
    """A step reads 32 samples over store and network, and copies 32 finished ones to the device.

    Batches in flight at the ends of the steady window belong to other steps: at most one a credit.
    """
    rates, changes = drawn
    found = predict(rates.job(**changes)).timing
    if found.steady_steps < LEAST_STEADY:
        return
    read = BATCH * float(str(changes["sample_bytes"]))
    copied = BATCH * float(str(changes["output_bytes"]))
    flying = 2.0 + int(str(changes["workers"])) * int(str(changes["prefetch"]))
    for name, rate, moved in (
        ("storage", rates.store, read),
        ("network", rates.network, read),
        ("pcie", rates.pcie, copied),
    ):
        carried = found.usage[name].busiest * rate * found.step_time.mean
        assert carried == pytest.approx(moved, rel=1e-6 + flying / found.steady_steps)


@settings(max_examples=25)
@given(drawn=jobs(), which=st.sampled_from(("store", "network", "memory", "pcie")))
def test_a_faster_idle_resource_changes_nothing(
    drawn: tuple[Rates, dict[str, object]], which: str
) -> None:
    """What is under 5% busy and not exposed, at twice the rate, moves the step by under 1%."""
    rates, changes = drawn
    # No transfer of an idle resource takes long for a worker by itself, so that none is exposed.
    changes = changes | {"compute": max(0.05, float(str(changes["batch_cpu"])))}
    changes["workers"] = max(2, int(str(changes["workers"])))
    name = {"store": "storage", "memory": "host_memory"}.get(which, which)
    first = predict(rates.job(**changes))
    if first.timing.usage[name].busiest >= IDLE or _exposed(first, name) > 0.0:
        return
    faster = replace(rates, **{which: 2.0 * getattr(rates, which)})
    then = predict(faster.job(**changes))
    assert then.timing.step_time.mean == pytest.approx(first.timing.step_time.mean, rel=0.01)


def _exposed(prediction: Prediction, name: str) -> float:
    """The time of a step in which the device waits for a resource [s]: copies, or data."""
    split = prediction.timing.split
    return split.h2d if name == "pcie" else split.data_stall


def test_bytes_beyond_the_capacity_are_seen() -> None:
    """A store that is asked for ten times its rate is 1,000% busy, so that a law sees it."""
    topology = inputs_of(Rates(store=1e8, network=1e10, memory=1e11, pcie=1e10).job()).topology
    assert usage_of_units(topology, {STORE: 10.0})["storage"].busiest == 10.0
