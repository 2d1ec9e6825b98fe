"""Cases in which workers, pin-memory threads, learners and helpers share cores."""

from __future__ import annotations

from dataclasses import replace

from coupling.build import (
    VARIED,
    Coupling,
    helpers,
    networked,
    with_helpers,
    with_job,
    without_device,
)
from support.scenarios import host, scenario, store

from simulator.schema.data_loading import CachePolicy, LoaderKind, Remote
from simulator.schema.fields import CONSTANT, Spread
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode


def workers_and_receiver() -> Coupling:
    """Four workers and the thread that pins their batches share four cores.

    By hand: a batch takes 80 ms of a worker and 20 ms of the pin-memory thread, (80 + 20) / 4 = 25
    ms. Alone the workers make one in 80 / 4 = 20 ms, and the pin-memory thread takes one in 20 ms.
    """
    return Coupling(
        name="workers and pin thread on one CPU",
        formula="(work of workers + work of pin-memory thread) / cores",
        job=scenario(
            batch_cpu=0.08,
            workers=4,
            machine=host(cores=4),
            pin_memory=True,
            receive_per_batch=0.02,
            compute=0.01,
        ),
        hand=(0.08 + 0.02) / 4,
        spreadsheet=max(0.01, 0.08 / 4, 0.02),
    )


def preparing(
    batch_cpu: float, read: float, write: float, output: float, sizes: Spread = VARIED
) -> Scenario:
    """A job without a device: 32 MB a batch are read, worked on and written to the same disk."""
    base = scenario(
        batches=1200,
        machine=host(gpus=0, cores=4, contention=0.3),
        storage=replace(store(rate=read), write_bandwidth=write),
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        workers=8,
        batch_cpu=batch_cpu,
        output_bytes=output,
        size_spread=sizes,
    )
    return with_job(without_device(base), mode=Mode.PREPARE)


def preparing_read_bound() -> Coupling:
    """The disk reads most of the time and writes in between.

    By hand: 32 MB / 200 MB/s + 6.4 MB / 200 MB/s = 160 + 32 = 192 ms; the CPU needs 10 ms.
    """
    return Coupling(
        name="preparation, reads and writes on one disk, mostly reads",
        formula="bytes read / read rate + bytes written / write rate",
        job=preparing(batch_cpu=0.04, read=2e8, write=2e8, output=2e5),
        hand=32e6 / 2e8 + 6.4e6 / 2e8,
        spreadsheet=max(0.04 / 4, 32e6 / 2e8, 6.4e6 / 2e8),
    )


def preparing_write_bound() -> Coupling:
    """The disk writes most of the time and reads in between.

    By hand: 32 MB / 500 MB/s + 64 MB / 200 MB/s = 64 + 320 = 384 ms; the CPU needs 10 ms.
    """
    return Coupling(
        name="preparation, reads and writes on one disk, mostly writes",
        formula="bytes read / read rate + bytes written / write rate",
        job=preparing(batch_cpu=0.04, read=5e8, write=2e8, output=2e6),
        hand=32e6 / 5e8 + 64e6 / 2e8,
        spreadsheet=max(0.04 / 4, 32e6 / 5e8, 64e6 / 2e8),
    )


def preparing_cpu_bound() -> Coupling:
    """Eight workers on four cores that slow each other by 30%.

    By hand: four cores at work do 4 / (1 + 0.3 x 3/4) = 3.265 cores' worth, 400 ms / 3.265
    = 122.5 ms. Alone a batch takes 400 ms of one core, so four cores make one in 100 ms; eight
    drives of 6.25 GB/s need 32 MB / 50 GB/s + 6.4 MB / 50 GB/s = 0.8 ms.
    """
    return Coupling(
        name="preparation, cores that slow each other",
        formula="work of a batch x (1 + contention x (cores - 1) / cores) / cores",
        job=preparing(batch_cpu=0.4, read=5e10, write=5e10, output=2e5, sizes=CONSTANT),
        hand=0.4 * (1.0 + 0.3 * 3 / 4) / 4,
        spreadsheet=max(0.4 / 4, 32e6 / 5e10, 6.4e6 / 5e10),
    )


def actors(compute: float, cores: float = 8.0, gpus: int = 1) -> Scenario:
    """Eight actors of 80 ms a batch feed a learner through a queue of two."""
    return scenario(
        batches=800,
        batch_cpu=0.08,
        compute=compute,
        workers=8,
        prefetch=2,
        loader=LoaderKind.ACTORS,
        machine=host(gpus=gpus, cores=cores),
    )


def actors_and_learner() -> Coupling:
    """Actors and a learner without a device share eight cores.

    By hand: the learner takes 20 ms of all eight cores, 160 core-ms, an actor 80 core-ms:
    240 / 8 = 30 ms. Alone the learner takes 20 ms and eight actors a batch in 80 / 8 = 10 ms.
    """
    return Coupling(
        name="actors and learner on one CPU",
        formula="(work of learner + work of actor) / cores",
        job=actors(compute=0.02, gpus=0),
        hand=(8 * 0.02 + 0.08) / 8,
        spreadsheet=max(0.02, 0.08 / 8),
    )


def with_remote_workers(
    cores: float = 8.0, own: int = 0, send: float = 0.0, compute: float = 0.002
) -> Scenario:
    """Two machines with 8 workers each, 80 ms a batch; small batches, `own` workers beside."""
    base = scenario(
        batches=800,
        batch_cpu=0.08,
        compute=compute,
        workers=own,
        output_bytes=1e3,
        machine=networked(host(cores=4), 3.125e9),
        pin_memory=True,
        sync=False,
    )
    grouped = with_helpers(base, helpers(count=2, cores=cores, network=3.125e9))
    return with_job(grouped, remote=Remote(name="data", workers=8, send_per_batch=send))


def remote_cores() -> Coupling:
    """Eight remote workers on four cores of either machine.

    By hand: 2 x 4 cores make a batch of 80 ms in 10 ms. Counted by workers, 2 x 8 make one in
    5 ms.
    """
    return Coupling(
        name="remote workers share their machines' cores",
        formula="work of a batch / remote cores",
        job=with_remote_workers(cores=4.0),
        hand=0.08 / (2 * 4),
        spreadsheet=max(0.002, 0.08 / (2 * 8)),
    )


def local_and_remote() -> Coupling:
    """Four local workers beside sixteen remote ones, each as fast as it can.

    By hand: 4 / 80 ms + 16 / 80 ms = 250 batches a second, 4 ms. Remote ones alone: 5 ms.
    """
    return Coupling(
        name="local and remote workers share the batches by speed",
        formula="1 / (local rate + remote rate)",
        job=with_remote_workers(own=4),
        hand=1.0 / (4 / 0.08 + 16 / 0.08),
        spreadsheet=max(0.002, 0.08 / 16),
    )


def serialising() -> Coupling:
    """Packing a batch takes 40 ms of the remote machine's cores beside the 80 ms of making it.

    By hand: (80 + 40) ms / 16 cores, all at work = 7.5 ms; without the packing 80 / 16 = 5 ms.
    """
    return Coupling(
        name="remote workers pack what they send",
        formula="(making + packing) / remote cores",
        job=with_remote_workers(send=0.04),
        hand=(0.08 + 0.04) / 16,
        spreadsheet=max(0.002, 0.08 / 16),
    )
