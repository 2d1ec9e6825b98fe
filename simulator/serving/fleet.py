"""Equal replicas behind a router: who gets a request, and what happens next among all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random

from simulator.schema.serving import Autoscaling, Routing
from simulator.serving.autoscaler import Autoscaler
from simulator.serving.clients import Clients
from simulator.serving.engine import Counts, Replica
from simulator.serving.inputs import Inputs
from simulator.serving.load import Requests
from simulator.units import Seconds


class Fleet:
    """Replicas, and the router before them.

    Parameters
    ----------
    make : callable
        Makes one more replica.
    count : int
        How many there are at the start.
    routing : Routing
        To which of them a request goes.
    scaling : Autoscaling, optional
        How many there are later; none: as many as at the start.
    inputs : Inputs, optional
        How requests are read; none: they are there.
    clients : Clients, optional
        How they come over the network; none: that takes no time.
    seed : int
        Of a random choice.
    """

    def __init__(  # noqa: PLR0913 - one parameter a part
        self,
        make: Callable[[], Replica],
        count: int,
        routing: Routing,
        *,
        scaling: Autoscaling | None = None,
        inputs: Inputs | None = None,
        clients: Clients | None = None,
        seed: int = 0,
    ) -> None:
        self.inputs, self.clients = inputs, clients
        self.routing = routing
        self.replicas = [make() for _ in range(count)]
        self.open: Sequence[int] = range(count)
        self.scaler = None if scaling is None else Autoscaler(scaling, self.replicas, make)
        self._draw = Random(seed)  # noqa: S311 - a router's choice, no secret
        self._heap: list[tuple[Seconds, bool, int]] = []
        self._alone = self.replicas[0] if count == 1 and scaling is None else None
        self._turn = -1

    @property
    def due(self) -> Seconds:
        """When something happens next by itself; infinite where nothing does [s]."""
        if self._alone is not None:
            return self._alone.due
        heap, replicas = self._heap, self.replicas
        while heap and replicas[heap[0][2]].due != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else math.inf

    def send(self, request: int, now: Seconds) -> None:
        """Let the router deal a request."""
        if self.scaler is not None:
            self.open = self.scaler.open_at(now)
        index = self._pick()
        replica = self.replicas[index]
        before = replica.due
        if self.inputs is not None:
            now = self.inputs.read(now)
        if self.clients is not None:
            now = self.clients.receive(index, replica.requests.prompts[request], now)
        replica.send(request, now)
        if replica.due != before and self._alone is None:
            heappush(self._heap, (replica.due, False, index))

    def proceed(self, until: Seconds = -math.inf) -> tuple[int, list[int]]:
        """Let happen what is `due`; returns where that was, and the requests that ended with it.

        What comes next at the same replica and time happens, too, where nothing is sent before
        `until`.
        """
        index = heappop(self._heap)[2] if self._alone is None else 0
        replica = self.replicas[index]
        now, done = replica.due, replica.proceed()
        if now < until and replica.due == now and replica.is_between:
            replica.proceed()
        if self._alone is None and replica.due < math.inf:
            # What ends at a time comes before what begins then.
            heappush(self._heap, (replica.due, replica.is_between, index))
        return index, done

    def release(self, now: Seconds) -> bool:
        """Let go what is kept for larger batches, as no more comes; whether there is any."""
        found = [index for index, each in enumerate(self.replicas) if each.release(now)]
        for index in found if self._alone is None else ():
            heappush(self._heap, (self.replicas[index].due, True, index))
        return bool(found)

    def _pick(self) -> int:
        """The replica that gets the next request."""
        count = len(self.open)
        if count == 1:
            return self.open[0]
        if self.routing is Routing.RANDOM:
            return self.open[self._draw.randrange(count)]
        self._turn = (self._turn + 1) % count
        if self.routing is Routing.ROUND_ROBIN:
            return self.open[self._turn]
        # Among those with the fewest, the one whose turn comes first.
        turns = ((self._turn + step) % count for step in range(count))
        return self.open[min(turns, key=lambda turn: self.replicas[self.open[turn]].outstanding)]

    def counts(self, end: Seconds) -> Counts:
        """What all of them add up to, in a run that ends then."""
        total = Counts(end=end)
        for index, replica in enumerate(self.replicas):
            counts = replica.counts
            counts.preemptions = replica.scheduler.preemptions
            scaler = self.scaler
            counts.provided = end if scaler is None else scaler.provided(index, replica.clock, end)
            total.add(counts)
        return total


def run(fleet: Fleet, requests: Requests) -> Counts:
    """Have a fleet answer all requests; returns what it adds up to.

    Their times are written into `requests`. Clients that wait for their answers send the next
    request then.
    """
    arrivals, sent, now = requests.arrivals, 0, 0.0
    open_loop = requests.clients is None
    while True:
        due = fleet.due
        comes = arrivals[sent] if sent < len(arrivals) else math.inf
        if comes <= due and comes < math.inf:
            now = comes
            fleet.send(sent, now)
            sent += 1
        elif due < math.inf:
            now = due
            if open_loop:
                fleet.proceed(comes)
            else:
                follow(requests, fleet.proceed()[1], now)
        elif not fleet.release(now):
            return fleet.counts(now)


def follow(requests: Requests, done: Sequence[int], now: Seconds) -> None:
    """Let clients whose requests were answered send the next ones."""
    if done and requests.clients is not None:
        room = len(requests) - len(requests.arrivals)
        requests.arrivals.extend([now + requests.think] * min(len(done), room))
