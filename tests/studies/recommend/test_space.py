"""What a search looks at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Goal, Objective, Sense
from simulator.studies.baseline import baseline_of
from simulator.studies.levers import MACHINE, Settings
from simulator.studies.levers.parallelism import Shape, ways
from simulator.studies.levers.training import splits
from simulator.studies.recommend.search_problem import Refusal, space_of

BLOCKS_ONLY = "instance/aws/p5e.48xlarge"


def looked_at(*settings: str) -> tuple[tuple[Settings, ...], tuple[Refusal, ...]]:
    """The candidates of a shipped job on two machines, one of which is sold in blocks only."""
    reader = CandidateReader("resnet50-imagenet-p4d", overrides=settings)
    baseline = baseline_of(reader, Catalogue.default(()))
    names = ("instance/aws/p5.48xlarge", BLOCKS_ONLY)
    goal = Goal(objective=Objective(metric="cost.samples_per_usd", sense=Sense.MAXIMIZE))
    return space_of(baseline, goal, [baseline.machine(name) for name in names])


def test_a_machine_that_is_not_sold_as_the_job_buys_is_left_out() -> None:
    """Its bill is unknown on demand, so no candidate of it could be compared."""
    points, (refused,) = looked_at()
    assert refused.machine.name == BLOCKS_ONLY
    assert refused.reason.startswith("is sold as capacity-block only")
    assert {one[MACHINE] for one in points} == {"instance/aws/p5.48xlarge"}


def test_it_is_looked_at_where_its_price_is_known() -> None:
    """Bought by the block, or at a price that the file states."""
    for setting in ("cost.purchase=capacity-block", "cost.price=$40/h"):
        machines = {one[MACHINE] for one in looked_at(setting)[0]}
        assert BLOCKS_ONLY in machines


@given(share=st.integers(1, 512), room=st.integers(1, 512), tried=st.integers(1, 3))
def test_the_samples_of_a_step_stay(share: int, room: int, tried: int) -> None:
    """Batch times accumulation is always the share, and what is tried first is the largest."""
    found = list(splits(share, share, lambda batch: batch <= room, tried))
    assert all(batch * accumulation == share for batch, accumulation in found)
    assert 1 <= len(found) <= tried
    assert found[0][0] == max(d for d in range(1, share + 1) if share % d == 0 and d <= room)


def test_nothing_fits() -> None:
    """The smallest is tried all the same, so that the search says what is short."""
    assert list(splits(8, 8, lambda _: False, 2)) == [(1, 8)]


@pytest.mark.parametrize(("gpus", "machines"), [(8, 1), (8, 4), (4, 2), (1, 8), (6, 1)])
def test_ways_to_spread_use_every_accelerator(gpus: int, machines: int) -> None:
    """Degrees divide the accelerators and the layers; tensor parallelism stays in a machine."""
    depth = 48
    for way in ways(gpus, machines, Shape(depth=depth), 1024):
        tensor, pipeline = way["parallelism.tensor"], way["parallelism.pipeline"]
        assert isinstance(tensor, int)
        assert isinstance(pipeline, int)
        assert gpus * machines % (tensor * pipeline) == 0
        assert depth % pipeline == 0
        assert tensor <= gpus


def test_no_more_replicas_than_samples() -> None:
    """Eight accelerators with four samples a step: no way that leaves replicas idle."""
    for way in ways(8, 1, Shape(depth=24), 4):
        replicas = 8 // (int(way["parallelism.tensor"]) * int(way["parallelism.pipeline"]))
        assert replicas <= 4


def test_long_samples_are_cut_and_experts_spread() -> None:
    """Context parallelism from two parts of 8,192 tokens on, experts within and over machines."""
    plain = list(ways(8, 4, Shape(depth=32, tokens=8192), 1024))
    assert all(
        "parallelism.context" not in way and "parallelism.expert" not in way for way in plain
    )
    long = list(ways(8, 4, Shape(depth=32, tokens=32768), 1024))
    assert {way.get("parallelism.context", 1) for way in long} == {1, 2, 4}
    routed = list(ways(8, 4, Shape(depth=32, experts=64), 1024))
    assert {1, 8, 32} <= {way.get("parallelism.expert", 1) for way in routed}
    for way in routed:
        devices = int(way["parallelism.tensor"]) * int(way["parallelism.pipeline"])
        assert int(way.get("parallelism.expert", 1)) <= 32 // devices


def test_state_is_shared_whole_or_in_part() -> None:
    """Without a pipeline parameters may be sharded too; a single replica shares nothing."""
    found = list(ways(8, 1, Shape(depth=32), 1024))
    by_cut = {(way["parallelism.tensor"], way["parallelism.sharding"]) for way in found}
    assert (1, "parameters") in by_cut
    assert {(4, "parameters"), (4, "optimizer")} <= by_cut
    assert (8, "none") in by_cut
