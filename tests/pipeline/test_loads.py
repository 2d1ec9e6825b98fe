"""What of a step's exchange its compute hides, by hand."""

from __future__ import annotations

import pytest

from simulator.pipeline.loads import device_step
from simulator.pipeline.program import FILLS_BUCKETS, STEP
from simulator.pipeline.stages.base import Path, Per, Resource, StageDemands, asking
from simulator.terms import stated


@pytest.mark.parametrize(("exchange", "exposed"), [(0.2, 0.125), (0.04, 0.01)])
def test_buckets_hide_behind_what_fills_the_later_ones(exchange: float, exposed: float) -> None:
    """A backward pass of 100 ms fills the first of four buckets in 25 ms; the last shows."""
    bucket = next(slot for slot in STEP if slot.per is Per.BUCKET)
    stages = [
        StageDemands(
            slot=slot,
            demands=(asking(stated(time=time), Resource.GPU, Path.COMPUTE),),
        )
        for slot, time in ((FILLS_BUCKETS, 0.1), (bucket, exchange))
    ]
    found = device_step(stages, lambda demand: demand.amount, lambda: (0.25, 0.25, 0.25, 0.25))
    assert found.per_batch == pytest.approx(0.1)
    assert found.exposed == pytest.approx(exposed)
