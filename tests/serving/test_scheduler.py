"""Batches of models that answer in one pass: Triton's rules, and bulk-service queues."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from simulator.schema.serving import Dynamic, Serving
from simulator.serving.load import Requests
from simulator.serving.run import half_width
from simulator.serving.scheduler import Batcher
from tests.support.serving import MadePass, poisson, run, settings, stays

BATCH = 0.03
"""Time of a batch whatever its size [s]."""


def batching(most: int, delay: float = 0.0, preferred: tuple[int, ...] = ()) -> Serving:
    """A device with batches up to so many samples."""
    rules = Dynamic(delay=delay, preferred=preferred)
    plain = settings(sequences=most, tokens=most, chunked=False)
    return replace(plain, dynamic=rules)


def ones(arrivals: list[float]) -> Requests:
    """Requests of one sample that arrive then."""
    return Requests([1] * len(arrivals), [1] * len(arrivals), arrivals)


def test_a_free_device_takes_what_there_is() -> None:
    """Without a delay the first request goes alone, and those that came meanwhile together."""
    requests = ones([0.0, 0.01, 0.02, 0.025])
    counts = run(requests, MadePass(fixed=BATCH), batching(8))
    assert requests.last == pytest.approx([0.03, 0.06, 0.06, 0.06])
    assert counts.iterations == 2


def test_a_delay_keeps_requests_for_a_larger_batch() -> None:
    """The oldest waits 5 ms at most; the arrival that fills a batch lets it go at once."""
    waited, filled = ones([0.0, 0.002, 0.009]), ones([0.0, 0.001, 0.002])
    run(waited, MadePass(fixed=0.001), batching(3, delay=0.005))
    assert waited.last == pytest.approx([0.006, 0.006, 0.015])
    run(filled, MadePass(fixed=0.001), batching(3, delay=0.005))
    assert filled.last == pytest.approx([0.003] * 3)


def test_preferred_sizes_come_first() -> None:
    """Of seven that wait the largest preferred size goes, and the rest with the next batch."""
    requests = ones([0.0] * 7)
    run(requests, MadePass(fixed=1.0), batching(8, preferred=(2, 4)))
    assert requests.last == pytest.approx([1.0] * 4 + [2.0] * 2 + [3.0])


def test_static_batches_are_full_but_for_the_last() -> None:
    """Nothing goes before eight are there; what is left at the end goes as it is."""
    requests = ones([0.1 * number for number in range(20)])
    counts = run(requests, MadePass(fixed=0.001), batching(8, delay=math.inf))
    assert counts.iterations == 3
    assert requests.scheduled[0] == pytest.approx(0.7)
    assert requests.scheduled[8] == pytest.approx(1.5)
    assert requests.scheduled[19] >= 1.9


def test_static_batches_of_few_clients_go_when_all_wait() -> None:
    """Three clients never fill a batch of eight: it goes when nobody else can come."""
    requests = Requests([1] * 9, [1] * 9, [0.0] * 3, clients=3)
    counts = run(requests, MadePass(fixed=1.0), batching(8, delay=math.inf))
    assert counts.iterations == 3
    assert counts.end == pytest.approx(3.0)


def test_requests_are_never_split() -> None:
    """Three samples each: two requests fill a batch of eight as far as they can."""
    requests = Requests([3] * 4, [1] * 4, [0.0] * 4)
    counts = run(requests, MadePass(fixed=1.0), replace(batching(8), block_tokens=1))
    assert counts.iterations == 2
    assert requests.last == pytest.approx([1.0, 1.0, 2.0, 2.0])


def test_even_arrivals_and_a_delay() -> None:
    """At 1,000 a second a delay of 5 ms gathers six: the first and those of five gaps."""
    requests = ones([0.001 * number + 1e-7 for number in range(6000)])
    counts = run(requests, MadePass(fixed=1e-4), batching(32, delay=0.005))
    assert counts.prefilled / counts.iterations == pytest.approx(6.0, rel=0.02)


@pytest.mark.parametrize(("least", "batch", "wait"), [(1, 6.002, 0.01790), (4, 6.189, 0.01775)])
def test_bulk_service(least: int, batch: float, wait: float) -> None:
    """At least a and at most eight: M/D[a,8]/1 at 200 a second, by its embedded chain."""
    requests = poisson(200.0, np.ones(60_000))
    preferred = tuple(range(least, 8)) if least > 1 else ()
    delay = math.inf if least > 1 else 0.0
    counts = run(requests, MadePass(fixed=BATCH), batching(8, delay, preferred))
    found = stays(requests)[6000:]
    assert abs(found.mean() - (wait + BATCH)) < half_width(found)
    assert counts.prefilled / counts.iterations == pytest.approx(batch, rel=0.02)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_batches_of_one_are_m_d_1(load: float) -> None:
    """One sample a batch: requests wait half as long as in M/M/1."""
    requests = poisson(load / BATCH, np.ones(40_000))
    run(requests, MadePass(fixed=BATCH), batching(1))
    found = stays(requests)[4000:]
    expected = BATCH + load * BATCH / (2.0 * (1.0 - load))
    assert abs(found.mean() - expected) < half_width(found)


@pytest.mark.slow
def test_the_host_is_a_queue_before() -> None:
    """One thread for 10 ms a request at 80 a second is M/D/1; four threads hardly queue."""
    found = {}
    for threads in (1, 4):
        requests = poisson(80.0, np.ones(40_000))
        serving = replace(batching(64), host_time=0.01, host_threads=threads)
        counts = run(requests, MadePass(fixed=1e-6), serving)
        found[threads] = stays(requests)[4000:]
        assert counts.prepared == pytest.approx(400.0)
    expected = 0.01 + 0.8 * 0.01 / (2.0 * 0.2)
    assert abs(found[1].mean() - expected) < half_width(found[1]) + 1e-5
    assert found[4].mean() < 0.0101


def test_a_batcher_counts_samples() -> None:
    """The queue knows what it holds, whatever sizes requests have."""
    batcher = Batcher(Dynamic(delay=1.0, preferred=(4,)), 8)
    assert batcher.held_until(0.0) == 0.0
    batcher.join(3, 0.0)
    assert batcher.held_until(0.5) == 1.0
    batcher.join(2, 0.6)
    assert batcher.held_until(0.6) == 0.6
    assert batcher.take() == 4
    assert batcher.held_until(0.7) == 1.6
