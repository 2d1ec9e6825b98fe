"""Scenarios in which machines and jobs share things give what the hand calculation in them says.

Where a part by itself (the slowest of compute, input and network) would answer otherwise, the
test says by how much.
"""

from __future__ import annotations

from functools import cache

import pytest

from simulator.physics.collectives import EFFICIENCY
from simulator.physics.footprint import page_cache_bytes
from simulator.pipeline.topology import build
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction
from simulator.units import HOUR, MINUTE

TIGHT = 0.02
"""Hand calculations of what machines share hold within this."""


@cache
def answer(name: str, *overrides: str) -> Prediction:
    """What is predicted for a shipped scenario, with options."""
    return predict(load_scenario(name, overrides=overrides))


def step(name: str, *overrides: str) -> float:
    """Mean step [s]."""
    return answer(name, *overrides).timing.step_time.mean


def cores(name: str) -> float:
    """Cores' worth of the machine that trains with all of them busy, beside its programs."""
    return float(build(load_scenario(name)).host.cpu.capacity)


def test_workers_evict_the_page_cache() -> None:
    """What random replacement leaves of 48 GB in the RAM that 14 workers leave: 185 ms, not 20."""
    name = "page-cache-evicted-by-workers"
    left = float(page_cache_bytes(load_scenario(name)))
    assert left == pytest.approx(22.2e9, rel=0.01)
    hit = answer(name).cache_hit_ratio
    assert hit == pytest.approx(0.242, abs=0.002)
    assert 64 * (1 - hit) * 500e3 / 131.072e6 == pytest.approx(0.185, rel=TIGHT)
    epoch = answer(name).timing.epoch_time / 1500
    assert epoch == pytest.approx(0.185, rel=TIGHT)
    assert step(name, "input.workers=6") == pytest.approx(0.020, rel=TIGHT)


def test_gpus_under_one_switch() -> None:
    """Two copies through one uplink: 43 ms, where each by itself hides under 25 ms."""
    both = 2 * 32 * 8.388608e6 / 12.5e9
    assert step("gpus-under-one-switch") == pytest.approx(both, rel=TIGHT)
    assert step("gpus-under-one-switch", "hardware.gpus=1") == pytest.approx(0.025, rel=TIGHT)


def test_a_device_on_the_remote_socket() -> None:
    """Four copies over one link between sockets: 8.39 ms, at home 7 ms."""
    crossing = 4 * 32 * 8.388608e6 / 128e9
    assert step("device-on-remote-socket") == pytest.approx(crossing, rel=TIGHT)
    assert step("device-on-remote-socket", "input.socket=0") == pytest.approx(0.007, rel=TIGHT)


def test_reads_and_gradients_on_one_card() -> None:
    """205 ms of samples and 277 ms of gradients add up on a card they share.

    A little more: once the samples are there, gradients alone reach 80% of the card.
    """
    name = "reads-and-allreduce-one-nic"
    model = load_scenario(name).job.model
    assert model is not None
    reads, gradients = 4 * 64 * 1e6 / 1.25e9, 4 * model.dense_parameters / 1.25e9
    assert reads + gradients <= step(name) <= reads + gradients / EFFICIENCY
    assert step(name) > 1.1 * max(reads, float(gradients), 0.120)


def test_one_slow_client_delays_all_at_the_barrier() -> None:
    """64 ms for everyone, though the ranks' mean is 22 ms."""
    name = "straggling-storage-client"
    assert step(name) == pytest.approx(64 * 0.002 * 4 / 8, rel=TIGHT)
    copied = 64 * 150.528e3 / (12.5e9 / 2)  # two GPUs below each uplink
    assert step(name, "input.straggler=[]") == pytest.approx(0.020 + copied, rel=TIGHT)
    found = answer(name).timing
    # Seven ranks wait for the one that waits for data, which copies alone and so twice as fast.
    faster = copied / 2
    assert found.split.other == pytest.approx(7 * (found.split.data_stall - faster / 8), rel=TIGHT)


@pytest.mark.parametrize(
    ("name", "published", "band"),
    [
        ("heterogeneous-tfdata-alone", 0.192, 0.10),
        ("heterogeneous-tfdata", 0.086, 0.10),
        ("remote-workers-mnist-alone", 1.193, 0.10),
        ("remote-workers-mnist", 0.184, 0.25),
    ],
)
def test_published_pairs(name: str, published: float, band: float) -> None:
    """Within the band of the published step; the second of each pair is predicted, not fitted."""
    assert step(name) == pytest.approx(published, rel=band)


