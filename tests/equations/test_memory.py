"""Device memory: published bytes per parameter, published activations, allocator rules."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.equations import memory
from simulator.units import BYTE, parse
from simulator.workload.train import Optimizer


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


def test_buckets_of_roberta() -> None:
    """Views save one copy of the gradients: 1,067 MB were measured on 355 M parameters or less."""
    saved = parse("8250 MB", BYTE) - parse("7183 MB", BYTE)
    assert memory.bucket_copy_bytes(saved, 8) == saved
    assert memory.bucket_copy_bytes(saved, np.array([1, 2])) == pytest.approx([0.0, saved])


def test_fragmentation_is_a_share() -> None:
    """Twice the activations waste twice as much."""
    assert memory.fragmentation_bytes(20.0, 0.15) == pytest.approx(3.0)
