"""Published figures beside what `plan` computes: the rows of docs/published-cases.md and README.md.

`rows` computes ours with the functions and the files that a user would use; nothing of it is
written by hand but the published figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from support import theory

from simulator.equations import cost, cpu, host_memory, requests, roofline, step
from simulator.files.catalogue import Catalogue
from simulator.files.scenario import load_scenario
from simulator.hardware.host import Host
from simulator.predict import predict
from simulator.results import Prediction
from simulator.units import BYTE, DAY, HOUR, parse

IMAGES, ROUNDED = 1_281_167, 1_280_000
TF, TF_PAIR = 0.192, 0.086
PT, PT_PAIR = 1.193, 0.184
GIB_OF_IMAGES = "155.84 GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: published, and ours.

    `digits` is how both are written; of a pair, the first stands for 0 and the second for 1.
    `short` rows stand in the README too.
    """

    case: str
    what: str
    published: float
    ours: float
    digits: str | tuple[str, str] = "{:,.4g}"
    short: bool = False

    def written(self, value: float) -> str:
        """A figure as the tables show it."""
        if isinstance(self.digits, tuple):
            return self.digits[int(value)]
        return self.digits.format(value)

    @property
    def error(self) -> str:
        """``exact`` where both read the same as written, else the relative error."""
        if self.written(self.ours) == self.written(self.published):
            return "exact"
        return f"{self.ours / self.published - 1.0:+.1%}"

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """The row of a table."""
        published, ours = self.written(self.published), self.written(self.ours)
        return self.case, self.what, published, ours, self.error


@cache
def answer(name: str, *overrides: str) -> Prediction:
    """What is predicted for a shipped scenario, with options."""
    return predict(load_scenario(name, overrides=overrides))


@cache
def host(name: str) -> Host:
    """A machine of the catalogue."""
    return Catalogue.default().host(f"instance/{name}")


def price(name: str) -> float:
    """A managed machine's price [USD/s]."""
    found = host(f"aws-managed/{name}").price
    assert found is not None
    return found.on_demand


def arithmetic() -> Iterator[Row]:
    """Cases that are arithmetic on published inputs."""
    yield from _clusters()
    yield from _bills()
    yield from _loading()
    yield from _machines()
    yield from _rates()


def _clusters() -> Iterator[Row]:
    yield Row(case="A1", what="vCPUs needed", published=160, ours=cpu.vcpus_short(0, 20, 8))
    yield Row(case="A1", what="vCPUs short", published=64, ours=cpu.vcpus_short(96, 20, 8))
    starved = answer("cpu-starved-p4d")
    assert starved.cpu_need is not None
    short = starved.cpu_need.short / (8 * starved.cpu_need.per_gpu)
    yield Row(
        case="A1",
        what="share of vCPUs short, simulated",
        published=0.4,
        ours=short,
        digits="{:.0%}",
    )
    yield Row(
        case="A1",
        what="GPU utilization, simulated",
        published=0.6,
        ours=starved.timing.accelerator_utilization or 0.0,
        digits="{:.1%}",
        short=True,
    )
    for name, ratio in {"8": 32, "16": 64, "12": 12, "24": 24}.items():
        machine = host(f"aws/g5.{name}xlarge")
        ours = float(theory.vcpus_per_gpu(machine.cpu.threads, machine.gpu_count))
        what = f"vCPUs per GPU of a g5.{name}xlarge"
        yield Row(case="A4", what=what, published=ratio, ours=ours, short=name in {"16", "24"})


