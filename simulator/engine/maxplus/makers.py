"""When batches are ready to be taken: workers, credits, and the thread that receives."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Protocol

from simulator.engine.batches import Supply
from simulator.engine.maxplus.chains import Chain, Logs, walk
from simulator.engine.maxplus.pipeline import Piece, Pipeline
from simulator.units import Seconds


class TieError(Exception):
    """Batches are finished at one instant that only the event engine knows the order of.

    Unlike ones, or such as take no time at all. Of equal ones the earlier is first: their workers
    began in that order, or one of them began before.
    """


class Makers(Protocol):
    """A loader: hands batches over, in their order."""

    @property
    def issued(self) -> int:
        """Batches asked for so far."""

    def take(self, ready: Seconds, batch: int) -> Seconds:
        """When a batch is taken that the program is ready for at `ready` [s]."""

    def taken(self, now: Seconds) -> None:
        """Ask for another batch, now that one was taken."""

    def waiting(self, now: Seconds) -> int:
        """Finished batches that wait to be taken at an instant, when all of it has happened."""


class _Chains:
    """A chain of tasks for batches of any size."""

    def __init__(self, logs: Logs, pieces: Sequence[Piece]) -> None:
        self._logs, self._pieces = logs, pieces
        self._known: dict[float, Chain] = {}

    def of(self, scale: float) -> Chain:
        """The chain of a batch with so many times the work of a full one."""
        if scale not in self._known:
            self._known[scale] = self._logs.chain(self._pieces, scale)
        return self._known[scale]


class OwnThread:
    """No workers: the program's own thread makes a batch when it needs it."""

    def __init__(self, pipeline: Pipeline, supply: Supply, logs: Logs) -> None:
        self._supply = supply
        pieces = (*pipeline.read, *pipeline.make, *pipeline.receive)
        self._all = _Chains(logs, pieces)
        self.issued = 0

    def take(self, ready: Seconds, batch: int) -> Seconds:
        """When a batch has been made that is begun at `ready` [s]."""
        self.issued = batch + 1
        return walk(self._all.of(self._supply.share(batch)), ready)

    def taken(self, now: Seconds) -> None:
        """Nothing is made ahead."""

    def waiting(self, now: Seconds) -> int:  # noqa: ARG002 - whenever that is
        """No batch ever waits."""
        return 0


class Workers:
    """Workers that make batches in turn, and one thread that receives them as they come.

    Parameters
    ----------
    pipeline : Pipeline
        Tasks and rules.
    supply : Supply
        The epoch's batches.
    logs : Logs
        Told what is busy when.
    start : float
        When the workers begin [s].
    """

    def __init__(
        self,
        pipeline: Pipeline,
        supply: Supply,
        logs: Logs,
        start: Seconds,
    ) -> None:
        crew = pipeline.crew
        self._supply = supply
        self._apart = crew.reads_ahead
        self._own_thread = pipeline.scenario.job.loader.pin_memory
        both = () if self._apart else pipeline.read
        self._read = _Chains(logs, pipeline.read)
        self._make = _Chains(logs, (*both, *pipeline.make))
        self._receive = _Chains(logs, pipeline.receive)
        self._read_free = [start] * crew.makers
        self._free = [start] * crew.makers
        self._receiver_free = start
        self._finished: list[tuple[Seconds, int]] = []
        self._came: dict[int, Seconds] = {}
        self._at_finish: list[Seconds] = []
        self._at_pull: list[Seconds] = []
        self._at_received: list[Seconds] = []
        self._at_take: list[Seconds] = []
        self.issued = 0
        for _ in range(crew.credits):
            self._issue(start)

    def take(self, ready: Seconds, batch: int) -> Seconds:
        """When a batch has been received, and the program wants it from `ready` on [s]."""
        if not self._own_thread:
            self._receiver_free = ready
        while batch not in self._came:
            self._receive_next()
        came = self._came.pop(batch)
        return max(ready, came) if self._own_thread else max(ready, self._receiver_free)

    def taken(self, now: Seconds) -> None:
        """Ask for another batch, now that one was taken."""
        self._at_take.append(now)
        self._issue(now)

    def waiting(self, now: Seconds) -> int:
        """Finished batches that wait to be taken at an instant."""
        while self._own_thread and self._finished and self._next_pull() <= now:
            self._receive_next()
        finished = sum(end <= now for end, _ in self._finished)
        finished += bisect_right(self._at_finish, now)
        received = bisect_right(self._at_received, now) - bisect_right(self._at_pull, now)
        return finished + received - bisect_right(self._at_take, now)

    def _scale(self, batch: int) -> float:
        """How many times the work of a full batch its maker has."""
        return self._supply.share(batch) * self._supply.phase(batch)

    def _next_pull(self) -> Seconds:
        return max(self._finished[0][0], self._receiver_free)

    def _receive_next(self) -> None:
        pull = self._next_pull()
        finish, batch = heappop(self._finished)
        share = self._supply.share(batch)
        if self._finished and self._finished[0][0] == finish:
            other = self._finished[0][1]
            if self._scale(other) != self._scale(batch):
                raise TieError
        self._receiver_free = walk(self._receive.of(share), pull)
        self._came[batch] = self._receiver_free
        self._at_finish.append(finish)
        self._at_pull.append(pull)
        self._at_received.append(self._receiver_free)

    def _issue(self, now: Seconds) -> None:
        if not self._supply.has(self.issued):
            return
        batch, worker = self.issued, self.issued % len(self._free)
        scale = self._scale(batch)
        if self._apart:
            now = walk(self._read.of(scale), max(now, self._read_free[worker]))
            self._read_free[worker] = now
        start = max(now, self._free[worker])
        end = walk(self._make.of(scale), start)
        if end == start and len(self._free) > 1:
            raise TieError
        self._free[worker] = end
        heappush(self._finished, (end, batch))
        self.issued += 1
