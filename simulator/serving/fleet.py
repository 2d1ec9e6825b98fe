"""Replicas of a service with router, autoscaler, clients, input stores and links."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from simulator.schema.machines import LinkKind
from simulator.schema.serving import Autoscaling, Routing
from simulator.serving.engine import Counts, Replica
from simulator.serving.layout import Layout, Reading, Side, Transfer, Wire
from simulator.serving.load import Requests
from simulator.units import Seconds


class Autoscaler:
    """Starts and stops replicas at regular checks.

    Like Kubernetes' horizontal pod autoscaler: the desired number of replicas brings the requests
    in progress to the target for each. New replicas are started at once and take requests after the
    delay. The number is reduced only if no check within the hold period wanted more; a stopped
    replica gets no more requests and ends after its last one.

    Parameters
    ----------
    rules : Autoscaling
        Target, bounds and times.
    replicas : mapping of int to Replica
        The replicas that were sent requests, by index.
    count : int
        Number of replicas at the start; none is removed.
    """

    def __init__(self, rules: Autoscaling, replicas: Mapping[int, Replica], count: int) -> None:
        self.rules, self.replicas = rules, replicas
        self.started: list[Seconds] = [0.0] * count
        self.opens: list[Seconds] = [0.0] * count
        self.stopped: dict[int, Seconds] = {}
        self._next = rules.interval
        self._wanted: deque[tuple[Seconds, int]] = deque()
        self._open: Sequence[int] = range(count)
        self._until: Seconds = math.inf

    def open_at(self, now: Seconds) -> Sequence[int]:
        """Return the indices of replicas that take requests at time `now`, after due checks."""
        while self._next <= now:
            self._look(self._next)
            self._next += self.rules.interval
            self._until = 0.0
        if now >= self._until:
            kept = [each for each in range(len(self.opens)) if each not in self.stopped]
            self._open = [each for each in kept if self.opens[each] <= now]
            later = [self.opens[each] for each in kept if self.opens[each] > now]
            self._until = min(later, default=math.inf)
        return self._open

    def provided(self, index: int, clock: Seconds, end: Seconds) -> Seconds:
        """Return the time from the start of a replica to its end [s].

        A stopped replica ends with its last request at `clock`, others at `end`.
        """
        stopped = self.stopped.get(index)
        return (end if stopped is None else max(stopped, clock)) - self.started[index]

    def _look(self, now: Seconds) -> None:
        rules = self.rules
        kept = [each for each in range(len(self.opens)) if each not in self.stopped]
        used = (each for index, each in self.replicas.items() if index not in self.stopped)
        under_way = sum(each.outstanding for each in used)
        together = rules.together
        wanted = together * math.ceil(under_way / (rules.target * together))
        wanted = min(rules.most, max(rules.least, wanted))
        history = self._wanted
        history.append((now, wanted))
        while history[0][0] < now - rules.hold:
            history.popleft()
        for _ in range(wanted - len(kept)):
            self.started.append(now)
            self.opens.append(now + rules.delay)
        if wanted < len(kept):
            most = max(count for _, count in history)
            # The newest replicas are stopped first: some may not be open yet.
            for each in kept[most:]:
                self.stopped[each] = now


@dataclass(slots=True)
class Clients:
    """Requests in transfer from clients to machines, one after the other for each machine.

    `replicas` is the number of request-taking replicas on a machine, below 1 if some machines have
    none. `busy` is the time of the machines' networks for all requests so far [s].
    """

    wire: Wire
    replicas: float
    busy: Seconds = 0.0
    _free: dict[int, Seconds] = field(default_factory=dict)

    def receive(self, replica: int, tokens: int, now: Seconds) -> Seconds:
        """Return the arrival time of a prompt of `tokens` that is sent now [s]."""
        machine, time = int(replica / self.replicas), tokens * self.wire.prompt_token
        there = max(now, self._free.get(machine, 0.0)) + time
        self._free[machine] = there
        self.busy += time
        return max(there, now + tokens * self.wire.flow)

    def share(self, requests: Requests, counts: Counts) -> float:
        """Return the utilization of the network between clients and machines, busier direction.

        Parameters
        ----------
        requests : Requests
            All requests, completed.
        counts : Counts
            Totals of the replicas that take requests.
        """
        out = sum(requests.outputs) * self.wire.token
        return max(self.busy, out) * self.replicas / max(counts.provided, 1e-12)


@dataclass(slots=True)
class Inputs:
    """Inputs of requests, read from a store one after the other at the total rate of all readers.

    `busy` is the time spent on reading [s].
    """

    reading: Reading
    busy: Seconds = 0.0
    _free: Seconds = 0.0

    def read(self, now: Seconds) -> Seconds:
        """Return the time at which the input of a request that starts now has been read [s]."""
        time = 1.0 / self.reading.rate
        self._free = max(now, self._free) + time
        self.busy += time
        return self._free

    def shares(self, end: Seconds) -> dict[str, float]:
        """Return the utilization, up to `end`, of each resource that reading uses."""
        share = self.busy / max(end, 1e-12)
        return {name: share * each for name, each in self.reading.busy.items()}


class Fleet:
    """The replicas of a service and their router.

    A replica is made when its first request comes: a large fleet may have more of them than
    requests.

    Parameters
    ----------
    make : callable
        Returns a new replica.
    count : int
        Number of replicas at the start.
    routing : Routing
        Rule by which requests are assigned to replicas.
    scaling : Autoscaling, optional
        Rules of the autoscaler; None: the number of replicas is constant.
    inputs : Inputs, optional
        Reading of inputs from a store; None: requests include their inputs.
    clients : Clients, optional
        Network from the clients; None: it takes no time.
    seed : int
        Seed of random routing.
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
        self.make, self.count = make, count
        self.replicas: dict[int, Replica] = {}
        self.open: Sequence[int] = range(count)
        self.scaler = None if scaling is None else Autoscaler(scaling, self.replicas, count)
        self._draw = Random(seed)  # noqa: S311 - a router's choice, no secret
        self._heap: list[tuple[Seconds, bool, int]] = []
        self._alone = self._used(0) if count == 1 and scaling is None else None
        self._turn = -1

    @property
    def due(self) -> Seconds:
        """Time of the next event without new requests; infinity if there is none [s]."""
        if self._alone is not None:
            return self._alone.due
        heap, replicas = self._heap, self.replicas
        while heap and replicas[heap[0][2]].due != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else math.inf

    def send(self, request: int, now: Seconds) -> None:
        """Route a request that arrives at time `now` to a replica."""
        if self.scaler is not None:
            self.open = self.scaler.open_at(now)
        index = self._pick()
        replica = self._used(index)
        before = replica.due
        if self.inputs is not None:
            now = self.inputs.read(now)
        if self.clients is not None:
            now = self.clients.receive(index, replica.requests.prompts[request], now)
        replica.send(request, now)
        if replica.due != before and self._alone is None:
            heappush(self._heap, (replica.due, False, index))

    def proceed(self, until: Seconds = -math.inf) -> tuple[int, list[int]]:
        """Process the next event; return its replica's index and the requests that it completed.

        An immediate next event of the same replica is processed too, if nothing is sent before
        `until`.
        """
        index = heappop(self._heap)[2] if self._alone is None else 0
        replica = self.replicas[index]
        now, done = replica.due, replica.proceed()
        if now < until and replica.due == now and replica.is_between:
            replica.proceed()
        if self._alone is None and replica.due < math.inf:
            # Passes that end are processed before passes that begin at the same time.
            heappush(self._heap, (replica.due, replica.is_between, index))
        return index, done

    def release(self, now: Seconds) -> bool:
        """Start held batches, as no more requests arrive; return True if there is any."""
        found = [index for index, each in sorted(self.replicas.items()) if each.release(now)]
        for index in found if self._alone is None else ():
            heappush(self._heap, (self.replicas[index].due, True, index))
        return bool(found)

    def _used(self, index: int) -> Replica:
        """Return a replica, made if it is new."""
        if index not in self.replicas:
            self.replicas[index] = self.make()
        return self.replicas[index]

    def _pick(self) -> int:
        """Return the index of the replica for the next request."""
        count = len(self.open)
        if count == 1:
            return self.open[0]
        if self.routing is Routing.RANDOM:
            return self.open[self._draw.randrange(count)]
        self._turn = (self._turn + 1) % count
        if self.routing is Routing.ROUND_ROBIN:
            return self.open[self._turn]
        # Among replicas with the fewest requests the next in round robin is chosen.
        best, fewest = self.open[self._turn], math.inf
        for step in range(count):
            index = self.open[(self._turn + step) % count]
            outstanding = self.replicas[index].outstanding if index in self.replicas else 0
            if outstanding < fewest:
                best, fewest = index, outstanding
            if not outstanding:
                break
        return best

    def counts(self, end: Seconds) -> Counts:
        """Return the totals over all replicas of a run that ends at `end`."""
        total = Counts(end=end)
        for _, replica in sorted(self.replicas.items()):
            counts = replica.counts
            counts.preemptions = replica.scheduler.preemptions
            total.add(counts)
        total.provided = self._provided(end)
        return total

    def _provided(self, end: Seconds) -> Seconds:
        """Return the time that replicas were available, summed over used and idle ones [s]."""
        if self.scaler is None:
            return self.count * end
        clocks = {index: each.clock for index, each in self.replicas.items()}
        every = range(len(self.scaler.started))
        return sum(self.scaler.provided(index, clocks.get(index, 0.0), end) for index in every)


