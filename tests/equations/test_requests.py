"""Object requests: rates of one and of many."""

from __future__ import annotations

import pytest

from simulator.equations import requests


def test_ceiling_grows_with_readers() -> None:
    """Two requests at once go twice as fast as one, which goes at its own rate."""
    assert requests.reader_ceiling(1, 30e6) == 30e6
    assert requests.reader_ceiling(2, 30e6) == 2 * requests.reader_ceiling(1, 30e6)


def test_half_the_rate_at_the_half_size() -> None:
    """A request of latency times rate spends half of its time waiting."""
    assert requests.request_throughput(0.1 * 80e6, 0.1, 80e6) == pytest.approx(40e6)
    assert requests.request_throughput(1e15, 0.1, 80e6) == pytest.approx(80e6)


def test_a_network_carries_headers_beside_the_object() -> None:
    """Of 1500 bytes 1448 are the object's, in frames of 1538 bytes; larger ones lose less."""
    assert requests.frame_payload() == 1448.0 / 1538.0
    assert requests.frame_payload() < requests.frame_payload(9001.0) < 1.0
