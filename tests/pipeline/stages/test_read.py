"""Operations of windowed reads, by hand."""

from __future__ import annotations

import pytest

from simulator.files.scenario import load_scenario
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.read import Read, chunks


def operations(*overrides: str) -> float:
    """Store operations that a cold batch of four crops asks for."""
    scenario = load_scenario("windowed-volumes", overrides=overrides)
    return sum(float(demand.operations) for demand in Read().demands(scenario, Phase.COLD))


def test_each_chunk_of_a_window_is_an_operation_of_its_own() -> None:
    """A crop over 8 chunks of 524,288 bytes touches 9 of them; halved chunks make it 17."""
    scenario = load_scenario("windowed-volumes")
    assert float(chunks(scenario.job.dataset)) == pytest.approx(9.0)
    small = operations("data.chunk_size=262144 B")
    assert operations() >= 4 * 9
    assert small / operations() == pytest.approx(17.0 / 9.0)
