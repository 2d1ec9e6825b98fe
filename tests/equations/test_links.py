"""Links: rates from lanes, and times from rates."""

from __future__ import annotations

import pytest

from simulator.equations.links import (
    ENCODING_128_OF_130,
    FLIT_242_OF_256,
    lane_bandwidth,
    transfer_time,
)


@pytest.mark.parametrize(
    ("transfers", "encoding", "expected"),
    [
        (8e9, ENCODING_128_OF_130, 15.75e9),
        (16e9, ENCODING_128_OF_130, 31.5e9),
        (32e9, ENCODING_128_OF_130, 63.0e9),
        (64e9, FLIT_242_OF_256, 121.0e9),
    ],
)
def test_pcie_generations(transfers: float, encoding: float, expected: float) -> None:
    """Sixteen lanes of PCIe 3 to 6 carry 15.75, 31.5, 63 and 121 GB/s one way."""
    assert lane_bandwidth(transfers, 16, encoding) == pytest.approx(expected, rel=1e-3)


def test_half_the_lanes_half_the_rate() -> None:
    """Eight lanes carry half of what sixteen do."""
    assert lane_bandwidth(16e9, 8) * 2 == lane_bandwidth(16e9, 16)


def test_latency_comes_before_the_bytes() -> None:
    """An empty transfer takes the latency."""
    assert transfer_time(0.0, 32e9, 1e-6) == 1e-6
    assert transfer_time(32e9, 32e9, 1e-6) == pytest.approx(1.000001)
