"""The engine's servers against queueing theory.

A random run is compared with theory by its own confidence interval: the mean response of
successive batches of customers after a warm-up, 99.9% two-sided by Student's t. Seeds are fixed,
so a run that passes always passes.

References: L. Kleinrock, "Queueing Systems", vol. 1 and 2, Wiley 1975 and 1976 (chapters cited
as K1, K2); E. Lazowska et al., "Quantitative System Performance", Prentice Hall 1984,
https://homes.cs.washington.edu/~lazowska/qsp/ (QSP).
"""

import math
from collections.abc import Callable, Generator, Iterable
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from simpy import Environment, Event

from simulator.engine.cpu_pool import CpuPool
from simulator.engine.flows import FlowNetwork
from simulator.engine.machine import Stream
from simulator.engine.rank import Barrier

Floats: TypeAlias = NDArray[np.float64]
Serve: TypeAlias = Callable[[float], Event]
Works: TypeAlias = Callable[[int], float]
Server: TypeAlias = Callable[[Environment], Serve]

CUSTOMERS = 40_000
WARM_UP = CUSTOMERS // 10
BATCHES = 20
CONFIDENCE = 0.999


def stream(env: Environment) -> Serve:
    """Return a first-in first-out server of one unit of work per second."""
    return Stream(env).run


def link(env: Environment) -> Serve:
    """Return a shared unit of one unit of work per second."""
    network = FlowNetwork(env, {"link": 1.0})
    route = (("link", 1.0),)
    return lambda work: network.transfer(work, route)


def pool(cores: int, threads: int, smt_worth: float) -> Server:
    """Return a maker of CPU pools."""

    def make(env: Environment) -> Serve:
        return CpuPool(env, cores=cores, threads=threads, smt_worth=smt_worth).run

    return make


def channels(number: int) -> Server:
    """Return a maker of links that carry at most one per flow."""

    def make(env: Environment) -> Serve:
        network = FlowNetwork(env, {"link": float(number)})
        route = (("link", 1.0),)
        return lambda work: network.transfer(work, route, ceiling=1.0)

    return make


def responses(server: Server, gaps: Iterable[float], works: Iterable[float]) -> Floats:
    """Return the time from arrival to departure of each customer, in order of arrival."""
    env = Environment()
    serve = server(env)
    arrived: list[float] = []
    left: dict[int, float] = {}

    def leave(number: int) -> Callable[[Event], None]:
        return lambda _: left.update({number: env.now})

    def source() -> Generator[Event, None, None]:
        for number, (gap, work) in enumerate(zip(gaps, works, strict=True)):
            yield env.timeout(gap)
            arrived.append(env.now)
            serve(work).callbacks.append(leave(number))

    env.process(source())
    env.run()
    return np.array([left[number] for number in range(len(arrived))]) - np.array(arrived)


def assert_mean(observed: Floats, theory: float) -> None:
    """Check that the theoretical mean lies in the interval of the observed batch means."""
    means = observed[len(observed) % BATCHES :].reshape(BATCHES, -1).mean(axis=1)
    quantile = stats.t.ppf((1.0 + CONFIDENCE) / 2.0, BATCHES - 1)
    half_width = quantile * means.std(ddof=1) / math.sqrt(BATCHES)
    assert half_width < theory / 4.0, "the run is too short to tell anything"
    assert abs(means.mean() - theory) <= half_width


def poisson(seed: int, rate: float) -> tuple[np.random.Generator, list[float]]:
    """Return a generator and the gaps between Poisson arrivals."""
    draw = np.random.default_rng(seed)
    return draw, draw.exponential(1.0 / rate, CUSTOMERS).tolist()


def exponential(draw: np.random.Generator) -> Floats:
    """Return services of mean 1 and squared coefficient of variation 1."""
    return draw.exponential(1.0, CUSTOMERS)


def constant(_: np.random.Generator) -> Floats:
    """Return services of exactly 1."""
    return np.ones(CUSTOMERS)


def hyperexponential(draw: np.random.Generator) -> Floats:
    """Return services of mean 1: short ones of 1/2 and, one in seven, long ones of 4 on average."""
    means = np.where(draw.random(CUSTOMERS) < 1 / 7, 4.0, 0.5)
    services: Floats = draw.exponential(means)
    return services


def birth_death_response(arrival: float, capacity: Callable[[int], float]) -> float:
    """Return the mean response of Poisson arrivals served at `capacity(n)` by n, mean work 1."""
    weights = list(accumulate(range(1, 2000), lambda w, n: w * arrival / capacity(n), initial=1.0))
    return sum(n * w for n, w in enumerate(weights)) / sum(weights) / arrival