def _bills() -> Iterator[Row]:
    p4d, p3 = price("ml.p4d.24xlarge"), price("ml.p3.2xlarge")
    c5, small = price("ml.c5.18xlarge"), price("ml.c5.9xlarge")
    money = "${:.5g}"
    pairs = (
        ("A8", "TensorFlow", (p4d, TF, 0.0020100), (p4d + 2 * c5, TF_PAIR, 0.0010758), 0.4648),
        ("A13", "PyTorch", (p3, PT, 0.0012676), (p3 + small, PT_PAIR, 0.00028934), 0.7717),
    )
    for case, name, alone, pair, saved in pairs:
        costs = [float(cost.cost_per_step(rate, seconds)) for rate, seconds, _ in (alone, pair)]
        for where, ours, known in zip(("alone", "with helpers"), costs, (alone, pair), strict=True):
            what = f"cost of a step, {name}, {where}"
            yield Row(case=case, what=what, published=known[2], ours=ours, digits=money)
        ours = float(cost.saving(*costs))
        what = f"saving with helpers, {name}"
        yield Row(case=case, what=what, published=saved, ours=ours, digits="{:.2%}", short=True)
    implied = float(theory.implied_price_ratio(0.4, 0.3))
    what = "price ratio behind 40% less time, 30% less cost"
    yield Row(case="A16", what=what, published=1.1667, ours=implied, digits="{:.4f}", short=True)
    ratio = (p4d + 2 * c5) / p4d
    what = "price ratio of p4d with two c5.18xlarge"
    yield Row(case="A16", what=what, published=1.195, ours=ratio, digits="{:.3f}")
    shown = {"p4d.24xlarge": 37.688, "p3.2xlarge": 3.825, "c5.18xlarge": 3.672, "c5.9xlarge": 1.836}
    for name, known in shown.items():
        ours = float(theory.hourly(price(f"ml.{name}")))
        what = f"price of an hour of ml.{name}"
        big = name == "c5.18xlarge"
        yield Row(case="A17", what=what, published=known, ours=ours, digits="${:.3f}", short=big)
    ours = float(cost.cost_ratio(ratio, TF_PAIR / TF))
    what = "cost ratio = price ratio x time ratio"
    yield Row(case="A18", what=what, published=0.5352, ours=ours, digits="{:.4f}", short=True)


def _loading() -> Iterator[Row]:
    for count, drop, known in ((ROUNDED, False, 40_000), (IMAGES, True, 40_036)):
        ours = float(step.iterations_per_epoch(count, 32, drop_last=drop))
        what = f"iterations of an epoch, {count:,} images" + (", drop_last" if drop else "")
        yield Row(case="B1", what=what, published=known, ours=ours, digits="{:,.0f}", short=drop)
    ours = float(step.iterations_per_epoch(IMAGES, 32, drop_last=False))
    what = f"iterations of an epoch, {IMAGES:,} images"
    yield Row(case="B1", what=what, published=40_037, ours=ours, digits="{:,.0f}")
    yield from _overlap()
    rate = float(requests.request_throughput(parse("114.66 kB", BYTE), 0.0107, math.inf))
    what = "MB/s of loads of 10.7 ms an image"
    yield Row(case="B5", what=what, published=10.7, ours=rate / 1e6, digits="{:.1f}", short=True)
    rate = float(theory.throughput_for_deadline(IMAGES, 90, 14 * DAY))
    what = "images/s for 90 epochs in 14 days"
    yield Row(case="B6", what=what, published=95.3, ours=rate, digits="{:.1f}", short=True)
    each = parse(GIB_OF_IMAGES, BYTE) / ROUNDED / 1e3
    what = f"kB an image of {GIB_OF_IMAGES}"
    yield Row(case="B7", what=what, published=130.7, ours=each, digits="{:.1f}", short=True)
    fits = parse(GIB_OF_IMAGES, BYTE) <= parse("80 GB", BYTE)
    what = f"{GIB_OF_IMAGES} fit 80 GB of GPU memory"
    yield Row(case="B8", what=what, published=0, ours=float(fits), digits=("no", "yes"), short=True)


def _overlap() -> Iterator[Row]:
    """B2 to B4, simulated from the shipped files."""
    names = {"B2": "serial", "B3": "hidden", "B4": "one-worker"}
    known = {"B2": (0.435, 20.1), "B3": (0.055, 2.546), "B4": (0.38, 17.6)}
    for case, name in names.items():
        timing = answer(f"resnet18-imagenet-{name}").timing
        seconds, days = known[case]
        what = f"step [s], {name}, simulated"
        mean, total = timing.step_time.mean, timing.total_time / DAY
        yield Row(case=case, what=what, published=seconds, ours=mean, digits="{:.3f}", short=True)
        what, digits = f"100 epochs [d], {name}, simulated", "{:.2f}" if case == "B3" else "{:.1f}"
        yield Row(case=case, what=what, published=days, ours=total, digits=digits)
    serial, hidden = (answer(f"resnet18-imagenet-{names[c]}").timing for c in ("B2", "B3"))
    busy = serial.accelerator_utilization or 0.0
    what = "GPU utilization, serial, simulated"
    yield Row(case="B2", what=what, published=0.126, ours=busy, digits="{:.1%}")
    gain = serial.total_time / hidden.total_time
    what = "speed-up of hiding the loading"
    yield Row(case="B3", what=what, published=7.9, ours=gain, digits="{:.1f}")
    ours = float(theory.workers_needed(0.38, 0.055))
    yield Row(case="B4", what="workers that feed the GPU", published=7, ours=ours)


