"""Equal ranks reduction: whatever machine and job, the reduction run is the run of every rank."""

from __future__ import annotations

from dataclasses import astuple, replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import host, inputs_of, link, scenario, simulate, store

from simulator.engine import epoch
from simulator.engine.run import Options, solve
from simulator.engine.symmetry import everyone, reduce_symmetry
from simulator.pipeline.stages.base import Phase
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Timing
from simulator.schema.data_loading import CachePolicy, LoaderKind, Remote, Straggler
from simulator.schema.fields import CONSTANT, Shape, Spread
from simulator.schema.machines import Group, Host, Network, PcieSwitch, Role
from simulator.schema.models import CustomModel
from simulator.schema.scenario import Scenario
from simulator.schema.training import Parallelism

FEW = settings(max_examples=60, deadline=None, derandomize=True)
UNEQUAL = Spread(shape=Shape.GAMMA, relative_deviation=0.05)
MODEL = CustomModel(
    name="large",
    parameters=2e7,
    forward_flops=1e6,
    traffic=1e6,
    activation=1e6,
    input_bytes=1e3,
    output_bytes=4.0,
)


@st.composite
def machines(draw: st.DrawFn) -> Host:
    """Two to eight devices: over switches and sockets, with and without links among them."""
    gpus = draw(st.sampled_from([2, 4, 8]))
    cut = draw(st.sampled_from([gpus, gpus // 2, 1]))
    uplink = link(draw(st.sampled_from([4e9, 30e9])))
    below = [tuple(range(first, min(first + cut, gpus))) for first in range(0, gpus, cut)]
    switched = draw(st.integers(0, len(below)))
    switches = tuple(
        PcieSwitch(socket=group[0] * 2 // gpus, uplink=uplink, gpus=group, drives=(i,), nics=(i,))
        for i, group in enumerate(below[:switched])
    )
    sockets = draw(st.booleans())
    machine = host(
        gpus=gpus,
        cores=draw(st.sampled_from([2.0, 8.0, 32.0])),
        contention=draw(st.sampled_from([0.0, 0.5])),
        nvlink=draw(st.sampled_from([None, 5e9])),
        switches=switches,
        memory_bandwidth=draw(st.sampled_from([None, 2e10])),
    )
    return replace(
        machine,
        gpu_sockets=tuple(i * 2 // gpus for i in range(gpus)) if sockets else (),
        socket_link=link(6e9) if sockets else None,
        network=Network(bandwidth=2e9, cards=max(1, switched)),
        drive_count=max(1, switched),
    )


@st.composite
def jobs(draw: st.DrawFn) -> Scenario:
    """Deterministic jobs: replicas of one job, copies, remote workers, models over devices."""
    machine = draw(machines())
    producers = draw(st.integers(1, 3))
    slow = draw(
        st.sampled_from([(), (Straggler(factor=3.0, rank=1),), (Straggler(factor=2.0, worker=0),)])
    )
    job = scenario(
        machine=machine,
        batches=draw(st.integers(3, 40)),
        device_spread=draw(st.sampled_from([CONSTANT, UNEQUAL])),
        batch_cpu=draw(st.sampled_from([0.002, 0.05])),
        compute=draw(st.sampled_from([0.001, 0.02])),
        workers=producers,
        epochs=draw(st.sampled_from([1.0, 2.0])),
        storage=store(rate=draw(st.sampled_from([2e8, 1e10]))),
        cache=draw(st.sampled_from([CachePolicy.NONE, CachePolicy.PRELOADED])),
        output_bytes=draw(st.sampled_from([0.0, 2e6])),
        stragglers=slow,
        sync=draw(st.booleans()),
        accumulation=draw(st.sampled_from([1, 2])),
        loader=draw(st.sampled_from([LoaderKind.PYTORCH, LoaderKind.TF_DATA])),
        pin_memory=draw(st.booleans()),
        socket=draw(st.sampled_from([None, 0])),
        last_share=draw(st.sampled_from([1.0, 0.5])),
    )
    only = replace(job.job, model=MODEL)
    cluster = job.cluster
    shape = draw(st.sampled_from(["ranks", "copies", "replicas", "remote"]))
    if shape == "copies":
        only = replace(only, copies=2)
    elif shape == "replicas":
        only = replace(only, parallelism=Parallelism(tensor=2))
    elif shape == "remote":
        cpus = replace(host(gpus=0, cores=4.0), network=Network(bandwidth=1e9))
        group = Group(name="data", role=Role.PREPROCESS, host=cpus, storage=store(), count=2)
        cluster = replace(cluster, groups=(*cluster.groups, group))
        only = replace(
            only, remote=Remote(name="data", workers=4), input=replace(only.input, straggler=())
        )
    return replace(job, jobs=(only,), cluster=cluster)


def whole(job: Scenario, seed: int = 0) -> Timing:
    """The run with every rank simulated."""
    with patch.object(
        epoch, "reduce_symmetry", lambda _, topology, __: everyone(topology, topology.ranks)
    ):
        return simulate(job, replay=True, seed=seed)


@FEW
@given(jobs())
def test_a_folded_run_is_the_run_of_every_rank(job: Scenario) -> None:
    """Steps, epochs, the split and what every resource does agree but for rounding."""
    reduction, full = simulate(job, replay=True), whole(job)
    assert reduction.step_times == pytest.approx(full.step_times, rel=1e-9, abs=1e-12)
    assert reduction.total_time == pytest.approx(full.total_time, rel=1e-9)
    assert reduction.epoch_time == pytest.approx(full.epoch_time, rel=1e-9)
    assert reduction.first_steps == pytest.approx(full.first_steps, rel=1e-9)
    nothing = 1e-9 * full.step_time.mean
    assert astuple(reduction.split) == pytest.approx(astuple(full.split), rel=1e-9, abs=nothing)
    hidden, exposed = reduction.hidden_communication, reduction.split.communication
    assert hidden == pytest.approx(full.hidden_communication, rel=1e-9, abs=nothing)
    assert exposed == pytest.approx(full.split.communication, rel=1e-9, abs=nothing)
    assert reduction.usage.keys() == full.usage.keys()
    for name, usage in full.usage.items():
        assert astuple(reduction.usage[name]) == pytest.approx(
            astuple(usage), rel=1e-9, abs=1e-9
        ), name


@FEW
@given(jobs())
def test_ranks_are_folded_into_few(job: Scenario) -> None:
    """Every rank is stood for once, and never more are simulated than there are."""
    asked = inputs_of(job)
    reduction = reduce_symmetry(job, asked.topology, asked.demands[Phase.COLD])
    assert sorted(rank for alike in reduction.members.values() for rank in alike) == list(
        range(asked.topology.ranks)
    )
    assert sum(reduction.counts) == asked.topology.ranks
    assert tuple(reduction.members) == reduction.ranks


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("llama3-8b-fsdp", ()),
        ("llama3-8b-fsdp", ("parallelism.tensor=2",)),
        ("bert-large-dgx-a100", ()),
    ],
)
def test_replicas_of_a_model_are_folded(name: str, overrides: tuple[str, ...]) -> None:
    """Shipped jobs with several replicas on a machine: as if each had been simulated."""
    job = load_scenario(name, overrides=overrides)
    asked = inputs_of(job)
    few = reduce_symmetry(job, asked.topology, asked.demands[Phase.COLD])
    assert len(few.ranks) < asked.topology.ranks
    reduction = solve(asked, Options(most_steps=60))
    with patch.object(
        epoch, "reduce_symmetry", lambda _, topology, __: everyone(topology, topology.ranks)
    ):
        full = solve(asked, Options(most_steps=60))
    assert reduction.step_time.mean == pytest.approx(full.step_time.mean, rel=1e-9)
    assert reduction.total_time == pytest.approx(full.total_time, rel=1e-9)
    for resource, usage in full.usage.items():
        assert astuple(reduction.usage[resource]) == pytest.approx(
            astuple(usage), rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("deviation", [0.2, 1.0])
def test_with_random_samples_few_ranks_say_what_all_say(deviation: float) -> None:
    """Folded and expanded runs agree within the confidence intervals of both."""
    spread = Spread(shape=Shape.GAMMA, relative_deviation=deviation)
    machine = replace(host(gpus=24, cores=24.0, nvlink=None), host_link=None)
    job = scenario(
        machine=machine, batches=400, batch_cpu=0.02, compute=0.01, workers=2, cost_spread=spread
    )
    asked = inputs_of(job)
    assert len(reduce_symmetry(job, asked.topology, asked.demands[Phase.COLD]).ranks) == 8
    few = simulate(job)
    with patch.object(
        epoch, "reduce_symmetry", lambda _, topology, __: everyone(topology, topology.ranks)
    ):
        full = simulate(job)
    off = abs(few.step_time.mean - full.step_time.mean)
    assert off <= few.half_width + full.half_width
