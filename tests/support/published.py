"""Published figures beside what `plan` computes: the rows of docs/published-cases.md and README.md.

`rows` computes ours with the functions and the files that a user would use; nothing of it is
written by hand but the published figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from support import theory
from support.mission_cases import cases

from simulator.equations import memory, roofline
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction
from simulator.schema.cost import Purchase, price_of
from simulator.schema.machines import Host
from simulator.units import BYTE, DAY, HOUR, parse

IMAGES, ROUNDED = 1_281_167, 1_280_000
TF, TF_PAIR = 0.192, 0.086
PT, PT_PAIR = 1.193, 0.184
GIB_OF_IMAGES = "155.84 GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: published, and ours.

    `digits` is how both are written; of a pair, the first stands for 0 and the second for 1.
    `how` it comes about: simulated, simulated with the published step stated, or arithmetic.
    `short` rows stand in the README too.
    """

    case: str
    what: str
    published: float
    ours: float
    digits: str | tuple[str, str] = "{:,.4g}"
    short: bool = False
    how: str = ""

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
    found = price_of(host(f"aws-managed/{name}").prices, Purchase.ON_DEMAND)
    assert found is not None
    return found.usual


def answered() -> Iterator[Row]:
    """Cases that `plan` answers from a scenario file."""
    for case in cases():
        if case.least is None:
            yield Row(
                case=case.id,
                what=case.what,
                published=case.published,
                ours=case.ours,
                digits=("no", "yes") if case.yes_or_no else case.digits,
                short=case.short,
                how="given the published step time" if case.known else "simulated",
            )


def arithmetic() -> Iterator[Row]:
    """Cases that are arithmetic on published inputs, by functions and figures of the catalogue."""
    for row in (*_bills(), *_loading(), *_machines(), *_rates()):
        yield replace(row, how="formulas only")


def worked_out() -> tuple[Row, ...]:
    """Both, by case."""
    rows = (*answered(), *arithmetic())
    return tuple(sorted(rows, key=lambda row: (row.case[0], int(row.case.split(",")[0][1:]))))


def _bills() -> Iterator[Row]:
    implied = float(theory.implied_price_ratio(0.4, 0.3))
    what = "price ratio behind 40% less time, 30% less cost"
    yield Row(case="A16", what=what, published=1.1667, ours=implied, digits="{:.4f}")


def _loading() -> Iterator[Row]:
    ours = float(theory.workers_needed(0.38, 0.055))
    yield Row(case="B4", what="workers that feed the GPU, if linear", published=7, ours=ours)
    rate = float(theory.throughput_for_deadline(IMAGES, 90, 14 * DAY))
    what = "images/s for 90 epochs in 14 days"
    yield Row(case="B6", what=what, published=95.3, ours=rate, digits="{:.1f}")
    each = parse(GIB_OF_IMAGES, BYTE) / ROUNDED / 1e3
    what = f"kB an image of {GIB_OF_IMAGES}"
    yield Row(case="B7", what=what, published=130.7, ours=each, digits="{:.1f}")


def _machines() -> Iterator[Row]:
    system, application = parse("2 GB", BYTE), parse("3 GB", BYTE)
    for case, gpus, each, known in (("C2", 1, "16 GB", 16.0), ("C3", 2, "40 GB", 80.0)):
        asked = memory.rule_of_thumb(gpus * parse(each, BYTE), system, application)
        over = (float(asked) - system - application) / 1e9
        what = f"GB of RAM in addition to system and application, {gpus} x {each} GPU"
        yield Row(case=f"C1, {case}", what=what, published=known, ours=over, short=True)
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
    what = "GB/s of unified memory of an M1 Max (the vendor says 400)"
    yield Row(case="C7", what=what, published=408, ours=laptop / 1e9)
    ours = float(theory.transfer_time(1e9, peers.peak)) * 1e3
    what = "ms to copy 1 GB over NVLink 3"
    yield Row(case="C8", what=what, published=3.33, ours=ours, digits="{:.3g}")


def _rates() -> Iterator[Row]:
    store = Catalogue.default().storage("storage/object-store-30mb")
    assert store.request_rate is not None
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
        yield Row(case=name, what=f"s per step, {what}", published=seconds, ours=ours, short=True)
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
    what = f"GB of {', '.join(known)}, BERT-large, batch 16"
    yield Row(
        case="bert-large-v100-16gb",
        what=what,
        published=18.34,
        ours=ours,
        digits="{:.2f}",
        short=True,
    )
