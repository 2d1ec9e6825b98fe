"""Sizing of a service: the smallest number of machines of one kind that meets the SLO."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Final

from simulator.errors import NotModelled
from simulator.records import dataclass
from simulator.results.serving import Answered, Saturation
from simulator.schema.serving import OpenLoop, Service, Serving
from simulator.serving.answers import highest_rate, lack, meets, uncertain
from simulator.serving.layout import Layout
from simulator.serving.run import (
    ReplicaRates,
    ServiceRun,
    offered_rate,
    replica_rates,
    saturated,
    saturation_rates,
)
from simulator.units import SECOND, PerSecond, UsdPerSecond, show

IDLE_SHARE: Final = 0.02
"""Share of saturation at which limits that are not kept never will be, on any number of machines.

One request in fifty meets another: what it takes is its own forward pass.
"""


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """A service on one kind of machine with one layout, for any number of machines.

    Parameters
    ----------
    service : Service
        The service on one machine, with as many replicas as fit.
    layouts : callable
        Returns the replicas of a service, with their forward passes.
    seed : int
        Seed of lengths and arrivals.
    deviations : float
        Slowdown of iterations and of reading inputs, in standard deviations of their uncertainty.
    """

    service: Service
    layouts: Callable[[Service], Layout]
    seed: int = 0
    deviations: float = 0.0

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
        return self.saturation_on(1)

    @cached_property
    def hindrance(self) -> str:
        """Reason that no number of these machines is sufficient; empty if none is known."""
        return lack(self.service, self._layout(1))

    @cached_property
    def least(self) -> int:
        """Smallest number of machines with which the load is below saturation."""
        return max(1, math.ceil(self.offered / self.saturation[0]))

    def least_price(self, each: UsdPerSecond) -> UsdPerSecond:
        """Return the price of the smallest number of machines, at a price of `each` [$/s]."""
        return each * self.least

    def slow(self, deviations: float) -> Sizing:
        """Return the sizing with times that are `deviations` standard deviations longer."""
        return replace(self, deviations=deviations)

    @property
    def idle(self) -> int:
        """Number of machines with which each is nearly idle."""
        return math.ceil(self.least / IDLE_SHARE)

    def on(self, machines: int) -> Service:
        """Return the service on a number of machines."""
        return on_machines(self.service, machines)

    def saturation_on(self, machines: int) -> tuple[PerSecond, PerSecond]:
        """Return requests and output tokens per second of a number of machines at saturation."""
        service, layout = self.on(machines), self._layout(machines)
        return saturation_rates(service, layout, self.seed, each=self._each)

    def answered(self, machines: int) -> Answered | None:
        """Return latencies and rates on a number of machines; None beyond saturation."""
        if machines not in self._answered:
            run = self._run(machines)
            self._answered[machines] = run.answered(self._saturation(machines))
        return self._answered[machines]

    def keeps(self, machines: int) -> bool:
        """Return whether a number of machines meets the SLO."""
        told = self.answered(machines)
        return told is not None and all(meets(self.service, told).values())

    def highest(self, machines: int) -> PerSecond | None:
        """Return the highest rate at which a number of machines meets the SLO [requests/s]."""
        run, saturation = self._run(machines), self._saturation(machines)
        return highest_rate(run, saturation, self.answered(machines))

    @cached_property
    def _each(self) -> ReplicaRates:
        return replica_rates(self.service, self._layout(1), self.seed)

    @cached_property
    def _answered(self) -> dict[int, Answered | None]:
        return {}

    @cached_property
    def _layouts(self) -> dict[int, Layout]:
        return {}

    def _layout(self, machines: int) -> Layout:
        if machines not in self._layouts:
            service = self.on(machines)
            found = uncertain(self.layouts(service), service, self.deviations)
            self._layouts[machines] = found
        return self._layouts[machines]

    def _run(self, machines: int) -> ServiceRun:
        return ServiceRun(self.on(machines), self._layout(machines), self.seed)

    def _saturation(self, machines: int) -> Saturation:
        return saturated(*self.saturation_on(machines), offered_rate(self.service))

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


def on_machines(service: Service, machines: int) -> Service:
    """Return a service of one machine on a number of them, which read equal shares of inputs."""
    group, job = replace(service.group, count=machines), service.reading
    if job is not None:
        groups = tuple(replace(each, count=machines) for each in job.cluster.groups)
        job = replace(job, cluster=replace(job.cluster, groups=groups))
    more = times(service.serving, machines)
    return replace(service, group=group, serving=more, reading=job)


LIMITS: Final = {
    "first_token": "the limit of the first token",
    "per_token": "the limit per token",
    "end_to_end": "the limit from end to end",
}
