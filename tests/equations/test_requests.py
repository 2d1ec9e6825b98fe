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


def test_whole_requests_saturate() -> None:
    """A pipe of 140 GB/s takes 4,667 requests of 30 MB/s, and one request fills 0.021% of it."""
    assert requests.requests_to_saturate(140e9, 30e6) == 4667
    assert requests.requests_to_saturate(60e6, 30e6) == 2
    assert requests.share_fed(30e6, 140e9) == pytest.approx(0.00021, abs=5e-6)
    assert requests.share_fed(30e6, 140e9, requests=5000) == 1.0
