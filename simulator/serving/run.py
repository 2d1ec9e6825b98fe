"""All replicas of a service under its load: a finite run, or one to the steady state."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from simulator.equations.serving import causal_pairs
from simulator.physics.forward_pass import Iteration
from simulator.results.serving import Answered, Saturation
from simulator.schema.serving import Load, OpenLoop, RateCurve, Service, Trace
from simulator.serving.clients import Clients
from simulator.serving.engine import Replica
from simulator.serving.fleet import Fleet, run
from simulator.serving.inputs import Inputs
from simulator.serving.latencies import Ran, answered
from simulator.serving.layout import Layout, Side, mean_transfer
from simulator.serving.links import links_of, links_of_both, with_clients, with_inputs
from simulator.serving.load import Requests, requests_of, usual_count
from simulator.serving.saturation import LEAST, ROUGHLY, saturation_rates
from simulator.serving.split import Line, run_split
from simulator.units import PerSecond, Seconds

FEWEST: Final = 2000
MOST: Final = 8000
"""Requests of a run to the steady state, at least and at most."""
STAYS: Final = 40.0
"""Times that one request alone would take which such a run lasts at least."""
TOGETHER: Final = 16
"""Replicas that a run to the steady state simulates together, at most.

Those of a larger fleet do as so many of them do with their share of the load.
"""


def offered_rate(service: Service) -> PerSecond | None:
    """Requests that arrive in a second whatever becomes of them; None for clients that wait.

    Of a rate that rises and falls it is the peak.
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
    """A service whose load rises and falls as it is at the peak, with all its replicas."""
    load, ways = service.load, service.load.arrivals
    if not isinstance(ways, RateCurve):
        return service
    steady = replace(load, arrivals=OpenLoop(rate=ways.rate), requests=None)
    return replace(service, load=steady, serving=replace(service.serving, autoscaling=None))


class ServiceRun:
    """One service at one speed of the forward pass."""

    def __init__(self, service: Service, layout: Layout, seed: int) -> None:
        self.service, self.layout, self.seed = service, layout, seed

    def saturation(self, *, rough: bool = False) -> Saturation:
        """The most that the replicas complete for ever, and how far the load is from it."""
        least = ROUGHLY if rough else LEAST
        rate, tokens = saturation_rates(self.service, self.layout, self.seed, least)
        return saturated(rate, tokens, offered_rate(self.service))

    def answered(self, saturation: Saturation | None) -> Answered | None:
        """What requests see; None where a load that goes on for ever is beyond saturation.

        One that has an end asks for none.
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
        """What so many requests of a load see from a share of the replicas."""
        layout, service = self.layout, self.service
        most = min(side.pool.tokens for side in (layout.main, layout.prompts) if side is not None)
        requests = requests_of(load, count, self.seed, most)
        ran = self._ran(requests, share)
        serving = layout.main.serving
        pace = 1.0 if serving.speculation is None else serving.speculation.accepted
        blocks, lag = layout.main.pool.blocks, pace * serving.reply_lag
        return answered(requests, ran, service.slo, blocks=blocks, steady=steady, lag=lag)

    def _ran(self, requests: Requests, share: float) -> Ran:
        """Have a share of the replicas answer requests."""
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
        """Those that send requests to replicas of a kind; None where that takes nothing."""
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
        """The share of the replicas, and the requests, of a run until all is steady."""
        serving = self.layout.main.serving
        before = self.layout.prompts
        # Groups with the same numbers of both kinds; one replica where there is one kind.
        groups = math.gcd(
            serving.replicas, serving.replicas if before is None else before.serving.replicas
        )
        each = STAYS * alone(self.service, self.layout) * rate / groups
        fewest = 1.0 if before is not None else 2.0
        most = int(min(TOGETHER, max(fewest, MOST / max(1.0, each))))
        together = min(groups, most)
        return together / groups, int(min(MOST, max(FEWEST, together * each)))


def alone(service: Service, layout: Layout) -> Seconds:
    """What a mean request takes that has all replicas to itself [s]."""
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
    """Tokens of a prompt that lie in the cache already."""
    shared = min(
        prompt, load.shared_prefix // side.serving.block_tokens * side.serving.block_tokens
    )
    return shared + int(load.prefix_hit_rate * (prompt - shared))


def _together(part: Answered, times: float, offered: PerSecond) -> Answered:
    """What so many times the replicas do that were simulated.

    `offered` is the rate of arrivals at these: in a run without end what arrives is answered,
    however many came by chance in a shorter one.
    """
    flows = ("request_rate", "prompt_rate", "output_rate", "goodput", "running", "waiting")
    longer = times * offered / part.request_rate
    found = {name: longer * getattr(part, name) for name in flows}
    for name in ("iterations", "preemptions"):
        found[name] = round(times * getattr(part, name))
    return replace(part, **found, replicas=times * part.replicas)


def saturated(rate: PerSecond, tokens: PerSecond, offered: PerSecond | None) -> Saturation:
    """What a load is beside the most requests and output tokens a second."""
    return Saturation(
        request_rate=rate,
        output_rate=tokens,
        headroom=None if not offered else rate / offered,
        drift=None if offered is None else max(0.0, offered - rate),
    )
