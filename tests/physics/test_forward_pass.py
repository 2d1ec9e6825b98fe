"""Forward passes of serving engines and of models that answer in one pass."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.equations.serving import causal_pairs
from simulator.errors import NotModelled
from simulator.physics.device_time import device_time
from simulator.physics.forward_pass import (
    ForwardPass,
    Iteration,
    ServingParallelism,
    batch_pass,
    batch_seconds,
    forward_pass,
    kv_bytes,
    serving_device,
    with_batch,
)
from simulator.physics.operators import core_rates
from simulator.physics.transformer import shape_of
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.merge_documents import chain_of
from simulator.reading.model_library import load_model
from simulator.reading.service.figures import serving_figures, serving_kernels
from simulator.reading.service.scenario import ServiceReader
from simulator.schema.accelerators import Precision
from simulator.schema.models import forward_flops
from simulator.schema.serving import OnePass, Service
from simulator.schema.software import ServingFigures
from simulator.schema.transformers import Transformer

FREE = {
    "layer": 0.0,
    "routing": 0.0,
    "latent": 0.0,
    "iteration": 0.0,
    "sequence": 0.0,
    "passes": 1e-9,
}


def made(
    model: str = "llama-3.1-8b",
    gpu: str = "h100-sxm5-80gb",
    spread: ServingParallelism | None = None,
    figures: ServingFigures | None = None,
    **shape: float,
) -> ForwardPass:
    """The pass of a shipped model on a shipped accelerator, with figures of its shape changed."""
    spread = spread or ServingParallelism()
    catalogue = Catalogue.default(())
    card, found = catalogue.gpu(gpu), load_model(model)
    assert isinstance(found, Transformer)
    kernels = serving_kernels(card, spread.weights)
    assert kernels is not None
    peer, host = (
        None if name is None else catalogue.link(name).peak
        for name in (card.peer_link, card.host_link)
    )
    device = serving_device(card, spread.weights, peer, host)
    own = figures or serving_figures("vllm")
    return forward_pass(replace(shape_of(found), **shape), device, kernels.product, own, spread)


def decoding(one: ForwardPass, count: int, context: int) -> float:
    """Seconds of an iteration of equal sequences that decode."""
    return one.seconds(Iteration(decoding=count, context_tokens=float(count * context)))


def test_one_sequence_reads_every_weight_once() -> None:
    """With no time beside the work, a token takes at least the reading of all layers' weights."""
    figures = replace(serving_figures("vllm"), stream=1.0, cache=1.0, **FREE)
    one = made(figures=figures)
    tables = 128256 * 4096 * 2.0
    read = (one.weights_bytes - tables) / 3350e9
    assert read <= decoding(one, 1, 1) < 1.25 * read


@pytest.mark.parametrize(("model", "size"), [("llama-3.1-8b", 8.03e9), ("deepseek-v3", 671e9)])
def test_weights_are_those_of_the_model(model: str, size: float) -> None:
    """Two bytes a parameter in 16 bit, over all devices together."""
    spread = ServingParallelism(tensor=8)
    assert 8 * made(model, spread=spread).weights_bytes == pytest.approx(2.0 * size, rel=0.02)


def test_a_cache_is_split_among_heads_and_a_latent_one_is_not() -> None:
    """Llama 3 8B keeps 131,072 bytes a token, an eighth on each of 8; a latent cache is whole."""
    assert made().kv_bytes_per_token == 131072
    assert made(spread=ServingParallelism(tensor=8)).kv_bytes_per_token == 131072 / 8
    assert made("deepseek-v3", spread=ServingParallelism(tensor=8)).kv_bytes_per_token == 70272


def test_more_ranks_than_heads_of_keys_share_none() -> None:
    """Sixteen ranks of a model with eight heads of keys keep a head each."""
    found = load_model("llama-3.1-8b")
    assert isinstance(found, Transformer)
    shape = shape_of(found)
    assert kv_bytes(shape, ServingParallelism(tensor=16)) == kv_bytes(
        shape, ServingParallelism(tensor=8)
    )