def run(fleet: Fleet, requests: Requests) -> Counts:
    """Run a fleet until all requests are completed; return its totals.

    Times are written into `requests`. Closed-loop clients send their next request after an answer.
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
    """Append the arrivals of the next requests of clients whose requests were completed."""
    if done and requests.clients is not None:
        room = len(requests) - len(requests.arrivals)
        requests.arrivals.extend([now + requests.think] * min(len(done), room))


@dataclass(slots=True)
class Line:
    """Requests in transfer between replicas, one after the other for each sender."""

    transfer: Transfer
    busy: Seconds = 0.0
    travelled: Seconds = 0.0
    _free: list[Seconds] = field(default_factory=list)
    _under_way: list[tuple[Seconds, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._free = [0.0] * self.transfer.senders

    @property
    def due(self) -> Seconds:
        """Time of the next arrival at the receiving replicas; infinity if there is none [s]."""
        return self._under_way[0][0] if self._under_way else math.inf

    def send(self, request: int, prompt: int, sender: int, now: Seconds) -> None:
        """Send the KV cache of a request over the link of its sender."""
        time = self.transfer.seconds(prompt)
        there = max(now, self._free[sender]) + time
        self._free[sender] = there
        self.busy += time
        self.travelled += there - now
        heappush(self._under_way, (there, request))

    def take(self) -> int:
        """Remove the request that arrives next and return it."""
        return heappop(self._under_way)[1]


def run_split(
    prompts: Fleet, before: Requests, line: Line, fleet: Fleet, requests: Requests
) -> tuple[Counts, Counts]:
    """Run two fleets: one for prefill and one for decode; return the totals of both.

    The first token comes from the decode fleet once it has room for the request. Times are written
    into `requests`.

    Parameters
    ----------
    prompts, fleet : Fleet
        The fleet for prefill and the fleet for decode.
    before : Requests
        The same requests with one output token and the same list of arrivals, for prefill.
    line : Line
        Transfer of KV caches between the fleets.
    requests : Requests
        The requests as completed by the decode fleet.
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


