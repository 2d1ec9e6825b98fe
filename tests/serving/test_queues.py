"""Engines reduced to queues agree with the closed forms of queueing theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.stages import sampled

from simulator.serving.load import Requests
from simulator.serving.run import half_width
from tests.support.serving import MadePass, poisson, run, settings, stays

STEP = 0.0005
"""Time of an iteration [s]: a service of many tokens is all but continuous."""
SERVICE = 0.1
"""Mean service [s]."""
COUNT = 40_000


def geometric(mean: float, count: int = COUNT, seed: int = 2) -> np.ndarray:
    """Tokens whose number has a geometric distribution: exponential services, near enough."""
    return np.random.default_rng(seed).geometric(STEP / mean, count)


def steady(times: np.ndarray) -> np.ndarray:
    """Without the first tenth."""
    return times[len(times) // 10 :]


def agrees(times: np.ndarray, expected: float, *, lag: float = STEP) -> None:
    """The mean lies within its own confidence interval, and what joining an iteration adds."""
    kept = steady(times)
    assert abs(kept.mean() - expected) < half_width(kept) + lag


@pytest.mark.parametrize("load", sampled([0.1, 0.5, 0.8, 0.95], 1))
def test_one_server_with_exponential_services(load: float) -> None:
    """One sequence at a time with answers of geometric length is M/M/1."""
    requests = poisson(load / SERVICE, geometric(SERVICE))
    run(requests, MadePass(fixed=STEP), settings(sequences=1))
    agrees(stays(requests), SERVICE / (1.0 - load))


@pytest.mark.slow
def test_tail_of_exponential_services() -> None:
    """The time in M/M/1 is exponential: its 99th percentile is ln 100 times its mean."""
    requests = poisson(5.0, geometric(SERVICE))
    run(requests, MadePass(fixed=STEP), settings(sequences=1))
    tail = np.quantile(steady(stays(requests)), 0.99)
    assert tail == pytest.approx(math.log(100.0) / 5.0, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("load", sampled([0.3, 0.8, 0.95], 1))
def test_one_server_with_equal_services(load: float) -> None:
    """Answers of equal length are M/D/1, whose requests wait half as long."""
    requests = poisson(load / SERVICE, np.full(COUNT, SERVICE / STEP))
    run(requests, MadePass(fixed=STEP), settings(sequences=1))
    agrees(stays(requests), SERVICE + load * SERVICE / (2.0 * (1.0 - load)))


@pytest.mark.slow
def test_one_server_with_any_services() -> None:
    """Answers of two lengths are M/G/1: the formula of Pollaczek and Khinchine."""
    draw = np.random.default_rng(3)
    outputs = np.where(draw.random(COUNT) < 0.05, 2000, 100)
    services = outputs * STEP
    load = 0.7
    rate = load / services.mean()
    requests = poisson(rate, outputs)
    run(requests, MadePass(fixed=STEP), settings(sequences=1))
    waits = rate * (services**2).mean() / (2.0 * (1.0 - load))
    agrees(stays(requests), services.mean() + waits)


@pytest.mark.slow
@pytest.mark.parametrize("load", sampled([0.5, 0.8], 1))
def test_processor_sharing(load: float) -> None:
    """An engine whose token rate does not depend on its batch is M/G/1 with processor sharing."""
    outputs = np.random.default_rng(4).choice([20, 60, 400], COUNT, p=[0.6, 0.3, 0.1])
    token = 0.001
    mean = outputs.mean() * token
    requests = poisson(load / mean, outputs)
    run(requests, MadePass(prompt_token=token, sequence=token), settings())
    agrees(stays(requests), mean / (1.0 - load), lag=0.02 * mean / (1.0 - load))


def erlang_wait(servers: int, offered: float, mean: float) -> float:
    """Mean wait of M/M/c by Erlang's recursion [s]."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    load = offered / servers
    waits = blocked / (1.0 - load + load * blocked)
    return waits * mean / (servers - offered)


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "load"), sampled([(4, 0.8), (16, 0.9)], 1))
def test_many_servers(servers: int, load: float) -> None:
    """Sequences that do not slow each other are the servers of M/M/c."""
    requests = poisson(servers * load / SERVICE, geometric(SERVICE))
    run(requests, MadePass(fixed=STEP), settings(sequences=servers))
    agrees(stays(requests), SERVICE + erlang_wait(servers, servers * load, SERVICE))


def test_batch_service() -> None:
    """Prompts alone, eight to an iteration, are bulk service: M/D[1,8]/1, by its embedded chain."""
    requests = poisson(200.0, np.ones(COUNT))
    counts = run(requests, MadePass(fixed=0.03), settings(sequences=8))
    agrees(stays(requests), 0.0479, lag=0.0)
    assert counts.prefilled / counts.iterations == pytest.approx(6.002, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("clients", [1, 2, 16, 64])
def test_closed_network(clients: int) -> None:
    """Clients that think beside one exponential server follow exact mean value analysis."""
    mean, think, inside = 0.05, 2.0, 0.0
    for number in range(1, clients + 1):
        answer = mean * (1.0 + inside)
        inside = number / (answer + think) * answer
    outputs = geometric(mean, 20_000).tolist()
    requests = Requests([1] * len(outputs), outputs, [0.0] * clients, clients, think)
    run(requests, MadePass(fixed=STEP), settings(sequences=1))
    agrees(stays(requests), answer, lag=0.01 * answer)


def test_time_scales() -> None:
    """All times twice as long make all latencies twice as long, exactly."""
    outputs = geometric(0.01, 2000)
    plain, slow = poisson(20.0, outputs), poisson(20.0, outputs)
    slow.arrivals = [2.0 * time for time in slow.arrivals]
    run(plain, MadePass(fixed=STEP, context=1e-6), settings(sequences=8))
    run(slow, MadePass(fixed=2 * STEP, context=2e-6), settings(sequences=8))
    assert stays(slow) == pytest.approx(2.0 * stays(plain), rel=1e-12)


def test_more_seats_are_never_worse() -> None:
    """Where sequences do not slow each other, more of them at once keep nobody longer."""
    outputs = geometric(0.01, 3000)
    found = []
    for seats in (2, 4, 8):
        requests = poisson(100.0, outputs)
        run(requests, MadePass(fixed=STEP), settings(sequences=seats))
        found.append(np.quantile(stays(requests), [0.5, 0.9, 0.99]))
    assert (found[0] >= found[1] - STEP).all()
    assert (found[1] >= found[2] - STEP).all()
