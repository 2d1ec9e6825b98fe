"""What each stage asks for, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.scenarios import host, link, scenario, simulate, store

from simulator.physics.footprint import checkpoint_shares
from simulator.pipeline.loads import alone
from simulator.pipeline.stages.base import Path, Phase, Resource
from simulator.pipeline.stages.communication import AllReduce, bucket_shares
from simulator.pipeline.stages.compute import CpuTraining, DevicePass
from simulator.pipeline.stages.input import (
    Collate,
    Copy,
    Decode,
    PinMemory,
    Read,
    Result,
    hit_ratio,
)
from simulator.pipeline.stages.waiting import AGREEING, Checkpoint
from simulator.pipeline.topology import OPERATIONS, STORE, Location, build
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    CostBasis,
    InputPipeline,
    Layout,
    LoaderKind,
)
from simulator.schema.machines import Network, PcieSwitch
from simulator.schema.models import CpuOnly, CustomModel
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope
from simulator.schema.training import Mode, Optimizer, Parallelism, Sharding


def with_job(base: Scenario, **changes: object) -> Scenario:
    """The scenario with parts of its job replaced."""
    return replace(base, jobs=(replace(base.jobs[0], **changes),))  # type: ignore[arg-type]


def model(parameters: float = 25e6) -> CustomModel:
    """A model of round numbers."""
    return CustomModel(
        name="test",
        parameters=parameters,
        forward_flops=1e9,
        traffic=1e8,
        activation=1e7,
        input_bytes=6e5,
        output_bytes=4e3,
    )


def test_a_cold_read_takes_every_byte_from_the_store() -> None:
    """32 files of 100 kB at 1 ms each: 3.2 MB, 32 requests, 32 ms of waiting."""
    job = scenario(storage=store(latency=0.001), cache=CachePolicy.IDEAL, sample_bytes=1e5)
    read, cached = Read().demands(job, Phase.COLD)
    assert read.amount == pytest.approx(3.2e6)
    assert read.operations == pytest.approx(32)
    assert read.latency == pytest.approx(0.032)
    assert cached.amount == 0.0


def test_a_warm_read_takes_only_what_the_cache_lacks() -> None:
    """With all of the data in memory nothing is read from the store."""
    job = scenario(storage=store(latency=0.001), cache=CachePolicy.IDEAL, sample_bytes=1e5)
    read, cached = Read().demands(job, Phase.WARM)
    assert read.amount == 0.0
    assert read.latency == 0.0
    assert cached.amount == pytest.approx(3.2e6)


@pytest.mark.parametrize(
    ("policy", "phase", "ratio"),
    [
        (CachePolicy.PRELOADED, Phase.COLD, 1.0),
        (CachePolicy.NONE, Phase.WARM, 0.0),
        (CachePolicy.RANDOM, Phase.COLD, 0.0),
        (CachePolicy.LRU, Phase.WARM, 0.35 + 0.65 * -0.4307829),
        (CachePolicy.IDEAL, Phase.WARM, 0.35),
        (CachePolicy.RANDOM, Phase.WARM, 0.138),
    ],
)
def test_hits_follow_the_policy(policy: CachePolicy, phase: Phase, ratio: float) -> None:
    """With 35% of the data cached each policy answers its own share of reads."""
    job = scenario(cache=policy, sample_bytes=1e6)
    memory = replace(job.job.memory, page_cache=0.35 * job.job.dataset.total_bytes)
    assert hit_ratio(with_job(job, memory=memory), phase) == pytest.approx(ratio, abs=5e-4)


def test_shards_read_in_order_wait_once_a_shard() -> None:
    """1,000 samples a shard spread one open and one first byte over all of them."""
    slow = replace(store(latency=0.001), open_latency=0.002)
    job = scenario(storage=slow, cache=CachePolicy.NONE, sample_bytes=1e5)
    data = replace(job.job.dataset, layout=Layout.SHARDS, shard_size=1e8, access=Access.SEQUENTIAL)
    (read, _) = Read().demands(with_job(job, dataset=data), Phase.COLD)
    assert read.latency == pytest.approx(32 * 0.003 / 1000)


def test_a_measured_read_time_is_how_fast_one_reader_goes() -> None:
    """32 samples of 100 kB at 10 ms each: 3.2 MB at 10 MB/s, and 32 operations of the store."""
    job = scenario(storage=store(operations=1e4), cache=CachePolicy.NONE, read_time=0.01)
    (read, _) = Read().demands(job, Phase.COLD)
    assert read.amount == pytest.approx(3.2e6)
    assert read.operations == pytest.approx(32)
    assert read.amount / read.ceiling == pytest.approx(0.32, rel=1e-12)
    assert read.latency == 0.0


@pytest.mark.parametrize(("workers", "batch"), [(1, 0.32), (2, 0.32), (8, 0.32)])
def test_readers_share_what_the_store_can_do(workers: int, batch: float) -> None:
    """A disk of 100 reads a second answers 32 in 320 ms, however many readers take 9 ms for one."""
    job = scenario(
        storage=store(operations=100.0),
        cache=CachePolicy.NONE,
        read_time=0.009,
        workers=workers,
        compute=0.01,
        batches=400,
    )
    timing = simulate(job)
    assert timing.step_time.mean == pytest.approx(batch, rel=0.02)
    assert timing.bottleneck == Resource.STORAGE
    assert timing.usage[Resource.STORAGE].mean == pytest.approx(1.0, abs=0.02)


def test_more_operations_help_readers_whose_time_was_measured() -> None:
    """With twice the disk's operations eight readers get twice as much, up to what they can."""
    times = []
    for operations in (100.0, 200.0):
        job = scenario(
            storage=store(operations=operations),
            cache=CachePolicy.NONE,
            read_time=0.009,
            workers=8,
            compute=0.01,
            batches=400,
        )
        times.append(simulate(job).step_time.mean)
    assert times[1] == pytest.approx(times[0] / 2, rel=0.03)