def links_of(side: Side, counts: Counts) -> dict[str, float]:
    """Return the utilization of each link of an accelerator, by kind of link.

    Parameters
    ----------
    side : Side
        The replicas.
    counts : Counts
        Totals over these replicas.
    """
    times = side.work.link_seconds(counts.prefilled, counts.decoded)
    return {name: time / max(counts.provided, 1e-12) for name, time in times.items()}


def links_of_both(layout: Layout, first: Counts, counts: Counts, line: Line) -> dict[str, float]:
    """Return the utilization of links of prefill and decode replicas, transfers included.

    `first` are the totals of prefill replicas, `counts` those of decode replicas. KV caches are
    sent over a link of the prefill replicas or over the machines' network. Links of both kinds of
    replicas are separate.
    """
    if layout.prompts is None:
        return links_of(layout.main, counts)
    sent = line.busy / (line.transfer.senders * max(first.end, counts.end, 1e-12))
    prompts, kind = links_of(layout.prompts, first), str(line.transfer.link)
    network = {}
    if line.transfer.link is LinkKind.NETWORK:
        network[kind] = sent
    else:
        prompts[kind] = prompts.get(kind, 0.0) + sent
    answers = links_of(layout.main, counts)
    return {
        **{f"{name}_of_prompts": share for name, share in prompts.items()},
        **{f"{name}_of_answers": share for name, share in answers.items()},
        **network,
    }


def with_inputs(
    links: Mapping[str, float], inputs: Inputs | None, end: Seconds
) -> dict[str, float]:
    """Return the utilizations of `links`, with those of reading inputs until `end` added."""
    read = {} if inputs is None else inputs.shares(end)
    return {name: links.get(name, 0.0) + read.get(name, 0.0) for name in {**links, **read}}


def with_clients(
    links: Mapping[str, float], clients: Clients | None, requests: Requests, counts: Counts
) -> dict[str, float]:
    """Return the utilizations of `links`, with that of the network to clients added.

    Parameters
    ----------
    links : mapping of str to float
        Utilization by kind of link.
    clients : Clients or None
        The clients that sent the requests.
    requests : Requests
        All requests, completed.
    counts : Counts
        Totals of the replicas that take requests.
    """
    if clients is None:
        return dict(links)
    name = str(LinkKind.NETWORK)
    return {**links, name: links.get(name, 0.0) + clients.share(requests, counts)}
