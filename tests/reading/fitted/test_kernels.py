"""Fitted figures of kernels: bounds, sources, which file holds for what."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.catalogue import each

from simulator.errors import InputError, NotModelled
from simulator.pipeline.program import check_modelled
from simulator.predict import predict
from simulator.reading.fitted.kernel_files import KernelFiles, kernel_files, with_values
from simulator.reading.fitted.kernels import Use, kernels, with_kernel_files
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction
from simulator.schema.accelerators import Precision
from simulator.schema.software import CudaGraphs, GradientSum, Kernels, Software

FOLDER = Path(__file__).parents[3] / "simulator" / "data" / "kernels"
FILES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.toml")
}
SOURCES = {key: value for key, value in FILES.pop("sources").items() if key != "schema"}


def tables() -> list[tuple[str, dict[str, Any]]]:
    """Every figure that ships, with its name."""
    return [
        (f"{stem}.{name}", table)
        for stem, file in FILES.items()
        for name, table in file.get("figures", {}).items()
    ]


def test_every_figure_says_what_it_was_fitted_to() -> None:
    """Its source exists, and every source is used."""
    others = [
        each
        for file in FILES.values()
        for key in ("variant", "network")
        for each in file.get(key, [])
    ]
    used = {table["source"] for _, table in tables()} | {each["source"] for each in others}
    assert used == set(SOURCES)
    for source in SOURCES.values():
        assert len(source["reference"]) > 20
        assert source["date"]


@each(("name", "table"), tables())
def test_figures_lie_within_their_bounds(name: str, table: dict[str, Any]) -> None:
    """And one within a hundredth of the range of a bound says so."""
    fitted = "low" in table
    assert fitted or table["source"] in ("set", "counted") or table.get("note"), name
    if not fitted:
        return
    low, high, value = table["low"], table["high"], table["value"]
    assert low <= value <= high
    near = 0.01 * (high - low)
    expected = "low" if value - low < near else "high" if high - value < near else None
    assert table.get("at_bound") == expected


def figures(
    gpu: str = "a100-sxm4-80gb", files: KernelFiles | None = None, **software: Any
) -> Kernels:
    """The figures for a device and software."""
    use = Use(
        software=Software(**{"framework": "megatron-lm", **software}),
        precision=Precision.BF16,
        summed_in=Precision.BF16,
    )
    found = kernels(Catalogue.default(()).gpu(gpu), use, files)
    assert found is not None
    return found


def test_graphs_save_launches() -> None:
    """Each kind of graph saves more of the host's time than the one before."""
    factors = [
        figures(framework="nemo", gpu="b200-sxm-180gb", cuda_graphs=kind).launch
        for kind in (CudaGraphs.NONE, CudaGraphs.LOCAL, CudaGraphs.FULL)
    ]
    assert factors[0].factor > factors[1].factor > factors[2].factor > 0.0
    assert factors[0].experts > factors[1].experts > factors[2].experts > 0.0


def test_limited_boards_reach_less() -> None:
    """A board limited to less power has less of the same peak; others of its kind are alike."""
    full, limited = figures("h100-sxm5-80gb"), figures("h100-sxm5-96gb")
    assert limited.product.share16 < full.product.share16
    assert figures("h200-sxm-141gb").product == full.product


def test_kernels_timed_one_by_one_keep_their_clock() -> None:
    """Nothing sinks the clock of a device that computes one kernel at a time."""
    assert figures().product.throttle > 0.0
    assert figures(profiled_kernels=True).product.throttle == 0.0


def test_sums_of_gradients() -> None:
    """Separate kernels move the most bytes, sums in place none."""
    moved = {
        way: figures(framework="nemo", gpu="b200-sxm-180gb", gradient_sum=way).update.accumulated
        for way in GradientSum
    }
    assert moved[GradientSum.SEPARATE] > moved[GradientSum.FUSED] > 0.0
    assert moved[GradientSum.IN_PLACE] == 0.0


def test_what_is_at_its_bound_is_told() -> None:
    """Those whose fit ended at a bound are named with the figures."""
    shared = kernel_files()["shared"]
    ended = replace(shared.figures["blend"], at_bound="low")
    tried = replace(shared, figures={**shared.figures, "blend": ended})
    assert "blend" in figures(files={**kernel_files(), "shared": tried}).at_bound
    assert "blend" not in figures().at_bound


def test_other_frameworks_time_no_layers_and_other_devices_have_those_of_a_relative() -> None:
    """No layers are timed for a framework; a device follows as far as its best product goes."""
    catalogue = Catalogue.default(())
    use = Use(
        software=Software(framework="jax"),
        precision=Precision.BF16,
        summed_in=Precision.BF16,
    )
    others = kernels(catalogue.gpu("a100-sxm4-80gb"), use)
    assert others is not None
    assert not others.of_layers
    known = replace(use, software=Software(framework="megatron-lm"))
    own, other = (kernels(catalogue.gpu(name), known) for name in ("a100-sxm4-80gb", "mi300x"))
    assert own is not None
    assert other is not None
    assert (own.carried_over, other.carried_over) == (False, True)
    reach = catalogue.gpu("mi300x").reach
    assert 0.5 < reach < 0.7
    assert other.product.share16 == pytest.approx(reach * own.product.share16)
    assert other.kernel.memory == own.kernel.memory
    assert kernels(None, known) is None


