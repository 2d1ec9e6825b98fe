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


@pytest.mark.parametrize(("hidden", "heads", "sequence"), [(1024, 16, 512), (12288, 96, 2048)])
def test_published_activations_per_layer(hidden: int, heads: int, sequence: int) -> None:
    """In 16 bits a layer keeps sbh (34 + 5 a s / h) bytes."""
    samples = 3
    kept = memory.layer_activation_bytes(samples * sequence, hidden, 4 * hidden, 2.0)
    kept += memory.score_activation_bytes(samples, sequence, heads, 2.0)
    published = 34 + 5 * heads * sequence / hidden
    assert kept / (samples * sequence * hidden) == pytest.approx(published)


def test_published_activations_of_bert_large() -> None:
    """Sixteen sequences of 512 tokens take 14.38 GB in a published table; within 10% in 16 bits."""
    layer = memory.layer_activation_bytes(16 * 512, 1024, 4096, 2.0)
    layer += memory.score_activation_bytes(16, 512, 16, 2.0)
    assert 24 * layer == pytest.approx(14.38e9, rel=0.1)


def test_fused_attention_keeps_little() -> None:
    """One number per head and token is far less than the scores."""
    fused = memory.fused_attention_bytes(4, 2048, 16)
    assert fused == 4.0 * 4 * 2048 * 16
    assert fused < memory.score_activation_bytes(4, 2048, 16, 2.0) / 1000


def test_full_recomputation() -> None:
    """All layers keep their input, one keeps everything; with one layer nothing is saved."""
    assert memory.checkpointed_bytes(32, 2.0, 34.0) == 98.0
    assert memory.checkpointed_bytes(1, 2.0, 34.0) > 34.0


def test_logits() -> None:
    """Logits of 4 bytes in fp32, 6 with a copy of 16 bits."""
    per_logit = memory.logits_bytes(10, 100, np.array([4.0, 2.0])) / (10 * 100)
    assert per_logit == pytest.approx([4.0, 6.0])


def test_buckets_of_roberta() -> None:
    """Views save one copy of the gradients: 1,067 MB were measured on 355 M parameters or less."""
    saved = parse("8250 MB", BYTE) - parse("7183 MB", BYTE)
    assert memory.bucket_copy_bytes(saved, 8) == saved
    assert memory.bucket_copy_bytes(saved, np.array([1, 2])) == pytest.approx([0.0, saved])


def test_segments() -> None:
    """Sizes fall into segments of 2 MiB, 20 MiB or their own multiple of 2 MiB."""
    sizes = [
        parse(text, BYTE) for text in ("1 B", "1 MiB", "1.5 MiB", "9.9 MiB", "10 MiB", "13 MiB")
    ]
    expected = [
        parse(text, BYTE) for text in ("2 MiB", "2 MiB", "20 MiB", "20 MiB", "10 MiB", "14 MiB")
    ]
    assert memory.segment_bytes(np.array(sizes)) == pytest.approx(expected)


def test_fragmentation_is_a_share() -> None:
    """Twice the activations waste twice as much."""
    assert memory.fragmentation_bytes(20.0, 0.15) == pytest.approx(3.0)
