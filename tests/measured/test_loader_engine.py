"""The event engine gives what the closed form of the loader's rate gives, contention included."""

from __future__ import annotations

import pytest
from support.scenarios import BATCH, host, scenario, simulate
from support.theory import busy_threads, loader_rate

from simulator.equations.cpu import thread_slowdown

PLATFORMS = {
    # cores, threads, worker's extra time, time to receive [s an image], as fitted
    "EPYC 9B14": (8.0, 16.0, 0.157e-3, 0.597e-3),
    "EPYC 9B45": (8.0, 16.0, 0.052e-3, 0.290e-3),
    "Xeon 8581C": (8.0, 16.0, 0.213e-3, 0.488e-3),
    "Neoverse N1": (16.0, 16.0, 0.222e-3, 0.624e-3),
    "Neoverse V2": (16.0, 16.0, 0.084e-3, 0.381e-3),
}
CONTENTION = 0.53
SMT_WORTH = 0.25


@pytest.mark.parametrize("workers", [2, 4, 8])
@pytest.mark.parametrize("decoder", [1 / 400, 1 / 700])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_simulated_rate_is_the_closed_form(platform: str, decoder: float, workers: int) -> None:
    """Workers and the receiving process share one pool; the rate agrees within 1%."""
    cores, threads, extra, receive = PLATFORMS[platform]
    machine = host(cores=cores, threads=threads, smt_worth=SMT_WORTH, contention=CONTENTION)
    job = scenario(
        batches=4000,
        batch_cpu=BATCH * (decoder + extra),
        workers=workers,
        compute=0.0,
        machine=machine,
        receive_per_sample=receive,
    )
    worker = decoder + extra
    busy = busy_threads(workers, worker, receive)
    slow = thread_slowdown(busy, cores, threads, SMT_WORTH, CONTENTION)
    expected = float(loader_rate(workers, worker, receive, slow))
    assert simulate(job).throughput == pytest.approx(expected, rel=0.01)
