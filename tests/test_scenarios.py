"""Shipped scenarios with a published answer give it, read from their files as a user's would be."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pytest
from support import theory

from simulator.cli.main import main
from simulator.equations import storage
from simulator.errors import InputError
from simulator.physics.footprint import Verdict
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction
from simulator.schema.data_loading import CachePolicy
from simulator.units import DAY


@cache
def answer(name: str, *overrides: str) -> Prediction:
    """What is predicted for a shipped scenario, with options."""
    return predict(load_scenario(name, overrides=overrides))


def days(prediction: Prediction) -> float:
    """Time to train [d]."""
    return prediction.timing.total_time / DAY


def test_b2_serial_loading() -> None:
    """0.380 s of loading and 0.055 s of training in turn: 0.435 s, 20.1 days, GPU 12.6% busy."""
    serial = answer("resnet18-imagenet-serial")
    assert serial.timing.step_time.mean == pytest.approx(0.435, abs=5e-5)
    assert serial.timing.split.data_stall == pytest.approx(0.38, rel=1e-9)
    assert serial.timing.split.compute == pytest.approx(0.055, rel=1e-9)
    assert serial.timing.split.h2d == 0.0
    assert serial.timing.accelerator_utilization == pytest.approx(0.126, abs=1e-3)
    assert serial.steps_per_epoch == 40_000
    assert days(serial) == pytest.approx(20.1, abs=0.05)


def test_b3_loading_hidden() -> None:
    """Eight workers hide the loading: 0.055 s, 2.546 days, 7.9 times as fast."""
    hidden = answer("resnet18-imagenet-hidden")
    assert hidden.timing.step_time.mean == pytest.approx(0.055, abs=5e-5)
    assert days(hidden) == pytest.approx(2.546, abs=2e-3)
    gain = answer("resnet18-imagenet-serial").timing.total_time / hidden.timing.total_time
    assert gain == pytest.approx(7.9, abs=0.05)
    assert hidden.timing.bottleneck == "gpu"


def test_b4_one_worker_ahead() -> None:
    """One worker overlaps but is no faster: 0.38 s and 17.6 days."""
    ahead = answer("resnet18-imagenet-one-worker")
    assert ahead.timing.step_time.mean == pytest.approx(0.38, rel=1e-6)
    assert days(ahead) == pytest.approx(17.6, abs=0.05)


@pytest.mark.parametrize(("workers", "bottleneck"), [(6, "storage"), (7, "gpu")])
def test_b4_seven_workers_feed_the_gpu(workers: int, bottleneck: str) -> None:
    """0.38 s of loading against 0.055 s of training: six workers fall short, seven suffice."""
    crew = answer("resnet18-imagenet-hidden", f"input.workers={workers}")
    assert crew.timing.bottleneck == bottleneck


def test_a1_too_few_vcpus() -> None:
    """20 vCPUs a GPU on a machine with 96 for 8: 64 of 160 short, GPUs at 60%."""
    starved = answer("cpu-starved-p4d")
    assert starved.timing.accelerator_utilization == pytest.approx(0.600, abs=5e-4)
    assert starved.cpu_need is not None
    assert starved.cpu_need.per_gpu == pytest.approx(20.0, rel=1e-3)
    assert starved.cpu_need.short == pytest.approx(64.0, abs=0.2)
    assert starved.cpu_need.short / (8 * starved.cpu_need.per_gpu) == pytest.approx(0.40, abs=1e-3)
    assert starved.timing.bottleneck == "cpu"


def test_bert_large_on_16_gb(capsys: pytest.CaptureFixture[str]) -> None:
    """1.32 GB parameters, 2.64 optimizer, 14.38 activations, each within 10%; it hardly fits."""
    memory = answer("bert-large-v100-16gb").memory
    assert memory is not None
    published = {"parameters": 1.32e9, "optimizer": 2.64e9, "activations": 14.38e9}
    for item, size in published.items():
        assert memory.items[item] == pytest.approx(size, rel=0.10), item
    assert sum(memory.items[item] for item in published) == pytest.approx(18.34e9, rel=0.10)
    assert memory.total > 1.2 * memory.capacity
    assert memory.verdict is not Verdict.YES
    assert (memory.probability or 0.0) < 0.2
    main(["simulate", "bert-large-v100-16gb"])
    assert "may not fit" in capsys.readouterr().out


@pytest.mark.parametrize(("ram", "warned"), [("12 GB", True), ("64 GB", False)])
def test_c4_less_ram_than_gpu_memory(ram: str, *, warned: bool) -> None:
    """With less RAM than the V100's 16 GiB paging is a risk, and that is said."""
    said = answer("resnet18-imagenet-serial", f"hardware.ram={ram}").warnings
    assert any("paging" in warning for warning in said) is warned


