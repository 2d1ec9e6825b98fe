"""Prompts computed on some replicas, answers written on others, keys and values sent between."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from heapq import heappop, heappush

from simulator.serving.engine import Counts
from simulator.serving.fleet import Fleet, follow
from simulator.serving.layout import Transfer
from simulator.serving.load import Requests
from simulator.units import Seconds


@dataclass(slots=True)
class Line:
    """Requests on their way between replicas, those of each sender one after the other."""

    transfer: Transfer
    busy: Seconds = 0.0
    travelled: Seconds = 0.0
    _free: list[Seconds] = field(default_factory=list)
    _under_way: list[tuple[Seconds, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._free = [0.0] * self.transfer.senders

    @property
    def due(self) -> Seconds:
        """When the next request arrives at the other end; infinite where none is under way [s]."""
        return self._under_way[0][0] if self._under_way else math.inf

    def send(self, request: int, prompt: int, sender: int, now: Seconds) -> None:
        """Let a request wait for its sender, and travel."""
        time = self.transfer.seconds(prompt)
        there = max(now, self._free[sender]) + time
        self._free[sender] = there
        self.busy += time
        self.travelled += there - now
        heappush(self._under_way, (there, request))

    def take(self) -> int:
        """The request that arrives next."""
        return heappop(self._under_way)[1]


def run_split(
    prompts: Fleet, before: Requests, line: Line, fleet: Fleet, requests: Requests
) -> tuple[Counts, Counts]:
    """Have one fleet compute the prompts of all requests, and another one write the answers.

    The first token comes from the second fleet, which has to have room for the request. Times are
    written into `requests`; returns what both fleets add up to.

    Parameters
    ----------
    prompts, fleet : Fleet
        Both fleets.
    before : Requests
        The same requests with answers of one token, and the same list of arrivals: what the first
        fleet computes.
    line : Line
        What is between them.
    requests : Requests
        What the second fleet answers.
    """
    arrivals, sent, now = requests.arrivals, 0, 0.0
    while True:
        due = min(prompts.due, fleet.due)
        if sent < len(arrivals) and arrivals[sent] <= min(due, line.due):
            now = arrivals[sent]
            prompts.send(sent, now)
            sent += 1
        elif line.due <= due and line.due < math.inf:
            now = line.due
            fleet.send(line.take(), now)
        elif due == math.inf:
            break
        elif prompts.due == due:
            now = due
            index, done = prompts.proceed()
            for request in done:
                sender = index % line.transfer.senders
                line.send(request, requests.prompts[request], sender, now)
        else:
            now = due
            follow(requests, fleet.proceed()[1], now)
    requests.scheduled = before.scheduled
    return prompts.counts(now), fleet.counts(now)
