"""Operations of windowed reads, by hand."""

from __future__ import annotations

import pytest

from simulator.physics.footprint import host_ram
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.input import Read, chunks, helpers_alone, most_samples
from simulator.reading.scenario import load_scenario


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


def test_a_store_delivers_no_more_samples_than_its_bytes_and_operations_allow() -> None:
    """3,000 operations of a sample each, or 125 MiB/s of samples of a megabyte."""
    for size, most in (("1 KB", 3000.0), ("1 MB", 125 * 2**20 / 1e6)):
        settings = ("hardware.storage=storage/ebs-gp3", f"data.bytes_per_sample={size}")
        scenario = load_scenario("imagenet-page-cache-g4dn", overrides=settings)
        assert float(most_samples(scenario)) == pytest.approx(most)


def test_a_helper_machine_holds_batches_and_no_model() -> None:
    """A model of 70 billion parameters on the trainer takes none of a helper's RAM."""
    large = load_scenario("remote-workers-mnist", overrides=("model.parameters=70e9",))
    small = load_scenario("remote-workers-mnist")
    rams = []
    for scenario in (large, small):
        remote = scenario.job.remote
        assert remote is not None
        rams.append(host_ram(helpers_alone(scenario, remote)))
    assert rams[0].items == rams[1].items
    assert not rams[0].items.get("model")
    assert rams[0].items["batches_in_flight"] > 0.0
