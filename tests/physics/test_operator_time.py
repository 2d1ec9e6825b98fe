"""Time of operators on the device: small ones start no faster, few tiles leave units idle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.physics.describe import describe, kernels_of
from simulator.physics.description import Redone
from simulator.physics.operator_time import BLOCK_RATE, Rates, work_of
from simulator.physics.products import product_times
from simulator.reading.convert.models import load_model
from simulator.reading.scenario import load_scenario
from simulator.schema.precision import Precision
from simulator.schema.workload.models import Kind, Operator, Product

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
    work = work_of([product(64.0, 64.0, 512.0)], RATES, PLAIN)
    alone = 2.0 * 64.0 * 64.0 * 512.0 / 100e12
    assert float(work.forward) == pytest.approx(100.0 * alone + 2e-6)


def test_full_waves_take_what_the_arithmetic_takes() -> None:
    """As many tiles as fill all units: the rate of the device, forward and backward."""
    side = 256.0 * 100.0
    work = work_of([product(side, 12_800.0, 25_600.0)], RATES, STARTED)
    alone = 2.0 * side * 12_800.0 * 25_600.0 / 100e12
    assert float(work.forward) == pytest.approx(alone, rel=1e-9)
    assert float(work.backward) == pytest.approx(2.0 * alone, rel=1e-9)


def test_a_long_sum_is_cut_into_parts() -> None:
    """The gradient of few weights over many positions does not run on one unit alone."""
    few = work_of([product(1e6, 64.0, 64.0)], RATES, PLAIN)
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
    few = work_of([norm], rates, None)
    assert float(few.forward) == pytest.approx(1e9 / (50.0 * BLOCK_RATE))
    many = work_of([replace(norm, blocks=np.inf)], replace(rates, units=10.0), None)
    assert float(many.forward) == pytest.approx(1e9 / RATES.memory)


def test_without_launching_it_is_the_plain_roofline() -> None:
    """Nothing but the longer of arithmetic and traffic where no figure is known."""
    work = work_of([product(64.0, 64.0, 64.0)], RATES, None)
    assert float(work.forward) == pytest.approx(2.0 * 64.0**3 / 100e12)


def test_where_the_units_are_unknown_kernels_still_take_their_start() -> None:
    """One kernel forward, two backward."""
    plain = work_of([product(64.0, 64.0, 64.0)], RATES, None)
    started = work_of([product(64.0, 64.0, 64.0)], replace(RATES, units=None), PLAIN)
    assert float(started.forward - plain.forward) == pytest.approx(2e-6)
    assert float(started.backward - plain.backward) == pytest.approx(4e-6)


@pytest.mark.parametrize("name", ["resnet50", "dlrm", "vit-b16", "unet-2d", "efficientnet-b0"])
def test_a_sample_gets_no_cheaper_in_a_smaller_batch(name: str) -> None:
    """Its time falls with the batch, towards the plain roofline; arrays give what each gives."""
    model, sizes = load_model(name), np.array([1.0, 4.0, 64.0, 16_384.0])
    together = work_of(model.operators(sizes, Precision.FP16), RATES, PLAIN)
    alone = [work_of(model.operators(size, Precision.FP16), RATES, PLAIN) for size in sizes]
    plain = work_of(model.operators(sizes, Precision.FP16), RATES, None)
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
    d, k = describe(scenario), kernels_of(scenario)
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
    work = work_of([operator], rates, shape)
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
    work = work_of([moved(kind)], RATES, replace(STARTED, kernel=figures))
    assert float(work.forward) == pytest.approx(factor * 1e-3)
    assert float(work.backward) == pytest.approx(factor * 1e-3)


def test_attention_runs_at_a_rate_of_its_own() -> None:
    """Half of that of products forward, half of this in the backward pass."""
    one = replace(product(64.0, 64.0, 64.0), kind=Kind.ATTENTION, product=None)
    work = work_of([one], RATES, STARTED)
    assert float(work.forward) == pytest.approx(one.flops / 50e12)
    assert float(work.backward) == pytest.approx(one.backward_flops / 25e12)


def test_what_is_recomputed_takes_its_time_again() -> None:
    """Half of all products, all that is moved, and the launches of either."""
    operators = [product(64.0, 64.0, 512.0), moved(Kind.OTHER)]
    plain = work_of(operators, RATES, STARTED)
    redone = Redone(products=1.0, passes=1.0, launches=1.0, layers=0.5)
    again = work_of(operators, RATES, STARTED, redone)
    assert float(again.forward) == float(plain.forward)
    assert float(again.backward - plain.backward) == pytest.approx(0.5 * float(plain.forward))
    assert again.kernels.backward == plain.kernels.backward + 0.5 * plain.kernels.forward