def test_c9_the_chain_of_a_step() -> None:
    """Disk to RAM, RAM to device, compute, results back: every link of it has demands."""
    chain = answer("resnet50-imagenet-p4d").demands
    asked = [stage.stage for stage in chain if stage.demands]
    order = ["read", "decode", "collate", "receive", "copy", "forward", "backward"]
    assert [stage for stage in asked if stage in order] == order
    assert asked[-1] == "result"


def test_the_page_cache_answers_what_its_policy_says() -> None:
    """Random replacement, with the RAM that the job leaves over."""
    cached = answer("imagenet-page-cache-g4dn")
    dataset = cached.scenario.job.dataset
    assert dataset.cache is CachePolicy.RANDOM
    share = cached.page_cache_bytes / dataset.total_bytes
    assert share == pytest.approx(0.43, abs=0.005)
    hit = float(storage.hit_ratio_random(np.float64(share)))
    assert cached.cache_hit_ratio == pytest.approx(hit, rel=1e-12)
    assert cached.timing.first_epoch_time > 1.1 * cached.timing.epoch_time


def test_d6_requests_of_an_object_store() -> None:
    """30 MB/s a request against 140 GB/s: 4,667 requests at once, each 0.021% of it."""
    store = Catalogue.default().storage("storage/object-store-30mb")
    assert store.request_rate is not None
    assert theory.requests_to_saturate(store.read_rate, store.request_rate) == 4667
    assert round(100 * theory.share_fed(store.request_rate, store.read_rate), 3) == 0.021


def test_more_requests_read_faster() -> None:
    """At 30 MB/s a request the GPU starves; six times as many requests at once feed it."""
    slow = (
        "hardware.storage=storage/object-store-30mb",
        "data.cache=none",
        "input.workers=1",
        "input.decode=0 s",
    )
    few = answer("imagenet-object-store-g5", *slow)
    many = answer("imagenet-object-store-g5", *slow, "data.readers=6")
    assert few.timing.throughput == pytest.approx(30e6 / 114.66e3, rel=0.05)
    assert few.timing.bottleneck == "storage"
    assert many.timing.bottleneck == "gpu"


def test_accelerators_can_be_emulated() -> None:
    """What takes the measured time and no memory may stand in for any machine's accelerators."""
    one = answer("resnet18-imagenet-one-worker")
    both = answer("resnet18-imagenet-one-worker", "hardware.emulated=2")
    assert both.memory is None
    assert both.timing.split.compute == pytest.approx(one.timing.split.compute, rel=1e-9)
    other = answer("resnet18-imagenet-one-worker", "hardware.emulated=1", "train.batch_size=64")
    assert other.timing.split.compute == pytest.approx(0.110, rel=1e-9)


NO_DRIVES = """
schema = 1
[hardware]
machine = "instance/aws/p3.2xlarge"
[data]
samples = 64000
bytes_per_sample = "1 kB"
[input]
workers = 4
output_bytes_per_sample = "602 kB"
[model]
name = "resnet50"
[train]
batch_size = 64
precision = "fp16"
"""


def no_drives(*overrides: str) -> Prediction:
    """What is predicted for a machine without drives and no store named."""
    return predict(load_scenario("-", stdin=io.StringIO(NO_DRIVES), overrides=overrides))


def test_synthetic_data_need_no_store() -> None:
    """Where nothing is read or written none has to be named, and none is read from."""
    found = no_drives("data.cache=preloaded")
    assert found.scenario.cluster.trainers.storage.name == "no store"
    assert found.timing.usage["storage"].total == 0.0
    assert found.timing.bottleneck == "gpu"
    for needs in ("data.cache=random", "train.checkpoint_every_steps=10"):
        others = () if needs.startswith("data") else ("data.cache=preloaded",)
        with pytest.raises(InputError, match=r"hardware.storage: is missing.*synthetic data"):
            no_drives(needs, *others)
