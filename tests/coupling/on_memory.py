"""Cases in which processes, batches in flight and the page cache share one RAM."""

from __future__ import annotations

from coupling.build import VARIED, Coupling, with_job
from support.scenarios import host, scenario, store

from simulator.schema.data_loading import CachePolicy
from simulator.schema.scenario import Memory, Scenario


def crowded(workers: int, prefetch: int = 2) -> Scenario:
    """50 GB of samples, read again every epoch, on a machine with 64 GB and a slow disk."""
    base = scenario(
        batches=1562,
        batch_cpu=0.16,
        compute=0.035,
        workers=workers,
        prefetch=prefetch,
        epochs=3,
        machine=host(ram=64e9),
        storage=store(rate=4e8),
        sample_bytes=1e6,
        output_bytes=4e6,
        worker_memory=2e9,
        cache=CachePolicy.RANDOM,
        size_spread=VARIED,
    )
    return with_job(base, memory=Memory(operating_system=2e9, application=2e9))


def workers_evict_the_cache() -> Coupling:
    """Sixteen workers leave less page cache than four, and so read more.

    By hand: system 2 GB + application 2 GB + workers 16 x 2 GB + batches (2 x 16 + 1) x 32 x 4 MB
    = 40.224 GB, which leaves 23.776 GB of cache for 49.984 GB of data, x = 0.4757.
    Random replacement: h = ((1 - exp(-a)) / a)**2 with a = (1 - h) / x. At h = 0.2553:
    a = 0.7447 / 0.4757 = 1.5655, 1 - exp(-a) = 0.7910, (0.7910 / 1.5655)**2 = 0.2553.
    A batch takes 32 MB x 0.7447 from the disk: 23.83 MB / 400 MB/s = 59.6 ms.

    Taken alone all data fit into RAM and nothing is read in a warm epoch: sixteen workers make
    a batch in 160 ms / 16 = 10 ms, the device takes 35 ms.
    """
    return Coupling(
        name="workers evict the page cache",
        formula="batch bytes x (1 - hit ratio of what RAM the workers leave) / disk",
        job=crowded(workers=16),
        hand=32e6 * (1.0 - 0.2553) / 4e8,
        spreadsheet=max(0.035, 0.16 / 16),
    )
