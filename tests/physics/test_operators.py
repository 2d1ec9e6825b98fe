"""Time of operators on devices and cores: small kernels, few tiles, rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.errors import NotModelled
from simulator.physics.device_time import Evidence, device_time, evidence_of
from simulator.physics.kernels import product_times, score_traffic_time
from simulator.physics.operators import (
    BLOCK_RATE,
    Rates,
    core_rates,
    hardware_utilization,
    model_utilization,
    operator_time,
    tokens_per_sample,
)
from simulator.physics.transformer import Recomputation, kernels_of, transformer_step
from simulator.predict import predict
from simulator.reading.model_library import load_model
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import number_at
from simulator.schema.accelerators import Precision
from simulator.schema.models import Kind, Operator, Product
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import Grade, Rate
from simulator.uncertainty.scenario import uncertainties_of

RATES = Rates(matrix=100e12, vector=10e12, memory=1e12, attention=(50e12, 25e12), units=100.0)
FITTED = kernels_of(load_scenario("llama3-8b-fsdp"))
PLAIN = replace(
    FITTED,
    product=replace(FITTED.product, tile_half=0.0, wave=1.0, fill=0.0),
    kernel=replace(FITTED.kernel, start=2e-6, plain=1.0, gated=1.0),
    launch=replace(FITTED.launch, forward=0.0, backward=0.0),
)
"""Kernels that take a while to start, and none to launch; the largest tile is the best."""
STARTED = replace(PLAIN, kernel=replace(PLAIN.kernel, start=0.0))


def product(m: float, n: float, inner: float) -> Operator:
    """A matrix product that moves nothing, with two gradients."""
    flops = 2.0 * m * n * inner
    return Operator(
        name="product",
        flops=flops,
        traffic=0.0,
        backward_flops=2.0 * flops,
        backward_traffic=0.0,
        backward_kernels=2.0,
        product=Product(rows=m, columns=n, inner=inner),
    )


def test_one_tile_keeps_one_unit_busy() -> None:
    """64 x 64 values on 100 units: a hundredth of the rate, plus the start of the kernel."""
    work = operator_time([product(64.0, 64.0, 512.0)], RATES, PLAIN)
    alone = 2.0 * 64.0 * 64.0 * 512.0 / 100e12
    assert float(work.forward) == pytest.approx(100.0 * alone + 2e-6)


def test_full_waves_take_what_the_arithmetic_takes() -> None:
    """As many tiles as fill all units: the rate of the device, forward and backward."""
    side = 256.0 * 100.0
    work = operator_time([product(side, 12_800.0, 25_600.0)], RATES, STARTED)
    alone = 2.0 * side * 12_800.0 * 25_600.0 / 100e12
    assert float(work.forward) == pytest.approx(alone, rel=1e-9)
    assert float(work.backward) == pytest.approx(2.0 * alone, rel=1e-9)


def test_a_long_sum_is_cut_into_parts() -> None:
    """The gradient of few weights over many positions does not run on one unit alone."""
    few = operator_time([product(1e6, 64.0, 64.0)], RATES, PLAIN)
    assert float(few.backward) < 10.0 * float(few.forward)


def test_few_blocks_keep_few_units_busy() -> None:
    """Half as many blocks as units take as long as the memory needs at the rate of those blocks."""
    norm = Operator(
        name="normalization",
        flops=0.0,
        traffic=1e9,
        backward_flops=0.0,
        backward_traffic=0.0,
        matrix=False,
        blocks=50.0,
    )
    rates = replace(RATES, units=100.0)
    few = operator_time([norm], rates, None)
    assert float(few.forward) == pytest.approx(1e9 / (50.0 * BLOCK_RATE))
    many = operator_time([replace(norm, blocks=np.inf)], replace(rates, units=10.0), None)
    assert float(many.forward) == pytest.approx(1e9 / RATES.memory)


def test_without_launching_it_is_the_plain_roofline() -> None:
    """Nothing but the longer of arithmetic and traffic where no figure is known."""
    work = operator_time([product(64.0, 64.0, 64.0)], RATES, None)
    assert float(work.forward) == pytest.approx(2.0 * 64.0**3 / 100e12)


def test_where_the_units_are_unknown_kernels_still_take_their_start() -> None:
    """One kernel forward, two backward."""
    plain = operator_time([product(64.0, 64.0, 64.0)], RATES, None)
    started = operator_time([product(64.0, 64.0, 64.0)], replace(RATES, units=None), PLAIN)
    assert float(started.forward - plain.forward) == pytest.approx(2e-6)
    assert float(started.backward - plain.backward) == pytest.approx(4e-6)


@pytest.mark.parametrize("name", ["resnet50", "dlrm", "vit-b16", "unet-2d", "efficientnet-b0"])
def test_a_sample_gets_no_cheaper_in_a_smaller_batch(name: str) -> None:
    """Its time falls with the batch, towards the plain roofline; arrays give what each gives."""
    model, sizes = load_model(name), np.array([1.0, 4.0, 64.0, 16_384.0])
    together = operator_time(model.operators(sizes, Precision.FP16), RATES, PLAIN)
    alone = [operator_time(model.operators(size, Precision.FP16), RATES, PLAIN) for size in sizes]
    plain = operator_time(model.operators(sizes, Precision.FP16), RATES, None)
    np.testing.assert_allclose(together.forward, [float(one.forward) for one in alone])
    np.testing.assert_allclose(together.backward, [float(one.backward) for one in alone])
    a_sample = (together.forward + together.backward) / sizes
    least = (plain.forward + plain.backward) / sizes
    assert np.all(np.diff(a_sample) < 0.0)
    assert np.all(a_sample > least)
    assert a_sample[-1] == pytest.approx(least[-1], rel=0.25)


@pytest.mark.parametrize("sides", [(4096.0, 4096.0, 4096.0), (64.0, 1000.0, 65_536.0)])
def test_a_product_takes_as_long_in_every_model_family(sides: tuple[float, float, float]) -> None:
    """An operator of a convnet and a product of a language model, on the same device."""
    scenario = load_scenario("llama3-8b-fsdp")
    d, k = transformer_step(scenario), kernels_of(scenario)
    forward, backward = product_times([Product(*sides)], d, k)
    rates = Rates(
        matrix=float(d.device.peak * k.product.share),
        vector=1.0,
        memory=float(d.device.bandwidth * k.kernel.memory),
        attention=(1.0, 1.0),
        units=float(d.device.units),
    )
    shape = replace(STARTED, product=k.product)
    m, n, inner = sides
    moved = float(d.work.width) * (m * inner + n * inner) + float(d.work.element) * m * n
    operator = replace(product(*sides), traffic=moved, backward_traffic=2.0 * moved)
    work = operator_time([operator], rates, shape)
    assert float(work.forward) == pytest.approx(float(forward[0, 0]), rel=1e-12)
    assert float(work.backward) == pytest.approx(float(backward[0, 0]), rel=1e-12)


def moved(kind: Kind) -> Operator:
    """A kernel that moves a gigabyte in each pass."""
    return Operator(
        name="norm",
        flops=0.0,
        traffic=1e9,
        backward_flops=0.0,
        backward_traffic=1e9,
        matrix=False,
        kind=kind,
    )


@pytest.mark.parametrize(
    ("kind", "factor"), [(Kind.OTHER, 0.5), (Kind.PLAIN, 2.0), (Kind.GATED, 3.0)]
)
def test_kernels_move_what_was_fitted_over_what_is_counted(kind: Kind, factor: float) -> None:
    """A gigabyte at a terabyte a second is a millisecond."""
    figures = replace(STARTED.kernel, plain=2.0, gated=3.0, others=0.5)
    work = operator_time([moved(kind)], RATES, replace(STARTED, kernel=figures))
    assert float(work.forward) == pytest.approx(factor * 1e-3)
    assert float(work.backward) == pytest.approx(factor * 1e-3)


def test_attention_runs_at_a_rate_of_its_own() -> None:
    """Half of that of products forward, half of this in the backward pass."""
    one = replace(product(64.0, 64.0, 64.0), kind=Kind.ATTENTION, product=None)
    work = operator_time([one], RATES, STARTED)
    assert float(work.forward) == pytest.approx(one.flops / 50e12)
    assert float(work.backward) == pytest.approx(one.backward_flops / 25e12)


def test_what_is_recomputed_takes_its_time_again() -> None:
    """Half of all products, all that is moved, and the launches of either."""
    operators = [product(64.0, 64.0, 512.0), moved(Kind.OTHER)]
    plain = operator_time(operators, RATES, STARTED)
    redone = Recomputation(products=1.0, passes=1.0, launches=1.0, layers=0.5)
    again = operator_time(operators, RATES, STARTED, redone)
    assert float(again.forward) == float(plain.forward)
    assert float(again.backward - plain.backward) == pytest.approx(0.5 * float(plain.forward))
    assert again.kernels.backward == plain.kernels.backward + 0.5 * plain.kernels.forward


_ON_CORES = (
    "hardware.machine=instance/aws/c7i.48xlarge",
    "hardware.storage=storage/ebs-gp3",
    "train.precision=fp32",
    "train.batch_size=64",
    "input.pin_memory=false",
    "train.mixed_precision=false",
)


def on_cores(*more: str) -> Scenario:
    """ResNet-50 on 96 cores of two sockets."""
    return load_scenario("resnet50-imagenet-p4d", overrides=(*_ON_CORES, *more))


def test_cores_are_the_device_of_a_machine_without_one() -> None:
    """96 cores x base clock x 64 FLOP at half: three passes of 8.2 GFLOP a picture."""
    scenario = on_cores()
    host = scenario.cluster.trainers.host
    rates, time = core_rates(host), device_time(scenario)
    assert evidence_of(scenario) is Evidence.CORES
    assert rates is not None
    assert time is not None
    assert host.cpu.base_clock is not None
    assert rates.matrix == pytest.approx(0.5 * 96 * host.cpu.base_clock * 64)
    least = 3.0 * 8.178e9 * 64 / rates.matrix
    assert least < time.total < 2.0 * least


def test_half_the_cores_compute_half_as_fast() -> None:
    """A forward pass that arithmetic bounds."""
    scenario = on_cores("train.mode=infer")
    host = scenario.cluster.trainers.host
    half = replace(host, cpu=replace(host.cpu, cores=host.cpu.cores / 2))
    full, fewer = core_rates(host), core_rates(half)
    assert full is not None
    assert fewer is not None
    assert fewer.matrix == pytest.approx(full.matrix / 2)
    assert fewer.memory == full.memory


def test_a_step_on_cores_is_what_they_take_and_is_doubted() -> None:
    """The step is no shorter than its compute, and the interval a factor of two either way."""
    scenario = on_cores()
    time = device_time(scenario)
    assert time is not None
    found = predict(scenario)
    assert found.timing.step_time.mean >= float(time.total) * (1.0 - 1e-9)
    grades = {
        component.grade for component in uncertainties_of(scenario) if component.rate is Rate.DEVICE
    }
    assert grades == {Grade.ON_CORES}


def test_other_formats_are_not_known_of_cores() -> None:
    """Nobody said what they compute in 16 bit."""
    with pytest.raises(NotModelled, match="no rate is known at which these cores compute"):
        predict(on_cores("train.precision=bf16"))


def test_a_measured_step_wins() -> None:
    """What somebody timed there is what it takes."""
    scenario = on_cores('model.step_times=[{batch_size=64, time="400 ms"}]')
    time = device_time(scenario)
    assert evidence_of(scenario) is Evidence.MEASURED
    assert time is not None
    assert time.total == pytest.approx(0.4)


KORTHIKANTI = (
    # model, GPUs, tensor, pipeline, global batch, step [s], published MFU and HFU
    ("gpt3-22b", 8, 8, 1, 4, 1.10, 0.415, 0.437),
    ("gpt3-175b", 64, 8, 8, 64, 13.75, 0.514, 0.528),
    ("gpt-530b", 280, 8, 35, 280, 37.83, 0.560, 0.570),
    ("gpt-530b", 2240, 8, 35, 2240, 39.15, 0.542, None),
    ("gpt-1t", 512, 8, 64, 512, 71.49, 0.563, 0.570),
)
"""Korthikanti et al., 2022, table 5 and section 6.3, https://arxiv.org/abs/2205.05198."""


