"""Which ways to spread a model over accelerators a search tries."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.scenario.goal import Plain
from simulator.scenario.workload.parallelism import Sharding

Settings = dict[str, Plain]


def ways(gpus: int, machines: int, depth: int, batch: int) -> Iterator[Settings]:
    """Degrees of parallelism as settings of a scenario.

    Fully sharded data parallelism over all of them; else tensor parallelism by powers of two
    within a machine, and a pipeline only beside the widest of those, with the optimizer's state
    sharded over the replicas there are. That order is the first take-away of Narayanan et al.,
    "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
    https://arxiv.org/abs/2104.04473: tensor parallelism up to the size of a machine, pipelines
    across machines.

    Parameters
    ----------
    gpus, machines : int
        Accelerators of a machine, and machines.
    depth : int
        Layers, which a pipeline cannot have more stages than.
    batch : int
        Samples of a step over all ranks: replicas beyond them would have nothing to do.
    """
    devices = gpus * machines
    if 1 < devices <= batch:
        yield _way(1, 1, Sharding.PARAMETERS)
    widest = max(_powers(gpus), default=1)
    for tensor in _powers(gpus):
        stages = _powers(min(depth, devices // tensor)) if tensor == widest else (1,)
        for pipeline in stages:
            replicas = devices // (tensor * pipeline)
            whole = replicas * tensor * pipeline == devices
            if not whole or replicas > batch or depth % pipeline or tensor * pipeline == 1:
                continue
            yield _way(tensor, pipeline, Sharding.OPTIMIZER if replicas > 1 else Sharding.NONE)


def _way(tensor: int, pipeline: int, sharding: Sharding) -> Settings:
    way: Settings = {
        "parallelism.tensor": tensor,
        "parallelism.pipeline": pipeline,
        "parallelism.sharding": sharding.value,
    }
    return way


def _powers(most: int) -> tuple[int, ...]:
    """Powers of two up to a number."""
    return tuple(2**k for k in range(most.bit_length()))
