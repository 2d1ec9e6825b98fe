"""The door: a service and its forward pass in, latencies, rates, memory and cost out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Final

from simulator.compute.forward_pass import Iteration
from simulator.equations import serving as equations
from simulator.results.serving import (
    Answered,
    DeviceMemory,
    Saturation,
    ServiceCost,
    ServicePrediction,
    answered_metrics,
)
from simulator.scenario.scenario import Purchase
from simulator.scenario.serving import OpenLoop, Service, Trace
from simulator.serving.engine import Counts, Replica
from simulator.serving.forward import Pass, ScaledPass
from simulator.serving.kv_pool import Pool, pool_of
from simulator.serving.latencies import answered
from simulator.serving.load import Requests, requests_of, usual_count
from simulator.serving.saturation import saturation_rates
from simulator.units import BYTE, MILLION, THOUSAND, PerSecond, Seconds, Usd, UsdPerSecond, show

FEWEST: Final = 2000
MOST: Final = 8000
"""Requests of each replica in a run to the steady state, at least and at most."""
STAYS: Final = 40.0
"""Times that one request alone would take which such a run lasts at least."""
P90: Final = NormalDist().inv_cdf(0.9)
NEAR: Final = 0.95
"""Share of saturation from which on a run of this length may not have become steady."""


def answer(
    service: Service, work: Pass, *, seed: int = 0, doubts: bool = True
) -> ServicePrediction:
    """Predict what a service does under its load.

    Parameters
    ----------
    service : Service
        Engine, load and limits, and how far the forward pass may be off: the interval repeats the
        run with all iterations at their P10 and at their P90.
    work : Pass
        What iterations take.
    seed : int
        Of lengths and arrivals.
    doubts : bool
        Whether to work out intervals.
    """
    pool = pool_of(service.serving, _memory(service), work)
    memory = DeviceMemory(items=pool.items, capacity=pool.capacity, cache_tokens=pool.tokens)
    found = ServicePrediction(
        service=service,
        seed=seed,
        memory=memory,
        answered=None,
        saturation=None,
        cost=_cost(service, None, None),
        assumptions=service.notes,
    )
    if not _holds(service, pool, seed):
        return replace(found, warnings=(_too_small(service, pool),))
    saturation = saturation_of(service, work, pool, seed)
    told = _Run(service, work, pool, seed).answered(saturation)
    found = replace(
        found,
        saturation=saturation,
        answered=told,
        cost=_cost(service, told, saturation),
        meets=meets(service, told),
        warnings=tuple(_warnings(told, saturation)),
    )
    return replace(found, interval=_intervals(found, work, pool)) if doubts else found


def saturation_of(service: Service, work: Pass, pool: Pool, seed: int) -> Saturation:
    """The most that the replicas complete for ever, and how far the load is from it."""
    replicas = service.serving.replicas
    rate, tokens = (replicas * each for each in saturation_rates(service, work, pool.blocks, seed))
    offered = offered_rate(service)
    return Saturation(
        request_rate=rate,
        output_rate=tokens,
        headroom=None if not offered else rate / offered,
        drift=None if not offered else max(0.0, offered - rate),
    )


def offered_rate(service: Service) -> PerSecond | None:
    """Requests that arrive in a second whatever becomes of them; None for clients that wait."""
    ways = service.load.arrivals
    if isinstance(ways, OpenLoop):
        return None if math.isinf(ways.rate) else ways.rate
    if isinstance(ways, Trace) and ways.arrivals[-1] > ways.arrivals[0]:
        return len(ways.arrivals) / (ways.arrivals[-1] - ways.arrivals[0])
    return None


def meets(service: Service, told: Answered | None) -> dict[str, bool]:
    """Whether each limit is kept by enough requests; all of them together as ``together``."""
    limits = service.slo.limits
    if not limits:
        return {}
    if told is None:
        return {"together": False}
    return {"together": told.attainment >= service.slo.share}


class _Run:
    """One service at one speed of the forward pass."""

    def __init__(self, service: Service, work: Pass, pool: Pool, seed: int) -> None:
        self.service, self.work, self.pool, self.seed = service, work, pool, seed

    def answered(self, saturation: Saturation) -> Answered | None:
        """What requests see; None where a load that goes on for ever is beyond saturation."""
        load, replicas = self.service.load, self.service.serving.replicas
        count = usual_count(load)
        if count is not None:
            return self._finite(count)
        if saturation.is_passed:
            return None
        each = self._steady_count()
        requests = requests_of(load, each * replicas, self.seed).part(0, replicas)
        counts = self._replica(requests)
        slo, blocks = self.service.slo, self.pool.blocks
        one = answered([requests], counts, slo, blocks=blocks, steady=True)
        offered = offered_rate(self.service) or 0.0
        return _together(one, replicas, offered / (replicas * one.request_rate))

    def _finite(self, count: int) -> Answered:
        replicas = self.service.serving.replicas
        every = requests_of(self.service.load, count, self.seed)
        parts = [every.part(index, replicas) for index in range(min(replicas, count))]
        total = Counts()
        for part in parts:
            total.add(self._replica(part))
        slo, blocks = self.service.slo, self.pool.blocks
        return answered(parts, total, slo, blocks=blocks, steady=False)

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
    pairs = equations.causal_pairs(prompt, 0)
    first = work.seconds(Iteration(prefill_tokens=prompt, prefill_pairs=pairs, first_tokens=1))
    later = work.decode_seconds(1, prompt + 1.0, output - 1) if output > 1 else 0.0
    return service.serving.request_overhead + first + later


def _memory(service: Service) -> float:
    gpu = service.group.host.gpu
    return 0.0 if gpu is None else gpu.memory


def _longest(service: Service, seed: int) -> int:
    """Tokens of the longest request of the load, prompt and answer together."""
    count = usual_count(service.load) or MOST
    requests = requests_of(service.load, count, seed)
    return max(map(sum, zip(requests.prompts, requests.outputs, strict=True)))


def _holds(service: Service, pool: Pool, seed: int) -> bool:
    """Whether the cache holds the longest request, and so each one in turn."""
    return equations.blocks_of(_longest(service, seed), pool.block) <= pool.blocks


def _too_small(service: Service, pool: Pool) -> str:
    held = sum(size for name, size in pool.items.items() if name != "cache")
    taken, there = show(held, BYTE), show(pool.capacity, BYTE)
    return (
        f"does not fit: weights, activations and graphs take {taken} of the {there} of each "
        f"device, which leaves a cache of {pool.tokens:,} tokens at a memory fraction of "
        f"{service.serving.memory_fraction:g}, less than the longest request of the load has"
    )


def _together(one: Answered, replicas: int, longer: float) -> Answered:
    """What equal replicas do together, each as this one.

    `longer` is the rate of arrivals over that of the requests drawn: in a run without end what
    arrives is answered, however many came by chance in a shorter one.
    """
    flows = ("request_rate", "prompt_rate", "output_rate", "goodput", "running", "waiting")
    counts = ("iterations", "preemptions")
    found = {name: replicas * longer * getattr(one, name) for name in flows}
    return replace(one, **found, **{name: replicas * getattr(one, name) for name in counts})


def price_of(service: Service) -> UsdPerSecond | None:
    """Price of all machines together [$/s]; None where it is not known."""
    group, plan = service.group, service.cost
    price = group.host.price
    if plan.price is not None:
        each: UsdPerSecond | None = plan.price
    elif price is None or plan.purchase is Purchase.ON_DEMAND:
        each = None if price is None else price.on_demand
    elif price.spot_low is None or price.spot_high is None:
        each = None
    else:
        each = 0.5 * (price.spot_low + price.spot_high)
    return None if each is None else each * group.count


def _cost(service: Service, told: Answered | None, saturation: Saturation | None) -> ServiceCost:
    """What the machines cost at the rates of the run; at saturation where it has none."""
    price, found = price_of(service), told or saturation
    if price is None or found is None or not found.output_rate:
        return ServiceCost(per_second=price)
    output, requests = found.output_rate, found.request_rate
    prompts = requests * service.load.prompt.mean if told is None else told.prompt_rate

    def per(rate: PerSecond) -> Usd:
        return equations.per_million_tokens(price, rate)

    return ServiceCost(
        per_second=price,
        per_million_output_tokens=per(output),
        per_million_tokens=per(output + prompts),
        per_thousand_requests=per(requests) * THOUSAND / MILLION,
    )


def _warnings(told: Answered | None, saturation: Saturation) -> list[str]:
    if told is None:
        return ["the load is beyond saturation: the queue grows without end, no latency holds"]
    found = []
    if saturation.drift:
        found.append("the load is beyond saturation: latencies hold for a run of this length only")
    elif saturation.headroom is not None and saturation.headroom * NEAR < 1.0:
        found.append("the load is within 5% of saturation: small doubts move latencies far")
    if told.preemptions:
        found.append(
            f"{told.preemptions:,} times a request had to give up its cache and start over"
        )
    return found


def _intervals(
    found: ServicePrediction, work: Pass, pool: Pool
) -> dict[str, Mapping[str, float | None]]:
    """Each figure with the forward pass at its P10, as it is, and at its P90."""
    log_sd = found.service.log_sd
    if log_sd <= 0.0 or found.saturation is None:
        return {}
    fast, slow = math.exp(-P90 * log_sd), math.exp(P90 * log_sd)
    runs = [
        _at(found, work, pool, fast),
        _figures(found.service, found.answered, found.saturation),
        _at(found, work, pool, slow),
    ]
    names = runs[0].keys() & runs[1].keys()
    return {name: _band([run.get(name) for run in runs]) for name in sorted(names)}


def _at(found: ServicePrediction, work: Pass, pool: Pool, factor: float) -> dict[str, float]:
    """The figures of a run with all iterations `factor` times as long."""
    service, known = found.service, found.saturation
    if known is None:
        return {}
    rate, offered = known.request_rate / factor, offered_rate(service)
    saturation = Saturation(
        request_rate=rate,
        output_rate=known.output_rate / factor,
        headroom=None if known.headroom is None else known.headroom / factor,
        drift=None if offered is None else max(0.0, offered - rate),
    )
    told = _Run(service, ScaledPass(work, factor), pool, found.seed).answered(saturation)
    return _figures(service, told, saturation)


def _figures(service: Service, told: Answered | None, saturation: Saturation) -> dict[str, float]:
    """What an interval is told of."""
    cost = _cost(service, told, saturation)
    found = {} if told is None else answered_metrics(told)
    found |= {
        "saturation.requests_per_s": saturation.request_rate,
        "saturation.output_tokens_per_s": saturation.output_rate,
    }
    maybe = {
        "saturation.headroom": saturation.headroom,
        "saturation.drift_per_s": saturation.drift,
        "cost.usd_per_million_output_tokens": cost.per_million_output_tokens,
        "cost.usd_per_million_tokens": cost.per_million_tokens,
        "cost.usd_per_thousand_requests": cost.per_thousand_requests,
    }
    found |= {name: value for name, value in maybe.items() if value is not None}
    return {name: value for name, value in found.items() if name not in _COUNTED}


_COUNTED: Final = frozenset({"requests", "iterations", "preemptions", "end_to_end_s.half_width"})
"""What says how a run was made, not what it shows."""


def _band(values: Sequence[float | None]) -> dict[str, float | None]:
    """The band of a figure; no upper end where the slower run is beyond saturation."""
    known = sorted(value for value in values if value is not None)
    low, high = known[0], known[-1] if len(known) == len(values) else None
    return {"p10": low, "p50": values[1], "p90": high}
