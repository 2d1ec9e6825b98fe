"""All replicas of a service under its load: a finite run, or one to the steady state."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from simulator.compute.forward_pass import Iteration
from simulator.equations.serving import causal_pairs
from simulator.results.serving import Answered, Saturation
from simulator.scenario.serving import Load, OpenLoop, RateCurve, Service, Trace
from simulator.serving.engine import Replica
from simulator.serving.fleet import Fleet, run
from simulator.serving.forward import Pass
from simulator.serving.kv_pool import Pool
from simulator.serving.latencies import answered
from simulator.serving.load import requests_of, usual_count
from simulator.serving.saturation import saturation_rates
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

    def __init__(self, service: Service, work: Pass, pool: Pool, seed: int) -> None:
        self.service, self.work, self.pool, self.seed = service, work, pool, seed

    def saturation(self) -> Saturation:
        """The most that the replicas complete for ever, and how far the load is from it."""
        service, replicas = self.service, self.service.serving.replicas
        found = saturation_rates(service, self.work, self.pool, self.seed)
        rate, tokens = (replicas * each for each in found)
        return saturated(rate, tokens, offered_rate(service))

    def answered(self, saturation: Saturation) -> Answered | None:
        """What requests see; None where a load that goes on for ever is beyond saturation."""
        load, replicas = self.service.load, self.service.serving.replicas
        ways, count = load.arrivals, usual_count(load)
        if count is not None:
            return self._seen(load, count, replicas, steady=False)
        if saturation.is_passed or not isinstance(ways, OpenLoop):
            return None
        together, count = self._steady(ways.rate / replicas)
        share = replace(load, arrivals=replace(ways, rate=ways.rate * together / replicas))
        part = self._seen(share, count, together, steady=True)
        return _together(part, replicas / together, ways.rate / replicas * together)

    def _seen(self, load: Load, count: int, replicas: int, *, steady: bool) -> Answered:
        """What so many requests of a load see from so many replicas."""
        serving, blocks = self.service.serving, self.pool.blocks
        requests = requests_of(load, count, self.seed, self.pool.tokens)

        def make() -> Replica:
            return Replica(serving, blocks, self.work, requests, load.shared_prefix)

        scaling = serving.autoscaling
        there = replicas if scaling is None else scaling.least
        fleet = Fleet(make, there, serving.routing, scaling=scaling, seed=self.seed)
        counts, lag = run(fleet, requests), serving.reply_lag
        slo = self.service.slo
        return answered(requests, counts, slo, blocks=blocks, steady=steady, lag=lag)

    def _steady(self, rate: PerSecond) -> tuple[int, int]:
        """Replicas and requests of a run until all is steady, at the rate of one replica."""
        each = STAYS * alone(self.service, self.work) * rate
        most = int(min(TOGETHER, max(2.0, MOST / max(1.0, each))))
        together = min(self.service.serving.replicas, most)
        return together, int(min(MOST, max(FEWEST, together * each)))


def alone(service: Service, work: Pass) -> Seconds:
    """What a mean request takes that has a replica to itself [s]."""
    load = service.load
    prompt, output = max(1, round(load.prompt.mean)), max(1, round(load.output.mean))
    pairs = float(causal_pairs(prompt, 0))
    first = work.seconds(Iteration(prefill_tokens=prompt, prefill_pairs=pairs, first_tokens=1))
    later = work.decode_seconds(1, prompt + 1.0, output - 1) if output > 1 else 0.0
    serving = service.serving
    sent = serving.request_overhead + serving.prompt_overhead * prompt
    return sent + first + later + serving.reply_lag * later / max(1, output - 1)


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
