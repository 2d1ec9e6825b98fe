"""Cases about how data get in: few requests, caches in front of stores, placement, windows."""

from __future__ import annotations

from dataclasses import replace

from coupling.build import (
    VARIED,
    Coupling,
    networked,
    remote_store,
    with_data,
    with_group,
    with_work,
)
from support.scenarios import host, scenario, store

from simulator.schema.data_loading import CachePolicy, Placement, Preparation
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage

CARD = 3.125e9
"""25 Gb/s [B/s]."""


def from_objects(bucket: Storage) -> Scenario:
    """Four workers read objects of 1 MB, one request after another."""
    return scenario(
        machine=networked(host(), CARD),
        storage=bucket,
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        workers=4,
        compute=0.05,
    )


def few_requests() -> Coupling:
    """An object store answers each request after 100 ms and at 30 MB/s.

    By hand: a worker waits 32 x 100 ms and reads 32 MB at 30 MB/s, 1,067 ms: 4.267 s a batch,
    four workers one every 1,067 ms. Alone the network card takes 32 MB / 3.125 GB/s = 10.2 ms
    and the device 50 ms.
    """
    bucket = remote_store(12.5e9, Scope.OBJECT, read_latency=0.1, request_rate=30e6)
    return Coupling(
        name="object store, few requests open",
        formula="(samples x latency + batch bytes / request rate) / workers",
        job=from_objects(bucket),
        hand=(32 * 0.1 + 32e6 / 30e6) / 4,
        spreadsheet=max(0.05, 32e6 / CARD),
    )


def request_limit() -> Coupling:
    """An object store answers 100 requests a second, however large they are.

    By hand: a batch of 32 objects takes 32 / 100 = 320 ms; its bytes would take 10.2 ms.
    """
    bucket = remote_store(12.5e9, Scope.OBJECT, request_limit=100.0)
    return Coupling(
        name="object store, limit of requests",
        formula="requests of a batch / request limit",
        job=from_objects(bucket),
        hand=32 / 100,
        spreadsheet=max(0.05, 32e6 / CARD),
    )


def behind_drives(share: float) -> Scenario:
    """Two drives in front of a store of 200 MB/s hold `share` of the data."""
    machine = replace(networked(host(), CARD), drive_count=2)
    base = scenario(
        batches=1200,
        epochs=3,
        machine=machine,
        storage=remote_store(2e8),
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        workers=4,
        compute=0.004,
        size_spread=VARIED,
    )
    each = share * base.job.dataset.total_bytes / 2
    drive = replace(store(rate=1.6e9), name="storage/own drive", capacity=each)
    return with_group(base, host=replace(machine, local_storage=drive), cache=drive)


def half_in_the_drives() -> Coupling:
    """Drives hold half of what is read; the store delivers the other half meanwhile.

    By hand: 16 MB / 200 MB/s = 80 ms from the store, 16 MB / 3.2 GB/s = 5 ms from the drives
    beside it. All from the store it would be 160 ms.
    """
    return Coupling(
        name="drives that hold half of a remote store's data",
        formula="max(missed bytes / store, kept bytes / drives)",
        job=behind_drives(0.5),
        hand=max(16e6 / 2e8, 16e6 / 3.2e9),
        spreadsheet=max(0.004, 32e6 / 2e8),
    )


def placed(placement: Placement, epochs: float = 10.0) -> Scenario:
    """12.8 GB of samples lie on a remote store of 500 MB/s; drives and RAM are quicker.

    Reading 32 MB takes 64 ms over the network and 10.7 ms from the drive, the device 30 ms.
    """
    drive = replace(store(rate=3e9), write_bandwidth=2e9)
    machine = replace(networked(host(), 1.25e9), local_storage=drive, drive_count=1)
    base = scenario(
        batches=400,
        epochs=epochs,
        machine=machine,
        storage=drive,
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        workers=4,
        compute=0.03,
    )
    return with_data(with_group(base, origin=remote_store(5e8)), placement=placement)


def staging() -> Coupling:
    """The data are copied to a local drive before ten epochs.

    By hand: 12.8 GB / min(500 MB/s store, 1.25 GB/s network, 2 GB/s drive) = 25.6 s once, then
    10 x 400 x 30 ms = 120 s: 145.6 s.
    """
    return Coupling(
        name="data staged to a local drive",
        formula="data / slowest on the way + epochs x steps x max(compute, input)",
        job=placed(Placement.STAGE),
        hand=12.8e9 / 5e8 + 10 * 400 * 0.03,
        spreadsheet=10 * 400 * max(0.03, 32e6 / 3e9),
        metric="total_time_s",
    )


def preloading() -> Coupling:
    """The data are read into RAM before ten epochs.

    By hand: 12.8 GB / 500 MB/s = 25.6 s once, then 10 x 400 x 30 ms = 120 s: 145.6 s.
    """
    return Coupling(
        name="data preloaded into RAM",
        formula="data / slowest on the way + epochs x steps x compute",
        job=placed(Placement.PRELOAD),
        hand=12.8e9 / 5e8 + 10 * 400 * 0.03,
        spreadsheet=10 * 400 * 0.03,
        metric="total_time_s",
    )


def windows() -> Coupling:
    """Of samples of 100 MB a window of 3 MB is needed, stored in chunks of 1 MB.

    By hand: a window that starts anywhere touches 3 + 1 chunks: 32 x 4 MB / 1 GB/s = 128 ms.
    The windows alone are 96 MB, 96 ms.
    """
    base = scenario(
        storage=store(rate=1e9),
        cache=CachePolicy.NONE,
        sample_bytes=100e6,
        workers=4,
        compute=0.05,
    )
    return Coupling(
        name="windows of large samples, read by chunks",
        formula="samples x (window / chunk + 1) x chunk / store",
        job=with_data(base, window=3e6, chunk_size=1e6),
        hand=32 * 4e6 / 1e9,
        spreadsheet=max(0.05, 32 * 3e6 / 1e9),
    )


def prepared_beforehand() -> Coupling:
    """Samples are decoded once, stored larger, and read ready-made for two epochs.

    By hand: 12,800 samples of 1 MB are read and 12,800 of 4 MB written on one drive,
    12.8 GB / 1 GB/s + 51.2 GB / 1 GB/s = 64 s, while 16 cores work 12,800 x 50 ms / 16 = 40 s.
    Then 2 x 400 steps of max(40 ms compute, 128 MB / 1 GB/s = 128 ms): 102.4 s. Together 166.4 s.
    A spreadsheet sees a step of max(40 ms, 32 MB / 1 GB/s, 32 x 50 ms / 16) = 100 ms: 80 s.
    """
    base = scenario(
        batches=400,
        epochs=2,
        machine=host(cores=16),
        storage=replace(store(rate=1e9), write_bandwidth=1e9),
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        workers=16,
        batch_cpu=32 * 0.05,
        compute=0.04,
    )
    return Coupling(
        name="samples prepared beforehand",
        formula="(raw + prepared bytes) / drive + epochs x prepared bytes / drive",
        job=with_work(base, where=Preparation.BEFOREHAND, prepared_bytes_per_sample=4e6),
        hand=(12.8e9 + 51.2e9) / 1e9 + 2 * 400 * 128e6 / 1e9,
        spreadsheet=2 * 400 * max(0.04, 32e6 / 1e9, 32 * 0.05 / 16),
        metric="total_time_s",
    )
