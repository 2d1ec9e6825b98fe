"""The answer in a sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator.physics.footprint import Verdict
from simulator.pipeline.stages.base import Resource
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.document import Format, render
from simulator.report.prediction.job import document
from simulator.report.prediction.verdict import marks, verdict
from simulator.results.binding import Part
from simulator.results.prediction import Prediction, StepSplit, Usage
from simulator.schema.machines import CpuPool
from simulator.schema.scenario import Scenario


def as_text(prediction: Prediction) -> str:
    """Return the report as text."""
    return render(document(prediction), Format.TABLE)


def with_timing(prediction: Prediction, **changes: object) -> Prediction:
    """The prediction with other times."""
    return replace(prediction, timing=replace(prediction.timing, **changes))  # type: ignore[arg-type] # names are checked by replace


def with_pool(scenario: Scenario, pool: CpuPool) -> Scenario:
    """The scenario with other CPUs."""
    trainers = scenario.cluster.trainers
    own = replace(trainers, host=replace(trainers.host, cpu=pool))
    return replace(scenario, cluster=replace(scenario.cluster, groups=(own,)))


def test_starved_devices(prediction: Prediction) -> None:
    """Rate made, rate possible and share of waiting are all in the sentence."""
    assert verdict(prediction) == (
        "GPU-starved: the CPUs deliver 25,600 of the 44,500 samples/s that the GPUs could take; "
        "GPUs wait for data 40% of the time."
    )


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (Resource.STORAGE, "the storage delivers 25,600"),
        (Resource.NETWORK, "the network delivers 25,600"),
        (Resource.PCIE, "PCIe carries 25,600"),
    ],
)
def test_who_starves_them(prediction: Prediction, resource: Resource, words: str) -> None:
    """The bottleneck is the one that is blamed."""
    assert words in verdict(with_timing(prediction, bottleneck=resource))


def test_what_is_no_gpu_is_called_an_accelerator() -> None:
    """A sentence begins with a capital, and an accelerator has its article."""
    tpu = ("hardware.machine=ct6e-standard-8t", "hardware.storage=gcs", "train.precision=bf16")
    here = ("input.measured_on=ct6e-standard-8t", "input.decode=0.1 ms")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=(*tpu, *here))
    found = predict(scenario, intervals=False)
    assert verdict(found).startswith("Accelerator-bound: the accelerators take")
    assert "batch 256 per accelerator" in as_text(found)
    assert "acc memory" not in as_text(found)


def test_busy_devices(prediction: Prediction) -> None:
    """Without waiting for data the devices themselves are the limit, and the next is named."""
    busy = with_timing(
        prediction,
        split=StepSplit(compute=0.040),
        bottleneck=Resource.GPU,
        next_bottleneck=Resource.CPU,
        accelerator_utilization=1.0,
    )
    assert verdict(busy) == (
        "GPU-bound: the GPUs take 25,600 samples/s and compute 100% of the time; "
        "next is the CPUs (99% busy)."
    )


def test_communication_is_the_limit(prediction: Prediction) -> None:
    """A full link between devices is called communication."""
    usage = {Resource.NVLINK: Usage(mean=0.97, total=3.9, units=4, busiest=0.98)}
    bound = with_timing(
        prediction, split=StepSplit(compute=0.04), bottleneck=Resource.NVLINK, usage=usage
    )
    assert verdict(bound).startswith("Communication-bound: 25,600 samples/s")


IDLE = {Resource.CPU: Usage(mean=0.3, total=14.0, units=48, busiest=0.4)}


def crewed(prediction: Prediction, workers: int) -> Prediction:
    """The prediction with idle CPUs and so many workers."""
    scenario = prediction.scenario
    job = replace(scenario.job, input=replace(scenario.job.input, workers=workers))
    scenario = replace(scenario, jobs=(job,))
    return with_timing(replace(prediction, scenario=scenario), usage=IDLE)


def test_nothing_is_full(prediction: Prediction) -> None:
    """Where time goes into waiting in turn, more of the busiest resource is not the advice."""
    text = verdict(with_timing(prediction, usage=IDLE, bottleneck=Resource.PCIE))
    assert "is full (the busiest: 40%): work is serialized" in text


@pytest.mark.parametrize(
    ("workers", "made", "why"),
    [
        (
            2,
            "2 workers in each process deliver 25,600",
            "a worker needs 419 ms per batch, 98% of it",
        ),
        (1, "one worker in each process delivers 25,600", "more workers would run in parallel"),
        (0, "the main process delivers 25,600", "workers would load batches meanwhile"),
    ],
)
def test_who_does_one_thing_after_another(
    prediction: Prediction, workers: int, made: str, why: str
) -> None:
    """Workers that keep nothing full are blamed themselves, not the idle CPUs they work on."""
    text = verdict(crewed(prediction, workers))
    assert f"GPU-starved: {made} of the 44,500 samples/s" in text
    assert why in text
    assert "the CPUs are 40% busy)" in text


def test_a_slow_reader_of_an_idle_store() -> None:
    """The store is not what limits: its one reader is, whose time goes into reading."""
    text = verdict(predict(load_scenario("resnet18-imagenet-one-worker"), intervals=False))
    assert "the storage delivers" not in text
    assert "one worker delivers 84.2 of" in text
    assert "90% of it reading (the storage is 7% busy)" in text


def test_no_idle_resource_makes_batches(prediction: Prediction) -> None:
    """An idle store delivers nothing, even where the device is busy most of the time."""
    usage = {**IDLE, Resource.GPU: Usage(mean=0.89, total=3.6, units=4, busiest=0.89)}
    text = verdict(with_timing(prediction, usage=usage, bottleneck=Resource.STORAGE))
    assert "GPU-starved: the input pipeline delivers 25,600" in text
    assert "No input resource is full (the busiest: 40%)" in text


@pytest.mark.parametrize(
    ("split", "part", "words"),
    [
        (
            StepSplit(compute=0.01, communication=0.03),
            Part.COMMUNICATION,
            "Communication-bound: communication between GPUs takes 75% of a step, GPUs",
        ),
        (StepSplit(compute=0.01, bubble=0.03), Part.BUBBLE, "Pipeline-bound: the pipeline bubble"),
        (
            StepSplit(compute=0.003, checkpoint=0.037),
            Part.CHECKPOINT,
            "Checkpoint-bound: writing checkpoints takes 92% of a step",
        ),
        (StepSplit(compute=0.01, other=0.03), Part.WAITING, "Stalled: waiting for the slowest GPU"),
    ],
)
def test_a_part_of_the_step_binds(
    prediction: Prediction, split: StepSplit, part: Part, words: str
) -> None:
    """A part in which no resource is busy is named with the share of the step it takes."""
    assert verdict(with_timing(prediction, split=split, bottleneck=part)).startswith(words)


def test_what_the_program_does_holds_up() -> None:
    """Devices that wait for the training program are not called busy."""
    slow = load_scenario("gpu-decode", overrides=("train.step_overhead='2 s'",))
    text = verdict(predict(slow, intervals=False))
    assert text.startswith("Stalled: waiting for the training program (train.step_overhead) takes")


def test_the_part_that_comes_next(prediction: Prediction) -> None:
    """Communication behind the devices is named with its share of a step, if it has one."""
    split = StepSplit(compute=0.03, communication=0.01)
    fed = with_timing(
        prediction, split=split, bottleneck=Resource.GPU, next_bottleneck=Part.COMMUNICATION
    )
    assert verdict(fed).endswith("; next is communication (25% of a step).")
    little = with_timing(fed, split=StepSplit(compute=0.0399, communication=0.0001))
    assert "next" not in verdict(little)


def test_checkpoints_beside_starving(prediction: Prediction) -> None:
    """Devices that wait for data and for checkpoints wait for both."""
    both = StepSplit(data_stall=0.016, compute=0.014, checkpoint=0.01)
    text = verdict(with_timing(prediction, split=both))
    assert "GPUs wait for data 40% of the time and for checkpoints 25% of the time." in text


def test_the_main_process_makes_and_trains_in_turn() -> None:
    """Without workers it is named though the device takes longer for a batch than it does."""
    text = verdict(predict(load_scenario("inference-batch1-gpu"), intervals=False))
    assert "GPU-starved: the main process delivers" in text
    assert "waits for the GPU, in turn; workers would load batches meanwhile" in text


TWO_FOLD = """
schema = 1
hardware = { machine = "node/workstation", gpu = "v100-pcie-32gb", gpus = 1, vcpus = 40 }
data = { samples = 50000, bytes_per_sample = "3 kB", cache = "preloaded" }
model = { name = "resnet50", step_time = "100 ms", step_time_batch = 32 }
train = { batch_size = 32, precision = "fp32" }
[input]
workers = 0
decode = "2 ms"
output_bytes_per_sample = "0 B"
"""


def test_a_loader_without_workers_is_named_with_what_settles_it(tmp_path: Path) -> None:
    """64 ms of loading and at most 100 ms of launching in one thread; half of it may overlap."""
    path = tmp_path / "job.toml"
    path.write_text(TWO_FOLD)
    found = predict(load_scenario(path))
    text = verdict(found)
    assert text.startswith("GPU-starved: the main process delivers ")
    assert "GPUs wait for data 39% of the time" in text  # 64 / 164
    assert "one thread loads and copies a batch (64 ms, mostly on the CPU; the CPUs are " in text
    assert "launches its kernels (at most 100 ms" in text
    assert "train.sync_every_step" in text
    interval = found.interval["step_time_s.mean"]
    assert interval["p10"] < 0.105
    assert interval["p90"] == pytest.approx(0.164, rel=0.06)
    asked = predict(load_scenario(path, overrides=["train.sync_every_step=true"]))
    known = asked.interval["step_time_s.mean"]
    assert asked.timing.step_time.mean == pytest.approx(0.164, rel=0.01)
    assert known["p90"] / known["p10"] < 1.15
    assert "train.sync_every_step" not in verdict(asked)


@pytest.mark.parametrize(("busy", "told"), [(0.05, False), (0.2, True)])
def test_what_hardly_works_is_not_next(
    prediction: Prediction,
    busy: float,
    told: bool,  # noqa: FBT001 - whether the sentence names it
) -> None:
    """A resource that is a twentieth busy is no limit that anybody would plan for."""
    usage = {Resource.CPU: Usage(mean=busy, total=48 * busy, units=48, busiest=busy)}
    fed = with_timing(
        prediction,
        split=StepSplit(compute=0.040),
        bottleneck=Resource.GPU,
        next_bottleneck=Resource.CPU,
        usage=usage,
    )
    assert ("next is the CPUs" in verdict(fed)) == told


def test_without_a_device(prediction: Prediction) -> None:
    """A job without accelerator is bound by what is busiest."""
    bare = with_timing(prediction, accelerator_utilization=None)
    assert verdict(bare) == "CPU-bound: 25,600 samples/s, with the CPUs 99% busy."


def test_threads_that_fill_their_cores(prediction: Prediction) -> None:
    """CPUs that bind and are half busy by threads are said to be full by cores."""
    half = {**prediction.timing.usage, Resource.CPU: Usage(mean=0.6, total=28.8, units=48)}
    pool = CpuPool(cores=24, threads=48, smt_worth=0.0)
    told = with_timing(prediction, usage=half)
    told = replace(told, scenario=with_pool(prediction.scenario, pool))
    assert (
        "; the CPUs are 60% busy: all physical cores are full, hyper-threads add almost nothing."
        in verdict(told)
    )
    bare = verdict(with_timing(told, accelerator_utilization=None))
    assert (
        "the CPUs 60% busy: all physical cores are full, hyper-threads add almost nothing." in bare
    )


def test_a_misfit_comes_first(prediction: Prediction) -> None:
    """What does not fit is said before how fast it would be."""
    assert prediction.memory is not None
    full = replace(prediction.memory, items={"activations": 93e9}, verdict=Verdict.NO)
    text = verdict(replace(prediction, memory=full))
    assert text.startswith("Does not fit: needs 93 GB, the GPU's memory holds 40 GB.")


def test_a_doubtful_fit_is_said(prediction: Prediction) -> None:
    """Close to the capacity the sentence says so."""
    uncertain = replace(prediction.host_ram, verdict=Verdict.UNCERTAIN)
    assert verdict(replace(prediction, host_ram=uncertain)).startswith("May not fit: ")


@pytest.mark.parametrize(
    ("name", "resource", "mark"),
    [
        ("resnet18-imagenet-one-worker", "storage", "most of a worker's time"),
        ("resnet18-imagenet-serial", "storage", "most of the main process's time"),
        ("resnet50-imagenet-p4d", "cpu", "bottleneck"),
        ("llama3-70b-megatron", "gpu", "bottleneck"),
    ],
)
def test_the_row_that_is_marked_is_what_the_verdict_names(
    name: str, resource: str, mark: str
) -> None:
    """A store that is 6% busy is no bottleneck where the verdict blames who reads from it."""
    found = predict(load_scenario(name), intervals=False)
    assert marks(found)[resource] == mark


def test_the_time_of_a_batch_gives_the_rate() -> None:
    """Workers over the time said, with what they wait for, make the samples a second printed."""
    crowded = ["hardware.contention=0.53"]
    found = predict(load_scenario("svm-cpu-only", overrides=crowded), intervals=False)
    said = re.search(r"131 ms per batch \((\d+) ms with waiting\)", verdict(found))
    assert said is not None
    rate = 16 * 65_536 / (float(said[1]) / 1000.0)
    assert rate == pytest.approx(found.timing.throughput, rel=0.01)


BOX = """
schema = 1
hardware = {machine = "workstation", gpus = 1, gpu = "rtx-4090", vcpus = 24, ram = "64 GB"}
data = {samples = 16384, bytes_per_sample = "300 kB"}
input = {loader = "pytorch", workers = 8, pin_memory = true, decode = "9 ms"}
model = {name = "resnet50", step_time = "150 ms"}
train = {batch_size = 256, epochs = 2, precision = "bf16"}
"""


def test_few_workers_are_blamed_where_cores_idle(tmp_path: Path) -> None:
    """Their work and that of the thread that receives are no processor that is full."""
    file = tmp_path / "box.toml"
    file.write_text(BOX)
    said = verdict(predict(load_scenario(str(file)), intervals=False))
    assert "8 workers deliver" in said
    assert "the CPUs deliver" not in said


@pytest.mark.parametrize(
    ("workers", "ram", "said"),
    [
        (4, "64 GB", "half of RAM is allowed by default (32 GB)"),
        (4, "16 GB", "which is too little"),
        (0, "64 GB", ""),
    ],
)
def test_shared_memory_of_batches_is_named_where_it_decides(
    tmp_path: Path, workers: int, ram: str, said: str
) -> None:
    """Four workers with two batches of 32 each, and one in use, hold 9 x 32 x 30 MB = 8.64 GB."""
    path = tmp_path / "job.toml"
    size = 'output_bytes_per_sample = "30 MB"'
    path.write_text(TWO_FOLD.replace('output_bytes_per_sample = "0 B"', size))
    settings = [f"input.workers={workers}", f"hardware.ram={ram}"]
    text = " ".join(as_text(predict(load_scenario(path, overrides=settings))).split())
    assert ("/dev/shm 8.64 GB of batches: a container needs --shm-size" in text) is bool(said)  # noqa: S108 - a label
    assert said in text


def test_the_cpu_time_of_a_sample_is_one_number_with_its_reasons() -> None:
    """The cores of p4d.24xlarge are shared by two vCPUs, and slow each other."""
    settings = ["input.cost_basis=core"]
    text = " ".join(as_text(predict(load_scenario("cpu-starved-p4d", overrides=settings))).split())
    found = re.search(
        r"a sample's ([\d.]+) ms on an idle core \(input.cost_basis\) are ([\d.]+) ms of a vCPU",
        text,
    )
    assert found is not None
    shared = re.search(r"vCPUs share cores: x([\d.]+)", text)
    crowded = re.search(r"busy cores slow each other: x([\d.]+)", text)
    factors = [float(each[1]) for each in (shared, crowded) if each is not None]
    assert factors
    ratio = float(found[2]) / float(found[1])
    assert ratio == pytest.approx(float(np.prod(factors)), rel=0.15)
