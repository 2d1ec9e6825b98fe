"""Cases in which ranks wait for each other at the barrier, and jobs that share without one."""

from __future__ import annotations

from coupling.build import Coupling, with_job
from support.scenarios import host, scenario, store

from simulator.schema.data_loading import CachePolicy, Straggler
from simulator.schema.scenario import Scenario


def four_ranks(stragglers: tuple[Straggler, ...]) -> Scenario:
    """Four devices whose workers wait 5 ms for each sample of a remote store."""
    return scenario(
        machine=host(gpus=4),
        read_time=0.005,
        cache=CachePolicy.NONE,
        workers=2,
        compute=0.1,
        stragglers=stragglers,
    )


def one_slow_client() -> Coupling:
    """The storage client of one rank of four takes twice as long.

    By hand: a worker reads 32 x 5 ms = 160 ms a batch, two workers a batch every 80 ms; on the
    slow rank every 160 ms. All ranks meet there at the end of every step: 160 ms.
    The mean client needs (3 x 80 + 160) / 4 = 100 ms, as long as the device: no wait at all.
    """
    return Coupling(
        name="one straggling storage client",
        formula="max over ranks of read time / workers",
        job=four_ranks((Straggler(factor=2.0, rank=0),)),
        hand=2 * 32 * 0.005 / 2,
        spreadsheet=max(0.1, (3 * 0.08 + 0.16) / 4),
    )


def sharing_a_store(copies: int) -> Scenario:
    """Four devices that read 32 MB a step each from one store of 1 GB/s."""
    base = scenario(
        batches=400,
        machine=host(gpus=4),
        storage=store(rate=1e9),
        cache=CachePolicy.NONE,
        sample_bytes=1e6,
        workers=4,
        compute=0.05,
    )
    return with_job(base, copies=copies)


def independent_jobs() -> Coupling:
    """Four jobs of one device each read all of the data, side by side.

    By hand: 51,200 samples are 1,600 steps for each job, and in a step's time four of them read
    4 x 32 MB / 1 GB/s = 128 ms: 204.8 s an epoch. A job alone reads 32 ms under 50 ms of
    compute: 80 s.
    """
    return Coupling(
        name="four independent jobs on one store",
        formula="steps of one job x jobs x batch bytes / store",
        job=sharing_a_store(copies=4),
        hand=1600 * 4 * 32e6 / 1e9,
        spreadsheet=1600 * max(0.05, 32e6 / 1e9),
        metric="epoch_time_s",
    )
