"""Kernels of a layer that only move memory."""

from __future__ import annotations

from typing import Final

from simulator.scenario.workload.models.layer import WIDE, Layer

MASK: Final = 1.0 / WIDE
"""A dropout mask's byte, counted in elements of fp32."""


def pass_over(
    name: str, values: float, forward: float, backward: float, *, parameters: float = 0.0
) -> Layer:
    """A kernel that moves `values` elements `forward` and `backward` times."""
    return Layer(
        name=name,
        moved=forward * values,
        moved_back=backward * values,
        parameters=parameters,
        matrix=False,
    )


def dropped(values: float) -> Layer:
    """Dropout of `values` probabilities, with a mask of a byte each."""
    return Layer(
        name="attention dropout",
        moved=2.0 * values,
        moved_back=2.0 * values,
        wide=MASK * values,
        wide_back=MASK * values,
        matrix=False,
    )