def test_object_requests_have_a_ceiling_each() -> None:
    """A worker with four open requests of 30 MB/s reads at 120 MB/s at most."""
    bucket = replace(store(), scope=Scope.OBJECT, request_rate=30e6)
    job = scenario(storage=bucket, cache=CachePolicy.NONE, workers=1)
    data = replace(job.job.dataset, readers=4.0)
    (read, _) = Read().demands(with_job(job, dataset=data), Phase.COLD)
    assert read.ceiling == pytest.approx(120e6)


def test_of_several_readers_some_transfer_while_others_wait() -> None:
    """Eight tf.data threads at 1 ms + 0.1 ms a read of 100 kB reach 8 x 100 kB / 1.1 ms."""
    job = scenario(
        storage=store(latency=0.001), cache=CachePolicy.NONE, workers=8, loader=LoaderKind.TF_DATA
    )
    (read, _) = Read().demands(job, Phase.COLD)
    assert read.latency == 0.0
    assert read.ceiling == pytest.approx(8 * 1e5 / 0.0011)


def test_a_seek_counts_once() -> None:
    """A disk that seeks 100 times a second at 10 ms each makes a reader wait 10 ms, not 20."""
    disk = store(rate=1e9, latency=0.01, operations=100.0)
    job = scenario(storage=disk, cache=CachePolicy.NONE, workers=1, compute=0.0)
    assert simulate(job).step_time.mean == pytest.approx(32 * 0.01, rel=0.01)


def test_opening_a_file_costs_operations_of_its_metadata() -> None:
    """A disk of 100 operations a second and 1.5 to open a file: 40 files of a sample a second.

    A shard of ten samples is opened once for all of them: 1 / (1 + 0.15) of the operations.
    """
    disk = replace(store(rate=1e9, operations=100.0), open_operations=1.5)
    common = {"compute": 1e-6, "workers": 16, "cache": CachePolicy.NONE, "storage": disk}
    files = scenario(**common, batches=400)  # type: ignore[arg-type]
    assert simulate(files).throughput == pytest.approx(40.0, rel=0.01)
    dataset = replace(files.job.dataset, layout=Layout.SHARDS, shard_size=1e6)
    shards = with_job(files, dataset=dataset)
    assert simulate(shards).throughput == pytest.approx(100.0 / 1.15, rel=0.01)


