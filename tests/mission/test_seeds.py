"""Rows C10, D2 to D4, D7 and D8, simulated.

Sources: "A Hitchhiker's Guide to ML Training Infrastructure" (SEI, 2022), "Instance selection for
deep learning" (Chaim Rand) and an article on design patterns of ML systems.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from mission.machines import in_memory, in_pytorch, job, rented, scenario, store, trainers
from support.scenarios import simulate

from simulator.predict import predict
from simulator.reading.model_library import load_model
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import training_log
from simulator.results.prediction import Prediction
from simulator.schema.accelerators import Precision
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    Dataset,
    InputPipeline,
    Layout,
)
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Storage
from simulator.units import DAY

P4D, G5 = "p4d.24xlarge", "g5.48xlarge"
BUCKET = 25e6


def data_parallel(machine: str, model_name: str, batch: float, *, steps: int = 1000) -> Scenario:
    """A model of the library on all GPUs of a machine, batches always ready."""
    host, model = rented(machine), load_model(model_name)
    made = job(
        dataset=in_memory(steps * batch * host.gpu_count, 1e5),
        batch=batch,
        pipeline=InputPipeline(
            workers=4, pin_memory=True, output_bytes_per_sample=model.input_bytes
        ),
        train={"precision": Precision.FP16, "mixed_precision": True, "bucket_size": BUCKET},
        model=model,
        software=in_pytorch(host),
    )
    return scenario("data parallel", made, trainers(host))


def test_c10_twelve_million_dollars() -> None:
    """Price x time only: 128 machines with eight A100 can be had for 178 days."""
    host = rented(P4D)
    step, days = 10.0, 178
    steps = round(days * DAY / step)
    made = job(
        dataset=in_memory(steps * 128 * 8, 1e3),
        batch=1,
        step=step,
        pipeline=InputPipeline(workers=1, pin_memory=True),
    )
    found = predict(scenario("long", made, trainers(host, count=128)))
    assert found.cost.time_to_train == pytest.approx(days * DAY, rel=1e-3)
    assert found.cost.for_machines == pytest.approx(128 * 21.957642 * 24 * days, rel=1e-3)
    assert found.cost.for_machines == pytest.approx(12e6, rel=0.01)


def test_d2_the_log_of_a_training_loop() -> None:
    """Samples/s of every 100 steps of 128 a rank: the steady rate, and less for the first lines."""
    plan = data_parallel(P4D, "resnet50", 128, steps=500)
    found = predict(plan)
    whole = replace(found, timing=simulate(plan, replay=True))
    log = training_log(whole, 100)
    assert [done for done, _, _ in log] == [100, 200, 300, 400, 500]
    global_batch = 128 * 8
    ends = [0.0, *(time for _, time, _ in log)]
    for (_, end, rate), start in zip(log, ends, strict=False):
        assert rate == pytest.approx(100 * global_batch / (end - start))
    assert log[1][2] == pytest.approx(found.timing.throughput, rel=1e-3)
    assert log[0][2] < log[1][2]


def test_d3_compiled_models_are_faster() -> None:
    """By up to 51%, the source says; what is fused moves less, and products stay as they are."""
    plain, faster = (
        predict(load_scenario("imagenet-object-store-g5", overrides=(f"software.compile={on}",)))
        for on in ("false", "true")
    )
    assert 1.05 < plain.timing.split.compute / faster.timing.split.compute < 1.51


def all_reduce(found: Prediction) -> float:
    """Time of a step's all-reduce, hidden or not [s]."""
    return found.timing.split.communication + found.timing.hidden_communication


def test_d4_all_reduce_over_pcie_and_over_nvlink() -> None:
    """Eight GPUs add up 102 MB in 14 ms over PCIe and 1.25 ms over NVLink: by bytes and rate.

    Over PCIe 4 eight cards were measured at 12.7 GB/s. Over NVLink each of the buckets, four and a
    rest, also takes what an empty message takes of the measured curve for large messages.
    """
    pcie = predict(data_parallel(G5, "resnet50", 64))
    nvlink = predict(data_parallel(P4D, "resnet50", 64))
    wire = 2 * 7 / 8 * 4 * load_model("resnet50").dense_parameters
    waits = 5 * 92.6e-6
    assert all_reduce(nvlink) == pytest.approx(wire / 227e9 + waits, rel=0.02)
    assert all_reduce(pcie) == pytest.approx(wire / 12.7e9, rel=0.02)
    assert "nvlink" not in pcie.timing.usage


