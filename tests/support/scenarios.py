"""Small scenarios for tests: every figure that matters is an argument, all others do no harm."""

from __future__ import annotations

from itertools import accumulate

from simulator.engine.run import Options, SimulationInput, solve
from simulator.pipeline import program
from simulator.pipeline.run_length import Extras, Lengths, extras, lengths
from simulator.pipeline.stages.base import Phase, StageDemands
from simulator.pipeline.topology import Topology, build
from simulator.results.prediction import Timing
from simulator.schema.accelerators import Gpu, Precision, Stack
from simulator.schema.data_loading import CachePolicy, Dataset, InputPipeline, Straggler
from simulator.schema.fields import CONSTANT, Spread
from simulator.schema.machines import (
    Cluster,
    CpuPool,
    Group,
    Host,
    Link,
    LinkKind,
    PcieSwitch,
    Role,
)
from simulator.schema.models import StepTimes
from simulator.schema.provenance import Source
from simulator.schema.scenario import CostPlan, Job, Memory, Scenario
from simulator.schema.software import Software
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode, Train

SOURCE = Source(reference="made up for a test", date="2026-11-21")
BATCH = 32
NO_LATENCY = 1e-15
"""A latency that was measured, and is none: 0 says that nobody measured it."""


def gpu(memory: float = 16e9, *, unified: bool = False) -> Gpu:
    """A device that nothing is asked of but its name."""
    return Gpu(
        name="gpu/test",
        maker="test",
        architecture="test",
        stack=Stack.CUDA,
        memory=memory,
        memory_bandwidth=1e12,
        peak={Precision.FP32: 1e13},
        unified_memory=unified,
        power=300.0,
    )


def link(rate: float, kind: LinkKind = LinkKind.PCIE, pageable: float | None = None) -> Link:
    """A link that reaches its rate, with next to no latency."""
    return Link(
        name=f"link/{kind}",
        kind=kind,
        peak=rate,
        achievable=rate,
        pageable=pageable,
        latency=NO_LATENCY,
    )


def host(  # noqa: PLR0913 - each figure of a machine
    *,
    gpus: int = 1,
    cores: float = 64.0,
    threads: float | None = None,
    smt_worth: float = 1.0,
    contention: float = 0.0,
    pcie: float = 16e9,
    pageable: float | None = None,
    nvlink: float | None = 235e9,
    switches: tuple[PcieSwitch, ...] = (),
    memory_bandwidth: float | None = None,
    ram: float = 1e12,
    unified: bool = False,
) -> Host:
    """A machine with `gpus` devices."""
    return Host(
        name="node/test",
        cpu=CpuPool(
            cores=cores, threads=threads or cores, smt_worth=smt_worth, contention=contention
        ),
        ram=ram,
        memory_bandwidth=memory_bandwidth,
        gpu=gpu(unified=unified) if gpus else None,
        gpu_count=gpus,
        host_link=link(pcie, pageable=pageable) if gpus else None,
        peer_link=link(nvlink, LinkKind.NVLINK) if gpus and nvlink else None,
        switches=switches,
    )


def store(rate: float = 1e9, latency: float = 0.0, operations: float | None = None) -> Storage:
    """A local store."""
    return Storage(
        name="storage/test",
        scope=Scope.LOCAL,
        read_bandwidth=rate,
        read_latency=latency,
        read_operations=operations,
    )


def scenario(  # noqa: PLR0913 - each figure of a job
    *,
    batches: int = 100,
    batch_cpu: float = 0.0,
    compute: float = 0.02,
    workers: int = 0,
    prefetch: int = 2,
    epochs: float = 1.0,
    machine: Host | None = None,
    storage: Storage | None = None,
    sample_bytes: float = 1e5,
    read_time: float | None = None,
    cache: CachePolicy = CachePolicy.PRELOADED,
    output_bytes: float = 0.0,
    stragglers: tuple[Straggler, ...] = (),
    sync: bool = True,
    launch: float | None = None,
    accumulation: int = 1,
    cost_spread: Spread = CONSTANT,
    size_spread: Spread = CONSTANT,
    device_spread: Spread = CONSTANT,
    step_jitter: Spread = CONSTANT,
    last_share: float = 1.0,
    cost: CostPlan | None = None,
    **loader: object,
) -> Scenario:
    """A job of `batches` batches of 32 for each rank.

    `batch_cpu` is the CPU time a worker needs for a batch, `compute` the device's for a step.
    """
    node = machine or host()
    ranks = max(1, node.gpu_count)
    samples = ranks * BATCH * (batches - 1) + ranks * round(BATCH * last_share)
    job = Job(
        mode=Mode.TRAIN,
        dataset=Dataset(
            name="test",
            samples=samples,
            bytes_per_sample=sample_bytes,
            read_time=read_time,
            cache=cache,
            size_spread=size_spread,
        ),
        input=InputPipeline(
            workers=workers,
            prefetch=prefetch,
            straggler=stragglers,
            decode=batch_cpu / BATCH,
            output_bytes_per_sample=output_bytes,
            cost_spread=cost_spread,
            **loader,  # type: ignore[arg-type]
        ),
        train=Train(
            batch_size=BATCH,
            precision=Precision.FP32,
            sync_every_step=sync,
            launch_time=launch,
            epochs=epochs,
            accumulation=accumulation,
            device_spread=device_spread,
            step_jitter=step_jitter,
        ),
        software=Software(),
        step_times=StepTimes(batch_sizes=(BATCH,), seconds=(compute,), source=SOURCE),
        memory=Memory(),
    )
    group = Group(
        name="trainers",
        role=Role.TRAIN,
        host=node,
        storage=storage or store(),
        gpus_per_host=node.gpu_count,
    )
    return Scenario(
        name="test", cluster=Cluster(groups=(group,)), jobs=(job,), cost=cost or CostPlan()
    )


def inputs_of(job: Scenario) -> SimulationInput:
    """What the engine is asked for a scenario."""
    topology = build(job)
    demands = demand_table(job)
    return SimulationInput(
        scenario=job,
        topology=topology,
        demands=demands,
        lengths=lengths(job),
        extras=extras(job, topology, demands[Phase.WARM]),
    )


def demand_table(job: Scenario) -> dict[Phase, tuple[StageDemands, ...]]:
    """The demands of a scenario with cold and warm caches."""
    return {phase: program.demand_table(job, phase) for phase in Phase}


def simulate(job: Scenario, *, replay: bool = False, seed: int = 0, most: int = 600) -> Timing:
    """Simulate a scenario; `replay` every step of it."""
    return solve(inputs_of(job), Options(seed=seed, replay=replay, most_steps=most))


def step_ends(timing: Timing) -> list[float]:
    """When each simulated step of the first epoch ended [s]."""
    return list(accumulate(timing.step_times))


__all__ = [
    "BATCH",
    "Extras",
    "Lengths",
    "Topology",
    "demand_table",
    "gpu",
    "host",
    "inputs_of",
    "link",
    "scenario",
    "simulate",
    "step_ends",
    "store",
]
