"""Equations of an optimizer on the host."""

from __future__ import annotations

import pytest

from simulator.equations.offload import host_update_bytes, late_copies


def test_host_update_bytes() -> None:
    """Gradient, weight, two moments and copy of Adam by hand; of SGD without the moments."""
    assert host_update_bytes(1.0, 8.0) == 4.0 + 3.0 * (4.0 + 4.0) + 2.0
    assert host_update_bytes(2.0, 0.0) == 2.0 * (4.0 + 8.0 + 2.0)


@pytest.mark.parametrize(
    ("copies", "behind", "parts", "waited"),
    [(1.0, 0.0, 10.0, 1.0), (1.0, 5.0, 10.0, 0.1), (1.0, 0.5, 10.0, 0.5), (1.0, 5.0, 1.0, 1.0)],
)
def test_late_copies(copies: float, behind: float, parts: float, waited: float) -> None:
    """All of them, the last part, what is too long, or all of a single part."""
    assert float(late_copies(copies, behind, parts)) == pytest.approx(waited)
