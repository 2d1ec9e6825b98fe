"""A hand-made prediction: a four-GPU machine whose CPUs keep up with 60% of its GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.equations.step import batch_bytes, decode_work
from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.pipeline.program import STEP
from simulator.pipeline.stages.base import Path, Resource, StageDemands, asking
from simulator.predict import predict
from simulator.results.prediction import (
    Bounds,
    Cost,
    Counter,
    CpuNeed,
    Distribution,
    Prediction,
    Sample,
    Slice,
    StepSplit,
    Timing,
    Trace,
    Usage,
)
from simulator.schema.accelerators import Gpu, Precision, Stack
from simulator.schema.data_loading import CachePolicy, Dataset, InputPipeline
from simulator.schema.machines import Cluster, CpuPool, Group, Host, Role
from simulator.schema.models import StepTimes
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import Job, Scenario
from simulator.schema.software import Software
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode, Train
from simulator.terms import term

SHEET = Source(reference="maker's datasheet", date="2020-05")
GUESS = Source(reference="a guess", date="undated", verified=False)


@pytest.fixture
def scenario() -> Scenario:
    """Four GPUs, 48 vCPUs, images from a local disk."""
    gpu = Gpu(
        name="gpu/test-40gb",
        maker="Maker",
        architecture="test",
        stack=Stack.CUDA,
        memory=40e9,
        memory_bandwidth=1.5e12,
        peak={Precision.FP16: 312e12},
        sources={"memory": SHEET, "peak": SHEET},
    )
    host = Host(
        name="node/test-four",
        cpu=CpuPool(cores=24, threads=48, model="Some CPU"),
        ram=256e9,
        gpu=gpu,
        gpu_count=4,
        sources={"ram": SHEET},
    )
    storage = Storage(
        name="storage/test-nvme",
        scope=Scope.LOCAL,
        read_bandwidth=3e9,
        sources={"read_bandwidth": SHEET},
    )
    group = Group(name="trainers", role=Role.TRAIN, host=host, storage=storage, gpus_per_host=4)
    job = Job(
        mode=Mode.TRAIN,
        dataset=Dataset(
            name="images", samples=1.28e6, bytes_per_sample=114e3, sources={"samples": SHEET}
        ),
        input=InputPipeline(
            workers=12, pin_memory=True, decode=0.0016, output_bytes_per_sample=150528.0
        ),
        train=Train(batch_size=256, precision=Precision.FP16, epochs=2.0),
        software=Software(),
        step_times=StepTimes(batch_sizes=(256.0,), seconds=(0.024,), source=SHEET),
    )
    return Scenario(name="test-four", cluster=Cluster(groups=(group,)), jobs=(job,))


@pytest.fixture
def trace() -> Trace:
    """Ten steps of 40 ms: the device computes 24 ms of each, the CPU is always busy."""
    slices = tuple(
        Slice(
            track="rank 0 compute",
            name="compute",
            start=0.04 * k + 0.016,
            length=0.024,
            step=k,
            process="rank 0",
        )
        for k in range(10)
    )
    busy = tuple(
        Sample(unit="gpu0", time=0.04 * k + offset, value=value)
        for k in range(10)
        for offset, value in ((0.0, 0.0), (0.016, 1.0))
    )
    cpu = (Sample(unit="cpu", time=0.0, value=1.0),)
    return Trace(
        slices=slices,
        samples=busy + cpu,
        start=0.0,
        end=0.4,
        ends=tuple(0.04 * (k + 1) for k in range(10)),
        last=10,
        counters=(
            Counter(unit="gpu0", machine="trainers", resource="gpu"),
            Counter(unit="cpu", machine="trainers", resource="cpu"),
        ),
        shown_as={0: 0},
        stands_for={0: 4.0},
    )


@pytest.fixture
def timing(trace: Trace) -> Timing:
    """40 ms a step, 16 of them waiting for a batch."""
    return Timing(
        step_time=Distribution(mean=0.040, p50=0.040, p95=0.041, p99=0.042),
        first_step=1.2,
        epoch_time=50.0,
        first_epoch_time=55.0,
        total_time=105.0,
        throughput=25600.0,
        split=StepSplit(data_stall=0.016, h2d=0.001, compute=0.022, communication=0.001),
        hidden_communication=0.004,
        usage={
            Resource.GPU: Usage(mean=0.6, total=2.4, units=4, busiest=0.61),
            Resource.CPU: Usage(mean=0.99, total=47.5, units=48, busiest=0.99),
            Resource.STORAGE: Usage(mean=0.2, total=0.2, units=1, busiest=0.2),
        },
        bottleneck=Resource.CPU,
        next_bottleneck=Resource.GPU,
        accelerator_utilization=0.6,
        simulated_steps=10,
        step_times=(0.040,) * 10,
        trace=trace,
    )


@pytest.fixture
def prediction(scenario: Scenario, timing: Timing) -> Prediction:
    """The whole answer for the four-GPU machine."""
    decode = asking(
        term(decode_work, batch_size=256.0, decode=0.0016, augment=0.0),
        Resource.CPU,
        Path.CORES,
    )
    read = asking(
        term(batch_bytes, batch_size=256.0, bytes_per_sample=114e3),
        Resource.STORAGE,
        Path.STORE_TO_HOST,
        operations=256.0,
    )
    slots = {slot.name: slot for slot in STEP}
    return Prediction(
        scenario=scenario,
        seed=7,
        timing=timing,
        steps_per_epoch=1250,
        total_steps=2500,
        memory=MemoryFit(
            items={"parameters": 0.1e9, "activations": 21.9e9},
            capacity=40e9,
            verdict=Verdict.YES,
        ),
        host_ram=HostRam(
            items={"operating system": 2e9, "workers": 24e9},
            capacity=256e9,
            rule_of_thumb=164e9,
            verdict=Verdict.YES,
        ),
        cpu_need=CpuNeed(per_gpu=20.0, short=32.0, per_sample=0.014),
        cost=Cost(
            per_second=0.01,
            per_step=0.0004,
            samples_per_usd=2.56e6,
            for_machines=1.05,
            time_to_train=105.0,
            energy_per_step=60.0,
        ),
        bounds=Bounds(lower=0.039, upper=0.09),
        demands=(
            StageDemands(slot=slots["read"], demands=(read,)),
            StageDemands(slot=slots["decode"], demands=(decode,)),
        ),
        assumptions=(
            Assumption(what="operating system RAM", value="2 GB", source=GUESS),
            Assumption(what="GPU memory", value="40 GB", source=SHEET),
        ),
        warnings=("The CPUs are 32 vCPUs short.",),
    )


@pytest.fixture
def simulated(scenario: Scenario) -> Prediction:
    """What the model itself says about the four-GPU machine, with a timeline.

    Without a page cache all epochs are alike, so the traced one is the reported one.
    """
    job = scenario.job
    uncached = replace(job, dataset=replace(job.dataset, cache=CachePolicy.NONE))
    return predict(replace(scenario, jobs=(uncached,)), trace=True)
