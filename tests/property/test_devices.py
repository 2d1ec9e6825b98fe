"""Over the whole catalogue: a device that is at least as good in every figure is never slower."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Final

import pytest
from support.stages import sampled

from simulator.errors import PlanError
from simulator.physics.device_time import device_time
from simulator.predict import predict
from simulator.reading.fitted.kernel_files import kernel_files
from simulator.reading.model_library import model_names
from simulator.reading.scenario import load_scenario
from simulator.schema.accelerators import Gpu, Precision

ROOT: Final = Path(__file__).parents[2]
GPUS: Final = tuple(
    f"gpu/{path.stem}" for path in sorted((ROOT / "hardware_profiles/gpu").glob("*.toml"))
)
JOBS: Final = {
    "a decoder, FSDP": (
        "llama3-8b-fsdp",
        *("parallelism.sharding=none", "train.recompute=full"),
    ),
    "a decoder, data parallel": ("gpt2-tokens-h100",),
    "a decoder, a forward pass": ("gpt2-tokens-h100", "train.mode=infer"),
    "a decoder with experts, split": ("mixtral-8x7b-megatron",),
    "a decoder, adapters": ("llama2-70b-lora",),
    "an encoder": ("bert-large-dgx-a100", "software.framework=apex"),
    "an encoder, eager": ("bert-large-dgx-a100", "software.framework=pytorch"),
    "a convnet": ("resnet50-imagenet-p4d", "model.name=resnet101"),
    "a model known by its totals": (
        "resnet50-imagenet-p4d",
        *("model.name=mask-rcnn-r50-fpn", "train.batch_size=4"),
    ),
    "a recommender": ("dlrm-criteo-dgx-a100", "train.batch_size=4096"),
    "a small convnet": ("resnet50-imagenet-p4d", "model.name=resnet18", "train.batch_size=16"),
    "a convnet that memory limits": (
        "resnet50-imagenet-p4d",
        *("model.name=efficientnet-b0", "train.mode=infer"),
    ),
    "a forward pass": ("resnet50-imagenet-p4d", "model.name=vit-b16", "train.mode=infer"),
}
APART: Final = frozenset(
    gpu for file in kernel_files().values() for variant in file.variant for gpu in variant.gpus
)
"""Devices that measured rows tell from the rest of their architecture; the output says so."""


def seconds(job: tuple[str, ...], gpu: str, precision: Precision) -> tuple[float, Gpu] | None:
    """Device time of a batch on a device, and the device; None where it cannot do it."""
    base, *keys = job
    given = (*keys, f"hardware.gpu={gpu}", f"train.precision={precision}")
    try:
        scenario = load_scenario(base, overrides=given)
    except PlanError:
        return None
    time, found = device_time(scenario), scenario.cluster.trainers.host.gpu
    assert found is not None
    if time is None or time.measured:
        return None
    return float(time.total), found


def figures(gpu: Gpu, precision: Precision) -> Iterator[float]:
    """What a data sheet says of speed: rates of matrices and of the rest, memory, of one unit."""
    rate = gpu.peak[gpu.fallback.get(precision, precision)]
    yield rate
    yield gpu.peak.get(Precision.FP32, rate)
    yield gpu.memory_bandwidth
    yield rate / (gpu.multiprocessors or 1.0)
    wide = gpu.peak.get(Precision.BF16) or gpu.peak.get(Precision.FP16) or 0.0
    yield wide
    yield gpu.reach if gpu.relative is not None else 1.0


@pytest.mark.parametrize(("job", "precision"), sampled(product(JOBS, ["bf16", "fp16"]), 3))
def test_a_better_device_is_never_slower(job: str, precision: str) -> None:
    """Every pair of which one is at least as good in all: it takes at most as long."""
    assert not list(slower(JOBS[job], Precision(precision), 1e-9))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, len(model_names()), 3))
def test_a_better_device_is_never_slower_whatever_the_model(number: int) -> None:
    """The same of every third model of the library, in turn trained and run forward."""
    mode, precision = (("train", Precision.BF16), ("infer", Precision.FP16))[number % 2]
    name = model_names()[number]
    keys = (f"model.name={name}", f"train.mode={mode}", "train.batch_size=16")
    # Where launches limit, what kernels of architectures reach of a peak is a millionth of a step.
    assert not list(slower(("resnet50-imagenet-p4d", *keys), precision, 1e-5))


def slower(job: tuple[str, ...], own: Precision, rounding: float) -> Iterator[str]:
    """Pairs of devices in which the better one is the slower one, and no output says why."""
    known = {gpu: found for gpu in GPUS if (found := seconds(job, gpu, own)) is not None}
    compared = 0
    for better, worse in permutations(known, 2):
        (fast, one), (slow, other) = known[better], known[worse]
        pairs = zip(figures(one, own), figures(other, own), strict=True)
        if all(mine >= theirs for mine, theirs in pairs):
            compared += 1
            told = {better, worse} & APART and one.relative is None and other.relative is None
            if fast * as_measured(one, other) > slow * (1.0 + rounding) and not told:
                yield f"{better} {fast:.6g} s, {worse} {slow:.6g} s"
    assert compared > 30 or not known


def as_measured(one: Gpu, other: Gpu) -> float:
    """How much less of its memory's bandwidth a device reaches than another, 1 at most.

    It follows from rows measured on both architectures or their relatives; the output says so.
    """
    reached, others = (1.0 if g.outdone is None else g.outdone.ratio for g in (one, other))
    return min(1.0, reached / others)


def test_a_device_nobody_measured_says_whose_kernels_it_has() -> None:
    """An MI300X follows an A100 as far as its best product goes, and is known less well."""
    known, other = (
        predict(load_scenario("bert-large-dgx-a100", overrides=(f"hardware.gpu={gpu}",)))
        for gpu in ("gpu/a100-sxm4-80gb", "gpu/mi300x")
    )
    said = [a for a in other.assumptions if "no figures were fitted" in a.what]
    assert [a.value for a in said] == ["59% of those of gpu/a100-sxm4-80gb"]
    assert [a.source.verified for a in said] == [False]
    assert not [a for a in known.assumptions if "no figures were fitted" in a.what]
    bands = [p.interval["step_time_s.mean"] for p in (known, other)]
    assert bands[1]["p90"] / bands[1]["p10"] > 1.2 * bands[0]["p90"] / bands[0]["p10"]


def test_what_measured_rows_tell_apart_is_said() -> None:
    """A B300 has the data sheet of a B200 in 16 bit, and faster products as measured."""
    keys = ("hardware.gpu=gpu/b300-sxm-288gb", "parallelism.sharding=optimizer")
    found = predict(load_scenario("llama3-8b-fsdp", overrides=keys)).assumptions
    told = [
        a.value
        for a in found
        if a.what.startswith("matrix products of b300") and "measured" in a.what
    ]
    assert told == ["119%"]


def test_an_architecture_that_reaches_less_of_its_memory_says_so() -> None:
    """An H100 PCIe has the memory of an A100, and its kernels reach 2.4% less of it."""
    keys = ("model.name=efficientnet-b0", "train.mode=infer", "hardware.gpu=gpu/{}")
    found = {
        gpu: predict(
            load_scenario("resnet50-imagenet-p4d", overrides=(*keys[:2], keys[2].format(gpu)))
        )
        for gpu in ("h100-pcie-80gb", "a100-sxm4-80gb")
    }
    told = {
        gpu: [a for a in one.assumptions if "share of the memory bandwidth" in a.what]
        for gpu, one in found.items()
    }
    assert told["a100-sxm4-80gb"] == []
    (said,) = told["h100-pcie-80gb"]
    assert 90.0 < float(said.value.removesuffix("%")) < 100.0
    assert "relative to kernels of Ampere, measured" in told["h100-pcie-80gb"][0].what
    assert "NVIDIA-NeMo/Megatron-Bridge" in told["h100-pcie-80gb"][0].source.reference


def test_relatives_are_as_their_profiles_say() -> None:
    """Multiprocessors and best product of each relative are those of its own profile."""
    for file in kernel_files().values():
        for table in file.relative:
            gpu = load_scenario(
                "bert-large-dgx-a100", overrides=(f"hardware.gpu={table.device}",)
            ).cluster.trainers.host.gpu
            assert gpu is not None
            assert gpu.multiprocessors == table.multiprocessors
            assert gpu.architecture == table.architecture
            best = max(rate / gpu.peak[name] for name, rate in gpu.achievable.items())
            assert table.best == pytest.approx(best, rel=1e-3)
