"""Device memory: published bytes per parameter, published activations, allocator rules."""

from __future__ import annotations

import math

import pytest

from simulator.equations import memory
from simulator.schema.workload.train import Optimizer


def test_every_optimizer_has_a_state() -> None:
    """What a scenario can name, the formula knows."""
    assert set(memory.STATE_ELEMENTS) == {optimizer.value for optimizer in Optimizer}
    assert all(math.isfinite(memory.state_bytes(optimizer, 4.0)) for optimizer in Optimizer)


@pytest.mark.parametrize(
    ("weights", "copy", "gradients", "published"),
    [(4.0, 0.0, 4.0, 16.0), (4.0, 2.0, 4.0, 18.0)],
    ids=["fp32", "bf16 with fp32 gradients"],
)
def test_bytes_per_parameter_of_megatron(
    weights: float, copy: float, gradients: float, published: float
) -> None:
    """Adam's states add up to the 16 and 18 bytes per parameter that Megatron-LM documents."""
    assert weights + copy + gradients + memory.state_bytes("adam", 4.0) == published


def test_narrow_states() -> None:
    """Adam in bf16 keeps 4 bytes, 8-bit Adam 2 whatever stands beside it."""
    assert memory.state_bytes("adam", 2.0) == 4.0
    assert memory.state_bytes("adam-8bit", 2.0) == memory.state_bytes("adam-8bit", 4.0) == 2.0


def test_published_parameters_of_bert_large() -> None:
    """330 million parameters are 1.32 GB and their Adam states 2.64 GB."""
    assert memory.tensor_bytes(330e6, 4.0) == pytest.approx(1.32e9)
    assert memory.tensor_bytes(330e6, memory.state_bytes("adam", 4.0)) == pytest.approx(2.64e9)


def test_fragmentation_is_a_share() -> None:
    """Twice the activations waste twice as much."""
    assert memory.fragmentation_bytes(20.0, 0.15) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("holders", "devices", "written"), [(1.0, 1.0, 12.0), (8.0, 1.0, 1.5), (8.0, 16.0, 12.0)]
)
def test_a_checkpoint_is_shared_by_those_who_hold_it(
    holders: float, devices: float, written: float
) -> None:
    """One device of one writes all, one of eight an eighth; all together write it once."""
    share = memory.checkpoint_share(
        weights=4.0,
        weight_holders=holders,
        moments=8.0,
        moment_holders=holders,
        devices=devices,
        copies=1.0,
    )
    assert share == pytest.approx(written)


def test_activations_of_a_stage() -> None:
    """Two micro-batches of three layers and an embedding; what is never together counts once."""
    kept = {"batches": 2.0, "layers": 3.0, "per_layer": 4.0, "ends": 1.0}
    assert memory.kept_activations(**kept) == 26.0
    assert memory.kept_activations(**kept, never_together=6.0, of_loss=5.0) == 25.0