def test_vcpus_of_both_groups_add_up() -> None:
    """233.7 vCPUs of the trainer's make 8,192 samples in 78.9 ms."""
    together = 96 + 2 * 72 * (1_142_358 / 72) / (1_593_361 / 96)
    assert together == pytest.approx(233.7, abs=0.2)
    by_hand = 8192 * 2.25e-3 / together
    assert step("heterogeneous-tfdata") == pytest.approx(by_hand, rel=TIGHT)


def test_bills_of_both_groups() -> None:
    """$37.688/h and two of $3.672/h; a step is 46% cheaper in the source, here 51%."""
    alone, together = answer("heterogeneous-tfdata-alone"), answer("heterogeneous-tfdata")
    assert together.cost.per_second == pytest.approx(45.032 / HOUR)
    assert together.cost.per_step is not None
    assert alone.cost.per_step is not None
    assert 1 - together.cost.per_step / alone.cost.per_step == pytest.approx(0.4648, abs=0.06)


def test_remote_workers_by_hand() -> None:
    """Count, CoreMark and busy threads: 221 ms; with clocks 203 ms."""
    by_hand = 1.193 * 8 / 32 / ((572_906 / 36) / (105_899 / 8)) * 32 / 36
    assert step("remote-workers-mnist") == pytest.approx(by_hand, rel=TIGHT)
    clocks = by_hand * 1.202 / 1.304
    assert step("remote-workers-mnist", "remote.speed=1.304") == pytest.approx(clocks, rel=TIGHT)


def test_a_second_machine_of_the_same_kind_changes_nothing() -> None:
    """16 GPUs at 60% like 8, twice the throughput at twice the price."""
    one, two = answer("cpu-starved-p4d"), answer("two-nodes-cpu-starved")
    assert two.timing.accelerator_utilization == pytest.approx(0.60, abs=0.005)
    assert two.timing.step_time.mean == pytest.approx(16 * 128 * 0.02 / 192, rel=TIGHT)
    assert two.timing.throughput == pytest.approx(2 * one.timing.throughput, rel=TIGHT)
    assert one.cost.per_second is not None
    assert two.cost.per_second == pytest.approx(2 * one.cost.per_second)


def test_vcpus_on_other_machines_feed_the_gpus() -> None:
    """GPUs busy all the time, 160 of 240 vCPUs."""
    found = answer("cpu-fed-heterogeneous").timing
    assert found.accelerator_utilization == pytest.approx(1.0, abs=0.005)
    busy = found.usage["cpu"].total + found.usage["data.cpu"].total
    assert busy == pytest.approx(160, rel=TIGHT)
    assert found.bottleneck == "gpu"


def test_stage_or_stream() -> None:
    """18.7 minutes of copying, as long as a cold epoch of streaming; then 4.0 saved in each."""
    found = answer("stage-or-stream")
    batch = 128 * (1 - found.cache_hit_ratio) * 114.66e3
    streamed = batch / 131.072e6 * 10_010
    pipeline = load_scenario("stage-or-stream").job.input
    received = pipeline.receive_per_batch + 128 * pipeline.receive_per_sample
    staged = (128 * 2.56e-3 + received) / cores("stage-or-stream") * 10_010
    copied = 1_281_167 * 114.66e3 / 131.072e6
    assert copied / MINUTE == pytest.approx(18.7, abs=0.05)
    assert found.break_even_epochs == pytest.approx(1 + staged / (streamed - staged), rel=0.05)
    assert found.timing.epoch_time == pytest.approx(staged, rel=0.03)


def test_preloading_what_the_page_cache_would_hold() -> None:
    """Never pays, and is billed: 91 s of reading before the first step."""
    found, streamed = answer("preload-ram"), answer("preload-ram", "data.placement=stream")
    assert found.break_even_epochs == float("inf")
    epochs = 10 * found.timing.epoch_time
    assert found.timing.total_time - epochs == pytest.approx(91.8, abs=2)
    assert found.timing.total_time > streamed.timing.total_time


