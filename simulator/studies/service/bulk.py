"""How many machines finish a bulk job in time: all its requests are there from the start."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from simulator.errors import NotModelled
from simulator.predict import layout_of
from simulator.results.serving import Answered
from simulator.schema.scenario import Scenario
from simulator.schema.serving import Service
from simulator.serving.answers import lack
from simulator.serving.intervals import uncertain
from simulator.serving.layout import Layout
from simulator.serving.load import usual_count
from simulator.serving.run import ServiceRun, saturated
from simulator.serving.saturation import ROUGHLY, let_through, saturation_rates
from simulator.serving.sizing import LIMITS, times
from simulator.units import SECOND, PerSecond, Seconds, Usd, UsdPerSecond, show

ALONE: Final = 2000
"""Requests of one replica that are simulated at most; those beyond take what they do at
saturation."""
TOGETHER: Final = 20_000
"""Requests up to which the machines that are chosen are simulated with all of them."""
FEW_MORE: Final = 16
"""The part of the machines that is added while some are late."""


@dataclass(frozen=True, kw_only=True)
class BulkSizing:
    """One kind of machine and one way to lie on it, for a job that has a deadline.

    Every machine answers its share of the requests, so that one of them tells what so many do;
    what is chosen runs once more with all of them, where these are few enough.

    Parameters
    ----------
    service : Service
        On one machine, with as many replicas as that holds.
    seed : int
        Of lengths.
    deviations : float
        How much longer than expected iterations take, in standard deviations.
    """

    service: Service
    seed: int = 0
    deviations: float = 0.0

    @cached_property
    def deadline(self) -> Seconds:
        """By when the last request is to be answered [s].

        Raises
        ------
        NotModelled
            If nothing says so.
        """
        found = self.service.deadline or self.service.slo.end_to_end
        if found is None:
            msg = "sizing a bulk job needs a deadline: goal.deadline, or slo.end_to_end"
            raise NotModelled(msg)
        return found

    @cached_property
    def requests(self) -> int:
        """All requests of the job."""
        return usual_count(self.service.load) or 1

    @cached_property
    def hindrance(self) -> str:
        """Why no number of these machines will do; empty where nothing is known against them."""
        return lack(self.service, self._one)

    @cached_property
    def least(self) -> int:
        """Machines without which the rate at saturation is too low."""
        return max(1, math.ceil(self.requests / (self._rate * self.deadline)))

    def least_price(self, each: UsdPerSecond) -> Usd:
        """What machines at such a price each cost at least for the whole job [$]."""
        return each * self.requests / self._rate

    def slow(self, deviations: float) -> BulkSizing:
        """With iterations that take so many deviations longer than expected."""
        return replace(self, deviations=deviations)

    def on(self, machines: int) -> Service:
        """The service on so many machines, each of which reads its share of the requests."""
        service = self.service
        group = replace(service.group, count=machines)
        job = None if service.reading is None else _on(service.reading, machines)
        return replace(service, group=group, serving=times(service.serving, machines), reading=job)

    def answered(self, machines: int) -> Answered | None:
        """What requests see on so many machines, and how long all of them take."""
        if self.requests > TOGETHER or self.deviations:
            return self._told(machines)
        if machines not in self._whole:
            service = self.on(machines)
            self._whole[machines] = self._run(service, self._uncertain(service), self.requests)
        return self._whole[machines]

    def machines(self) -> int | None:
        """The fewest that finish in time and keep the other limits; None where no number does."""
        fails, enough, most = self.least - 1, self.least, self.requests
        while enough < most and not self._keeps(self._told(enough)):
            fails, enough = enough, min(most, 2 * enough)
        if not self._keeps(self._told(enough)):
            return None
        while enough - fails > 1:
            middle = (fails + enough) // 2
            found = self._keeps(self._told(middle))
            fails, enough = (fails, middle) if found else (middle, enough)
        # A machine with more than its share of long answers is late: a few more make up for it.
        while not self._keeps(self.answered(enough)):
            if enough == most:
                return None
            enough = min(most, enough + max(1, enough // FEW_MORE))
        return enough

    def missed(self) -> str:
        """Which limit is missed even where each machine answers one request."""
        told = self._told(self.requests)
        late = told is None or told.duration > self.deadline
        if told is None or late:
            time = "" if told is None else f": one alone takes {show(told.duration, SECOND, 2)}"
            return f"no number of machines finishes in {show(self.deadline, SECOND)}{time}"
        name = min(self._others(told), key=lambda each: told.within[each])
        kept = told.within[name]
        return f"{LIMITS[name]} is kept by {kept:.1%} of the requests however many machines"

    @cached_property
    def _one(self) -> Layout:
        """One machine whose requests are there."""
        return replace(self._uncertain(self.service), reading=None)

    @cached_property
    def _rate(self) -> PerSecond:
        """Requests a second that one machine answers while others wait."""
        return saturation_rates(self.service, self._one, self.seed, ROUGHLY)[0]

    def _uncertain(self, service: Service) -> Layout:
        return uncertain(layout_of(service), service, self.deviations)

    def _run(self, service: Service, layout: Layout, requests: int) -> Answered | None:
        load = replace(service.load, requests=requests)
        run = ServiceRun(replace(service, load=load), layout, self.seed)
        return run.answered(saturated(self._rate, 0.0, None))

    @cached_property
    def _whole(self) -> dict[int, Answered | None]:
        """What all requests saw, by number of machines."""
        return {}

    @cached_property
    def _shares(self) -> dict[int, Answered | None]:
        """What was found out, by requests of one machine."""
        return {}

    def _told(self, machines: int) -> Answered | None:
        """What so many machines do as one of them does with its share."""
        share = math.ceil(self.requests / machines)
        part = min(share, ALONE * self.service.serving.replicas)
        if part not in self._shares:
            self._shares[part] = self._run(self.service, self._one, part)
        told = self._shares[part]
        if told is None:
            return None
        service = self.on(machines)
        layout = layout_of(service)
        read = self.requests / let_through(service, self._late(layout))
        time = max(read, told.duration + (share - part) / self._rate)
        return _of_all(told, time, self.requests, machines)

    def _late(self, layout: Layout) -> Layout:
        reading = layout.reading
        return replace(layout, reading=None if reading is None else reading.slower(self.deviations))

    def _others(self, told: Answered) -> list[str]:
        """Limits beside that of the time until the last answer."""
        return [name for name in told.within if name != "end_to_end"]

    def _keeps(self, told: Answered | None) -> bool:
        if told is None or told.duration > self.deadline:
            return False
        return all(told.within[name] >= self.service.slo.share for name in self._others(told))


def _of_all(told: Answered, duration: Seconds, requests: int, machines: int) -> Answered:
    """What all requests come to in so long a time, of which one of the machines had a part."""
    longer = requests * told.duration / (told.requests * duration)
    flows = ("request_rate", "prompt_rate", "output_rate", "goodput")
    found = {name: longer * getattr(told, name) for name in flows}
    found |= {name: machines * getattr(told, name) for name in ("running", "waiting", "replicas")}
    return replace(told, **found, requests=requests, duration=duration)


def _on(job: Scenario, machines: int) -> Scenario:
    """The job that reads requests on so many machines."""
    groups = tuple(replace(group, count=machines) for group in job.cluster.groups)
    return replace(job, cluster=replace(job.cluster, groups=groups))
