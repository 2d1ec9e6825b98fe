"""One cost model of a scenario: asked once, it answers time and memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.physics.cost_model import cost_model
from simulator.physics.device_memory import device_memory
from simulator.physics.device_time import Evidence, device_time
from simulator.reading.scenario import load_scenario


@pytest.mark.parametrize(
    ("name", "keys", "evidence"),
    [
        ("llama3-8b-fsdp", (), Evidence.KERNELS),
        ("llama3-8b-fsdp", ("parallelism.sharding=none",), Evidence.KERNELS),
        ("resnet50-imagenet-p4d", ("hardware.gpu=gpu/a100-sxm4-80gb",), Evidence.MEASURED),
        ("dlrm-criteo-dgx-a100", ("hardware.gpu=gpu/a100-pcie-80gb",), Evidence.SISTER),
        ("resnet50-imagenet-p4d", ("model.name=resnet101",), Evidence.OPERATORS),
        ("svm-cpu-only", (), Evidence.NONE),
    ],
)
def test_one_place_decides_what_a_time_rests_on(
    name: str, keys: tuple[str, ...], evidence: Evidence
) -> None:
    """Fitted kernels, a measured step, one of a sister card, operators, or nothing."""
    scenario = load_scenario(name, overrides=keys)
    model = cost_model(scenario)
    assert model.evidence is evidence
    assert (model.time is None) == (evidence is Evidence.NONE)


def test_it_is_worked_out_once() -> None:
    """The same scenario has the same answers, another one its own."""
    scenario = load_scenario("llama3-8b-fsdp")
    model = cost_model(scenario)
    assert cost_model(scenario) is model
    assert model.time is cost_model(scenario).time
    assert model.memory is cost_model(scenario).memory
    other = cost_model(replace(scenario, name="another"))
    assert other is not model


def test_it_says_what_time_and_memory_say() -> None:
    """Nothing is counted otherwise than by the functions behind it."""
    scenario = load_scenario("gpt2-tokens-h100")
    time, memory = device_time(scenario), device_memory(scenario)
    assert time is not None
    assert memory is not None
    found = cost_model(scenario)
    assert found.time is not None
    assert found.memory is not None
    assert found.time.total == time.total
    assert found.memory.items == memory.items
