"""Memory over the whole catalogue: what keeps less never needs more, and runs that ran fit."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, cast

import pytest
from support.catalogue import each
from support.stages import sampled

from simulator.errors import NotModelled
from simulator.physics.footprint import Verdict, memory_fit
from simulator.pipeline.program import check_modelled
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.settings import setting_from_text
from simulator.schema.goal import Plain
from simulator.schema.transformers import Transformer

MODELS: Final = sorted(
    path.stem for path in (Path(__file__).parents[2] / "simulator/data/models").glob("*.toml")
)
SHARDING: Final = ("none", "optimizer", "gradients", "parameters")
FRAMEWORKS: Final = ("pytorch", "megatron-lm", "nemo", "megatron-deepspeed")
"""One of each kind of bookkeeping: whose weights are fp32, where gradients lie, which buffers."""
PAIRS: Final = tuple(
    (model, FRAMEWORKS[(number + more) % len(FRAMEWORKS)])
    for number, model in enumerate(MODELS)
    for more in (0, 2)
)
"""Each model with two of them in turn: models of a family differ in numbers alone."""
BASE: Final = ("hardware.count=2", "hardware.gpus=8")


@cache
def reader() -> CandidateReader:
    """Reads the scenario with some keys set; what does not depend on them once."""
    return CandidateReader("llama3-8b-fsdp")


def needed(model: str, *overrides: str) -> float | None:
    """Bytes of a device; None where the model refuses the combination."""
    pairs = (given.split("=", 1) for given in (*BASE, *overrides))
    settings = {name: cast("Plain", setting_from_text(name, text)) for name, text in pairs}
    try:
        scenario = reader().read({"model.name": model, **settings}).scenario
        check_modelled(scenario)
        fit = memory_fit(scenario)
    except NotModelled:
        return None
    assert fit is not None
    return float(fit.total)


@each(("model", "framework"), sampled(PAIRS, 8))
def test_more_sharding_never_needs_more_bytes(model: str, framework: str) -> None:
    """Nothing, optimizer, gradients, parameters: each needs at most what the one before does."""
    for compiled in ("true", "false"):
        for wide in ("fp32", "bf16"):
            keys = (
                *(f"software.framework={framework}", f"software.compile={compiled}"),
                *(f"train.gradient_precision={wide}", "train.recompute=none"),
            )
            sizes = [needed(model, *keys, f"parallelism.sharding={each}") for each in SHARDING]
            known = [size for size in sizes if size is not None]
            assert known == sorted(known, reverse=True), (keys, sizes)


SPLIT: Final = {
    "tensor": ("parallelism.tensor=2",),
    "context": ("parallelism.context=2",),
    "one micro-batch in a pipeline": ("parallelism.pipeline=2",),
    "a pipeline": ("parallelism.pipeline=2", "train.accumulation=8"),
    "experts": ("parallelism.expert=4",),
    "optimizer on the host": ("parallelism.offload_optimizer=true",),
    "accumulated": ("train.accumulation=4",),
}
LORA: Final = ("train.trained=lora", "train.lora_rank=16")
FOR_NOTHING: Final = "optimizer", "gradients"
"""The one step of sharding that may need more, where it leaves out next to nothing: see below."""


@pytest.mark.parametrize("trained", [(), LORA], ids=["all", "lora"])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b", "gpt2"])
@each("split", sampled(SPLIT, 3))
def test_more_sharding_of_a_split_model_needs_no_more_bytes(
    model: str, split: str, trained: tuple[str, ...]
) -> None:
    """Of every layout, with one exception: parameters that stay whole while passes go on.

    FSDP's SHARD_GRAD_OP keeps a shard of all parameters beside the whole ones. That is made up for
    by gradients, unless adapters alone have some, or a pipeline adds up whole ones first.
    """
    whole_anyway = bool(trained) or split == "a pipeline"
    for framework in FRAMEWORKS:
        keys = (*SPLIT[split], *trained, f"software.framework={framework}", "train.recompute=full")
        sizes = {s: needed(model, *keys, f"parallelism.sharding={s}") for s in SHARDING}
        known = [(sharding, size) for sharding, size in sizes.items() if size is not None]
        more = {(a, b) for (a, least), (b, size) in pairwise(known) if size > least}
        assert more <= ({FOR_NOTHING} if whole_anyway else set()), (keys, sizes)


@each(("model", "framework"), sampled(PAIRS, 8))
def test_more_recomputation_never_needs_more_bytes(model: str, framework: str) -> None:
    """Full recomputation keeps least, nothing recomputed most; parts of a layer lie between."""
    for fused in ("true", "false"):
        keys = (f"software.framework={framework}", f"software.fused_attention={fused}")
        found = {
            each: needed(model, *keys, "parallelism.sharding=none", f"train.recompute={each}")
            for each in ("none", "selective", "modules", "operators", "full")
        }
        if found["full"] is None or found["none"] is None:
            continue
        for between in ("selective", "modules", "operators"):
            part = found[between]
            if part is not None:
                assert found["full"] <= part <= found["none"], (keys, found)


@each("model", sampled(MODELS, 12))
def test_a_forward_pass_needs_less_than_training(model: str) -> None:
    """Weights and the largest live activations are less than what a backward pass would keep."""
    keys = ("parallelism.sharding=none", "train.recompute=none", "train.batch_size=4")
    training = needed(model, *keys)
    forward = needed(model, *keys, "train.mode=infer")
    assert forward is not None
    assert training is not None
    assert forward <= training


@each("model", sampled([name for name in MODELS if name != "gradient-boosted-trees"], 12))
def test_a_larger_batch_never_needs_less(model: str) -> None:
    """In training and forward alone."""
    for mode in ("train", "infer"):
        keys = ("parallelism.sharding=none", "train.recompute=none", f"train.mode={mode}")
        sizes = [needed(model, *keys, f"train.batch_size={batch}") for batch in (1, 8, 64)]
        known = [size for size in sizes if size is not None]
        assert known == sorted(known)


def test_inference_in_large_batches_fits() -> None:
    """EfficientNet-B0 at 1,024 images takes 5 to 15 GB; ResNet-50 at 1,024 ran in 24 GB.

    huggingface/pytorch-image-models results/benchmark-infer-amp-nhwc-pt113-cu117-rtx3090.csv
    @aa4b5850: batch 1,024 on an RTX 3090.
    """
    for model in ("efficientnet-b0", "resnet50"):
        keys = (f"model.name={model}", "train.mode=infer", "train.batch_size=1024")
        more = ("train.precision=fp16", "parallelism.sharding=none", "hardware.gpu=gpu/rtx-3090")
        fit = memory_fit(load_scenario("llama3-8b-fsdp", overrides=(*keys, *more, *BASE[1:])))
        assert fit is not None
        assert fit.verdict is Verdict.YES
        assert 2e9 < float(fit.total) < 15e9


def test_a_decoder_scores_one_position_where_nothing_is_learned() -> None:
    """Llama 3.1 8B at batch 32: weights, keys and values and one layer, not the logits of all."""
    size = needed(
        "llama-3.1-8b",
        *("train.mode=infer", "train.batch_size=32", "parallelism.sharding=none"),
    )
    model = load_scenario("llama3-8b-fsdp", overrides=("model.name=llama-3.1-8b",)).job.model
    assert isinstance(model, Transformer)
    cache = 2.0 * 2.0 * model.depth * 1024.0 * model.sequence * 32.0
    assert size is not None
    assert cache + 2.0 * model.parameters < size < 2.0 * (cache + 2.0 * model.parameters)
