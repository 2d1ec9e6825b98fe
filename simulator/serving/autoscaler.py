"""How many replicas there are at a time: more where many requests are under way, later fewer."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

from simulator.schema.serving import Autoscaling
from simulator.serving.engine import Replica
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
        """The replicas that take requests at a time, looks until then included."""
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
        """For how long a replica was there, from its start until it had nothing left to do [s]."""
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
