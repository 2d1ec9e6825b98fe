"""The largest number of accelerators that still passes."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "storage_benchmark"
most_accelerators = runpy.run_path(str(FOLDER / "most_accelerators.py"))["most_accelerators"]


@pytest.mark.parametrize("first", [1, 7, 99, 100, 101, 160, 400])
def test_it_is_found_from_above_and_below(first: int) -> None:
    """A store for 90 busy accelerators keeps 100 of them 90% busy, wherever one begins."""
    asked: list[int] = []

    def utilization(count: int) -> float:
        asked.append(count)
        return min(1.0, 90.0 / count)

    assert most_accelerators(utilization, 0.9, first) == pytest.approx(100.0, rel=0.01)
    assert len(asked) == len(set(asked)) <= 30


def test_one_may_be_too_many() -> None:
    """Nothing passes."""
    assert most_accelerators(lambda _: 0.5, 0.9, 8) == 0.0


def test_there_may_be_no_limit() -> None:
    """Everything passes as far as one looks."""
    assert most_accelerators(lambda _: 0.99, 0.9, 8) == math.inf
