"""Flows share units as the docstring of `simulator.engine.flows` says."""

import math
from collections.abc import Callable, Generator, Mapping, Sequence

import pytest
from simpy import Environment, Event

from simulator.engine.flows import FlowGroup, FlowNetwork, fair_rates

LINK = [("link", 1.0)]


@pytest.fixture
def env() -> Environment:
    """Return a clock at zero."""
    return Environment()


@pytest.fixture
def log() -> list[tuple[float, object]]:
    """Return a list that tests write (time, what) to."""
    return []


def write(env: Environment, log: list[tuple[float, object]], event: Event, what: object) -> None:
    """Log `what` when the event fires."""
    event.callbacks.append(lambda _: log.append((env.now, what)))


def later(env: Environment, delay: float, action: Callable[[], object]) -> None:
    """Call `action` after `delay`."""

    def act(_: Event) -> None:
        action()

    env.timeout(delay).callbacks.append(act)


def test_one_flow_takes_amount_over_capacity(env: Environment) -> None:
    """A flow alone on a unit gets all of it."""
    network = FlowNetwork(env, {"link": 4.0})
    env.run(network.transfer(10.0, LINK))
    assert env.now == 2.5
    assert network.busy("link") == 2.5


def test_flows_of_a_group_that_stop_leave_the_rest_to_others() -> None:
    """Three that can take 1 each leave 7 of 10 to the fourth."""
    capped = FlowGroup(route=(("link", 1.0),), count=3, ceiling=1.0)
    free = FlowGroup(route=(("link", 1.0),))
    assert fair_rates({"link": 10.0}, [capped, free]) == [1.0, 7.0]


def test_timeline_of_flows_that_come_and_go(
    env: Environment, log: list[tuple[float, object]]
) -> None:
    """Rates change whenever a flow starts or ends, and every byte is served once."""
    network = FlowNetwork(env, {"link": 10.0})
    write(env, log, network.transfer(30.0, LINK), "first")
    later(env, 1.0, lambda: write(env, log, network.transfer(10.0, LINK), "second"))
    env.run()
    assert log == [(3.0, "second"), (4.0, "first")]
    assert network.busy("link") == 4.0


def test_flows_of_one_instant_end_in_order_of_arrival(
    env: Environment, log: list[tuple[float, object]]
) -> None:
    """Ties are settled by arrival number, over classes."""
    network = FlowNetwork(env, {"link": 3.0})
    for name, ceiling in (("a", 2.0), ("b", math.inf), ("c", 2.0)):
        write(env, log, network.transfer(1.0, LINK, ceiling=ceiling), name)
    env.run()
    assert log == [(1.0, "a"), (1.0, "b"), (1.0, "c")]


def test_ceiling_leaves_the_rest_to_others(
    env: Environment, log: list[tuple[float, object]]
) -> None:
    """What a flow at its ceiling cannot use goes to the other flows."""
    network = FlowNetwork(env, {"link": 10.0})
    write(env, log, network.transfer(10.0, LINK, ceiling=1.0), "slow")
    write(env, log, network.transfer(90.0, LINK), "fast")
    env.run()
    assert log == [(10.0, "slow"), (10.0, "fast")]


def test_latency_uses_no_capacity(env: Environment, log: list[tuple[float, object]]) -> None:
    """The latency passes before the first byte, and meanwhile others have the unit."""
    network = FlowNetwork(env, {"link": 10.0})
    write(env, log, network.transfer(10.0, LINK, latency=1.0), "late")
    write(env, log, network.transfer(10.0, LINK), "prompt")
    env.run()
    assert log == [(1.0, "prompt"), (2.0, "late")]
    assert network.busy("link") == 2.0


def test_nothing_to_carry_takes_only_the_latency(env: Environment) -> None:
    """An amount of zero waits for the latency and nobody else."""
    network = FlowNetwork(env, {"link": 1.0})
    network.transfer(100.0, LINK)
    env.run(network.transfer(0.0, LINK, latency=0.25))
    assert env.now == 0.25


@pytest.mark.parametrize(("ceiling", "end"), [(math.inf, 0.5), (4.0, 3.0)])
def test_empty_route_is_limited_by_the_ceiling_only(
    env: Environment, ceiling: float, end: float
) -> None:
    """Without units only the ceiling and the latency count."""
    network = FlowNetwork(env, {})
    env.run(network.transfer(10.0, [], ceiling=ceiling, latency=0.5))
    assert env.now == end


def test_unit_without_limit_limits_nobody(env: Environment) -> None:
    """An infinite unit is passed in no time and is never busy."""
    network = FlowNetwork(env, {"ether": math.inf})
    env.run(network.transfer(1e12, [("ether", 1.0)]))
    assert env.now == 0.0
    assert network.busy("ether") == 0.0


