"""What kernels cost beside their work: which era's figures, and what switches make of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.physics.device_time import device_time
from simulator.reading.fitted.kernel_files import kernel_files
from simulator.reading.fitted.kernels import Use, kernels
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.software import CudaGraphs, Kernels, Software

CATALOGUE = Catalogue.default(())


def gpu(name: str) -> Gpu:
    """A shipped accelerator."""
    return CATALOGUE.gpu(name)


def found(software: Software, name: str = "gpu/a100-sxm4-80gb") -> Kernels:
    """The figures for a framework on an accelerator."""
    figures = kernels(gpu(name), use_of(software))
    assert figures is not None
    return figures


def use_of(software: Software) -> Use:
    """A job in 16 bit."""
    return Use(software=software, precision=Precision.BF16, summed_in=Precision.BF16)


def test_a_launch_takes_microseconds() -> None:
    """Between what a C++ program and what Python needs, and a small kernel 1 to 6 on the device."""
    eager = found(Software(framework="pytorch"))
    assert 3e-6 < eager.launch.kernel < 40e-6
    assert 1e-6 <= eager.kernel.start <= 6e-6


def test_compiled_models_and_graphs_are_launched_faster() -> None:
    """Python runs least in graphs, then compiled; waiting for each kernel takes longest."""
    eager, compiled, graphs, blocking = (
        found(software).launch.kernel
        for software in (
            Software(framework="pytorch"),
            Software(framework="pytorch", compile=True),
            Software(framework="pytorch", cuda_graphs=CudaGraphs.FULL),
            Software(framework="pytorch", blocking_launches=True),
        )
    )
    assert graphs < compiled < eager < blocking


def test_launches_that_block_leave_no_overlap() -> None:
    """A sharpness of one adds both timelines up."""
    assert found(Software(framework="pytorch", blocking_launches=True)).launch.blend == 1.0


@pytest.mark.parametrize("compiled", [False, True])
def test_other_frameworks_launch_as_those_that_were_fitted_to(compiled: bool) -> None:  # noqa: FBT001 - a case
    """And say that this was not checked."""
    own = found(Software(framework="pytorch", compile=compiled))
    other = found(Software(framework="jax", compile=compiled))
    assert (own.of_layers, other.of_layers) == (True, False)
    assert own.launch.source.verified
    assert not other.launch.source.verified
    assert other.launch.source.reference.startswith("taken over")
    assert replace(other.launch, source=own.launch.source) == own.launch
    assert other.kernel == own.kernel


@pytest.mark.parametrize("name", ["gpu/tpu-v4", "gpu/mi300x", "gpu/m1-max"])
def test_other_kinds_of_accelerators_take_launches_over_and_say_so(name: str) -> None:
    """A device that nobody measured waits for as many launches as one that somebody did."""
    own, other = (found(Software(), one).launch for one in ("gpu/a100-sxm4-80gb", name))
    assert other.kernel == own.kernel
    assert (own.source.verified, other.source.verified) == (True, False)
    assert "taken over from devices of CUDA" in other.source.reference


def test_without_an_accelerator_nothing_is_launched() -> None:
    """On cores there is no host beside a device."""
    assert kernels(None, use_of(Software())) is None


def test_compiling_is_worth_one_figure_whichever_way_a_model_is_timed() -> None:
    """Passes of a compiled model move what compiled language models do of what eager ones do."""
    eager, compiled = (found(Software(compile=how)) for how in (False, True))
    files = kernel_files()
    fitted = [files[name].figures["plain"].value for name in ("fsdp-compiled", "fsdp-eager")]
    moved = (eager.kernel.others, compiled.kernel.others)
    assert moved == (1.0, pytest.approx(fitted[0] / fitted[1]))
    assert compiled.launch.kernel < eager.launch.kernel


def test_what_a_framework_is_told_to_compile_moves_as_compiled_models_do() -> None:
    """TensorFlow fuses some kernels by itself; told to, it has the figures of compiled models."""
    eager, compiled = (
        found(Software(framework="tensorflow", compile=how)) for how in (False, True)
    )
    others = found(Software(framework="jax", compile=True))
    assert 1.0 > eager.kernel.others > compiled.kernel.others == others.kernel.others
    assert compiled.launch.kernel == others.launch.kernel < eager.launch.kernel
    assert compiled.product.share == eager.product.share < others.product.share


def test_a_compiled_convnet_is_not_half_as_fast_again_on_one_card() -> None:
    """Launches and passes shrink on every card alike: no factor stands for one kind alone."""
    for card in ("a100-sxm4-80gb", "h100-sxm5-80gb", "l40s"):
        keys = (f"hardware.gpu=gpu/{card}", "model.name=efficientnet-b4", "train.precision=bf16")
        times = [
            device_time(load_scenario("resnet50-imagenet-p4d", overrides=(*keys, compiled)))
            for compiled in ("software.compile=false", "software.compile=true")
        ]
        eager, compiled = (float(time.total) for time in times if time is not None)
        assert 1.05 < eager / compiled < 1.5
