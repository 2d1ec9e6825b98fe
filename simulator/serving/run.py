"""Simulated run of a service: latencies under its load, and its rate at saturation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.equations.serving import blocks_of, causal_pairs, little
from simulator.physics.forward_pass import Iteration
from simulator.records import dataclass
from simulator.results.serving import Answered, Latency, Saturation
from simulator.schema.serving import (
    Lengths,
    Load,
    OpenLoop,
    RateCurve,
    Routing,
    Service,
    Slo,
    Trace,
)
from simulator.serving.engine import Counts, Replica
from simulator.serving.fleet import (
    Clients,
    Fleet,
    Inputs,
    Line,
    links_of,
    links_of_both,
    run,
    run_split,
    with_clients,
    with_inputs,
)
from simulator.serving.layout import Layout, Side, mean_transfer
from simulator.serving.load import Requests, requests_of, usual_count
from simulator.units import PerSecond, Seconds

Times = npt.NDArray[np.float64]
BATCHES: Final = 30
"""Batches of equal numbers of requests whose means give the half-width."""
STUDENT_QUANTILE: Final = 2.045
"""Of Student's distribution with `BATCHES` - 1 degrees of freedom, for 95%."""
EDGE_SHARE: Final = 0.1
"""Share of the requests of a steady run that are left out at its beginning and at its end."""


@dataclass(frozen=True, slots=True)
class Ran:
    """Totals of a run: of decode replicas (or all), and of prefill replicas.

    `transfer` is the mean time of a request between both [s], `threads` the number of host threads
    of a replica, `links` the utilization of links by name.
    """

    counts: Counts
    prompts: Counts | None = None
    transfer: Seconds = 0.0
    threads: float = 1.0
    links: Mapping[str, float] = field(default_factory=dict)


def answered(  # noqa: PLR0913 - what a run left, and how it is read
    requests: Requests,
    ran: Ran,
    slo: Slo,
    *,
    blocks: int,
    steady: bool,
    lag: float = 0.0,
) -> Answered:
    """Return latencies, rates and SLO attainment of a run.

    Parameters
    ----------
    requests : Requests
        All requests, completed.
    ran : Ran
        Totals of the run.
    slo : Slo
        The limits.
    blocks : int
        Number of blocks of the KV cache of one replica.
    steady : bool
        Leave out start and end of the run; a benchmark or a trace counts as a whole.
    lag : float
        Iterations until a token reaches the client; each takes the request's time per token.
    """
    columns = _columns(requests)
    counted = _counted(columns["arrivals"], steady=steady)
    first, each, whole, waited = _times(columns, counted, lag)
    answers = columns["outputs"][counted]
    duration = _duration(columns, counted, steady=steady)
    rate = len(first) / duration
    kept = _kept({"first_token": first, "per_token": each, "end_to_end": whole}, slo)
    share = float(np.logical_and.reduce([*kept.values(), whole >= 0.0]).mean())
    counts = ran.counts
    provided = max(counts.provided, 1e-12)
    groups = {} if ran.prompts is None else {"prompts": ran.prompts, "answers": counts}
    return Answered(
        requests=len(first),
        duration=duration,
        first_token=_latency(first, slo.share),
        per_token=_latency(each[answers > 1.0], slo.share),
        end_to_end=_latency(whole, slo.share),
        wait=_latency(waited, slo.share),
        request_rate=rate,
        prompt_rate=float(columns["prompts"][counted].sum()) / duration,
        output_rate=float(answers.sum()) / duration,
        within={name: float(each_kept.mean()) for name, each_kept in kept.items()},
        attainment=share,
        goodput=share * rate,
        running=float(little(rate, (whole - waited).mean())),
        waiting=float(little(rate, waited.mean())),
        busy=counts.busy / provided,
        busy_of={name: each.busy / max(each.provided, 1e-12) for name, each in groups.items()},
        links=ran.links,
        transfer=ran.transfer,
        host_busy=counts.prepared / (provided * ran.threads),
        replicas=provided / max(counts.end, 1e-12),
        cache_mean=counts.held / (provided * blocks),
        cache_peak=counts.peak / blocks,
        batch=(counts.decoded or counts.prefilled) / max(1, counts.iterations),
        iterations=counts.iterations,
        preemptions=counts.preemptions,
        half_width=half_width(whole),
    )


