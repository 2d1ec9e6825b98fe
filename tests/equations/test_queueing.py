"""Queues: identities between the closed forms, and limits one can check in the head."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.equations import queueing

LOADS = np.array([0.1, 0.5, 0.9, 0.99])


def test_one_server_of_several() -> None:
    """M/M/c with one server is M/M/1, and its Erlang probability is the load."""
    assert queueing.mmc_wait(LOADS, 1.0, 1) == pytest.approx(queueing.mm1_wait(LOADS, 1.0))
    assert queueing.erlang_c(LOADS, 1) == pytest.approx(LOADS)


def test_equal_service_halves_the_wait() -> None:
    """Constant service times wait half as long as exponential ones."""
    assert queueing.md1_wait(LOADS, 1.0) == pytest.approx(queueing.mm1_wait(LOADS, 1.0) / 2)


def test_any_service_lies_between_or_beyond() -> None:
    """The wait grows with the spread of the service time."""
    spread = np.array([0.0, 0.5, 1.0, 2.0])
    waits = queueing.mg1_wait(0.5, 1.0, spread)
    assert waits == pytest.approx([0.5, 0.625, 1.0, 2.5])


def test_erlang_from_its_sum() -> None:
    """The recursion gives what the textbook's sum gives."""
    load, servers = 7.0, 10
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - load / servers)
    assert queueing.erlang_c(load, servers) == pytest.approx(last / (sum(terms) + last))


def test_sharing_and_queueing_take_equally_long() -> None:
    """With exponential service, sharing a server and queueing for it have one mean."""
    queued = queueing.mm1_wait(LOADS, 2.0 / 3.0) + 2.0 / 3.0
    assert queueing.processor_sharing_time(LOADS, 2.0 / 3.0) == pytest.approx(queued)


def test_one_fast_server_beats_two_slow_ones_in_time() -> None:
    """Two servers wait less than one of twice the speed, but are slower in all."""
    two = queueing.mmc_wait(1.0, 1.0, 2)
    one = queueing.mm1_wait(1.0, 0.5)
    assert two < one
    assert two + 1.0 > one + 0.5


def test_little() -> None:
    """M/M/1 holds r / (1 - r) customers on average."""
    time = queueing.mm1_wait(LOADS, 1.0) + 1.0
    assert queueing.little_number(LOADS, time) == pytest.approx(LOADS / (1.0 - LOADS))


def test_bounds_meet_with_one_customer() -> None:
    """Alone, a customer goes at exactly one over its demands."""
    assert queueing.throughput_bound(0.5, 0.75, 1, 0.25) == 1.0
    assert queueing.throughput_floor(0.75, 1, 0.25) == 1.0


def test_bounds_enclose() -> None:
    """More customers widen the gap, up to the busiest resource's rate."""
    customers = np.arange(1.0, 50.0)
    upper = queueing.throughput_bound(0.25, 0.75, customers)
    lower = queueing.throughput_floor(0.75, customers)
    assert np.all(lower <= upper)
    assert upper[-1] == 4.0