def test_decoding_costs_core_seconds() -> None:
    """2 ms a sample to decode and 1 ms to augment are 96 ms a batch of 32."""
    job = with_job(scenario(), input=InputPipeline(decode=0.002, augment=0.001))
    (demand,) = Decode().demands(job, Phase.COLD)
    assert demand.amount == pytest.approx(0.096)
    assert demand.path is Path.CORES


def test_costs_per_vcpu_are_those_of_a_full_machine() -> None:
    """2 ms on one of 8 threads that do the work of 5 cores are 1.25 ms on a core."""
    machine = host(cores=4, threads=8, smt_worth=0.25)
    work = InputPipeline(decode=0.002, cost_basis=CostBasis.VCPU)
    (demand,) = Decode().demands(with_job(scenario(machine=machine), input=work), Phase.COLD)
    assert demand.amount == pytest.approx(32 * 0.00125)


def test_costs_measured_elsewhere_scale_with_coremark() -> None:
    """A machine with twice the CoreMark per vCPU needs half the time."""
    machine = host(cores=4)
    quick = replace(machine, cpu=replace(machine.cpu, coremark=4 * 30000.0))
    work = InputPipeline(decode=0.002, coremark_per_vcpu=15000.0)
    (demand,) = Decode().demands(with_job(scenario(machine=quick), input=work), Phase.COLD)
    assert demand.amount == pytest.approx(32 * 0.001)


def test_collating_writes_the_batch_to_memory() -> None:
    """32 samples of 600 kB and 5 ms a batch."""
    work = InputPipeline(per_batch=0.005, output_bytes_per_sample=6e5)
    cpu, memory = Collate().demands(with_job(scenario(), input=work), Phase.COLD)
    assert cpu.amount == pytest.approx(0.005)
    assert memory.amount == pytest.approx(32 * 6e5)


def test_pinning_moves_the_batch_twice() -> None:
    """The pin thread reads the batch and writes its page-locked copy."""
    job = scenario(output_bytes=6e5, pin_memory=True, receive_per_batch=0.001)
    cpu, memory = PinMemory().demands(job, Phase.COLD)
    assert cpu.amount == pytest.approx(0.001)
    assert memory.amount == pytest.approx(2 * 32 * 6e5)


def test_the_copy_moves_what_preprocessing_made() -> None:
    """32 samples of 600 kB; from ordinary memory at the pageable rate."""
    job = scenario(output_bytes=6e5, machine=host(pageable=4e9))
    (demand,) = Copy().demands(job, Phase.COLD)
    assert demand.amount == pytest.approx(32 * 6e5)
    assert demand.ceiling == 4e9


def test_nothing_to_copy_takes_no_time() -> None:
    """Samples of no bytes: not even the link's latency passes, for one candidate or several."""
    machine = host(pageable=4e9)
    assert machine.host_link is not None
    machine = replace(machine, host_link=replace(machine.host_link, latency=1e-5))
    (demand,) = Copy().demands(with_job(scenario(machine=machine), model=model()), Phase.COLD)
    assert (demand.amount, demand.latency) == (0.0, 0.0)
    sizes: Any = np.array([0.0, 6e5])
    (demand,) = Copy().demands(scenario(output_bytes=sizes, machine=machine), Phase.COLD)
    assert np.asarray(demand.latency).tolist() == [0.0, 1e-5]


def test_a_measured_step_is_a_third_forward() -> None:
    """Of a measured 60 ms step 20 ms are forward and 40 ms backward."""
    job = scenario(compute=0.06)
    (forward,), (backward,) = (
        stage.demands(job, Phase.COLD) for stage in (DevicePass("forward"), DevicePass("backward"))
    )
    assert forward.amount == pytest.approx(0.02)
    assert backward.amount == pytest.approx(0.04)


def test_all_reduce_sends_twice_the_gradients_less_a_share() -> None:
    """Eight ranks with 100 MB of gradients send 175 MB each round the ring."""
    job = with_job(scenario(machine=host(gpus=8)), model=model())
    (demand,) = AllReduce().demands(job, Phase.COLD)
    assert demand.amount == pytest.approx(2 * 7 / 8 * 100e6)
    assert demand.resource is Resource.NVLINK


