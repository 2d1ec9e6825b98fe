"""Bounds hold for whatever shares something: helpers, copies, machines, placement, caches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coupling.build import (
    helpers,
    model,
    networked,
    remote_store,
    with_data,
    with_group,
    with_helpers,
    with_job,
    with_work,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.scenarios import host, inputs_of, link, scenario, simulate, store

from simulator.engine.closed_form import bounds
from simulator.pipeline.program import check_modelled
from simulator.schema.data_loading import (
    CachePolicy,
    LoaderKind,
    Placement,
    Preparation,
    Remote,
    Straggler,
)
from simulator.schema.machines import Host, LinkKind, PcieSwitch
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode

FEW = settings(max_examples=80, deadline=None, derandomize=True)
LOOSE = 1e-9
"""Rounding of a sum of some thousand times."""


@st.composite
def machines(draw: st.DrawFn) -> Host:
    """Machines with up to four devices, sockets, switches over devices, drives and cards."""
    gpus = draw(st.sampled_from([1, 2, 4]))
    half = max(1, gpus // 2)
    uplink = link(draw(st.sampled_from([1.5e9, 16e9])))
    switches = (
        PcieSwitch(socket=0, uplink=uplink, gpus=tuple(range(half)), nics=(0,)),
        PcieSwitch(socket=1, uplink=uplink, gpus=tuple(range(half, gpus)), drives=(0, 1)),
    )
    cores = draw(st.sampled_from([2.0, 6.0, 24.0]))
    machine = host(
        gpus=gpus,
        cores=cores,
        threads=2 * cores,
        smt_worth=draw(st.sampled_from([0.0, 0.3])),
        contention=draw(st.sampled_from([0.0, 0.5])),
        pageable=draw(st.sampled_from([None, 3e9])),
        nvlink=draw(st.sampled_from([None, 50e9])),
        switches=draw(st.sampled_from([(), switches])),
        memory_bandwidth=draw(st.sampled_from([None, 5e9])),
    )
    limits = {
        "storage_cap": draw(st.sampled_from([None, 2e8])),
        "storage_operations_cap": draw(st.sampled_from([None, 3000.0])),
        "rdma": draw(st.booleans()),
    }
    wired = networked(machine, draw(st.sampled_from([1.25e9, 12.5e9])), **limits)
    return replace(
        wired,
        gpu_sockets=tuple(0 if gpu < half else 1 for gpu in range(gpus)),
        socket_link=link(draw(st.sampled_from([4e9, 40e9])), LinkKind.SOCKET),
        local_storage=store(rate=1e9),
        drive_count=2,
    )


@st.composite
def stores(draw: st.DrawFn) -> Storage:
    """Stores in the machine, over the network and of objects."""
    scope = draw(st.sampled_from(list(Scope)))
    if scope is Scope.LOCAL:
        return store(rate=1e9, latency=draw(st.sampled_from([0.0, 2e-4])))
    return remote_store(
        draw(st.sampled_from([2e8, 5e9])),
        scope,
        read_latency=draw(st.sampled_from([0.0, 1e-3])),
        request_rate=30e6 if scope is Scope.OBJECT else None,
        request_limit=draw(st.sampled_from([None, 4000.0])),
    )


@st.composite
def jobs(draw: st.DrawFn) -> Scenario:
    """Jobs of all kinds on one such machine, every service deterministic."""
    kind = draw(st.sampled_from([LoaderKind.PYTORCH, LoaderKind.TF_DATA, LoaderKind.ACTORS]))
    processes = kind is LoaderKind.PYTORCH
    base = scenario(
        batches=draw(st.integers(1, 50)),
        batch_cpu=draw(st.sampled_from([0.0, 0.03, 0.2])),
        compute=draw(st.sampled_from([0.001, 0.03])),
        workers=draw(st.integers(0 if processes else 1, 5)),
        epochs=draw(st.sampled_from([1.0, 3.0])),
        machine=draw(machines()),
        storage=draw(stores()),
        sample_bytes=draw(st.sampled_from([1e4, 1e6])),
        cache=draw(st.sampled_from([CachePolicy.NONE, CachePolicy.RANDOM, CachePolicy.IDEAL])),
        output_bytes=draw(st.sampled_from([0.0, 6e5])),
        sync=draw(st.booleans()),
        accumulation=draw(st.sampled_from([1, 3])),
        loader=kind,
        pin_memory=draw(st.booleans()),
        in_order=draw(st.booleans()),
        socket=draw(st.sampled_from([None, 0])),
        receive_per_batch=draw(st.sampled_from([0.0, 0.01])),
        worker_start=draw(st.sampled_from([0.0, 0.05])),
    )
    return with_job(base, model=draw(st.sampled_from([None, model(2e6), model(2e7, 1e5)])))


def with_straggler(job: Scenario) -> Scenario:
    """The job with a slow first rank."""
    loader = replace(job.job.input, straggler=(Straggler(factor=2.5, rank=0),))
    return with_job(job, input=loader)


@st.composite
def several(draw: st.DrawFn) -> Scenario:
    """Such jobs with helpers, as copies, on several machines, without gradients."""
    base = draw(jobs())
    gpus = base.cluster.trainers.gpus_per_host
    ways = ["alone", "straggler", "infer", "helpers", "copies", "machines"]
    way = draw(st.sampled_from(ways))
    if way == "helpers":
        group = helpers(
            draw(st.integers(1, 3)), draw(st.sampled_from([2.0, 16.0])), 1.25e9, draw(stores())
        )
        remote = Remote(
            name=group.name,
            workers=draw(st.integers(1, 9)),
            shares_batches=draw(st.booleans()),
            queue=draw(st.integers(1, 4)),
            send_per_batch=draw(st.sampled_from([0.0, 0.02])),
        )
        return with_job(with_helpers(base, group), remote=remote)
    if way == "copies":
        return with_job(base, copies=draw(st.sampled_from([n for n in (1, 2, 4) if n <= gpus])))
    if way == "machines":
        count = draw(st.integers(2, 4))
        many = with_data(base, samples=count * base.job.dataset.samples)
        return with_group(many, count=count)
    if way == "straggler":
        return with_straggler(base)
    return with_job(base, mode=Mode.INFER) if way == "infer" else base


@st.composite
def coupled(draw: st.DrawFn) -> Scenario:
    """Such jobs with the data placed, cached, or prepared in one way or another."""
    job = draw(several())
    cached = draw(st.sampled_from([None, 0.3, 2.0]))
    if cached is not None and job.cluster.trainers.storage.scope is not Scope.LOCAL:
        size = cached * job.job.dataset.total_bytes / 2
        job = with_group(job, cache=replace(store(rate=6e8), capacity=size))
    placement = draw(st.sampled_from(list(Placement)))
    if placement is not Placement.STREAM:
        job = with_data(with_group(job, origin=remote_store(3e8)), placement=placement)
    if draw(st.booleans()):
        job = with_data(job, window=3e3, chunk_size=1e3)
    where = draw(st.sampled_from(list(Preparation)))
    job = with_work(job, where=where, device_time=2e-4, prepared_bytes_per_sample=3e5)
    check_modelled(job)
    return job


@FEW
@given(coupled())
def test_total_time_lies_between_the_bounds(job: Scenario) -> None:
    """No run beats its busiest unit, and none is slower than doing everything in turn."""
    asked = inputs_of(job)
    limits = bounds(job, asked.topology, asked.demands, asked.lengths, asked.extras)
    per_step = simulate(job).total_time / asked.lengths.total_steps
    assert per_step >= limits.lower * (1 - LOOSE)
    assert per_step <= limits.upper * (1 + LOOSE)


@FEW
@given(coupled())
def test_the_split_adds_up_and_nothing_is_busier_than_always(job: Scenario) -> None:
    """The parts of the step sum to its mean, and no unit of any group is above 100%."""
    timing = simulate(job)
    split = timing.split
    parts = [split.data_stall, split.h2d, split.compute, split.communication, split.other]
    assert sum(parts) + split.checkpoint == pytest.approx(timing.step_time.mean, rel=1e-9)
    assert min(parts) >= -LOOSE
    assert all(0.0 <= usage.busiest <= 1.0 + LOOSE for usage in timing.usage.values())


@pytest.mark.slow
@FEW
@given(coupled())
def test_a_composed_run_takes_what_a_replayed_one_takes(job: Scenario) -> None:
    """Stopping at the steady state changes the time of the run by less than 2%."""
    # Slow producers beside quick ones may show the first pattern long before their own batches.
    assume(job.job.remote is None or job.job.input.workers == 0)
    # Loaders that go on across epochs are composed of mean steps, exact for long ones only.
    assume(job.job.input.loader is LoaderKind.PYTORCH or job.job.train.epochs == 1.0)
    whole = simulate(job, replay=True).total_time
    assert simulate(job).total_time == pytest.approx(whole, rel=0.02)
