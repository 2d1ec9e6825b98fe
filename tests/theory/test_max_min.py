"""Max-min fairness: closed forms, its defining property, and flows against a naive solver."""

import math
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy import Environment, Event

from simulator.engine.flows import FlowGroup, FlowNetwork, Route, fair_rates

INFINITY = math.inf
checked = settings(max_examples=80, deadline=None, derandomize=True)


def over(*units: str) -> Route:
    """Return the route that uses each unit once."""
    return tuple((unit, 1.0) for unit in units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A transfer to be made: all numbers exact."""

    start: int
    amount: int
    route: tuple[tuple[str, int], ...]
    ceiling: int | None


def finish_times(
    capacities: Mapping[str, float], flows: Sequence[Flow], *, size: float = 1.0
) -> tuple[list[float], FlowNetwork, Environment]:
    """Return when each flow ends in the engine, amounts, rates and capacities times `size`."""
    env = Environment()
    network = FlowNetwork(env, {unit: size * c for unit, c in capacities.items()})
    finish = [math.nan] * len(flows)

    def one(number: int, flow: Flow) -> Generator[Event, None, None]:
        yield env.timeout(flow.start)
        ceiling = INFINITY if flow.ceiling is None else size * flow.ceiling
        yield network.transfer(size * flow.amount, flow.route, ceiling=ceiling)
        finish[number] = env.now

    for number, flow in enumerate(flows):
        env.process(one(number, flow))
    env.run()
    return finish, network, env


def naive_rates(capacities: Mapping[str, int], flows: Sequence[Flow]) -> list[Fraction]:
    """Return max-min rates by raising one flow at a time by hand, exactly and unfolded."""
    rates: dict[int, Fraction] = {}
    while len(rates) < len(flows):
        rising = [i for i in range(len(flows)) if i not in rates]
        levels: list[tuple[Fraction, list[int]]] = [
            (Fraction(ceiling), [i]) for i in rising if (ceiling := flows[i].ceiling) is not None
        ]
        for unit, capacity in capacities.items():
            slope = sum(c for i in rising for u, c in flows[i].route if u == unit)
            used = sum((rates[i] * c for i in rates for u, c in flows[i].route if u == unit))
            if slope:
                passing = [i for i in rising if any(u == unit for u, _ in flows[i].route)]
                levels.append(((capacity - used) / Fraction(slope), passing))
        level, stopped = min(levels, key=lambda entry: entry[0])
        rates |= dict.fromkeys(stopped, level)
    return [rates[i] for i in range(len(flows))]


def naive_finish_times(capacities: Mapping[str, int], flows: Sequence[Flow]) -> list[Fraction]:
    """Return when each flow ends, from event to event in exact arithmetic."""
    now = Fraction(0)
    left = {i: Fraction(flow.amount) for i, flow in enumerate(flows)}
    finish: dict[int, Fraction] = {}
    while left:
        there = [i for i in left if flows[i].start <= now]
        rates = dict(zip(there, naive_rates(capacities, [flows[i] for i in there]), strict=True))
        starts = [Fraction(flows[i].start) for i in left if flows[i].start > now]
        until = min([now + left[i] / rates[i] for i in there] + starts)
        for i in there:
            left[i] -= rates[i] * (until - now)
            if not left[i]:
                finish[i] = until
                del left[i]
        now = until
    return [finish[i] for i in range(len(flows))]


UNITS = ("a", "b", "c", "d")
capacities_drawn = st.fixed_dictionaries({unit: st.integers(1, 50) for unit in UNITS})
flow_drawn = st.builds(
    Flow,
    start=st.integers(0, 6),
    amount=st.integers(1, 100),
    route=st.dictionaries(st.sampled_from(UNITS), st.integers(1, 3), min_size=1).map(
        lambda uses: tuple(sorted(uses.items()))
    ),
    ceiling=st.none() | st.integers(1, 30),
)
flows_drawn = st.lists(flow_drawn, min_size=1, max_size=12)
twins_drawn = st.tuples(flows_drawn, st.integers(1, 4)).map(lambda drawn: drawn[0] * drawn[1])


def test_two_links_three_flows() -> None:
    """Links of 1 and 2: the long flow and the first get 1/2, the second link's own gets 3/2."""
    groups = [FlowGroup(route=over("a", "b")), *(FlowGroup(route=over(u)) for u in "ab")]
    assert fair_rates({"a": 1.0, "b": 2.0}, groups) == [0.5, 0.5, 1.5]


@pytest.mark.parametrize("links", [1, 2, 5, 50])
def test_parking_lot(links: int) -> None:
    """A flow over all of n equal links and one flow on each: everybody gets a half."""
    names = [f"l{i}" for i in range(links)]
    groups = [FlowGroup(route=over(*names)), *(FlowGroup(route=over(name)) for name in names)]
    assert fair_rates(dict.fromkeys(names, 1.0), groups) == [0.5] * (links + 1)


def test_what_bottlenecked_flows_leave_goes_to_others() -> None:
    """Three flows fill one link at 1/3 each; another link's second flow gets the 2/3 left there."""
    network = dict.fromkeys(("12", "23", "35", "45"), 1.0)
    routes = [over("12", "23"), over("23"), over("23", "35"), over("35"), over("45")]
    rates = fair_rates(network, [FlowGroup(route=route) for route in routes])
    assert rates == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3, 1.0])