def test_disk_is_limited_by_bandwidth_or_by_requests(env: Environment) -> None:
    """A disk of 100 B/s and 10 requests/s is bound by requests when they are of 5 B."""
    disk = FlowNetwork(env, {"bytes": 100.0, "requests": 10.0})
    env.run(disk.transfer(100.0, [("bytes", 1.0), ("requests", 1 / 5)]))
    assert env.now == 2.0
    assert disk.busy("requests") == 2.0
    assert disk.busy("bytes") == 1.0


def test_utilization_is_told_when_it_changes(env: Environment) -> None:
    """The listener gets one entry for each change of each unit, none for a mere change of flows."""
    told: list[tuple[float, object, float]] = []
    network = FlowNetwork(env, {"link": 10.0}, on_change=lambda *entry: told.append(entry))
    network.transfer(10.0, LINK, ceiling=5.0)
    later(env, 1.0, lambda: network.transfer(5.0, LINK))
    env.run()
    assert told == [(0, "link", 0.5), (1.0, "link", 1.0), (2.0, "link", 0.0)]
    assert network.utilization("link") == 0.0


def test_arrivals_of_one_instant_are_solved_once(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred flows started and ended together cost one solution, not two hundred."""
    solved: list[Sequence[FlowGroup]] = []

    def counted(capacities: Mapping[str, float], groups: Sequence[FlowGroup]) -> list[float]:
        solved.append(groups)
        return fair_rates(capacities, groups)

    monkeypatch.setattr("simulator.engine.flows.fair_rates", counted)
    network = FlowNetwork(env, {"link": 10.0})
    for _ in range(100):
        network.transfer(10.0, LINK)
    env.run()
    assert env.now == pytest.approx(100.0)
    assert len(solved) == 1


def test_many_more_states_than_are_remembered_lose_no_busy_time(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgetting solved states keeps the account of busy time."""
    monkeypatch.setattr("simulator.engine.flows._REMEMBERED", 3)
    network = FlowNetwork(env, {"link": 1.0})
    for amount in range(1, 11):
        network.transfer(float(amount), LINK)
    env.run()
    assert env.now == pytest.approx(55.0)
    assert network.busy("link") == pytest.approx(55.0)


def test_a_batch_that_never_empties_keeps_its_precision(
    env: Environment, log: list[tuple[float, object]]
) -> None:
    """After 3e13 units of service, flows of 1 and of 5 units are still told apart."""
    network = FlowNetwork(env, {"link": 3e13})
    network.transfer(1e15, LINK)
    env.run(until=1.0)
    for amount in (1.0, 5.0):
        write(env, log, network.transfer(amount, LINK), amount)
    env.run(until=2.0)
    (first, _), (second, _) = log
    assert first - 1.0 == pytest.approx(1 / 1e13, rel=0.01, abs=0.0)
    assert second - first == pytest.approx(4 / 1.5e13, rel=0.01, abs=0.0)


def test_clock_that_cannot_resolve_a_transfer_does_not_stall(env: Environment) -> None:
    """Transfers shorter than the clock's resolution end in no time instead of never."""
    network = FlowNetwork(env, {"link": 1e12})

    def churn() -> Generator[Event, None, None]:
        yield env.timeout(1e9)
        for _ in range(100):
            yield network.transfer(1.0, LINK)

    env.run(env.process(churn()))
    assert env.now == pytest.approx(1e9)


@pytest.mark.parametrize(
    ("amount", "route", "ceiling"),
    [(-1.0, LINK, 1.0), (math.nan, LINK, 1.0), (1.0, LINK, 0.0), (1.0, [("link", -1.0)], 1.0)],
)
def test_nonsense_is_refused(
    env: Environment, amount: float, route: list[tuple[str, float]], ceiling: float
) -> None:
    """Negative amounts, coefficients and ceilings are errors that show the value."""
    network = FlowNetwork(env, {"link": 1.0})
    with pytest.raises(ValueError, match=r"must be"):
        network.transfer(amount, route, ceiling=ceiling)


def test_negative_latency_is_refused(env: Environment) -> None:
    """A flow cannot start in the past."""
    with pytest.raises(ValueError, match="latency"):
        FlowNetwork(env, {"link": 1.0}).transfer(1.0, LINK, latency=-1.0)


def test_unit_that_carries_nothing_is_refused(env: Environment) -> None:
    """A capacity of zero would never end; it is an error."""
    with pytest.raises(ValueError, match="capacity of link"):
        FlowNetwork(env, {"link": 0.0})


def test_unknown_unit_is_refused(env: Environment) -> None:
    """A route over a unit that the network lacks is an error at once."""
    with pytest.raises(KeyError):
        FlowNetwork(env, {}).transfer(1.0, LINK)


def test_infinite_flow_of_a_group_without_limit() -> None:
    """A group that nothing limits has an infinite rate."""
    assert fair_rates({}, [FlowGroup(route=())]) == [math.inf]