@pytest.mark.parametrize(
    ("model", "batch", "suffices"), [("resnet50", 64, True), ("bert-large", 4, False)]
)
def test_d4_when_pcie_suffices(model: str, batch: float, *, suffices: bool) -> None:
    """25 M parameters hide behind 91 ms of compute; 335 M behind 129 ms do not.

    What cannot hide is the last bucket, of 25 MB: 2 * 7/8 * 25 MB / 12.7 GB/s = 3.4 ms, under 4%.
    """
    found = predict(data_parallel(G5, model, batch))
    exposed = found.timing.split.communication / found.timing.step_time.mean
    assert (exposed < 0.05) is suffices
    assert (exposed > 0.15) is not suffices
    other = predict(data_parallel(P4D, model, batch)).timing
    assert other.split.communication < 0.1 * other.step_time.mean


def without_volume_limits(host: Host) -> Host:
    """The machine without its limits for block volumes."""
    assert host.network is not None
    free = replace(host.network, storage_cap=None, storage_operations_cap=None)
    return replace(host, network=free)


def reading(layout: Layout, where: Storage, size: float = 1e4, samples: float = 1e9) -> Prediction:
    """Small samples, each a file of its own or 10,000 to a shard; nothing is cached."""
    by_file = layout is Layout.FILES
    data = Dataset(
        name="small",
        samples=samples,
        bytes_per_sample=size,
        layout=layout,
        access=Access.RANDOM if by_file else Access.SEQUENTIAL,
        shard_size=None if by_file else 1e4 * size,
        cache=CachePolicy.NONE,
    )
    made = job(
        dataset=data, batch=256, step=0.001, pipeline=InputPipeline(workers=16, pin_memory=True)
    )
    host = without_volume_limits(rented(P4D))
    return predict(scenario("small files", made, trainers(host, storage=where)))


def test_d7_a_billion_small_files() -> None:
    """On Lustre 128 readers wait 2.3 ms for each file's metadata, then for its bytes.

    By hand: 256 files a batch, 0.589 s of waiting; 2.56 MB at 1.92 GB/s, 1.3 ms, while others wait,
    since workers drift apart; 16 workers a rank share that: 37 ms a step. Shards only move the
    bytes: 10.7 ms.
    """
    lustre = store("fsx-lustre-persistent1-ssd")
    files, shards = reading(Layout.FILES, lustre), reading(Layout.SHARDS, lustre)
    by_hand = (256 * 2.3e-3 + 256e4 / 1.92e9) / 16
    assert files.timing.step_time.mean == pytest.approx(by_hand, rel=0.02)
    assert shards.timing.step_time.mean == pytest.approx(8 * 256e4 / 1.92e9, rel=0.02)
    assert files.timing.bottleneck == "storage"
    epoch = files.timing.epoch_time
    assert epoch == pytest.approx(1e9 / 2048 * files.timing.step_time.mean, rel=0.01)


def test_d7_the_term_is_per_file() -> None:
    """Half the bytes in as many files is barely faster; the latency stays."""
    lustre = store("fsx-lustre-persistent1-ssd")
    whole, half = (
        reading(Layout.FILES, lustre, size=size).timing.step_time.mean for size in (1e4, 5e3)
    )
    assert half / whole == pytest.approx((0.589 + 0.0007) / (0.589 + 0.0013), rel=0.02)


def large(total: float, *, cached: bool) -> Prediction:
    """Shards on a network file system, read three times; 8 TB of drives before it or none."""
    host = without_volume_limits(rented(P4D))
    data = Dataset(
        name="large",
        samples=total / 1e5,
        bytes_per_sample=1e5,
        layout=Layout.SHARDS,
        access=Access.SEQUENTIAL,
        shard_size=1e8,
        cache=CachePolicy.NONE,
    )
    made = job(
        dataset=data,
        batch=256,
        step=0.02,
        pipeline=InputPipeline(workers=12, pin_memory=True, persistent_workers=True),
        train={"epochs": 3.0},
    )
    group = trainers(
        host,
        storage=store("fsx-lustre-persistent1-ssd"),
        cache=host.local_storage if cached else None,
    )
    return predict(scenario("large", made, group))


def test_d8_larger_than_the_local_disk() -> None:
    """20 TB and 8 TB of drives: each epoch fetches the other 60% again; 5 TB are fetched once."""
    network = 2048 * 1e5 / 1.92e9
    streamed, cached, fits = (
        large(20e12, cached=False),
        large(20e12, cached=True),
        large(5e12, cached=True),
    )
    assert streamed.timing.step_time.mean == pytest.approx(network, rel=0.02)
    assert streamed.timing.epoch_time == pytest.approx(streamed.timing.first_epoch_time, rel=0.01)
    assert cached.timing.step_time.mean == pytest.approx(0.6 * network, rel=0.06)
    assert cached.timing.first_epoch_time == pytest.approx(
        streamed.timing.first_epoch_time, rel=0.01
    )
    assert fits.timing.step_time.mean == pytest.approx(0.02, rel=0.01)
    assert fits.timing.first_epoch_time > 4 * fits.timing.epoch_time
