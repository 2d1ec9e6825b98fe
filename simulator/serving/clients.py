"""What clients send and get: requests come in and answers go out over each machine's network."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.serving.engine import Counts
from simulator.serving.layout import Wire
from simulator.serving.load import Requests
from simulator.units import Seconds


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
        """When a prompt of so many tokens that is sent now has reached a replica [s]."""
        machine, time = int(replica / self.replicas), tokens * self.wire.prompt_token
        there = max(now, self._free.get(machine, 0.0)) + time
        self._free[machine] = there
        self.busy += time
        return max(there, now + tokens * self.wire.flow)

    def share(self, requests: Requests, counts: Counts) -> float:
        """Share of the time in which the busier direction of the machines' networks is busy.

        Parameters
        ----------
        requests : Requests
            All of them, answered.
        counts : Counts
            What the replicas add up to that take requests.
        """
        out = sum(requests.outputs) * self.wire.token
        return max(self.busy, out) * self.replicas / max(counts.provided, 1e-12)
