"""The most that replicas complete for ever, from a run in which requests always wait."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from simulator.equations.serving import blocks_of
from simulator.schema.serving import Lengths, Routing, Service, Trace
from simulator.serving.engine import Replica
from simulator.serving.fleet import Fleet, run
from simulator.serving.layout import Layout, Side, mean_transfer
from simulator.serving.load import Requests, requests_of
from simulator.units import PerSecond

LEAST: Final = 3000
ROUGHLY: Final = 1000
"""Requests of such a run, at least: of one service, and of one of many that are tried."""
WAVES: Final = 3
"""Times as many of them as run at once, at least."""


def saturation_rates(
    service: Service, layout: Layout, seed: int, least: int = LEAST
) -> tuple[PerSecond, PerSecond]:
    """Requests and output tokens a second that all replicas complete while others always wait.

    Of replicas that compute prompts, those that decode, what is between them, and what brings
    requests the slowest counts.
    """
    rate, output = _side_rate(service, layout.main, seed, least)
    rate *= layout.main.serving.replicas
    if layout.prompts is not None and layout.transfer is not None:
        alone = replace(service, load=replace(service.load, output=Lengths(tokens=1.0)))
        prompts, _ = _side_rate(alone, layout.prompts, seed, least)
        between = layout.transfer.senders / mean_transfer(layout, service.load)
        rate = min(rate, layout.prompts.serving.replicas * prompts, between)
    rate = min(rate, let_through(service, layout))
    return rate, rate * output


def let_through(service: Service, layout: Layout) -> PerSecond:
    """Requests that a store and the clients' network bring in a second; infinite without both."""
    wire, reading = layout.wire, layout.reading
    sent = math.inf if wire is None else service.group.count * wire.most(service.load)
    return sent if reading is None else min(sent, reading.rate)


def _side_rate(service: Service, side: Side, seed: int, least: int) -> tuple[PerSecond, float]:
    """Requests a second that one replica completes, and their mean output tokens.

    All requests are there from the start. Those that start at once begin somewhere within their
    answers, as in a run that has gone on for long; without, equal answers would end in waves. The
    rate is that at which the others start.
    """
    every = _at_once(service, least, seed, side.pool.tokens)
    together = _at_most(side, every)
    if WAVES * together > least:
        every = _at_once(service, WAVES * together, seed, side.pool.tokens)
    _spread_out(every, together, seed)
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
    drawn = requests_of(load, count, seed, most)
    return Requests(drawn.prompts, drawn.outputs, [0.0] * count)


def _at_most(side: Side, every: Requests) -> int:
    """About how many requests run at once where many wait."""
    size = np.mean(every.prompts) + np.mean(every.outputs)
    within = side.pool.blocks // max(1, blocks_of(round(float(size)), side.serving.block_tokens))
    return max(1, min(side.serving.max_sequences, within))


def _spread_out(every: Requests, together: int, seed: int) -> None:
    """Let the first requests be somewhere within their answers, each place as likely."""
    shares = np.random.RandomState(seed).random_sample(together)
    for request, share in enumerate(shares.tolist()):
        done = int(share * (every.outputs[request] - 1))
        every.outputs[request] -= done
        every.prompts[request] += done