@pytest.mark.parametrize("row", KORTHIKANTI, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_measured_step_has_the_published_mfu(
    row: tuple[str, int, int, int, int, float, float, float | None],
) -> None:
    """A published step time gives the MFU and the HFU that were published with it."""
    model, gpus, tensor, pipeline, batch, step, published, hardware = row
    scenario = load_scenario(
        "turing-nlg-530b",
        overrides=(
            f"model.name={model}",
            f"hardware.count={gpus // 8}",
            f"parallelism.tensor={tensor}",
            f"parallelism.pipeline={pipeline}",
            "parallelism.interleave=1",
            f"parallelism.scattered_sends={'true' if pipeline > 1 else 'false'}",
            f"train.global_batch_size={batch}",
        ),
    )
    found = model_utilization(scenario, batch / step)
    assert found is not None
    assert float(found.value) == pytest.approx(published, rel=0.005)
    computed = hardware_utilization(scenario, batch / step)
    assert computed is not None
    if hardware is not None:
        assert float(computed.value) == pytest.approx(hardware, rel=0.005)


def test_full_recomputation_is_a_third_more() -> None:
    """A forward pass done twice makes four passes of three, but for the head's."""
    scenario = load_scenario("turing-nlg-530b", overrides=("train.recompute=full",))
    model, hardware = (one(scenario, 57.0) for one in (model_utilization, hardware_utilization))
    assert model is not None
    assert hardware is not None
    assert float(hardware.value) / float(model.value) == pytest.approx(4.0 / 3.0, rel=2e-3)


def test_without_recomputation_both_are_the_same() -> None:
    """Nothing computed twice, nothing counted twice."""
    scenario = load_scenario("turing-nlg-530b", overrides=("train.recompute=none",))
    model, hardware = (one(scenario, 57.0) for one in (model_utilization, hardware_utilization))
    assert model is not None
    assert hardware is not None
    assert float(hardware.value) == float(model.value)


def test_the_shipped_scenario_predicts_the_published_mfu() -> None:
    """Turing-NLG on 2,240 A100, 54.2% published: predicted within the model's error of a step."""
    prediction = predict(load_scenario("turing-nlg-530b"), intervals=False)
    assert number_at(prediction, "mfu") == pytest.approx(0.542, rel=0.05)


def test_metrics_of_tokens_agree() -> None:
    """Tokens a step over its time are tokens a second; a trillion take as long as they take."""
    prediction = predict(load_scenario("llama3-8b-fsdp"), intervals=False)
    rate = number_at(prediction, "tokens_per_s")
    each = number_at(prediction, "tokens_per_s_per_gpu")
    step = number_at(prediction, "tokens_per_step")
    whole = number_at(prediction, "time_per_trillion_tokens_s")
    assert None not in (rate, each, step, whole)
    assert rate == pytest.approx((step or 0.0) / prediction.timing.step_time.mean)
    assert rate == pytest.approx(8 * (each or 0.0))
    assert whole == pytest.approx(1e12 / (rate or 1.0))


def test_images_are_no_tokens() -> None:
    """A vision model has an MFU and no tokens; a job without an accelerator has neither."""
    vision = load_scenario("resnet50-imagenet-p4d")
    assert tokens_per_sample(vision) is None
    assert model_utilization(vision, 1000.0) is not None
    assert model_utilization(load_scenario("svm-cpu-only"), 1000.0) is None


def test_twice_the_heads_move_twice_the_scores() -> None:
    """Scores are heads x words x words; half as wide heads leave the products as they are."""
    one, two = (
        replace(step, shape=replace(step.shape, heads=step.shape.heads * factor))
        for step in [transformer_step(load_scenario("llama3-8b-fsdp"))]
        for factor in (1.0, 2.0)
    )
    before, after = score_traffic_time(one, FITTED), score_traffic_time(two, FITTED)
    assert float(after.forward) == pytest.approx(2.0 * float(before.forward))
