"""Cases in which devices, drives and cards share switches, and sockets a link."""

from __future__ import annotations

from dataclasses import replace

from coupling.build import (
    VARIED,
    Coupling,
    model,
    networked,
    remote_store,
    with_group,
    with_job,
)
from support.scenarios import host, link, scenario, store

from simulator.schema.data_loading import CachePolicy
from simulator.schema.machines import LinkKind, PcieSwitch
from simulator.schema.scenario import Scenario

BATCH_OF_IMAGES = {"output_bytes": 10e6, "workers": 2}
"""32 samples of 10 MB are 320 MB: 20 ms over a PCIe link of 16 GB/s alone."""


def two_devices_pinned() -> Coupling:
    """Two devices below one switch copy from page-locked memory while they compute.

    By hand: both copies cross one uplink, 2 x 320 MB / 16 GB/s = 40 ms, longer than the 30 ms of
    compute beside it. Alone a copy takes 20 ms and hides behind compute.
    """
    switch = PcieSwitch(socket=0, uplink=link(16e9), gpus=(0, 1))
    return Coupling(
        name="two devices below one PCIe switch, pinned",
        formula="devices x batch bytes / uplink",
        job=scenario(
            **BATCH_OF_IMAGES,
            compute=0.03,
            machine=host(gpus=2, switches=(switch,)),
            pin_memory=True,
            sync=False,
        ),
        hand=2 * 320e6 / 16e9,
        spreadsheet=max(0.03, 320e6 / 16e9),
    )


def two_devices_pageable() -> Coupling:
    """Two devices below one switch copy from ordinary memory, between steps.

    By hand: a pageable copy could go at 12 GB/s, but two share 16 GB/s: 320 MB / 8 GB/s = 40 ms,
    and compute waits for it: 40 + 30 = 70 ms. Alone: 320 MB / 12 GB/s = 26.7 ms beside 30 ms.
    """
    switch = PcieSwitch(socket=0, uplink=link(16e9), gpus=(0, 1))
    return Coupling(
        name="two devices below one PCIe switch, pageable",
        formula="compute + devices x batch bytes / uplink",
        job=scenario(
            **BATCH_OF_IMAGES,
            compute=0.03,
            machine=host(gpus=2, pageable=12e9, switches=(switch,)),
        ),
        hand=0.03 + 2 * 320e6 / 16e9,
        spreadsheet=max(0.03, 320e6 / 12e9),
    )


def card_and_drive_below_a_switch() -> Scenario:
    """Half of the data on a local drive, half over the network, both below one narrow switch."""
    switch = PcieSwitch(socket=0, uplink=link(4e9), nics=(0,), drives=(0,))
    machine = replace(networked(host(switches=(switch,)), 3.125e9), drive_count=1)
    base = scenario(
        batches=1200,
        epochs=3,
        machine=machine,
        storage=remote_store(),
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        workers=8,
        compute=0.004,
        size_spread=VARIED,
    )
    half = 0.5 * base.job.dataset.total_bytes
    return with_group(base, cache=replace(store(rate=3e9), capacity=half))


def card_and_drive() -> Coupling:
    """Reads of a drive and of a network card meet in the uplink of the switch above them.

    By hand: the drive holds half of the data, so of the 32 MB of a batch 16 MB come from either,
    all 32 MB through the uplink: 32 MB / 4 GB/s = 8 ms. Alone the card takes
    16 MB / 3.125 GB/s = 5.1 ms, the drive 16 MB / 3 GB/s = 5.3 ms, the device 4 ms.
    """
    return Coupling(
        name="network card and drive below one PCIe switch",
        formula="(bytes by card + bytes by drive) / uplink",
        job=card_and_drive_below_a_switch(),
        hand=32e6 / 4e9,
        spreadsheet=max(0.004, 16e6 / 3.125e9, 16e6 / 3e9),
    )


def copies_and_gradients() -> Coupling:
    """Without links of their own four devices reduce over the switches their batches come by.

    By hand: switch 0 carries down to its two devices 2 x 320 MB of batches and, from the last
    device of the ring, 2 x 3/4 x 200 MB = 300 MB of gradients: 940 MB / 16 GB/s = 58.75 ms.
    Alone the copy takes 20 ms, and compute with the all-reduce 10 + 300 MB / 16 GB/s = 28.75 ms.
    """
    switches = (
        PcieSwitch(socket=0, uplink=link(16e9), gpus=(0, 1)),
        PcieSwitch(socket=0, uplink=link(16e9), gpus=(2, 3)),
    )
    base = scenario(
        **BATCH_OF_IMAGES,
        compute=0.01,
        machine=host(gpus=4, nvlink=None, switches=switches),
        pin_memory=True,
        sync=False,
    )
    return Coupling(
        name="batches and gradients over one PCIe tree",
        formula="(batches of a switch's devices + ring bytes) / uplink",
        job=with_job(base, model=model(parameters=50e6)),
        hand=(2 * 320e6 + 300e6) / 16e9,
        spreadsheet=max(0.01 + 300e6 / 16e9, 320e6 / 16e9),
    )


def remote_socket_job(sockets: tuple[int, ...]) -> Scenario:
    """Devices on these sockets, batches in the memory of socket 0."""
    machine = replace(
        host(gpus=len(sockets)),
        gpu_sockets=sockets,
        socket_link=link(19.2e9, LinkKind.SOCKET),
    )
    return scenario(
        **BATCH_OF_IMAGES, compute=0.02, machine=machine, pin_memory=True, sync=False, socket=0
    )


def devices_on_the_remote_socket() -> Coupling:
    """Two devices on socket 1 fetch batches that lie in the memory of socket 0.

    By hand: each has a PCIe link of its own, but both cross the link between the sockets:
    2 x 320 MB / 19.2 GB/s = 33.3 ms. Alone a copy takes 320 MB / 16 GB/s = 20 ms.
    """
    return Coupling(
        name="two devices on the remote socket",
        formula="devices x batch bytes / link between sockets",
        job=remote_socket_job((1, 1)),
        hand=2 * 320e6 / 19.2e9,
        spreadsheet=max(0.02, 320e6 / 16e9),
    )