@pytest.mark.parametrize("server", [stream, link, pool(1, 1, 0.0)], ids=["FIFO", "link", "CPU"])
def test_mm1_mean_response(server: Server) -> None:
    """M/M/1: the mean response is 1 / (mu - lambda) (K1 ch. 3), in turn or shared."""
    draw, gaps = poisson(1, 0.6)
    observed = responses(server, gaps, exponential(draw).tolist())
    assert_mean(observed[WARM_UP:], 1.0 / (1.0 - 0.6))


def test_mm1_response_is_exponential() -> None:
    """M/M/1 in turn: the response is exponential (K1 ch. 5), checked at two quantiles."""
    draw, gaps = poisson(2, 0.5)
    observed = responses(stream, gaps, exponential(draw).tolist())[WARM_UP:]
    for share in (0.5, 0.9):
        quantile = -math.log(1.0 - share) / (1.0 - 0.5)
        assert_mean((observed > quantile).astype(float), 1.0 - share)


def test_md1_mean_response() -> None:
    """M/D/1: the mean wait is rho / (2 (1 - rho)) services (K1 ch. 5), half of M/M/1's."""
    draw, gaps = poisson(3, 0.7)
    observed = responses(stream, gaps, constant(draw).tolist())
    assert_mean(observed[WARM_UP:], 1.0 + 0.7 / (2.0 * (1.0 - 0.7)))


def test_mg1_mean_response_in_turn() -> None:
    """M/G/1: the mean wait is lambda E[S^2] / (2 (1 - rho)), Pollaczek-Khinchin (K1 ch. 5)."""
    draw, gaps = poisson(4, 0.4)
    observed = responses(stream, gaps, hyperexponential(draw).tolist())
    second_moment = 2.0 * (4.0**2 / 7 + 0.5**2 * 6 / 7)
    assert_mean(observed[WARM_UP:], 1.0 + 0.4 * second_moment / (2.0 * (1.0 - 0.4)))


@pytest.mark.slow
@pytest.mark.parametrize("server", [link, pool(1, 1, 0.0)], ids=["link", "CPU"])
@pytest.mark.parametrize("works", [constant, exponential, hyperexponential])
def test_mg1_processor_sharing_is_insensitive(
    server: Server, works: Callable[[np.random.Generator], Floats]
) -> None:
    """M/G/1 shared: the mean response is E[S] / (1 - rho) for any services (K2 ch. 4)."""
    draw, gaps = poisson(5, 0.6)
    observed = responses(server, gaps, works(draw).tolist())
    assert_mean(observed[WARM_UP:], 1.0 / (1.0 - 0.6))


def test_processor_sharing_is_fair_to_every_size() -> None:
    """M/G/1 shared: a service of x takes x / (1 - rho) on average (K2 ch. 4)."""
    draw, gaps = poisson(6, 0.5)
    works = hyperexponential(draw)
    observed = responses(link, gaps, works.tolist())
    assert_mean((observed / works)[WARM_UP:], 1.0 / (1.0 - 0.5))


@pytest.mark.parametrize("server", [pool(4, 4, 0.0), channels(4)], ids=["CPU", "link"])
def test_mmc_mean_response(server: Server) -> None:
    """M/M/c: the mean response is 1 / mu + C(c, a) / (c mu - lambda), Erlang (K1 ch. 3)."""
    cores, load = 4, 3.0
    draw, gaps = poisson(7, load)
    observed = responses(server, gaps, exponential(draw).tolist())
    waiting = load**cores / math.factorial(cores) * cores / (cores - load)
    waiting /= waiting + sum(load**n / math.factorial(n) for n in range(cores))
    assert_mean(observed[WARM_UP:], 1.0 + waiting / (cores - load))


def test_second_hardware_threads_are_a_birth_death_process() -> None:
    """A pool with second threads worth 0.3 is a birth-death process (K1 ch. 3)."""
    cores, threads, worth, load = 2, 4, 0.3, 2.2
    draw, gaps = poisson(8, load)
    observed = responses(pool(cores, threads, worth), gaps, exponential(draw).tolist())

    def capacity(n: int) -> float:
        return min(n, cores) + worth * max(0, min(n, threads) - cores)

    assert_mean(observed[WARM_UP:], birth_death_response(load, capacity))


def test_utilization_is_the_offered_load() -> None:
    """The busy share of every kind of server is arrival rate times mean work (QSP ch. 3)."""
    gaps, works = [2.0] * 1000, [0.5] * 1000
    env = Environment()
    one, shared = Stream(env), FlowNetwork(env, {"link": 1.0})
    cores = CpuPool(env, cores=1, threads=1, smt_worth=0.0)

    def source() -> Generator[Event, None, None]:
        for gap, work in zip(gaps, works, strict=True):
            one.run(work)
            shared.transfer(work, [("link", 1.0)])
            cores.run(work)
            yield env.timeout(gap)

    env.run(env.process(source()))
    assert [one.busy(), shared.busy("link"), cores.busy()] == pytest.approx([500.0] * 3)