def _machines() -> Iterator[Row]:
    system, application = parse("2 GB", BYTE), parse("3 GB", BYTE)
    for case, gpus, each, known in (("C2", 1, "16 GB", 16.0), ("C3", 2, "40 GB", 80.0)):
        asked = host_memory.rule_of_thumb(gpus * parse(each, BYTE), system, application)
        over = (float(asked) - system - application) / 1e9
        what = f"GB of RAM beside system and application, {gpus} x {each} GPU"
        yield Row(case=f"C1, {case}", what=what, published=known, ours=over, short=True)
    ram = "hardware.ram=12 GB"
    warned = any("paging" in w for w in answer("resnet18-imagenet-serial", ram).warnings)
    what, words = "warning of paging, 12 GB of RAM beside a 16 GiB GPU", ("no", "yes")
    yield Row(case="C4", what=what, published=1, ours=float(warned), digits=words, short=True)
    encoded, flit = theory.ENCODING_128_OF_130, theory.FLIT_242_OF_256
    lanes = (
        ("4, nominal", 16e9, 1.0, 32.0),
        ("4", 16e9, encoded, 31.5),
        ("5", 32e9, encoded, 63.0),
        ("6", 64e9, flit, 121.0),
    )
    for generation, rate, coding, known in lanes:
        ours = float(theory.lane_bandwidth(rate, 16, coding)) / 1e9
        what = f"GB/s of PCIe x16 one way, generation {generation}"
        late = generation in {"4", "6"}
        yield Row(case="C5", what=what, published=known, ours=ours, digits="{:.1f}", short=late)
    peers = host("aws/p4d.24xlarge").peer_link
    assert peers is not None
    what = "GB/s of all NVLink 3 links of an A100, both ways"
    yield Row(case="C6", what=what, published=600, ours=2 * peers.peak / 1e9, short=True)
    slow, fast = (float(roofline.roofline_time(0.0, 1e9, 1e12, rate)) for rate in (90e9, 2e12))
    what = "GPU over CPU memory bandwidth"
    yield Row(case="C7", what=what, published=22.2, ours=slow / fast, digits="{:.1f}", short=True)
    laptop = Catalogue.default().host("node/apple-m1-max").memory_bandwidth or 0.0
    what = "GB/s of unified memory of an M1 Max (the maker says 400)"
    yield Row(case="C7", what=what, published=408, ours=laptop / 1e9)
    ways = (("PCIe 4", 32e9, 31.25), ("PCIe 5", 63e9, 15.9), ("PCIe 6", 121e9, 8.3))
    for name, rate, known in (*ways, ("NVLink 3", 300e9, 3.33)):
        ours = float(theory.transfer_time(1e9, rate)) * 1e3
        what = f"ms to copy 1 GB over {name}"
        digits = "{:.3g}" if known > 10 else "{:.2g}" if known > 5 else "{:.3g}"
        first = name == "PCIe 4"
        yield Row(case="C8", what=what, published=known, ours=ours, digits=digits, short=first)
    chain = ["read", "decode", "collate", "copy", "forward", "backward", "result"]
    stages = [s.stage for s in answer("resnet50-imagenet-p4d").demands if s.demands]
    inside = [stage for stage in stages if stage in chain] == chain
    what = "disk to RAM to device, compute, results back"
    yield Row(case="C9", what=what, published=1, ours=float(inside), digits=words, short=True)


def _rates() -> Iterator[Row]:
    p4d, c5 = price("ml.p4d.24xlarge"), price("ml.c5.18xlarge")
    pairs = ((TF, p4d, 42_667, 4.076), (TF_PAIR, p4d + 2 * c5, 95_256, 7.615))
    for seconds, rate, known, millions in pairs:
        throughput = float(theory.throughput(8192, seconds))
        what = f"samples/s at {seconds * 1e3:.0f} ms a step"
        yield Row(case="D1", what=what, published=known, ours=throughput, digits="{:,.0f}")
        ours = float(cost.samples_per_usd(throughput, rate)) / 1e6
        what = f"million samples per dollar at {seconds * 1e3:.0f} ms a step"
        yield Row(case="D1", what=what, published=millions, ours=ours, digits="{:.3f}", short=True)
    store = Catalogue.default().storage("storage/object-store-30mb")
    assert store.request_rate is not None
    ours = float(theory.requests_to_saturate(store.read_rate, store.request_rate))
    what = "requests at once for 140 GB/s"
    yield Row(case="D6", what=what, published=4667, ours=ours, digits="{:,.0f}", short=True)
    ours = float(theory.share_fed(store.request_rate, store.read_rate))
    what = "share of a GPU that one request feeds"
    yield Row(case="D6", what=what, published=0.00021, ours=ours, digits="{:.3%}")


