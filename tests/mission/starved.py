"""The same source's example in vCPUs alone: eight GPUs that need 20 each, and who can give them."""

from __future__ import annotations

from dataclasses import replace

from mission.machines import DATA, alike, in_memory, job, producers, scenario, trainers

from simulator.schema.data_loading import (
    CostBasis,
    InputPipeline,
    LoaderKind,
    Preparation,
    Remote,
)
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario

BATCH = 256.0
STEP = 0.1
"""Device time of a batch [s]: any will do."""


def starved(  # noqa: PLR0913 - what the example varies
    host: Host,
    per_gpu: float,
    *,
    count: int = 1,
    beside: Host | None = None,
    machines: int = 2,
    where: Preparation = Preparation.CPU,
) -> Scenario:
    """A job whose GPUs need `per_gpu` vCPUs each to stay busy.

    Every vCPU counts the same here for any machine and whatever else runs: that is what a
    sum of vCPUs means.

    Parameters
    ----------
    host : Host
        The machine that trains.
    per_gpu : float
        vCPUs that a GPU needs.
    count : int
        Machines that train.
    beside : Host, optional
        A machine that makes batches.
    machines : int
        How many of those.
    where : Preparation
        Where samples are prepared; a device is taken to be 40 times as fast as a vCPU.
    """
    own = alike(host)
    groups = [trainers(own, count=count)]
    remote = None
    if beside is not None:
        other = alike(beside)
        groups.append(producers(other, machines))
        remote = Remote(name=DATA, workers=int(other.cpu.threads), shares_batches=True)
    cost = per_gpu * STEP / BATCH
    work = InputPipeline(augment=cost, cost_basis=CostBasis.VCPU)
    if where is Preparation.DEVICE:
        work = replace(work, augment=0.0, where=where, device_time=cost / 40.0)
    threads = int(own.cpu.threads) // own.gpu_count
    made = job(
        dataset=in_memory(500 * BATCH * own.gpu_count * count, 1e5),
        batch=BATCH,
        step=STEP,
        pipeline=replace(work, loader=LoaderKind.TF_DATA, workers=threads, pin_memory=True),
        remote=remote,
    )
    return scenario("starved", made, *groups)
