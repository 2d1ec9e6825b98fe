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
def test_a_faster_resource_changes_what_it_exposes(
    drawn: tuple[Rates, dict[str, object]], which: str
) -> None:
    """Twice a rate moves the step by at most its exposed time, the half-widths and 1%.

    What is under 5% busy makes no step longer than by the half-widths and 1%.
    """
    rates, changes = drawn
    name = {"store": "storage", "memory": "host_memory"}.get(which, which)
    first = predict(rates.job(**changes))
    faster = replace(rates, **{which: 2.0 * getattr(rates, which)})
    then = predict(faster.job(**changes))
    step, change = first.timing.step_time.mean, _change(then, first)
    chance = first.timing.half_width + then.timing.half_width + 0.01 * step
    assert abs(change) <= _exposed(first) + chance
    if first.timing.usage[name].busiest < IDLE:
        assert change <= chance


def _change(then: Prediction, first: Prediction) -> float:
    return then.timing.step_time.mean - first.timing.step_time.mean


def _exposed(prediction: Prediction) -> float:
    """The time of a step in which the device waits [s]: for data, or for its copy.

    Copies to the device pass the link and host memory, which they share with reads.
    """
    split = prediction.timing.split
    return split.data_stall + split.h2d


LOCKS_IN: Final[dict[str, object]] = {
    "workers": 2,
    "prefetch": 2,
    "batch_cpu": 0.0133,
    "compute": 0.0083,
    "sample_bytes": 441e3,
    "output_bytes": 863e3,
}


@pytest.mark.parametrize("memory", [2.4e10, 4.8e10, 9.6e10, 3.84e11])
def test_equal_samples_do_not_lock_in(memory: float) -> None:
    """Two devices read 2 x 32 x 441 kB a step from a store of 588 MB/s: 48 ms, a few % above.

    Workers in fixed phases read together and decode together for ever: 48 ms with the slowest of
    these memories, and 65 ms with the fastest, which is 1% busy.
    """
    machine = host(gpus=2, memory_bandwidth=memory, pcie=4.9e9, cores=2.0, contention=0.5)
    machine = replace(machine, network=Network(bandwidth=5.2e9))
    disk = replace(store(rate=588e6), scope=Scope.NETWORK)
    job = scenario(
        machine=machine,
        storage=disk,
        cache=CachePolicy.NONE,
        batches=BATCHES,
        **LOCKS_IN,  # type: ignore[arg-type]
    )
    timing = predict(job).timing
    assert 0.048 * (1.0 - 1e-6) <= timing.step_time.mean <= 0.048 * 1.03


def test_bytes_beyond_the_capacity_are_seen() -> None:
    """A store that is asked for ten times its rate is 1,000% busy, so that a law sees it."""
    topology = inputs_of(Rates(store=1e8, network=1e10, memory=1e11, pcie=1e10).job()).topology
    assert usage_of_units(topology, {STORE: 10.0})["storage"].busiest == 10.0
