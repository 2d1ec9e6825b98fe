"""Replicas behind a router, simulated together: queueing theory, dominance, autoscaling."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.schema.serving import Autoscaling, Routing
from simulator.serving.fleet import Autoscaler, run
from simulator.serving.load import Requests
from simulator.serving.run import half_width
from tests.serving.test_queues import SERVICE, STEP, agrees, erlang_wait, geometric
from tests.support.serving import MadePass, fleet, poisson, settings, stays

ONE = settings(sequences=1)


def routed(requests: Requests, replicas: int, routing: Routing) -> np.ndarray:
    """Stays of requests with servers of one sequence each."""
    run(fleet(requests, MadePass(fixed=STEP), ONE, replicas, routing), requests)
    return stays(requests)


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [2, 4])
def test_random_choice_makes_separate_queues(replicas: int) -> None:
    """A Poisson stream that is split by chance is so many M/M/1."""
    load = 0.7
    requests = poisson(replicas * load / SERVICE, geometric(SERVICE))
    agrees(routed(requests, replicas, Routing.RANDOM), SERVICE / (1.0 - load))


@pytest.mark.slow
@pytest.mark.parametrize(("replicas", "load"), [(2, 0.7), (4, 0.8)])
def test_turns_make_erlang_arrivals(replicas: int, load: float) -> None:
    """Every second arrival of a Poisson stream has Erlang gaps: E/M/1, by its root."""
    rate = replicas * load / SERVICE
    root = load
    for _ in range(500):
        root = (rate / (rate + (1.0 - root) / SERVICE)) ** replicas
    requests = poisson(rate, geometric(SERVICE))
    agrees(routed(requests, replicas, Routing.ROUND_ROBIN), SERVICE / (1.0 - root))


@pytest.mark.slow
@pytest.mark.parametrize(("replicas", "load"), [(2, 0.8), (8, 0.9)])
def test_the_fewest_outstanding_lies_between_turns_and_one_queue(
    replicas: int, load: float
) -> None:
    """Joining the shortest queue beats turns, and one queue for all beats it."""
    rate, outputs = replicas * load / SERVICE, geometric(SERVICE)
    turns = routed(poisson(rate, outputs), replicas, Routing.ROUND_ROBIN)
    least = routed(poisson(rate, outputs), replicas, Routing.LEAST)
    pooled = SERVICE + erlang_wait(replicas, replicas * load, SERVICE)
    assert pooled - half_width(least) < least.mean() < turns.mean()


def test_one_replica_needs_no_router() -> None:
    """All ways to choose among one are the same."""
    found = [
        routed(poisson(7.0, geometric(SERVICE, 2000)), 1, routing).tolist() for routing in Routing
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
@pytest.mark.parametrize("routing", [Routing.ROUND_ROBIN, Routing.LEAST])
def test_more_replicas_are_never_worse(routing: Routing) -> None:
    """With the same requests, more replicas keep a limit for no fewer of them."""
    outputs = geometric(SERVICE, 4000)
    work = MadePass(fixed=STEP, sequence=STEP / 4)
    kept = []
    for replicas in (1, 2, 3, 4, 6, 8):
        requests = poisson(30.0, outputs)
        run(fleet(requests, work, settings(sequences=4), replicas, routing), requests)
        kept.append(float((stays(requests) < 0.3).mean()))
    assert kept == sorted(kept)
    assert kept[0] < 0.5
    assert kept[-1] > 0.7


def test_clients_go_to_whichever_replica_is_next() -> None:
    """A closed loop has all its clients under way, and sends no more requests than there are."""
    requests = Requests([4] * 50, [5] * 50, [0.0] * 6, clients=6)
    counts = run(fleet(requests, MadePass(fixed=1.0), settings(), 3, Routing.LEAST), requests)
    assert len(requests.arrivals) == 50
    # Six clients, two on each replica: fifty requests are nine rounds of five iterations.
    assert counts.end == pytest.approx(45.0)
    assert counts.decoded == 50 * 4


def autoscaled(rules: Autoscaling, requests: Requests) -> tuple[float, np.ndarray]:
    """Seconds of replicas, and stays."""
    made = fleet(requests, MadePass(fixed=STEP), ONE, rules.least, Routing.LEAST, scaling=rules)
    return run(made, requests).provided, stays(requests)


def test_autoscaling_follows_the_load_after_its_delay() -> None:
    """A burst is served by one replica until others open, and they go when it is over."""
    # 20 requests a second of 0.1 s each for 100 s: two servers' worth; then one every 5 s.
    arrivals = [*np.arange(2000) / 20.0, *(100.0 + 5.0 * np.arange(1, 101))]
    outputs = [round(SERVICE / STEP)] * len(arrivals)
    rules = Autoscaling(target=2.0, least=1, most=4, interval=5.0, delay=20.0, hold=60.0)
    requests = Requests([1] * len(arrivals), outputs, list(map(float, arrivals)))
    provided, found = autoscaled(rules, requests)
    before, after = found[: 20 * 24], found[20 * 60 : 2000]
    # One server needs twice as long as requests take to come, until others open at 25 s.
    assert before.max() == pytest.approx(24.0, rel=0.01)
    assert after.max() < 1.0
    end = 600.0
    assert end < provided < end + 3 * (100.0 + 60.0 + 15.0)


def test_a_start_takes_its_delay_to_help() -> None:
    """The longer replicas take to open, the longer requests wait."""
    arrivals = np.arange(1000) / 20.0
    found = []
    for delay in (0.0, 10.0, 40.0):
        rules = Autoscaling(target=2.0, least=1, most=8, interval=1.0, delay=delay, hold=60.0)
        outputs = [round(SERVICE / STEP)] * 1000
        requests = Requests([1] * 1000, outputs, arrivals.tolist())
        found.append(autoscaled(rules, requests)[1].mean())
    assert found == sorted(found)
    assert found[0] < 0.5
    assert found[2] > 5.0


def test_replicas_come_in_whole_machines() -> None:
    """Where a machine holds four, four are started together."""
    rules = Autoscaling(target=1.0, least=4, most=8, together=4, interval=1.0, hold=1e9)
    arrivals = np.arange(1000) / 100.0
    requests = Requests([1] * 1000, [200] * 1000, arrivals.tolist())
    made = fleet(requests, MadePass(fixed=STEP), ONE, 4, Routing.LEAST, scaling=rules)
    counts = run(made, requests)
    assert made.scaler is not None
    assert len(made.scaler.started) == 8
    assert 4.0 < counts.provided / counts.end < 8.0


@pytest.mark.parametrize("routing", list(Routing))
def test_a_large_fleet_is_made_as_far_as_it_is_used(routing: Routing) -> None:
    """Three requests reach three replicas of a million at most; all of them are paid."""
    requests = Requests([1] * 3, [10] * 3, [0.0, 1e-9, 2e-9])
    made = fleet(requests, MadePass(fixed=STEP), ONE, 1_000_000, routing)
    counts = run(made, requests)
    assert len(made.replicas) <= 3
    assert counts.provided == 1_000_000 * counts.end
    assert counts.decoded + counts.prefilled > 0
    # Each has a replica of its own, so none waits.
    assert stays(requests) == pytest.approx(np.full(3, 10 * STEP))


@pytest.mark.parametrize(("clock", "paid"), [(40.0, 50.0), (75.0, 75.0)])
def test_a_stopped_replica_is_paid_until_its_last_request(clock: float, paid: float) -> None:
    """The decision at 50 s ends an idle one; work until 75 s is paid, and 100 s without a stop."""
    rules = Autoscaling(target=2.0, least=1, most=4, interval=5.0, delay=20.0, hold=60.0)
    scaler = Autoscaler(rules, {}, 0)
    scaler.started, scaler.stopped = [0.0, 0.0], {0: 50.0}
    assert scaler.provided(0, clock, 100.0) == paid
    assert scaler.provided(1, clock, 100.0) == 100.0