def test_iterations_in_a_row_are_the_sum_of_single_ones() -> None:
    """The closed form of a stretch of decoding agrees with its iterations one by one."""
    one, count, context = made(), 7, 900.0
    single = sum(
        one.seconds(Iteration(decoding=count, context_tokens=context + count * step))
        for step in range(50)
    )
    assert one.decode_seconds(count, context, 50) == pytest.approx(single, rel=1e-12)


def test_a_prompt_beside_decoding_sequences_costs_less_than_alone() -> None:
    """Weights are read once for both."""
    one = made()
    prompt = Iteration(prefill_tokens=128, prefill_pairs=128**2 / 2, first_tokens=1)
    both = prompt._replace(decoding=16, context_tokens=16_000.0)
    assert one.seconds(both) < one.seconds(prompt) + decoding(one, 16, 1000)


@given(st.integers(1, 400), st.integers(1, 20_000))
def test_more_work_never_takes_less(count: int, context: int) -> None:
    """One more sequence, or a longer context, is never faster."""
    one = PASS
    assert decoding(one, count + 1, context) >= decoding(one, count, context)
    assert decoding(one, count, context + 1) >= decoding(one, count, context)


PASS = made()


def test_narrow_weights_are_read_faster_and_devices_share_them() -> None:
    """8-bit weights and four devices each shorten the token of a large model."""
    plain = decoding(made("llama-3.1-70b", "h200-sxm-141gb", ServingParallelism(tensor=2)), 4, 1000)
    narrow = ServingParallelism(tensor=2, weights=Precision.FP8)
    assert decoding(made("llama-3.1-70b", "h200-sxm-141gb", narrow), 4, 1000) < 0.7 * plain
    assert (
        decoding(made("llama-3.1-70b", "h200-sxm-141gb", ServingParallelism(tensor=4)), 4, 1000)
        < plain
    )


def test_few_tokens_touch_few_experts() -> None:
    """A mixture of experts reads less for one sequence than for 64, by the experts touched."""
    figures = replace(serving_figures("vllm"), **FREE)
    one = made("qwen3-235b-a22b", "h200-sxm-141gb", ServingParallelism(tensor=8), figures)
    alone, many = decoding(one, 1, 1), decoding(one, 64, 1)
    assert 4.0 * alone < many < 20.0 * alone


def test_shared_experts_are_held_read_and_kept() -> None:
    """Each of 94 layers has three matrices of 4096 x 1024 more, and a token's insides are wider."""
    figures = replace(serving_figures("vllm"), stream=1.0, **FREE)
    with_them, without = (
        made("qwen3-235b-a22b", "h200-sxm-141gb", figures=figures, shared_ffn=width)
        for width in (1024.0, 0.0)
    )
    weights = 94 * 3 * 4096 * 1024 * 2.0
    assert with_them.weights_bytes - without.weights_bytes == pytest.approx(weights)
    later = decoding(with_them, 1, 1) - decoding(without, 1, 1)
    assert weights / 4.8e12 <= later < 1.25 * weights / 4.8e12
    wider = with_them.activation_bytes_per_token - without.activation_bytes_per_token
    assert wider == pytest.approx(2.0 * 3.0 * 1024)


def test_cards_without_links_of_their_own_wait_for_the_host() -> None:
    """An all-reduce of four L4 goes through PCIe, and costs more than the work it saves there."""
    alone = made(gpu="l4", spread=ServingParallelism(weights=Precision.FP8))
    four = made(gpu="l4", spread=ServingParallelism(tensor=4, weights=Precision.FP8))
    prompt = Iteration(prefill_tokens=4096, prefill_pairs=4096**2 / 2, first_tokens=1)
    assert four.seconds(prompt) > 0.3 * alone.seconds(prompt)


def test_an_engine_nobody_measured_takes_the_mean_of_the_others() -> None:
    """Its figures lie between those of measured engines, and say that they are carried over."""
    other = serving_figures("an-engine")
    own = [serving_figures(name).layer for name in ("vllm", "sglang", "tensorrt-llm")]
    assert other.carried_over
    assert min(own) <= other.layer <= max(own)