def test_without_links_of_their_own_devices_reduce_over_pcie() -> None:
    """The ring goes up one device's PCIe link and down its neighbour's."""
    switch = PcieSwitch(socket=0, uplink=link(16e9), gpus=(0, 1))
    job = with_job(scenario(machine=host(gpus=4, nvlink=None, switches=(switch,))), model=model())
    (demand,) = AllReduce().demands(job, Phase.COLD)
    topology = build(job)
    assert demand.resource is Resource.PCIE
    assert [unit for unit, _ in topology.way(demand, Location(rank=0))] == [
        "pcie gpu0 up",
        "pcie gpu1 down",
    ]
    assert [unit for unit, _ in topology.way(demand, Location(rank=1))] == [
        "pcie gpu1 up",
        "pcie switch0 up",
        "pcie gpu2 down",
    ]


def test_the_last_bucket_is_one_of_the_frameworks() -> None:
    """100 MB in buckets of 25 MB: the last quarter cannot hide."""
    job = with_job(scenario(machine=host(gpus=2)), model=model())
    train = replace(job.job.train, bucket_size=25e6)
    shares = bucket_shares(with_job(job, train=train))
    assert shares[-1] == pytest.approx(0.25)
    assert sum(shares) == pytest.approx(1.0)


@pytest.mark.parametrize("buckets", [2.0, 7.5, 54.0, 5000.0])
def test_merged_buckets_leave_no_more_exposed_than_single_ones(buckets: float) -> None:
    """An all-reduce of 0.7 of the backward pass ends one bucket after it, merged or not."""
    job = with_job(scenario(machine=host(gpus=2)), model=model())
    train = replace(job.job.train, bucket_size=100e6 / buckets)
    shares = bucket_shares(with_job(job, train=train))
    assert sum(shares) == pytest.approx(1.0)
    assert shares[-1] == pytest.approx(1.0 / buckets)
    assert len(shares) < 40
    ready = ended = 0.0
    for share in shares:
        ready += share
        ended = max(ended, ready) + 0.7 * share
    assert ended - 1.0 == pytest.approx(0.7 / buckets)


def test_results_come_back() -> None:
    """32 results of 4 kB cross the link towards the host; training only looks at the loss."""
    (loss,) = Result().demands(with_job(scenario(), model=model()), Phase.COLD)
    assert loss.amount == 4.0
    inference = with_job(scenario(), model=model(), mode=Mode.INFER)
    (demand,) = Result().demands(inference, Phase.COLD)
    assert demand.amount == pytest.approx(32 * 4e3)
    assert demand.path is Path.DEVICE_TO_HOST


def test_a_checkpoint_copies_and_writes_the_state() -> None:
    """25 M parameters with Adam in fp32 are 300 MB, over PCIe and to the store."""
    job = with_job(scenario(), model=model())
    train = replace(job.job.train, optimizer=Optimizer.ADAM, checkpoint_every_steps=100)
    down, write = Checkpoint().demands(with_job(job, train=train), Phase.COLD)
    assert down.amount == pytest.approx(300e6)
    assert write.path is Path.HOST_TO_STORE


def saving(count: int, parallelism: Parallelism, *, mixed: bool = True) -> Scenario:
    """Machines of 8 devices write the 300 MB of 25 M parameters to a store that all reach."""
    job = with_job(scenario(machine=host(gpus=8)), model=model(), parallelism=parallelism)
    train = replace(
        job.job.train,
        optimizer=Optimizer.ADAM,
        mixed_precision=mixed,
        checkpoint_every_steps=1,
    )
    group = replace(
        job.cluster.groups[0],
        count=count,
        storage=replace(store(rate=2e9), scope=Scope.NETWORK, write_bandwidth=1e8),
    )
    return with_job(replace(job, cluster=replace(job.cluster, groups=(group,))), train=train)


SHARDED = Parallelism(sharding=Sharding.OPTIMIZER)


