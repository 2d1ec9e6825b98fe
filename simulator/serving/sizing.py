"""Sizing of a service: the smallest number of machines of one kind that meets the SLO."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Final

from simulator.errors import NotModelled
from simulator.records import dataclass
from simulator.results.serving import Answered
from simulator.schema.serving import OpenLoop, Service, Serving
from simulator.serving.answers import lack, meets, uncertain
from simulator.serving.layout import Layout, Side
from simulator.serving.run import (
    MIN_REQUESTS_ROUGH,
    ServiceRun,
    offered_rate,
    saturated,
    saturation_rates,
)
from simulator.units import SECOND, PerSecond, UsdPerSecond, show

IDLE_SHARE: Final = 0.02
"""Share of saturation at which limits that are not kept never will be, on any number of machines.

One request in fifty meets another: what it takes is its own forward pass.
"""
MAX_HALVINGS: Final = 5
"""Number of bisections of the range of the highest rate within all limits."""


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """A service on one kind of machine with one layout, for any number of machines.

    Parameters
    ----------
    service : Service
        The service on one machine, with as many replicas as fit.
    layout : Layout
        Its replicas, with their forward passes.
    seed : int
        Seed of lengths and arrivals.
    """

    service: Service
    layout: Layout
    seed: int = 0

    @cached_property
    def offered(self) -> PerSecond:
        """Offered load [requests/s].

        Raises
        ------
        NotModelled
            If the load has no arrival rate, without which there is no number of machines to find.
        """
        ways = self.service.load.arrivals
        if not isinstance(ways, OpenLoop) or math.isinf(ways.rate):
            msg = (
                "sizing needs requests that arrive at a rate, as poisson, gamma, even and daily "
                "arrivals do; plan recommend sizes a bulk job to its deadline, and with others "
                "plan sweep --over hardware.count=1,2,4 tries numbers of machines"
            )
            raise NotModelled(msg)
        return ways.rate

    @cached_property
    def saturation(self) -> tuple[PerSecond, PerSecond]:
        """Requests and output tokens per second of one machine at saturation."""
        return saturation_rates(self.service, self.layout, self.seed, MIN_REQUESTS_ROUGH)

    @cached_property
    def hindrance(self) -> str:
        """Reason that no number of these machines is sufficient; empty if none is known."""
        return lack(self.service, self.layout)

    @cached_property
    def least(self) -> int:
        """Smallest number of machines with which the load is below saturation."""
        return max(1, math.ceil(self.offered / self.saturation[0]))

    def least_price(self, each: UsdPerSecond) -> UsdPerSecond:
        """Return the price of the smallest number of machines, at a price of `each` [$/s]."""
        return each * self.least

    def slow(self, deviations: float) -> Sizing:
        """Return the sizing with times that are `deviations` standard deviations longer."""
        return replace(self, layout=uncertain(self.layout, self.service, deviations))

    @property
    def idle(self) -> int:
        """Number of machines with which each is nearly idle."""
        return math.ceil(self.least / IDLE_SHARE)

    def on(self, machines: int) -> Service:
        """Return the service on a number of machines."""
        service = self.service
        group = replace(service.group, count=machines)
        return replace(service, group=group, serving=times(service.serving, machines))

    def answered(self, machines: int, offered: PerSecond | None = None) -> Answered | None:
        """Return latencies and rates on a number of machines, at the rate `offered` if given.

        None beyond saturation.
        """
        service = self.on(machines)
        ways = service.load.arrivals
        if offered is not None and isinstance(ways, OpenLoop):
            load = replace(service.load, arrivals=replace(ways, rate=offered))
            service = replace(service, load=load)
        rate, tokens = (machines * each for each in self.saturation)
        saturation = saturated(rate, tokens, offered_rate(service))
        return ServiceRun(service, _on(self.layout, machines), self.seed).answered(saturation)

    def keeps(self, machines: int) -> bool:
        """Return whether a number of machines meets the SLO."""
        if machines not in self._kept:
            told = self.answered(machines)
            self._kept[machines] = told is not None and all(meets(self.service, told).values())
        return self._kept[machines]

    def highest(self, machines: int) -> PerSecond:
        """Return the highest rate at which a number of machines meets the SLO [requests/s].

        Parameters
        ----------
        machines : int
            A number of machines that meets the SLO at the rate of the load.
        """
        kept, missed = self.offered, machines * self.saturation[0]
        for _ in range(MAX_HALVINGS):
            middle = 0.5 * (kept + missed)
            told = self.answered(machines, middle)
            if told is not None and all(meets(self.service, told).values()):
                kept = middle
            else:
                missed = middle
        return kept

    @cached_property
    def _kept(self) -> dict[int, bool]:
        """Cached results of `keeps`, by number of machines."""
        return {}

    def machines(self) -> int | None:
        """Return the smallest number of machines that meets the SLO; None if no number does."""
        fails, enough, most = self.least - 1, self.least, self.idle
        if not self.keeps(enough) and not self.keeps(most):
            return None
        while not self.keeps(enough):
            fails, enough = enough, min(most, 2 * enough)
        while enough - fails > 1:
            middle = (fails + enough) // 2
            fails, enough = (fails, middle) if self.keeps(middle) else (middle, enough)
        return enough

    def missed(self) -> str:
        """Return a text on the limit that most requests miss on nearly idle machines."""
        told = self.answered(self.idle)
        if told is None or not told.within:
            return "the load is beyond saturation"
        name = min(told.within, key=lambda each: told.within[each])
        kept, latency = told.within[name], getattr(told, name)
        half = show(float(f"{latency.p50:.2g}"), SECOND)
        return (
            f"{LIMITS[name]} is kept by {kept:.1%} of the requests however many machines: half of "
            f"them take {half} or more"
        )


def times(serving: Serving, machines: int) -> Serving:
    """Return the settings with `machines` times as many replicas, for both prefill and decode."""
    before = serving.prefill
    more = None if before is None else replace(before, replicas=machines * before.replicas)
    return replace(serving, replicas=machines * serving.replicas, prefill=more)


def _on(layout: Layout, machines: int) -> Layout:
    """Return the layout of one machine, repeated on `machines` machines."""

    def more(side: Side) -> Side:
        return replace(side, serving=times(side.serving, machines))

    sent = layout.transfer
    return Layout(
        main=more(layout.main),
        prompts=None if layout.prompts is None else more(layout.prompts),
        transfer=None if sent is None else replace(sent, senders=machines * sent.senders),
        wire=layout.wire,
    )


LIMITS: Final = {
    "first_token": "the limit of the first token",
    "per_token": "the limit per token",
    "end_to_end": "the limit from end to end",
}
