"""Links are busy wherever there is communication, as busy as the bytes say, and shared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.catalogue import each
from support.stages import sampled

from simulator.engine.run import Options, solve
from simulator.physics.device_time import device_traffic
from simulator.pipeline.topology import NETWORK_OUT, build
from simulator.predict import predict, simulation_input
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction

SHIPPED = sorted(path.stem for path in (Path(__file__).parents[2] / "scenarios").glob("*.toml"))
LINKS = ("nvlink", "network", "pcie")
SPREAD = ("bloom-176b", "gpt3-175b-megatron", "llama3-8b-fsdp", "mixtral-8x7b-megatron")


def predicted(name: str, *overrides: str) -> Prediction:
    """What is predicted of a shipped scenario."""
    return predict(load_scenario(name, overrides=overrides), intervals=False)


@each("name", sampled(SHIPPED, 12))
def test_links_are_busy_where_there_is_communication(name: str) -> None:
    """Exchange passes links of the machine, and the machine's network where there are several."""
    found = predicted(name)
    timing, trainers = found.timing, found.scenario.cluster.trainers
    if timing.split.communication + timing.hidden_communication == 0.0:
        return
    assert sum(timing.usage[link].mean for link in LINKS if link in timing.usage) > 0.0
    if trainers.count > 1 and trainers.host.network is not None:
        assert timing.usage["network"].mean > 0.0
    if trainers.gpus_per_host > 1 and "nvlink" in timing.usage:
        assert timing.usage["nvlink"].mean > 0.0


@pytest.mark.parametrize("name", SPREAD)
def test_links_carry_the_bytes_of_a_step(name: str) -> None:
    """Utilization x capacity x step time is what the devices of a machine send in a step."""
    found = predicted(name)
    scenario, topology = found.scenario, build(found.scenario)
    sent = device_traffic(scenario)
    assert sent is not None
    batches, devices = scenario.job.train.accumulation, scenario.cluster.trainers.gpus_per_host
    step = found.timing.step_time.mean

    def carried(unit: str, usage: str) -> float:
        return float(found.timing.usage[usage].mean * topology.units[unit].capacity * step)

    inside = batches * sent.micro_batch.inside + sent.gradients.inside
    assert carried("nvlink gpu0", "nvlink") == pytest.approx(inside, rel=1e-3)
    outside = devices * (batches * sent.micro_batch.outside + sent.gradients.outside)
    if outside:
        # samples come over the same network
        assert carried(NETWORK_OUT, "network") == pytest.approx(outside, rel=2e-2)


def test_reads_and_exchange_share_the_network() -> None:
    """Samples that need a fifth of a step's time on the network make the exchange beside longer."""
    job = ("hardware.count=2", "hardware.network_bandwidth='12.5 GB/s'")
    large = ("data.bytes_per_sample='1 GB'", "hardware.storage_bandwidth='400 GB/s'")
    alone, shared = (predicted("llama3-8b-fsdp", *job, *more).timing for more in ((), large))
    assert 0.25 * alone.step_time.mean > 16e9 / 12.5e9
    assert shared.split.data_stall == 0.0
    assert shared.split.communication > alone.split.communication + 0.8 * 16e9 / 12.5e9


def test_hidden_exchange_that_its_link_delays_is_waited_for() -> None:
    """Where its link carries no more than half of it beside compute, the step is the link's."""
    name = "llama3-8b-fsdp"
    sent, step = device_traffic(load_scenario(name)), predicted(name).timing.step_time.mean
    assert sent is not None
    inputs = simulation_input(load_scenario(name))
    capacity = 0.5 * sent.micro_batch.inside / step
    units = {
        unit: replace(one, capacity=capacity) if unit.startswith("nvlink") else one
        for unit, one in inputs.topology.units.items()
    }
    narrow = replace(inputs, topology=replace(inputs.topology, units=units))
    found = solve(narrow, Options())
    assert found.step_time.mean == pytest.approx(2.0 * step, rel=0.05)
    assert found.ledger["hidden exchange"] > 0.02 * step
