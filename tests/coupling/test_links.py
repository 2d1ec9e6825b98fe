"""The PCIe tree and the link between sockets are shared by whoever is below or across them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from coupling.build import model, with_group, with_job
from coupling.on_links import (
    card_and_drive_below_a_switch,
    copies_and_gradients,
    remote_socket_job,
)
from support.scenarios import host, link, scenario, store

from simulator.pipeline.program import demand_table
from simulator.pipeline.stages.base import Path, Phase
from simulator.pipeline.topology import Location, build
from simulator.predict import predict
from simulator.schema.data_loading import CachePolicy
from simulator.schema.machines import PcieSwitch
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode


def copy_times(job: Scenario) -> Mapping[str, float]:
    """Time of the last copy to the device of each rank [s]."""
    trace = predict(job, trace=True).timing.trace
    assert trace is not None
    copies = (s for s in trace.slices if s.name == "h2d")
    return {s.track: s.length for s in sorted(copies, key=lambda s: s.start)}


def test_a_pageable_copy_slower_than_its_share_is_not_slowed() -> None:
    """Two copies of 6 GB/s each fit into an uplink of 16 GB/s: 30 + 320 MB / 6 GB/s."""
    switch = PcieSwitch(socket=0, uplink=link(16e9), gpus=(0, 1))
    machine = host(gpus=2, pageable=6e9, switches=(switch,))
    job = scenario(output_bytes=10e6, workers=2, compute=0.03, machine=machine)
    assert predict(job).timing.step_time.mean == pytest.approx(0.03 + 320e6 / 6e9, rel=1e-6)


def test_reads_of_a_drive_and_copies_to_a_device_cross_in_both_directions() -> None:
    """A drive's bytes go up and a device's down: neither of 40 ms slows the other."""
    switch = PcieSwitch(socket=0, uplink=link(8e9), gpus=(0,), drives=(0,))
    machine = host(switches=(switch,))
    machine = replace(machine, local_storage=store(rate=8e9), drive_count=1)
    job = scenario(
        batches=300,
        storage=store(rate=8e9),
        cache=CachePolicy.NONE,
        sample_bytes=10e6,
        output_bytes=10e6,
        workers=4,
        compute=0.01,
        machine=machine,
        pin_memory=True,
        sync=False,
    )
    assert predict(job).timing.step_time.mean == pytest.approx(320e6 / 8e9, rel=1e-3)


def test_results_meet_the_reads_of_a_drive_on_the_way_up() -> None:
    """Reads of 320 MB and results of 320 MB share an uplink of 8 GB/s: 80 ms, not 40."""
    switch = PcieSwitch(socket=0, uplink=link(8e9), gpus=(0,), drives=(0,))
    job = scenario(
        batches=300,
        machine=host(switches=(switch,)),
        storage=store(rate=16e9),
        cache=CachePolicy.NONE,
        sample_bytes=10e6,
        workers=4,
        compute=0.001,
    )
    back = with_job(job, model=model(output_bytes=10e6), mode=Mode.INFER)
    assert predict(back).timing.step_time.mean == pytest.approx(0.08, rel=0.02)


def test_below_separate_switches_card_and_drive_do_not_meet() -> None:
    """With the card elsewhere the drive's 16 MB take 5.3 ms and its uplink 4 ms, not 8."""
    job = card_and_drive_below_a_switch()
    (both,) = job.cluster.trainers.host.switches
    apart = (replace(both, nics=()), replace(both, drives=()))
    machine = replace(job.cluster.trainers.host, switches=apart)
    step = predict(with_group(job, host=machine)).timing.step_time.mean
    assert step == pytest.approx(16e6 / 3e9, rel=0.1)


def test_only_rings_that_leave_a_switch_pass_its_uplink() -> None:
    """Of four devices in two pairs the second sends through both switches."""
    job = copies_and_gradients().job
    (reduce,) = (
        d
        for stage in demand_table(job, Phase.COLD)
        for d in stage.demands
        if d.path is Path.DEVICE_TO_DEVICE
    )
    ways = [{unit for unit, _ in build(job).way(reduce, Location(rank=rank))} for rank in (0, 1)]
    uplinks = {"pcie switch0 up", "pcie switch1 down"}
    assert ways == [
        {"pcie gpu0 up", "pcie gpu1 down"},
        {"pcie gpu1 up", "pcie gpu2 down"} | uplinks,
    ]


def test_a_device_on_the_socket_of_its_batches_is_not_slowed() -> None:
    """Of three devices the one on socket 0 copies in 20 ms, those on socket 1 in 33.3 ms."""
    times = copy_times(remote_socket_job((0, 1, 1)))
    assert times["rank 0 copy"] == pytest.approx(0.02, rel=1e-6)
    assert times["rank 1 copy"] == pytest.approx(2 * 320e6 / 19.2e9, rel=1e-6)
    assert times["rank 2 copy"] == pytest.approx(2 * 320e6 / 19.2e9, rel=1e-6)


def test_one_device_on_the_remote_socket_has_the_link_to_itself() -> None:
    """19.2 GB/s between the sockets are more than the 16 GB/s of one PCIe link."""
    assert predict(remote_socket_job((1,))).timing.step_time.mean == pytest.approx(0.02, rel=1e-6)


def test_batches_in_the_memory_of_each_device_cross_nothing() -> None:
    """Where each rank's batches lie on its own device's socket nobody pays the link."""
    job = remote_socket_job((0, 1, 1))
    own = with_job(job, input=replace(job.job.input, socket=None))
    assert list(copy_times(own).values()) == pytest.approx([0.02] * 3, rel=1e-6)
