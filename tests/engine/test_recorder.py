"""What stands for an epoch's steps: one meaning of a step, however far the epoch was simulated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.scenarios import BATCH, host, scenario, simulate

from simulator.schema.machines import Host

ROUNDING = 0.003
"""Share by which a bound on shared cores may fall short of the steps that it stands for."""

SHORT_AND_LONG = [60, 157]
"""Steps of an epoch in which a reserve is used up late, or not at all."""


def workstation(cores: int) -> Host:
    """A machine whose workers share cores that slow one another down, and receive over memory."""
    return host(
        cores=cores,
        threads=2 * cores,
        smt_worth=0.05,
        contention=0.5,
        memory_bandwidth=1e11,
    )


def rates(steps: Sequence[float], cores: int, workers: int, batches: int) -> list[float]:
    """Samples a second by the time that the device takes for a step [s]."""
    return [
        simulate(
            scenario(
                batches=batches,
                batch_cpu=1.0,
                compute=step,
                workers=workers,
                prefetch=2,
                machine=workstation(cores),
                pin_memory=True,
                output_bytes=6e5,
            ),
            most=400,
        ).throughput
        for step in steps
    ]


@pytest.mark.parametrize("batches", SHORT_AND_LONG)
@given(cores=st.sampled_from([2, 4, 8]), workers=st.integers(1, 12), close=st.floats(0.8, 1.05))
@example(cores=8, workers=4, close=0.96)
@example(cores=8, workers=10, close=0.97)
@settings(max_examples=6, deadline=None, derandomize=True)
def test_a_faster_device_never_takes_fewer_samples(
    cores: int, workers: int, close: float, batches: int
) -> None:
    """Devices a little faster than the workers live on batches made ahead, which no step may be."""
    fast = rates([0.01], cores, workers, batches)[0]
    steps = [close * BATCH / fast * slower for slower in (1.0, 1.005, 1.02, 1.05)]
    found = [fast, *rates(steps, cores, workers, batches)]
    assert all(b <= a * (1.0 + ROUNDING) for a, b in pairwise(found))