def test_groups_with_sequences_of_their_own_split_a_latent_cache() -> None:
    """With 8 groups a token is held once: long contexts are read faster, one alone is not."""
    whole, split = (
        made("deepseek-v3", spread=ServingParallelism(tensor=8, groups=n)) for n in (1, 8)
    )
    assert 8 * split.kv_bytes_per_token == whole.kv_bytes_per_token == 70272
    assert split.weights_bytes > whole.weights_bytes
    assert decoding(split, 64, 30_000) < 0.7 * decoding(whole, 64, 30_000)
    more = [one.seconds(Iteration(decoding=1, context_tokens=9e6)) for one in (whole, split)]
    assert more[1] > more[0]


def test_a_prompt_is_computed_by_its_own_group() -> None:
    """Eight prompts take eight groups little longer than one takes one of them."""
    one = made("deepseek-v3", spread=ServingParallelism(tensor=8, groups=8, split_experts=True))
    single = Iteration(prefill_tokens=8192, prefill_pairs=8192**2 / 2, first_tokens=1)
    pairs = 4 * single.prefill_pairs
    four = single._replace(prefill_tokens=4 * 8192, prefill_pairs=pairs, first_tokens=4)
    assert one.seconds(single) < one.seconds(four) < 2.5 * one.seconds(single)


def test_kernels_of_prompts_are_launched_one_by_one() -> None:
    """No iteration with a prompt is shorter than its launches; one of answers alone may be."""
    figures = replace(serving_figures("sglang"), eager=100.0)
    one = made(figures=figures)
    short = Iteration(prefill_tokens=1, prefill_pairs=1.0, first_tokens=1)
    assert one.seconds(short) == pytest.approx(100.0 * 32 * figures.layer + figures.iteration)
    assert decoding(one, 1, 1) < one.seconds(short)


def test_few_rows_bind_answers_and_not_prompts() -> None:
    """At 1% of the peak 64 sequences take the time of their products' work; a prompt as before."""
    plain = serving_figures("vllm")
    usual, bound = made(figures=plain), made(figures=replace(plain, few_rows=0.01))
    prompt = Iteration(prefill_tokens=2048, prefill_pairs=2048**2 / 2)
    assert bound.seconds(prompt) == usual.seconds(prompt)
    weights = 8.03e9 - 128256 * 4096
    work = 2.0 * 64 * weights / (0.01 * 989.4e12)
    assert decoding(bound, 64, 0) == pytest.approx(
        work + bound.fixed + 64 * bound.sequence, rel=0.05
    )
    assert decoding(usual, 64, 0) < 0.5 * decoding(bound, 64, 0)


def test_heads_that_read_for_themselves_read_more() -> None:
    """Llama 3.1 8B has four heads to each key and value: contexts are read four times."""
    plain = serving_figures("vllm")
    once, each = made(figures=plain), made(figures=replace(plain, shared_reads=False))
    assert each.context == pytest.approx(4.0 * once.context)
    assert each.kv_bytes_per_token == once.kv_bytes_per_token


def test_parts_of_long_prompts_are_spread_over_groups_as_whole_prompts_are() -> None:
    """Four parts that end no prompt take four groups as long as one part takes one of them."""
    one = made("deepseek-v3", spread=ServingParallelism(tensor=4, groups=4, split_experts=True))
    pairs = float(causal_pairs(8192, 0))
    alone = one.seconds(Iteration(8192, pairs, prompts=1))
    four = one.seconds(Iteration(4 * 8192, 4 * pairs, prompts=4))
    as_one = one.seconds(Iteration(4 * 8192, 4 * pairs, prompts=1))
    assert alone < four < 0.6 * as_one


def service(name: str, *overrides: str) -> Service:
    """A shipped service with some settings changed."""
    return ServiceReader(chain_of(name), name, overrides=overrides).read({})


def one_pass(name: str, *overrides: str) -> OnePass:
    """How its model answers."""
    found = service(name, *overrides).one_pass
    assert found is not None
    return found


@pytest.mark.parametrize("samples", [1.0, 7.0, 32.0])
def test_a_batch_takes_the_forward_pass_of_training_and_its_copy(samples: float) -> None:
    """The same device model: its forward pass, and pictures over the link to the device."""
    asked = one_pass("image-classifier-t4")
    found = device_time(with_batch(asked.job, samples))
    host, model = asked.job.cluster.trainers.host, asked.job.job.model
    assert found is not None
    assert model is not None
    assert host.device_rate is not None
    sent = samples * model.input_bytes / host.device_rate
    assert batch_seconds(asked, samples) == pytest.approx(float(found.forward) + sent)