@pytest.mark.parametrize(
    "parallelism",
    [
        *(Parallelism(), SHARDED, Parallelism(sharding=Sharding.PARAMETERS)),
        *(Parallelism(tensor=8, pipeline=2), Parallelism(tensor=2, sharding=Sharding.GRADIENTS)),
    ],
)
@pytest.mark.parametrize("count", [2, 16])
def test_a_checkpoint_is_written_once(count: int, parallelism: Parallelism) -> None:
    """300 MB at 100 MB/s take 3 s, however many machines there are; several agree first."""
    job = saving(count, parallelism)
    (_, write) = Checkpoint().demands(job, Phase.COLD)
    agreeing = AGREEING if parallelism != Parallelism() else 0.0
    assert alone(build(job), write, Location(rank=0)) == pytest.approx(3.0 + agreeing)


def test_who_writes_a_checkpoint() -> None:
    """Of 300 MB on 4 machines: all by one, a quarter each if sharded, halves of a replica."""
    plain, sharded, spread = (
        checkpoint_shares(saving(4, how))
        for how in (Parallelism(), SHARDED, Parallelism(tensor=8, pipeline=2))
    )
    assert (plain.whole, plain.machine.value, plain.device.value) == pytest.approx(
        (300e6, 300e6, 300e6)
    )
    assert (sharded.machine.value, sharded.device.value) == pytest.approx((75e6, 300e6 / 32))
    assert (spread.machine.value, spread.device.value) == pytest.approx((150e6, 300e6 / 16))


def test_whole_weights_are_written_by_one_replica() -> None:
    """Without fp32 weights apart, one device writes 100 MB of weights, all 200 MB of moments."""
    shares = checkpoint_shares(saving(4, SHARDED, mixed=False))
    assert shares.device.value == pytest.approx(100e6 + 200e6 / 32)
    assert shares.machine.value == pytest.approx(100e6 + 200e6 / 4)
    assert shares.writers == pytest.approx(2.0)


def test_a_process_writes_no_faster_than_it_serialises() -> None:
    """At 10 MB/s a process, 300 MB take one 30 s; 8 on one machine write a part each, in 3.75 s.

    On 4 machines the store, 100 MB/s, is slower than their 32 processes.
    """
    times = []
    for count, how in ((4, Parallelism()), (1, SHARDED), (4, SHARDED)):
        job = saving(count, how)
        job = with_job(job, train=replace(job.job.train, checkpoint_process_rate=1e7))
        (_, write) = Checkpoint().demands(job, Phase.COLD)
        times.append(alone(build(job), write, Location(rank=0)))
    assert times == pytest.approx([30.0, 3.75 + AGREEING, 3.0 + AGREEING])


def test_a_machine_writes_no_faster_than_its_network() -> None:
    """One machine that writes 300 MB through 10 MB/s takes 30 s; of four, each a quarter of it."""
    times = []
    for how in (Parallelism(), SHARDED):
        job = saving(4, how)
        machine = replace(job.cluster.groups[0].host, network=Network(bandwidth=1e7))
        group = replace(job.cluster.groups[0], host=machine)
        slow = replace(job, cluster=replace(job.cluster, groups=(group,)))
        (_, write) = Checkpoint().demands(slow, Phase.COLD)
        times.append(alone(build(slow), write, Location(rank=0)))
    assert times == pytest.approx([30.0, 7.5 + AGREEING])


def test_models_on_cores_ask_for_cores() -> None:
    """A model of 1 ms a sample asks for 32 ms of core time a batch, and for no device."""
    learner = CpuOnly(
        name="svm", parameters=1e3, cpu_seconds=0.001, input_bytes=400.0, output_bytes=4.0
    )
    job = with_job(scenario(machine=host(gpus=0)), model=learner, step_times=None)
    (demand,) = CpuTraining().demands(job, Phase.COLD)
    assert demand.amount == pytest.approx(0.032)
    assert DevicePass("forward").demands(job, Phase.COLD) == ()


def test_operations_ride_with_the_bytes() -> None:
    """Each byte of a 4 kB file uses 1/4096 of an operation."""
    job = scenario(storage=store(operations=1e5), sample_bytes=4096.0, cache=CachePolicy.NONE)
    (read, _) = Read().demands(job, Phase.COLD)
    way = dict(build(job).way(read, Location(rank=0)))
    assert way[STORE] == 1.0
    assert way[OPERATIONS] == pytest.approx(1 / 4096)
