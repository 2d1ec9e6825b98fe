"""All replicas of a service under its load: a finite run, or one to the steady state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from simulator.compute.forward_pass import Iteration
from simulator.equations.serving import causal_pairs
from simulator.results.serving import Answered, Saturation
from simulator.scenario.serving import OpenLoop, Service, Trace
from simulator.serving.engine import Counts, Replica
from simulator.serving.forward import Pass
from simulator.serving.kv_pool import Pool
from simulator.serving.latencies import answered
from simulator.serving.load import Requests, requests_of, usual_count
from simulator.serving.saturation import saturation_rates
from simulator.units import PerSecond, Seconds

FEWEST: Final = 2000
MOST: Final = 8000
"""Requests of each replica in a run to the steady state, at least and at most."""
STAYS: Final = 40.0
"""Times that one request alone would take which such a run lasts at least."""


def offered_rate(service: Service) -> PerSecond | None:
    """Requests that arrive in a second whatever becomes of them; None for clients that wait."""
    ways = service.load.arrivals
    if isinstance(ways, OpenLoop):
        return None if math.isinf(ways.rate) else ways.rate
    if isinstance(ways, Trace) and ways.arrivals[-1] > ways.arrivals[0]:
        return len(ways.arrivals) / (ways.arrivals[-1] - ways.arrivals[0])
    return None


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
        count = usual_count(load)
        if count is not None:
            return self._finite(count)
        if saturation.is_passed:
            return None
        each = self._steady_count()
        requests = requests_of(load, each * replicas, self.seed, self.pool.tokens)
        requests = requests.part(0, replicas)
        counts = self._replica(requests)
        one = self._seen([requests], counts, steady=True)
        offered = offered_rate(self.service) or 0.0
        return _together(one, replicas, offered / (replicas * one.request_rate))

    def _finite(self, count: int) -> Answered:
        replicas = self.service.serving.replicas
        every = requests_of(self.service.load, count, self.seed, self.pool.tokens)
        parts = [every.part(index, replicas) for index in range(min(replicas, count))]
        total = Counts()
        for part in parts:
            total.add(self._replica(part))
        return self._seen(parts, total, steady=False)

    def _seen(self, parts: Sequence[Requests], counts: Counts, *, steady: bool) -> Answered:
        """What the requests of replicas saw."""
        slo, blocks = self.service.slo, self.pool.blocks
        lag = self.service.serving.reply_lag
        return answered(parts, counts, slo, blocks=blocks, steady=steady, lag=lag)

    def _replica(self, requests: Requests) -> Counts:
        shared = self.service.load.shared_prefix
        return Replica(self.service.serving, self.pool.blocks, self.work, requests, shared).run()

    def _steady_count(self) -> int:
        """Requests of one replica until what it does is steady."""
        rate = offered_rate(self.service) or 0.0
        stay = alone(self.service, self.work)
        wanted = STAYS * stay * rate / self.service.serving.replicas
        return int(min(MOST, max(FEWEST, wanted)))


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


def _together(one: Answered, replicas: int, longer: float) -> Answered:
    """What equal replicas do together, each as this one.

    `longer` is the rate of arrivals over that of the requests drawn: in a run without end what
    arrives is answered, however many came by chance in a shorter one.
    """
    flows = ("request_rate", "prompt_rate", "output_rate", "goodput", "running", "waiting")
    counts = ("iterations", "preemptions")
    found = {name: replicas * longer * getattr(one, name) for name in flows}
    return replace(one, **found, **{name: replicas * getattr(one, name) for name in counts})


def saturated(rate: PerSecond, tokens: PerSecond, offered: PerSecond | None) -> Saturation:
    """What a load is beside the most requests and output tokens a second."""
    return Saturation(
        request_rate=rate,
        output_rate=tokens,
        headroom=None if not offered else rate / offered,
        drift=None if offered is None else max(0.0, offered - rate),
    )
