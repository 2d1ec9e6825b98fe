"""Memory of spread models: micro-batches in flight, what never coincides, offloaded state."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.sharded_memory import (
    micro_batches_held,
    never_together,
    offloaded_bytes,
    recomputed_layer_bytes,
)


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
