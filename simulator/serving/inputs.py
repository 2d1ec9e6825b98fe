"""Requests that lie in a store: each is answered once it has been read."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.serving.layout import Reading
from simulator.units import Seconds


@dataclass(slots=True)
class Inputs:
    """Requests are read one after the other, at the rate of all readers together.

    `busy` is the time that has passed reading them [s].
    """

    reading: Reading
    busy: Seconds = 0.0
    _free: Seconds = 0.0

    def read(self, now: Seconds) -> Seconds:
        """When a request that is asked for now has been read [s]."""
        time = 1.0 / self.reading.rate
        self._free = max(now, self._free) + time
        self.busy += time
        return self._free

    def shares(self, end: Seconds) -> dict[str, float]:
        """Share of the time until `end` in which each resource reads, by its name."""
        share = self.busy / max(end, 1e-12)
        return {name: share * each for name, each in self.reading.busy.items()}
