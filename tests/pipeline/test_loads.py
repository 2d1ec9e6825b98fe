"""What of a step's exchange its compute hides, by hand."""

from __future__ import annotations

import pytest

from simulator.errors import NotModelled
from simulator.pipeline.loads import (
    ASSUMED,
    device_step,
    fastest_batch,
    least_batch,
    mean_slowness,
    pressures,
    serial_cycles,
    with_assumed_spread,
    with_assumed_spreads,
)
from simulator.pipeline.program import FILLS_BUCKETS, STEP, demand_table
from simulator.pipeline.stages.base import Path, Per, Phase, Resource, StageDemands, asking
from simulator.pipeline.topology import build
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.scenario import Scenario
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


@pytest.mark.parametrize(
    ("straggler", "in_order", "slow"),
    [
        ("every=10", "true", 1.3),  # nine batches of 1 and one of 4 in ten
        ("every=10", "false", 1.3),
        ("worker=0", "true", 4.0),  # all wait for it
        ("worker=0", "false", 8 / 7.25),  # seven workers and a quarter of one
    ],
)
def test_stragglers_by_hand(straggler: str, in_order: str, slow: float) -> None:
    """A factor of 4, for one batch in ten or for one of eight workers."""
    keys = (
        "input.workers=8",
        f"input.in_order={in_order}",
        f"input.straggler=[{{ factor = 4, {straggler} }}]",
    )
    job = load_scenario("resnet50-imagenet-p4d", overrides=keys)
    assert mean_slowness(job) == pytest.approx(slow)


def test_a_candidate_whose_batches_cannot_be_made_spoils_no_other() -> None:
    """Where the device shares the host's RAM, a model whose memory is not known is refused."""
    reader = CandidateReader("unet-m1-max")
    asked = [
        reader.without_uncertainty({"train.recompute": how}) for how in ("none", "full", "none")
    ]
    first, second, third = with_assumed_spreads(asked)
    assert isinstance(first, Scenario)
    assert isinstance(second, NotModelled)
    assert isinstance(third, Scenario)


def test_many_scenarios_get_what_each_gets_alone() -> None:
    """Batches of scenarios of equal structure are resolved as single ones."""
    names = ["gpu-decode", "gpt2-tokens-h100", "rl-actors", "gpu-decode"]
    asked = [load_scenario(name) for name in names]
    assert with_assumed_spreads(asked) == tuple(map(with_assumed_spread, asked))


def test_workers_that_read_and_compute_in_turn_vary() -> None:
    """An assumption is noted once, and applied once."""
    resolved = with_assumed_spread(load_scenario("gpu-decode"))
    assert resolved.job.dataset.size_spread == ASSUMED
    assert resolved.notes[-1].what.startswith("spread of samples")
    assert with_assumed_spread(resolved) is resolved


def test_a_stated_spread_is_kept() -> None:
    """A spread in the file leaves the scenario as it is."""
    stated = ("data.size_spread.shape=gamma", "data.size_spread.relative_deviation=0.1")
    scenario = load_scenario("gpu-decode", overrides=stated)
    assert with_assumed_spread(scenario) is scenario


@pytest.mark.parametrize("name", ["resnet50-imagenet-p4d", "gpu-decode", "gpt2-tokens-h100"])
def test_a_batch_takes_no_less_than_any_unit_or_actor(name: str) -> None:
    """The bound is the larger of both: of links and cores, and of what one actor does in turn."""
    scenario = load_scenario(name)
    topology, stages = build(scenario), demand_table(scenario, Phase.WARM)
    both = [float(fastest_batch(topology, stages))]
    both += [float(each) for each in serial_cycles(scenario, topology, stages)]
    assert float(least_batch(scenario, topology, stages)) == pytest.approx(max(both))
    assert min(both) < max(both)


def test_an_actor_counts_whole_for_its_longest_part() -> None:
    """The workers' whole time is that of the CPUs, which they use most; other parts stay parts."""
    scenario = load_scenario("resnet50-imagenet-p4d")
    topology, stages = build(scenario), demand_table(scenario, Phase.WARM)
    found = pressures(scenario, topology, stages)
    longest_cycle = max(float(each) for each in serial_cycles(scenario, topology, stages))
    assert next(iter(found)) == "cpu"
    assert found["cpu"] >= longest_cycle
    assert found["storage"] < 0.5 * longest_cycle