def test_windows_of_large_volumes() -> None:
    """Nine chunks in place of 512: the GPUs wait for whole volumes, not for crops."""
    name = "windowed-volumes"
    whole = ("data.window=268.435456 MB", "data.chunk_size=268.435456 MB")
    assert step(name) == pytest.approx(0.150, rel=TIGHT)
    assert step(name, *whole) == pytest.approx(16 * 268.435456e6 / 2.4e9, rel=TIGHT)
    share = answer(name).timing.usage["storage"].mean
    assert share == pytest.approx(16 * 9 * 524288 / 2.4e9 / 0.150, rel=TIGHT)


def test_decoding_on_the_gpus() -> None:
    """38 ms more of a GPU for a batch; 5 GB of its memory; still faster than starving CPUs."""
    decoding, starving = answer("gpu-decode"), answer("resnet50-imagenet-p4d")
    more = decoding.timing.split.compute - starving.timing.split.compute
    assert more == pytest.approx(256 * 0.15e-3, rel=1e-6)
    assert decoding.timing.step_time.mean < 0.62 * starving.timing.step_time.mean
    assert decoding.memory is not None
    assert decoding.memory.items["preparing"] == 5e9


def test_preparing_beforehand() -> None:
    """Minutes of work once, and the GPUs never wait again but for copies in line with compute."""
    found = answer("preprocess-beforehand").timing
    assert found.split.data_stall < 0.005 * found.step_time.mean
    working = 1.0 - found.split.h2d / found.step_time.mean
    assert found.accelerator_utilization == pytest.approx(working, abs=0.005)
    once = found.total_time - found.first_epoch_time - 89 * found.epoch_time
    assert once == pytest.approx(3 * MINUTE, rel=0.05)


def test_offline_preparation() -> None:
    """The volume that is read and written decides: 380 s."""
    moved = 1_281_167 * (114.66e3 + 196.608e3)
    found = answer("offline-preparation")
    assert found.timing.total_time == pytest.approx(moved / 1048.576e6, rel=0.08)
    assert found.timing.bottleneck == "storage"


def test_actors_feed_a_learner() -> None:
    """Sixteen make a batch every 17.8 ms, forty every 10.7 ms; the learner takes 15 ms."""
    host = load_scenario("rl-actors").cluster.trainers.host.cpu
    done = 16 / (1 + host.contention * (16 - 1) / host.cores)
    assert step("rl-actors", "input.workers=16") == pytest.approx(256e-3 / done, rel=0.03)
    assert step("rl-actors") == pytest.approx(15e-3, rel=0.01)


def test_eight_jobs_on_one_machine() -> None:
    """They share the CPUs like the ranks of one job, and each needs all the steps."""
    by_hand = 8 * 128 * 2.56e-3 / cores("eight-jobs-or-one")
    jobs, one = answer("eight-jobs-or-one"), answer("eight-jobs-or-one", "train.copies=1")
    assert jobs.timing.step_time.mean == pytest.approx(by_hand, rel=0.03)
    assert one.timing.step_time.mean == pytest.approx(by_hand, rel=0.03)
    assert jobs.timing.epoch_time == pytest.approx(8 * one.timing.epoch_time, rel=TIGHT)


def test_inference_on_cores_and_on_a_gpu() -> None:
    """Latency is decode and compute in turn; the small GPU is faster and cheaper a sample."""
    gpu, cpu = answer("inference-batch1-gpu"), answer("inference-batch1-cpu")
    assert cpu.timing.step_time.mean == pytest.approx(0.0826, rel=TIGHT)
    split = gpu.timing.split
    parts = split.data_stall + split.h2d + split.compute + split.other
    assert gpu.timing.step_time.mean == pytest.approx(parts)
    assert split.data_stall == pytest.approx(2.56e-3, rel=TIGHT)
    assert gpu.cost.samples_per_usd is not None
    assert cpu.cost.samples_per_usd is not None
    assert gpu.cost.samples_per_usd > 20 * cpu.cost.samples_per_usd


def test_a_drive_in_front_of_an_object_store() -> None:
    """Between the hand figures for idle and for full cores; then what the device takes."""
    found = answer("nvme-cache-object-store").timing
    assert 48.2 * MINUTE < found.first_epoch_time < 54.1 * MINUTE
    assert found.epoch_time == pytest.approx(0.151 * 10_010, rel=TIGHT)
