"""The requests of a load: arrivals, and lengths of prompts and answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.schema.serving import (
    ClosedLoop,
    LengthDistribution,
    Lengths,
    Load,
    OpenLoop,
    RateCurve,
    Trace,
)
from simulator.units import Seconds

PER_CLIENT: Final = 10
"""Requests for each client of a closed loop: what InferenceX runs (843c6254, benchmarks/)."""


@dataclass(slots=True, eq=False)
class Requests:
    """Requests in the order in which they are sent, with their results [s, tokens].

    With `clients` the load is a closed loop: each client sends its next request `think` after its
    last answer, and `arrivals` grows during the run. `scheduled` is the time at which a request
    first ran, `first` and `last` are the times of its first and last token.
    """

    prompts: list[int]
    outputs: list[int]
    arrivals: list[Seconds]
    clients: int | None = None
    think: Seconds = 0.0
    scheduled: list[Seconds] = field(default_factory=list)
    first: list[Seconds] = field(default_factory=list)
    last: list[Seconds] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("scheduled", "first", "last"):
            setattr(self, name, [math.nan] * len(self.prompts))

    def __len__(self) -> int:
        return len(self.prompts)


def requests_of(load: Load, count: int, seed: int, most: float = math.inf) -> Requests:
    """Draw `count` requests of a load.

    Lengths come from numpy's legacy generator, all prompts before all answers, as benchmark clients
    draw them: with their seed (0) the sequence is the same.

    Parameters
    ----------
    load : Load
        Arrivals and lengths.
    count : int
        Number of requests, at most that of a trace.
    seed : int
        Seed of lengths and arrivals.
    most : int
        Maximum of prompt plus output tokens that the KV cache holds; drawn lengths are cut to it.
    """
    ways = load.arrivals
    if isinstance(ways, Trace):
        return Requests(
            prompts=list(ways.prompts[:count]),
            outputs=list(ways.outputs[:count]),
            arrivals=list(ways.arrivals[:count]),
        )
    draw = np.random.RandomState(seed)
    prompts, outputs = _lengths(load.prompt, count, draw), _lengths(load.output, count, draw)
    outputs = [int(min(output, most - 1)) for output in outputs]
    prompts = [
        int(min(max(prompt, load.shared_prefix + 1), most - output))
        for prompt, output in zip(prompts, outputs, strict=True)
    ]
    if isinstance(ways, ClosedLoop):
        now = [0.0] * min(ways.concurrency, count)
        return Requests(prompts, outputs, now, clients=ways.concurrency, think=ways.think)
    if isinstance(ways, RateCurve):
        return Requests(prompts, outputs, _along(ways, count, draw))
    return Requests(prompts, outputs, _arrivals(ways, count, draw))


def usual_count(load: Load) -> int | None:
    """Return the number of requests of a finite load; None if the load is endless."""
    ways = load.arrivals
    if isinstance(ways, Trace):
        return min(load.requests or len(ways.arrivals), len(ways.arrivals))
    if isinstance(ways, ClosedLoop):
        return load.requests or PER_CLIENT * ways.concurrency
    if isinstance(ways, RateCurve):
        return load.requests or max(1, round(ways.mean * ways.period))
    return load.requests


def mean_context(load: Load) -> float:
    """Return the mean context of a decoding request: its prompt and its answer so far [tokens].

    ``prompt + E[x^2] / (2 E[x])`` for independent answers of length x: of the requests that run at
    a moment, long answers are more frequent in proportion to their length, and each is half done on
    average (renewal theory, the inspection paradox).
    """
    ways = load.arrivals
    if isinstance(ways, Trace):
        prompts, outputs = np.asarray(ways.prompts, float), np.asarray(ways.outputs, float)
        return float((outputs * (prompts + 0.5 * outputs)).sum() / outputs.sum())
    mean, variation = load.output.mean, load.output.variation
    return load.prompt.mean + 0.5 * mean * (1.0 + variation**2)


def _lengths(lengths: Lengths, count: int, draw: np.random.RandomState) -> list[int]:
    mean = lengths.tokens
    if lengths.spread is LengthDistribution.UNIFORM:
        found: npt.NDArray[np.float64] = draw.randint(
            int(lengths.ratio * mean), int(mean) + 1, size=count
        ).astype(float)
    elif lengths.spread is LengthDistribution.LOGNORMAL:
        variance = math.log1p(lengths.deviation**2)
        found = draw.lognormal(math.log(mean) - 0.5 * variance, math.sqrt(variance), count)
    elif lengths.spread is LengthDistribution.EXPONENTIAL:
        # A geometric distribution: whole tokens, with that mean.
        found = draw.geometric(min(1.0, 1.0 / mean), count).astype(float)
    else:
        found = np.full(count, mean)
    whole: list[int] = np.clip(np.rint(found), 1, lengths.most or math.inf).astype(int).tolist()
    return whole


def _arrivals(ways: OpenLoop, count: int, draw: np.random.RandomState) -> list[Seconds]:
    if math.isinf(ways.rate):
        return [0.0] * count
    gap = 1.0 / ways.rate
    if ways.sources is not None:
        rounds = gap * ways.sources * np.arange(-(-count // ways.sources))
        starts = draw.uniform(0.0, gap * ways.sources, ways.sources)
        every: list[Seconds] = np.sort(np.add.outer(rounds, starts).ravel())[:count].tolist()
        return every
    if math.isinf(ways.burstiness):
        gaps = np.full(count, gap)
    else:
        gaps = draw.gamma(ways.burstiness, gap / ways.burstiness, count)
    times: list[Seconds] = np.cumsum(gaps).tolist()
    return times


PERIOD_PARTS: Final = 4096
"""Parts of a period in which a rate that rises and falls is taken as even."""


def _along(ways: RateCurve, count: int, draw: np.random.RandomState) -> list[Seconds]:
    """Draw arrivals at a time-varying rate, as a time-changed Poisson process.

    Exactly `count` requests arrive in the time in which `count` are expected.
    """
    shares = np.asarray([*ways.shares, ways.shares[0]])
    inner = np.linspace(0.0, 1.0, PERIOD_PARTS + 1)
    rates = np.interp(inner, np.linspace(0.0, 1.0, len(shares)), shares)
    passed = np.concatenate(([0.0], np.cumsum(0.5 * (rates[1:] + rates[:-1]))))
    expected = passed * ways.mean * ways.period / passed[-1]
    periods, within = np.divmod(np.sort(draw.uniform(0.0, count, count)), expected[-1])
    times = ways.period * (periods + np.interp(within, expected, inner))
    found: list[Seconds] = times.tolist()
    return found