@pytest.mark.parametrize(
    ("overrides", "key", "allowed"),
    [
        (("software.framework=jax",), "software.framework", "transformer-engine"),
        (("software.framework=jax",), "software.framework", "'any'"),
        (("software.framework=megatron-lmm",), "software.framework", "did you mean 'megatron-lm'"),
        (("software.attention_kernel=xformers",), "software.attention_kernel", "cudnn, flash-2"),
    ],
)
def test_a_refusal_names_what_is_allowed(
    overrides: tuple[str, ...], key: str, allowed: str
) -> None:
    """A spread model without figures of its kernels is told which there are."""
    with pytest.raises(InputError) as refused:
        load_scenario("gpt3-175b-megatron", overrides=overrides)
    assert [problem.key for problem in refused.value.problems] == [key]
    assert allowed in str(refused.value)


@pytest.mark.parametrize("name", ["resnet18-imagenet-one-worker", "resnet50-imagenet-p4d"])
def test_an_unknown_framework_is_refused_whatever_gives_the_step(name: str) -> None:
    """A measured step or a model's own count: a slip of the pen is told, with the nearest name."""
    with pytest.raises(InputError) as refused:
        load_scenario(name, overrides=("software.framework=pytroch",))
    assert [problem.key for problem in refused.value.problems] == ["software.framework"]
    told = str(refused.value)
    assert "did you mean 'pytorch'" in told
    assert "tensorflow" in told
    assert "or 'any'" in told


@pytest.mark.parametrize("framework", ["PyTorch", "jax", "any", "megatron-lm", "scikit-learn"])
def test_known_frameworks_and_the_generic_one_are_taken(framework: str) -> None:
    """In either case, and whether or not anything was fitted to them."""
    settings = (f"software.framework={framework}",)
    assert load_scenario("resnet50-imagenet-p4d", overrides=settings).job.software.framework


def test_no_sample_has_no_tokens() -> None:
    """A share of 0 would leave nothing to compute; the smallest one is answered."""
    with pytest.raises(InputError, match="at least 1e-06 and at most 1"):
        load_scenario("megatron-1t", overrides=("model.filled=0",))
    tiny = load_scenario("megatron-1t", overrides=("model.filled=1e-6",))
    assert predict(tiny, intervals=False).timing.step_time.mean > 0.0


def test_any_framework_is_known_less_well() -> None:
    """Figures of one framework stand in for one that nobody measured, in a wider interval."""
    known = load_scenario("llama3-8b-fsdp", overrides=("software.framework=torchtitan",))
    other = load_scenario("llama3-8b-fsdp", overrides=("software.framework=any",))
    widths = [_width(predict(scenario)) for scenario in (known, other)]
    assert widths[1] > 1.2 * widths[0]


def _width(prediction: Prediction) -> float:
    band = prediction.interval["step_time_s.mean"]
    return math.log(band["p90"] / band["p10"])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("train.precision=int8", "allowed: bf16"),
        ("model.name=resnet50", "families bert, gpt, llama and moe"),
        ("parallelism.interleave=99", "than layers"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(override: str, said: str) -> None:
    """A spread model beyond the figures is refused with the key to change."""
    scenario = load_scenario("gpt3-175b-megatron", overrides=(override, "train.recompute=none"))
    with pytest.raises(NotModelled, match=said):
        check_modelled(scenario)


def test_plain_pytorch_is_timed_by_the_kernels_of_eager_training_on_one_device_too() -> None:
    """As a stand-in: no run of plain PyTorch was fitted to, so the interval is a wide one."""
    alone = load_scenario("gpt2-tokens-h100", overrides=("hardware.gpus=1",))
    assert alone.job.software.framework == "pytorch"
    kernels = alone.job.software.kernels
    assert kernels is not None
    assert kernels.carried_over
    assert kernels.product == figures("h100-sxm5-80gb", framework="torchtitan").product


def test_measured_products_say_what_kernels_of_a_relative_reach() -> None:
    """An L40S reaches 0.573 / 0.81 of an A100's share of its peak, 0.822 / 0.759 of memory's."""
    gpu = Catalogue.default(()).gpu("l40s")
    assert gpu.reach == pytest.approx(0.573 / 0.81)
    assert gpu.streaming == pytest.approx(0.822 / 0.759)
    relative = gpu.relative
    assert relative is not None
    assert relative.products == Catalogue.default(()).gpu(relative.device).product_share["bf16"]
    assert relative.memory == Catalogue.default(()).gpu(relative.device).memory_share


def test_a_device_with_kernels_of_its_own_keeps_them() -> None:
    """Its figures were fitted to steps, so that shares of products change nothing."""
    gpu = Catalogue.default(()).gpu("h100-sxm5-80gb")
    assert gpu.relative is None
    assert gpu.reach == gpu.streaming == 1.0


BASE = "gpt2-tokens-h100"


def test_the_set_that_ships_changes_nothing() -> None:
    """A scenario given the shipped figures once more is the same."""
    scenario = load_scenario(BASE)
    assert with_kernel_files(scenario, kernel_files()) == scenario


def test_another_set_predicts_otherwise_and_leaves_the_shipped_one() -> None:
    """A lower share of Hopper's peak makes a longer step, for that scenario only."""
    scenario = load_scenario(BASE)
    slower = with_kernel_files(scenario, with_values({"hopper.share16": 0.4}))
    steps = [predict(one, max_steps=20).timing.step_time.mean for one in (scenario, slower)]
    assert steps[0] < steps[1]
    assert load_scenario(BASE) == scenario