@given(st.lists(st.floats(0.125, 8.0), min_size=1, max_size=3), st.integers(1, 20))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_tandem_of_constant_services(services: list[float], customers: int) -> None:
    """D/D/1 in tandem: the n-th of a burst leaves after all services and n - 1 of the longest."""
    env = Environment()
    line = [Stream(env) for _ in services]
    left: list[float] = []

    def customer() -> Generator[Event, None, None]:
        for server, service in zip(line, services, strict=True):
            yield server.run(service)
        left.append(env.now)

    for _ in range(customers):
        env.process(customer())
    env.run()
    expected = [sum(services) + n * max(services) for n in range(customers)]
    assert left == pytest.approx(expected)


def circulate(env: Environment, customers: int, stations: Iterable[Serve], works: Works) -> None:
    """Have customers go round the stations for ever."""
    line = list(stations)

    def customer() -> Generator[Event, None, None]:
        while True:
            for number, serve in enumerate(line):
                yield serve(works(number))

    for _ in range(customers):
        env.process(customer())


@pytest.mark.parametrize("customers", [1, 2, 3, 4, 8])
def test_closed_network_of_constant_services(customers: int) -> None:
    """Throughput is the smaller of N / sum of demands and 1 / largest demand (QSP ch. 5)."""
    demands = [1.0, 2.0, 0.5]
    env = Environment()
    line = [Stream(env) for _ in demands]
    circulate(env, customers, [server.run for server in line], demands.__getitem__)
    env.run(until=100.0)
    before = line[1].busy()
    env.run(until=100.0 + 7.0 * 20)
    throughput = (line[1].busy() - before) / demands[1] / 140.0
    assert throughput == pytest.approx(min(customers / sum(demands), 1.0 / max(demands)))


def mean_value_analysis(demands: list[float], customers: int) -> float:
    """Return the throughput of a closed product-form network (QSP ch. 6)."""
    queues = [0.0] * len(demands)
    throughput = 0.0
    for population in range(1, customers + 1):
        times = [d * (1.0 + queue) for d, queue in zip(demands, queues, strict=True)]
        throughput = population / sum(times)
        queues = [throughput * time for time in times]
    return throughput


def test_closed_network_of_random_services() -> None:
    """Throughput of a stream, a link and a core in a ring is that of mean value analysis."""
    demands = [1.0, 0.8, 0.4]
    env = Environment()
    first = Stream(env)
    draw = np.random.default_rng(9)
    stations = [first.run, link(env), pool(1, 1, 0.0)(env)]
    circulate(env, 4, stations, lambda station: demands[station] * draw.exponential())
    env.run(until=1000.0)
    spans = []
    for _ in range(BATCHES):
        before, start = first.busy(), env.now
        env.run(until=start + 1000.0)
        spans.append((first.busy() - before) / 1000.0)
    assert_mean(np.array(spans), mean_value_analysis(demands, 4) * demands[0])


@given(
    st.lists(
        st.tuples(st.floats(0.0, 4.0), st.floats(0.01, 4.0)),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_work_is_conserved(customers: list[tuple[float, float]]) -> None:
    """Servers that never idle with work there end at one time, in turn or shared."""
    gaps, works = zip(*customers, strict=True)
    arrivals = list(accumulate(gaps))
    last = [
        max(responses(server, gaps, works) + np.array(arrivals))
        for server in (stream, link, pool(1, 1, 0.0))
    ]
    unfinished = 0.0
    for gap, work in customers:
        unfinished = max(0.0, unfinished - gap) + work
    assert last == pytest.approx([arrivals[-1] + unfinished] * 3)


def test_barrier_of_exponential_ranks() -> None:
    """The step of N ranks is the maximum of N draws: the harmonic number H_N in the mean."""
    ranks, steps = 8, 4000
    env = Environment()
    barrier = Barrier(env, ranks)
    draw = np.random.default_rng(10)
    opened: list[float] = [0.0]

    def rank(number: int) -> Generator[Event, None, None]:
        for work in draw.exponential(1.0, steps).tolist():
            yield env.timeout(work)
            yield barrier.wait()
            if number == 0:
                opened.append(env.now)

    for number in range(ranks):
        env.process(rank(number))
    env.run()
    assert_mean(np.diff(opened), sum(1.0 / n for n in range(1, ranks + 1)))