def _times(columns: Mapping[str, Times], counted: slice, lag: float) -> tuple[Times, ...]:
    """Return times to first token, per further token, end to end, and in the queue [s]."""
    arrived = columns["arrivals"]
    first = (columns["first"] - arrived)[counted]
    whole = (columns["last"] - arrived)[counted]
    later = columns["outputs"][counted] - 1.0
    each = np.where(later > 0.0, (whole - first) / np.maximum(later, 1.0), 0.0)
    waited = (columns["scheduled"] - arrived)[counted]
    return first + lag * each, each, whole + lag * each, waited


def _duration(columns: Mapping[str, Times], counted: slice, *, steady: bool) -> Seconds:
    """Return the time over which rates are counted [s]."""
    arrived = columns["arrivals"][counted]
    stop = arrived.max() if steady else columns["last"].max()
    return max(float(stop - arrived.min()), 1e-12)


def half_width(values: Times) -> float:
    """Return the 95% half-width of the mean of values in request order, by batch means."""
    if len(values) < 2 * BATCHES:
        return float(STUDENT_QUANTILE * values.std() / max(1, len(values)) ** 0.5)
    size = len(values) // BATCHES
    means = values[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return float(STUDENT_QUANTILE * means.std(ddof=1) / BATCHES**0.5)


def _columns(requests: Requests) -> dict[str, Times]:
    """Return the attributes of all requests as arrays, in order of arrival."""
    names = ("arrivals", "prompts", "outputs", "scheduled", "first", "last")
    return {name: np.asarray(getattr(requests, name), dtype=float) for name in names}


def _counted(arrived: Times, *, steady: bool) -> slice:
    left_out = int(EDGE_SHARE * len(arrived)) if steady else 0
    return slice(left_out, len(arrived) - left_out)


def _latency(times: Times, share: float) -> Latency:
    if not len(times):
        return Latency(mean=0.0, p50=0.0, p90=0.0, p99=0.0, at_slo=0.0)
    half, most, nearly_all, limited = np.quantile(times, (0.5, 0.9, 0.99, share)).tolist()
    mean = float(times.mean())
    return Latency(mean=mean, p50=half, p90=most, p99=nearly_all, at_slo=limited)


def _kept(latencies: Mapping[str, Times], slo: Slo) -> dict[str, npt.NDArray[np.bool_]]:
    """Return for each limit of the SLO a mask of the requests that meet it."""
    return {name: latencies[name] <= limit for name, limit in slo.limits.items()}


MIN_REQUESTS: Final = 3000
MIN_REQUESTS_ROUGH: Final = 1000
"""Requests of such a run, at least: of every rate that is shown, and to rank proposed changes."""
MIN_WAVES: Final = 3
"""Times as many of them as run at once, at least."""
STRATUM: Final = 8
"""Drawn lengths whose mean is one request's length, for a rate at saturation.

The mean of the lengths is then nearly that of their distribution, for any seed.
"""


class ReplicaRates(NamedTuple):
    """Saturation of single replicas: requests per second, and mean output tokens of a request.

    `prompts` is the rate of a prefill replica, infinity without them.
    """

    requests: PerSecond
    output: float
    prompts: PerSecond = math.inf


def replica_rates(
    service: Service, layout: Layout, seed: int, least: int = MIN_REQUESTS
) -> ReplicaRates:
    """Return the rates at saturation of one replica of each kind.

    Parameters
    ----------
    service : Service
        Service with its load; its rate of arrivals has no effect.
    layout : Layout
        Replicas with their forward passes; their number has no effect.
    seed : int
        Seed of lengths.
    least : int
        Smallest number of requests to simulate.
    """
    rate, output = _side_rate(service, layout.main, seed, least)
    if layout.prompts is None:
        return ReplicaRates(rate, output)
    alone = replace(service, load=replace(service.load, output=Lengths(tokens=1.0)))
    prompts, _ = _side_rate(alone, layout.prompts, seed, least)
    return ReplicaRates(rate, output, prompts)


def saturation_rates(
    service: Service,
    layout: Layout,
    seed: int,
    least: int = MIN_REQUESTS,
    *,
    each: ReplicaRates | None = None,
) -> tuple[PerSecond, PerSecond]:
    """Return requests and output tokens per second of all replicas at saturation.

    The rate is limited by the slowest of prefill replicas, decode replicas, the transfer between
    them, and the delivery of requests. `each` are the rates of single replicas, if known.
    """
    found = replica_rates(service, layout, seed, least) if each is None else each
    rate = found.requests * layout.main.serving.replicas
    if layout.prompts is not None and layout.transfer is not None:
        between = layout.transfer.senders / mean_transfer(layout, service.load)
        rate = min(rate, layout.prompts.serving.replicas * found.prompts, between)
    rate = min(rate, let_through(service, layout))
    return rate, rate * found.output


def let_through(service: Service, layout: Layout) -> PerSecond:
    """Return the highest rate that input store and client network sustain [1/s].

    Infinity without both.
    """
    wire, reading = layout.wire, layout.reading
    sent = math.inf if wire is None else service.group.count * wire.most(service.load)
    return sent if reading is None else min(sent, reading.rate)


def _side_rate(service: Service, side: Side, seed: int, least: int) -> tuple[PerSecond, float]:
    """Return the rate of one replica at saturation [1/s], and its mean output tokens.

    All requests wait from the start, behind others that already run. Of these, long answers are
    more frequent by their length, as among the requests that run at any moment of a long run, and
    each is at a random position of its answer. The rate is that at which the waiting ones start.
    """
    every = _at_once(service, least, seed, side.pool.tokens)
    together = _at_most(side, every)
    if MIN_WAVES * together > least:
        every = _at_once(service, MIN_WAVES * together, seed, side.pool.tokens)
    every = _behind_running(every, together, seed)
    replica = Replica(side.serving, side.pool.blocks, side.work, every, side.reuse)
    run(Fleet(lambda: replica, 1, Routing.ROUND_ROBIN), every)
    starts = sorted(every.scheduled[together:])
    rate = (len(starts) - 1) / max(1e-12, starts[-1] - starts[0])
    return rate, float(np.mean(every.outputs[together:]))


def _at_once(service: Service, count: int, seed: int, most: int) -> Requests:
    load = service.load
    if isinstance(load.arrivals, Trace):
        there = len(load.arrivals.prompts)
        order = [index % there for index in range(count)]
        prompts = [load.arrivals.prompts[index] for index in order]
        longest = math.inf if load.output.tokens > 1.0 else 1
        outputs = [int(min(longest, load.arrivals.outputs[index])) for index in order]
        return Requests(prompts, outputs, [0.0] * count)
    drawn = requests_of(load, STRATUM * count, seed, most)
    draw = np.random.RandomState(seed)
    prompts, outputs = (_stratified(each, draw) for each in (drawn.prompts, drawn.outputs))
    prompts = [
        int(min(prompt, most - output)) for prompt, output in zip(prompts, outputs, strict=True)
    ]
    return Requests(prompts, outputs, [0.0] * count)


def _stratified(lengths: list[int], draw: np.random.RandomState) -> list[int]:
    """Return the means of groups of `STRATUM` neighbors of sorted lengths, in random order."""
    means = np.sort(lengths).reshape(-1, STRATUM).mean(axis=1)
    found: list[int] = np.maximum(1, np.rint(draw.permutation(means))).astype(int).tolist()
    return found


def _at_most(side: Side, every: Requests) -> int:
    """Estimate the number of running requests at saturation."""
    size = np.mean(every.prompts) + np.mean(every.outputs)
    within = side.pool.blocks // max(1, blocks_of(round(float(size)), side.serving.block_tokens))
    return max(1, min(side.serving.max_sequences, within))


def _behind_running(every: Requests, together: int, seed: int) -> Requests:
    """Return requests with `together` others before them, within their answers.

    The others are drawn from the same requests in proportion to the length of their answers.
    """
    draw = np.random.RandomState(seed)
    outputs = np.asarray(every.outputs, dtype=float)
    running = draw.choice(len(every), size=together, p=outputs / outputs.sum())
    done = (draw.random_sample(together) * (outputs[running] - 1.0)).astype(int)
    before = np.asarray(every.prompts)[running] + done
    left = outputs[running].astype(int) - done
    return Requests(
        [*before.tolist(), *every.prompts],
        [*left.tolist(), *every.outputs],
        [0.0] * (together + len(every)),
    )


MIN_STEADY_REQUESTS: Final = 2000
MAX_STEADY_REQUESTS: Final = 8000
"""Requests of a run to the steady state, at least and at most."""
MIN_LIFETIMES: Final = 40.0
"""Times that one request alone would take which such a run lasts at least."""
MAX_REPLICAS: Final = 16
"""Replicas that a run to the steady state simulates together, at most.

A larger fleet is simulated as this many replicas with their share of the load.
"""


def offered_rate(service: Service) -> PerSecond | None:
    """Return the requests per second of an open-loop load; None for a closed loop.

    For a rate that varies over time it is the peak.
    """
    ways = service.load.arrivals
    if isinstance(ways, RateCurve):
        return ways.rate
    if isinstance(ways, OpenLoop):
        return None if math.isinf(ways.rate) else ways.rate
    if isinstance(ways, Trace) and ways.arrivals[-1] > ways.arrivals[0]:
        return len(ways.arrivals) / (ways.arrivals[-1] - ways.arrivals[0])
    return None


def at_peak(service: Service) -> Service:
    """Return the service with a time-varying load at its peak, with all replicas."""
    load, ways = service.load, service.load.arrivals
    if not isinstance(ways, RateCurve):
        return service
    steady = replace(load, arrivals=OpenLoop(rate=ways.rate), requests=None)
    return replace(service, load=steady, serving=replace(service.serving, autoscaling=None))


class ServiceRun:
    """Simulated runs of one service with one layout and seed."""

    def __init__(self, service: Service, layout: Layout, seed: int) -> None:
        self.service, self.layout, self.seed = service, layout, seed

    def saturation(self, *, rough: bool = False) -> Saturation:
        """Return the sustainable rates and the headroom of the load.

        `rough` simulates fewer requests.
        """
        least = MIN_REQUESTS_ROUGH if rough else MIN_REQUESTS
        rate, tokens = saturation_rates(self.service, self.layout, self.seed, least)
        return saturated(rate, tokens, offered_rate(self.service))

    def answered(self, saturation: Saturation | None) -> Answered | None:
        """Return latencies and rates; None if an endless load is beyond saturation.

        A finite load does not use `saturation`.
        """
        load = self.service.load
        ways, count = load.arrivals, usual_count(load)
        if count is not None:
            return self._seen(load, count, 1.0, steady=False)
        if saturation is None or saturation.is_passed or not isinstance(ways, OpenLoop):
            return None
        share, count = self._steady(ways.rate)
        sources = None if ways.sources is None else max(1, round(share * ways.sources))
        part = replace(load, arrivals=replace(ways, rate=share * ways.rate, sources=sources))
        seen = self._seen(part, count, share, steady=True)
        return _together(seen, 1.0 / share, share * ways.rate)

    def _seen(self, load: Load, count: int, share: float, *, steady: bool) -> Answered:
        """Return the results of `count` requests on a share of the replicas."""
        layout, service = self.layout, self.service
        most = min(side.pool.tokens for side in (layout.main, layout.prompts) if side is not None)
        requests = requests_of(load, count, self.seed, most)
        ran = self._ran(requests, share)
        serving = layout.main.serving
        pace = 1.0 if serving.speculation is None else serving.speculation.accepted
        blocks, lag = layout.main.pool.blocks, pace * serving.reply_lag
        return answered(requests, ran, service.slo, blocks=blocks, steady=steady, lag=lag)

    def _ran(self, requests: Requests, share: float) -> Ran:
        """Run requests on a share of the replicas and return the totals."""
        layout, main = self.layout, self.layout.main
        inputs = None if layout.reading is None else Inputs(layout.reading)
        clients = self._clients(layout.prompts or main)
        if layout.prompts is None or layout.transfer is None:
            counts = run(self._fleet(main, requests, share, inputs, clients), requests)
            links = with_inputs(links_of(main, counts), inputs, counts.end)
            links = with_clients(links, clients, requests, counts)
            return Ran(counts, threads=main.serving.host_threads, links=links)
        fleet = self._fleet(main, requests, share)
        before = Requests(requests.prompts, [1] * len(requests), requests.arrivals)
        prompts = self._fleet(layout.prompts, before, share, inputs, clients)
        senders = max(1, round(share * layout.transfer.senders))
        line = Line(replace(layout.transfer, senders=senders))
        first, counts = run_split(prompts, before, line, fleet, requests)
        links = with_inputs(links_of_both(layout, first, counts, line), inputs, counts.end)
        links = with_clients(links, clients, requests, first)
        return Ran(counts, first, line.travelled / len(requests), links=links)

    def _clients(self, side: Side) -> Clients | None:
        """Return the clients of prefill or decode replicas; None if sending takes no time."""
        wire, machines = self.layout.wire, self.service.group.count
        return None if wire is None else Clients(wire, side.serving.replicas / machines)

    def _fleet(
        self,
        side: Side,
        requests: Requests,
        share: float,
        inputs: Inputs | None = None,
        clients: Clients | None = None,
    ) -> Fleet:
        serving, scaling = side.serving, side.serving.autoscaling

        def make() -> Replica:
            return Replica(serving, side.pool.blocks, side.work, requests, side.reuse)

        count = round(share * serving.replicas) if scaling is None else scaling.least
        routing = serving.router
        return Fleet(
            make, count, routing, scaling=scaling, inputs=inputs, clients=clients, seed=self.seed
        )

    def _steady(self, rate: PerSecond) -> tuple[float, int]:
        """Return the share of the replicas and the number of requests to simulate.

        They are chosen so that the run reaches a steady state.
        """
        serving = self.layout.main.serving
        before = self.layout.prompts
        # Groups with equal numbers of prefill and decode replicas; else groups of one replica.
        groups = math.gcd(
            serving.replicas, serving.replicas if before is None else before.serving.replicas
        )
        each = MIN_LIFETIMES * alone(self.service, self.layout) * rate / groups
        fewest = 1.0 if before is not None else 2.0
        most = int(min(MAX_REPLICAS, max(fewest, MAX_STEADY_REQUESTS / max(1.0, each))))
        together = min(groups, most)
        return together / groups, int(
            min(MAX_STEADY_REQUESTS, max(MIN_STEADY_REQUESTS, together * each))
        )


def alone(service: Service, layout: Layout) -> Seconds:
    """Return the end-to-end time of a mean request on an idle service [s]."""
    load, main = service.load, layout.main
    first = layout.prompts or main
    prompt, output = max(1, round(load.prompt.mean)), max(1, round(load.output.mean))
    computed = max(1, prompt - _reused(load, first, prompt))
    pairs = float(causal_pairs(computed, prompt - computed))
    time = first.work.seconds(
        Iteration(prefill_tokens=computed, prefill_pairs=pairs, first_tokens=1)
    )
    speculation = main.serving.speculation
    pace = 1.0 if speculation is None else speculation.accepted
    iterations = math.ceil((output - 1) / pace)
    later = main.work.decode_seconds(1, prompt + 1.0, iterations) if iterations else 0.0
    serving = first.serving
    sent = serving.request_overhead + serving.prompt_overhead * prompt
    lag = serving.reply_lag * later / max(1, iterations)
    return sent + time + mean_transfer(layout, load) + later + lag


def _reused(load: Load, side: Side, prompt: int) -> int:
    """Return the number of prompt tokens that are in the prefix cache."""
    shared = min(
        prompt, load.shared_prefix // side.serving.block_tokens * side.serving.block_tokens
    )
    return shared + int(load.prefix_hit_rate * (prompt - shared))


def _together(part: Answered, times: float, offered: PerSecond) -> Answered:
    """Return the results of the simulated replicas, scaled to all replicas.

    There are `times` as many. `offered` is the arrival rate at the simulated ones. In an endless
    run all arriving requests are answered, so the rate of answers is that of arrivals.
    """
    flows = ("request_rate", "prompt_rate", "output_rate", "goodput", "running", "waiting")
    longer = times * offered / part.request_rate
    found = {name: longer * getattr(part, name) for name in flows}
    for name in ("iterations", "preemptions"):
        found[name] = round(times * getattr(part, name))
    return replace(part, **found, replicas=times * part.replicas)


def saturated(rate: PerSecond, tokens: PerSecond, offered: PerSecond | None) -> Saturation:
    """Return the saturation of a service with an offered load.

    `rate` and `tokens` are its highest requests and output tokens per second.
    """
    return Saturation(
        request_rate=rate,
        output_rate=tokens,
        headroom=None if not offered else rate / offered,
        drift=None if offered is None else max(0.0, offered - rate),
    )
