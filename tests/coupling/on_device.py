"""Cases in which something else takes the device's time: decoding, results, one after another."""

from __future__ import annotations

from coupling.build import Coupling, batches_of, model, with_job, with_work
from support.scenarios import host, scenario, store

from simulator.schema.data_loading import CachePolicy, Preparation
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode


def decoding_on_the_device() -> Coupling:
    """The device decodes 32 samples of 1 ms before it trains on them for 100 ms.

    By hand: 32 x 1 + 100 = 132 ms. As an input beside compute it would hide: 100 ms.
    """
    return Coupling(
        name="the device decodes what it trains on",
        formula="compute + samples x device time of decoding",
        job=with_work(
            scenario(compute=0.1, workers=2), where=Preparation.DEVICE, device_time=0.001
        ),
        hand=0.1 + 32 * 0.001,
        spreadsheet=max(0.1, 32 * 0.001),
    )


def one_at_a_time() -> Scenario:
    """Inference of single samples without workers: nothing overlaps."""
    base = scenario(
        machine=host(pageable=6e9),
        storage=store(rate=1e9, latency=1e-4),
        cache=CachePolicy.NONE,
        sample_bytes=1e5,
        output_bytes=6e5,
    )
    alone = batches_of(base, batch=1, batches=400, compute=0.004)
    return with_job(with_work(alone, decode=0.001), mode=Mode.INFER)


def closed_loop() -> Coupling:
    """One sample is read, decoded, copied and computed before the next is asked for.

    By hand: 0.1 ms latency + 100 kB / 1 GB/s = 0.1 ms + 1 ms decode + 600 kB / 6 GB/s = 0.1 ms
    + 4 ms compute = 5.3 ms. max(compute, input) = max(4, 1.2) ms.
    """
    return Coupling(
        name="inference one sample at a time",
        formula="read + decode + copy + compute",
        job=one_at_a_time(),
        hand=1e-4 + 1e5 / 1e9 + 0.001 + 6e5 / 6e9 + 0.004,
        spreadsheet=max(0.004, 1e-4 + 1e5 / 1e9 + 0.001),
    )


def bulk() -> Scenario:
    """Inference of batches of 32 with 2.5 MB of results a sample."""
    base = scenario(
        batch_cpu=0.04,
        compute=0.02,
        workers=4,
        storage=store(rate=4e9),
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        output_bytes=2e6,
        pin_memory=True,
        sync=False,
    )
    return with_job(base, mode=Mode.INFER, model=model(output_bytes=2.5e6))


def results_come_back() -> Coupling:
    """Inference from storage: the next batch is computed when the results of this one are out.

    By hand: 20 ms compute + 80 MB / 16 GB/s = 5 ms of results = 25 ms. Input alone:
    32 MB / 4 GB/s = 8 ms of reading, 40 / 4 = 10 ms of CPU.
    """
    return Coupling(
        name="bulk inference with large results",
        formula="compute + bytes of results / PCIe",
        job=bulk(),
        hand=0.02 + 80e6 / 16e9,
        spreadsheet=max(0.02, 32e6 / 4e9, 0.04 / 4),
    )