def test_water_filling_over_ceilings() -> None:
    """Ceilings 1, 2, 8, none on 12: the water stands at 4.5 for those who can take it."""
    groups = [FlowGroup(route=over("a"), ceiling=c) for c in (1.0, 2.0, 8.0, INFINITY)]
    assert fair_rates({"a": 12.0}, groups) == [1.0, 2.0, 4.5, 4.5]


def test_use_of_a_unit_counts_by_its_coefficient() -> None:
    """Equal rates, unequal use: coefficients 1 and 3 on a unit of 8 give 2 each."""
    groups = [FlowGroup(route=(("a", coefficient),)) for coefficient in (1.0, 3.0)]
    assert fair_rates({"a": 8.0}, groups) == [2.0, 2.0]


def test_group_of_many_counts_as_many() -> None:
    """Three in one group have the rates of three groups of one."""
    ones = fair_rates({"a": 4.0}, [FlowGroup(route=over("a"))] * 4)
    reduction = [FlowGroup(route=over("a"), count=3), FlowGroup(route=over("a"))]
    assert fair_rates({"a": 4.0}, reduction) == ones[:2] == [1.0, 1.0]


@given(capacities_drawn, twins_drawn)
@checked
def test_allocation_is_max_min_fair(capacities: dict[str, int], flows: list[Flow]) -> None:
    """Every flow is at its ceiling or passes a full unit where nobody is faster; none is over."""
    counts = Counter((flow.route, flow.ceiling or INFINITY) for flow in flows)
    groups = [
        FlowGroup(route=route, ceiling=ceiling, count=count)
        for (route, ceiling), count in counts.items()
    ]
    rates = fair_rates(capacities, groups)
    used = dict.fromkeys(UNITS, 0.0)
    fastest = dict.fromkeys(UNITS, 0.0)
    for group, rate in zip(groups, rates, strict=True):
        for unit, coefficient in group.route:
            used[unit] += group.count * coefficient * rate
            fastest[unit] = max(fastest[unit], rate)
    tight = 1e-9
    assert all(used[unit] <= capacities[unit] * (1.0 + tight) for unit in UNITS)
    for group, rate in zip(groups, rates, strict=True):
        assert 0.0 < rate <= group.ceiling
        assert rate == group.ceiling or any(
            used[unit] >= capacities[unit] * (1.0 - tight) and rate >= fastest[unit] * (1.0 - tight)
            for unit, _ in group.route
        )


@given(capacities_drawn, twins_drawn)
@checked
def test_folded_flows_end_when_single_ones_do(
    capacities: dict[str, int], flows: list[Flow]
) -> None:
    """Folding equal flows into classes changes no completion time."""
    expected = [float(time) for time in naive_finish_times(capacities, flows)]
    assert finish_times(capacities, flows)[0] == pytest.approx(expected, rel=1e-9)


@given(capacities_drawn, flows_drawn, st.floats(1e-9, 1e15))
@checked
def test_times_do_not_depend_on_the_unit_of_amounts(
    capacities: dict[str, int], flows: list[Flow], size: float
) -> None:
    """Bytes or gigabytes: amounts, capacities and ceilings together scale out."""
    expected = finish_times(capacities, flows)[0]
    assert finish_times(capacities, flows, size=size)[0] == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 50), st.integers(1, 50), flows_drawn)
@checked
def test_more_capacity_never_delays_the_last_on_one_unit(
    capacity: int, more: int, flows: list[Flow]
) -> None:
    """On a single unit the last flow ends no later when capacity is added."""
    single = [
        Flow(start=f.start, amount=f.amount, route=(("a", 1),), ceiling=f.ceiling) for f in flows
    ]
    before = max(finish_times({"a": capacity}, single)[0])
    assert max(finish_times({"a": capacity + more}, single)[0]) <= before * (1.0 + 1e-9)


@given(capacities_drawn, twins_drawn)
@checked
def test_busy_time_is_the_work_asked_for(capacities: dict[str, int], flows: list[Flow]) -> None:
    """No unit is busy for longer than time has passed, and each for what it carried."""
    _, network, env = finish_times(capacities, flows)
    for unit, capacity in capacities.items():
        asked = sum(f.amount * c for f in flows for u, c in f.route if u == unit)
        assert network.busy(unit) <= env.now * (1.0 + 1e-12)
        assert network.busy(unit) == pytest.approx(asked / capacity, rel=1e-9)
