"""The replicas of a service with their router, autoscaler, clients, stores of inputs and links."""

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
    """Looks at replicas now and then, and has some started and stopped.

    As Kubernetes' horizontal autoscaler: it wants as many replicas as bring the requests under way
    to the target each. More are started at once and open after the delay. Fewer are kept only when
    no look within the hold wanted as many; one that is stopped gets no more requests and goes when
    its own are answered.

    Parameters
    ----------
    rules : Autoscaling
        Target, bounds and times.
    replicas : list of Replica
        Those at the start; others are appended, and none is taken out.
    make : callable
        Makes one more.
    """

    def __init__(
        self, rules: Autoscaling, replicas: list[Replica], make: Callable[[], Replica]
    ) -> None:
        self.rules, self.replicas, self.make = rules, replicas, make
        self.started: list[Seconds] = [0.0] * len(replicas)
        self.opens: list[Seconds] = [0.0] * len(replicas)
        self.stopped: dict[int, Seconds] = {}
        self._next = rules.interval
        self._wanted: deque[tuple[Seconds, int]] = deque()
        self._open: Sequence[int] = range(len(replicas))
        self._until: Seconds = math.inf

    def open_at(self, now: Seconds) -> Sequence[int]:
        """Return the replicas that take requests at a time, with all scaling until then."""
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
        """Return the time from the start of a replica until it was idle for good [s]."""
        stopped = self.stopped.get(index)
        return (end if stopped is None else max(stopped, clock)) - self.started[index]

    def _look(self, now: Seconds) -> None:
        rules = self.rules
        kept = [each for each in range(len(self.opens)) if each not in self.stopped]
        under_way = sum(self.replicas[each].outstanding for each in kept)
        together = rules.together
        wanted = together * math.ceil(under_way / (rules.target * together))
        wanted = min(rules.most, max(rules.least, wanted))
        history = self._wanted
        history.append((now, wanted))
        while history[0][0] < now - rules.hold:
            history.popleft()
        for _ in range(wanted - len(kept)):
            self.replicas.append(self.make())
            self.started.append(now)
            self.opens.append(now + rules.delay)
        if wanted < len(kept):
            most = max(count for _, count in history)
            # The newest go first: some of them may not even be open yet.
            for each in kept[most:]:
                self.stopped[each] = now


@dataclass(slots=True)
class Clients:
    """Requests on their way to machines, those of each machine one after the other.

    `replicas` is how many of those that take requests stand on a machine, less than 1 where not
    every machine has one. `busy` is what has come in so far takes of the machines' networks [s].
    """

    wire: Wire
    replicas: float
    busy: Seconds = 0.0
    _free: dict[int, Seconds] = field(default_factory=dict)

    def receive(self, replica: int, tokens: int, now: Seconds) -> Seconds:
        """Return the arrival time of a prompt that is sent now [s]."""
        machine, time = int(replica / self.replicas), tokens * self.wire.prompt_token
        there = max(now, self._free.get(machine, 0.0)) + time
        self._free[machine] = there
        self.busy += time
        return max(there, now + tokens * self.wire.flow)

    def share(self, requests: Requests, counts: Counts) -> float:
        """Return the busy share of the busier direction of the network.

        Parameters
        ----------
        requests : Requests
            All of them, answered.
        counts : Counts
            What the replicas add up to that take requests.
        """
        out = sum(requests.outputs) * self.wire.token
        return max(self.busy, out) * self.replicas / max(counts.provided, 1e-12)


@dataclass(slots=True)
class Inputs:
    """Requests are read one after the other, at the rate of all readers together.

    `busy` is the time that has passed reading them [s].
    """

    reading: Reading
    busy: Seconds = 0.0
    _free: Seconds = 0.0

    def read(self, now: Seconds) -> Seconds:
        """Return the time at which a request that is started now has been read [s]."""
        time = 1.0 / self.reading.rate
        self._free = max(now, self._free) + time
        self.busy += time
        return self._free

    def shares(self, end: Seconds) -> dict[str, float]:
        """Return the busy share until `end` of each resource that reads."""
        share = self.busy / max(end, 1e-12)
        return {name: share * each for name, each in self.reading.busy.items()}


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
        """Route a request."""
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
        """Process the event that is `due`; return its replica and the requests that ended with it.

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
        """Release held batches, as no more requests come; return whether there is any."""
        found = [index for index, each in enumerate(self.replicas) if each.release(now)]
        for index in found if self._alone is None else ():
            heappush(self._heap, (self.replicas[index].due, True, index))
        return bool(found)

    def _pick(self) -> int:
        """Return the replica that gets the next request."""
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
        """Return the sums over all replicas of a run that ends at a time."""
        total = Counts(end=end)
        for index, replica in enumerate(self.replicas):
            counts = replica.counts
            counts.preemptions = replica.scheduler.preemptions
            scaler = self.scaler
            counts.provided = end if scaler is None else scaler.provided(index, replica.clock, end)
            total.add(counts)
        return total


def run(fleet: Fleet, requests: Requests) -> Counts:
    """Run a fleet until all requests are answered; return its counts.

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
    """Send the next requests of clients whose requests were answered."""
    if done and requests.clients is not None:
        room = len(requests) - len(requests.arrivals)
        requests.arrivals.extend([now + requests.think] * min(len(done), room))


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
        """Send a request over the network of its sender."""
        time = self.transfer.seconds(prompt)
        there = max(now, self._free[sender]) + time
        self._free[sender] = there
        self.busy += time
        self.travelled += there - now
        heappush(self._under_way, (there, request))

    def take(self) -> int:
        """Return the request that arrives next."""
        return heappop(self._under_way)[1]


def run_split(
    prompts: Fleet, before: Requests, line: Line, fleet: Fleet, requests: Requests
) -> tuple[Counts, Counts]:
    """Run a fleet for prompts and another one for answers.

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


def links_of(side: Side, counts: Counts) -> dict[str, float]:
    """Return the busy share of each link of an accelerator by its kind.

    Parameters
    ----------
    side : Side
        The replicas.
    counts : Counts
        What they computed, all together.
    """
    times = side.work.link_seconds(counts.prefilled, counts.decoded)
    return {name: time / max(counts.provided, 1e-12) for name, time in times.items()}


def links_of_both(layout: Layout, first: Counts, counts: Counts, line: Line) -> dict[str, float]:
    """Return the same for replicas for prompts (`first`) and for answers, with their transfers.

    Keys and values take a link of the replicas for prompts that `links_of` may have, or the
    machines' network. Links of the two kinds of replicas are separate.
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
    """Add the busy shares of the store and network that requests are read over."""
    read = {} if inputs is None else inputs.shares(end)
    return {name: links.get(name, 0.0) + read.get(name, 0.0) for name in {**links, **read}}


def with_clients(
    links: Mapping[str, float], clients: Clients | None, requests: Requests, counts: Counts
) -> dict[str, float]:
    """Add the busy share of the network between clients and machines.

    Parameters
    ----------
    links : mapping of str to float
        Shares by the kind of link.
    clients : Clients or None
        Those that sent the requests.
    requests : Requests
        All of them, answered.
    counts : Counts
        What the replicas add up to that take requests.
    """
    if clients is None:
        return dict(links)
    name = str(LinkKind.NETWORK)
    return {**links, name: links.get(name, 0.0) + clients.share(requests, counts)}