LARGE = (
    ("gpt3-175b-megatron", "GPT-3 175B on 64 A100, Megatron-LM", 18.13),
    ("megatron-1t", "a GPT of 1T on 512 A100, Megatron-LM", 94.42),
    ("bloom-176b", "BLOOM-176B on 384 A100, Megatron-DeepSpeed", 105.22),
    ("llama3-8b-fsdp", "Llama 3.1 8B on 8 H100, torchtitan", 2.8435),
    ("llama3-70b-megatron", "Llama 3 70B on 64 H100 in 8 bit, Megatron-Bridge", 19.993),
    ("llama3-405b-megatron", "Llama 3.1 405B on 1,024 H100 in 8 bit, Megatron-LM", 13.003),
)
"""Scenarios of spread models: what they train, and the published step [s]."""

SCALED = (
    ("resnet50-mlperf-h100", "images/s, ResNet-50 on 2,528 H100, 16 each (MLPerf)", 6_885_678),
    ("bert-large-multinode", "sequences/s, BERT-large phase 2, 16 DGX A100", 25_570),
    ("dlrm-criteo-dgx-a100", "samples/s, DLRM on 8 A100, 8,192 each", 13_800_000),
)
"""Scenarios of runs on several accelerators that hold the whole model: what, and per second."""


def spread() -> Iterator[Row]:
    """Published runs of models on many accelerators, beside the shipped scenario."""
    for name, what, seconds in LARGE:
        ours = answer(name).timing.step_time.mean
        yield Row(case=name, what=f"s a step, {what}", published=seconds, ours=ours, short=True)
    for name, what, rate in SCALED:
        ours = answer(name).timing.throughput
        yield Row(case=name, what=what, published=rate, ours=ours, digits="{:,.0f}", short=True)


def measured() -> Iterator[Row]:
    """Runs that somebody measured, beside the shipped scenario."""
    yield from spread()
    p4d = answer("resnet50-imagenet-p4d").timing
    what = "images/s, ResNet-50 on ImageNet, p4d.24xlarge (FFCV's run of the PyTorch example)"
    yield Row(
        case="resnet50-imagenet-p4d", what=what, published=5546, ours=p4d.throughput, short=True
    )
    what = "hours for 90 epochs of the same"
    yield Row(case="resnet50-imagenet-p4d", what=what, published=5.775, ours=p4d.total_time / HOUR)
    bert = "bert-large-dgx-a100"
    what = "sequences/s, BERT-large phase 2, DGX A100 (NVIDIA's PyTorch example)"
    ours = answer(bert).timing.throughput
    yield Row(case=bert, what=what, published=1657, ours=ours, digits="{:,.0f}", short=True)
    what = "the same with PaddlePaddle (NVIDIA's example)"
    ours = answer(bert, "software.framework=paddle").timing.throughput
    yield Row(case=bert, what=what, published=2109, ours=ours, digits="{:,.0f}")
    what = "images/s, ResNet-50 on one M40 (90 epochs in 14 days)"
    ours = answer("resnet50-m40").timing.throughput
    yield Row(case="resnet50-m40", what=what, published=95.3, ours=ours, short=True)
    memory = answer("bert-large-v100-16gb").memory
    assert memory is not None
    known = {"parameters": 1.32, "optimizer": 2.64, "activations": 14.38}
    for item, size in known.items():
        what, ours = f"GB of {item}, BERT-large, batch 16", memory.items[item] / 1e9
        yield Row(
            case="bert-large-v100-16gb", what=what, published=size, ours=ours, digits="{:.2f}"
        )
    ours = sum(memory.items[item] for item in known) / 1e9
    what = "GB of these three, BERT-large, batch 16"
    yield Row(
        case="bert-large-v100-16gb",
        what=what,
        published=18.34,
        ours=ours,
        digits="{:.2f}",
        short=True,
    )