def test_the_grid_is_close_to_every_batch() -> None:
    """Small batches are worked out; between points of the grid a line is within 3% of others."""
    asked = one_pass("embeddings-bert")
    work = batch_pass(asked, 256)
    for samples in (1, 5, 27, 64, 70, 100, 150, 200, 256):
        near = 1e-9 if samples <= 64 else 0.03
        exact = batch_seconds(asked, float(samples))
        assert work.seconds(Iteration(prefill_tokens=samples)) == pytest.approx(exact, rel=near)
    assert work.decode_seconds(1, 1.0, 1) == 0.0


def test_cores_compute_at_their_share_of_the_peak() -> None:
    """Sixteen cores of 2.9 GHz with 64 FLOP a cycle at half: a picture takes that at least."""
    asked = one_pass("image-classifier-cpu")
    model = asked.job.job.model
    rates = core_rates(asked.job.cluster.trainers.host)
    assert rates is not None
    assert model is not None
    assert rates.matrix == pytest.approx(0.5 * 16 * 2.9e9 * 64)
    flops = float(forward_flops(model, 1.0, asked.job.job.train.precision))
    least = flops / rates.matrix
    assert least < batch_seconds(asked, 1.0) < 3.0 * least


def test_measured_batches_win() -> None:
    """What somebody timed on the machine is what a batch takes, on cores too."""
    timed = 'model.step_times=[{batch_size=1, time="9 ms"}, {batch_size=4, time="30 ms"}]'
    asked = one_pass("image-classifier-cpu", timed)
    assert batch_seconds(asked, 1.0) == pytest.approx(0.009)
    assert batch_seconds(asked, 4.0) == pytest.approx(0.030)
    assert service("image-classifier-cpu", timed).log_sd < service("image-classifier-cpu").log_sd


def test_larger_batches_take_longer_and_less_each() -> None:
    """A batch grows with its samples, and never faster than they do."""
    asked = one_pass("cameras-32")
    times = [batch_seconds(asked, float(samples)) for samples in (1, 2, 4, 8, 16)]
    assert times == sorted(times)
    each = [time / samples for time, samples in zip(times, (1, 2, 4, 8, 16), strict=True)]
    assert each == sorted(each, reverse=True)
    assert math.isfinite(times[-1])


def prefilling(one: ForwardPass, tokens: int) -> float:
    """Seconds of an iteration of prompts without the attention between their tokens."""
    return one.seconds(Iteration(prefill_tokens=tokens, first_tokens=1))


def test_tokens_beyond_the_table_cost_products() -> None:
    """Four times 65,536 tokens take four times as long, and every further token takes as long."""
    one = made(figures=replace(serving_figures("vllm"), **FREE))
    most = prefilling(one, 65_536)
    assert prefilling(one, 262_144) == pytest.approx(4.0 * most, rel=0.01)
    assert prefilling(one, 65_600) - most == pytest.approx(64 * most / 65_536, rel=0.05)


@pytest.mark.parametrize(
    ("precision", "peak"), [(Precision.FP32, 19.5e12), (Precision.TF32, 156e12)]
)
def test_wide_formats_compute_at_their_own_peak(precision: Precision, peak: float) -> None:
    """2 FLOPs per parameter of the layers and token, on an A100 of 312 TFLOP/s in 16 bit."""
    one = made(gpu="a100-sxm4-80gb", spread=ServingParallelism(weights=precision))
    layers = (8.03e9 - 2 * 128_256 * 4096) * 2.0
    least = layers * 16_384 / peak
    assert least < prefilling(one, 16_384) < 1.6 * least
    assert one.weights_bytes == pytest.approx(4.0 * 8.03e9, rel=0.02)


def test_a_format_without_a_rate_is_not_taken_for_16_bit() -> None:
    """No rate of fp64 is known of the card."""
    card = replace(Catalogue.default(()).gpu("l4"), fallback={})
    card = replace(card, peak={name: r for name, r in card.peak.items() if name != Precision.FP64})
    with pytest.raises(NotModelled, match="computes in fp64"):
        serving_device(card, Precision.FP64, None, None)
