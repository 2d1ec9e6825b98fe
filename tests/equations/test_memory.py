"""Device and host memory: published bytes, stages, sharding, batches in flight."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.equations import memory
from simulator.equations.memory import (
    micro_batches_held,
    never_together,
    offloaded_bytes,
    recomputed_layer_bytes,
)
from simulator.schema.training import Optimizer
from simulator.units import BYTE, parse


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


def in_flight(micro_batches: int, stage: int, stages: int, chunks: int) -> float:
    """Whole stages' worth of activations at the fullest, by walking through the schedule.

    Passes of a chunk go out until the first backward pass; then one of each in turn.
    """
    started = (
        min(micro_batches * chunks, (chunks - 1) * stages + 2 * (stages - stage - 1) + 1)
        if chunks > 1
        else min(micro_batches, stages - stage)
    )
    held = most = 0
    forward, backward = started, 0
    held = most = started
    while backward < micro_batches * chunks:
        backward, held = backward + 1, held - 1
        if forward < micro_batches * chunks:
            forward, held = forward + 1, held + 1
        most = max(most, held)
    return most / chunks


@pytest.mark.parametrize("stage", [0, 1, 3])
@pytest.mark.parametrize("chunks", [1, 2, 8])
@pytest.mark.parametrize("micro_batches", [2, 4, 32])
def test_micro_batches_held_as_walked_through(stage: int, chunks: int, micro_batches: int) -> None:
    """The closed form is what a walk through the schedule holds at its fullest."""
    held = micro_batches_held(micro_batches, stage, 4, chunks, 0.0)
    assert float(held) == in_flight(micro_batches, stage, 4, chunks)


def test_first_stage_of_an_interleaved_schedule_as_published() -> None:
    """1 + (p - 1) / (p v) times what the first stage holds without chunks: arXiv:2205.05198."""
    plain, interleaved = (micro_batches_held(64, 0, 8, v, 0.0) for v in (1, 3))
    assert float(interleaved / plain) == pytest.approx(1.0 + 7.0 / (8.0 * 3.0))


def test_all_forward_holds_everything() -> None:
    """GPipe keeps all micro-batches on every stage."""
    assert float(micro_batches_held(32, 3, 4, 1, 1.0)) == 32.0


def test_never_together_is_the_most_over_time() -> None:
    """Chunk by chunk, gradients appear and activations go; the most is at one of the ends."""
    gradients, activations, chunks = 24.0, 16.0, 4
    walked = max(
        gradients * (k + 1) / chunks + activations * (chunks - k) / chunks for k in range(chunks)
    )
    taken_off = never_together(gradients, activations, float(chunks))
    assert gradients + activations - float(taken_off) == pytest.approx(walked)


@pytest.mark.parametrize(
    ("machine", "devices", "partitioned", "bytes_per_parameter"),
    [(1, 1, 0.0, 24.0), (8, 8, 0.0, 48.0), (8, 64, 0.0, 48.0), (8, 64, 1.0, 3.0)],
)
def test_offloaded_state_by_the_documented_formulas(
    machine: int, devices: int, partitioned: float, bytes_per_parameter: float
) -> None:
    """DeepSpeed's memory.rst: ZeRO-2 max(4 g, 16) x 1.5, ZeRO-3 16 g / N x 1.5 a parameter."""
    size = offloaded_bytes(1e9, float(machine), float(devices), partitioned)
    assert float(size) == pytest.approx(bytes_per_parameter * 1e9)


def test_what_is_recomputed_is_what_is_not_kept() -> None:
    """Nothing where all is kept; arrays give what their members give."""
    assert float(recomputed_layer_bytes(34.0, 34.0)) == 0.0
    assert recomputed_layer_bytes(np.array([34.0, 2.0]), 2.0).tolist() == [32.0, 0.0]


def test_batches_of_a_loader() -> None:
    """Three workers with two batches each have six ahead and one in use; no workers have one."""
    assert memory.batches_in_flight(2, 3) == 7
    assert memory.batches_in_flight(2, 0) == 1
    assert memory.in_flight_bytes(7, 10.0, 8) == 560.0


def test_pinned_blocks_are_powers_of_two() -> None:
    """A published 20.4 GiB took 32 GiB; exact powers stay, nothing takes nothing."""
    sizes = np.array([parse(text, BYTE) for text in ("20.4 GiB", "32 GiB", "3 B")])
    expected = [parse(text, BYTE) for text in ("32 GiB", "32 GiB", "4 B")]
    assert memory.pinned_block_bytes(sizes) == pytest.approx(expected)
    assert memory.pinned_block_bytes(0.0) == 0.0


def test_workers_of_all_ranks() -> None:
    """Four workers of 1.8 GB, as measured with a data set of Python objects, take 7.2 GB a rank."""
    assert memory.workers_bytes(1, 4, 1.8e9) == pytest.approx(7.2e9)
    assert memory.workers_bytes(8, 4, 1.8e9) == pytest.approx(57.6e9)


def test_rule_of_thumb() -> None:
    """The rule adds the memory of the GPUs, the system and the application."""
    assert memory.rule_of_thumb(16e9, 2e9, 1e9) == pytest.approx(19e9)


def test_nothing_left_is_nothing() -> None:
    """A memory that is overcommitted leaves no page cache, and no negative one."""
    left = memory.memory_left(10.0, np.array([4.0, 10.0, 12.0]))
    assert left == pytest.approx([6.0, 0.0, 0.0])
