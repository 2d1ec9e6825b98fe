"""Batches of a model that answers in one pass, by the rules of Triton's dynamic batcher.

triton-inference-server/server@06151b8b, docs/user_guide/batcher.md: the largest preferred size (or
the maximum) that the queue fills; else wait for one of them, until the oldest request has waited
the delay, and take what there is. Requests are never split, and stay in order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from simulator.scenario.serving import Dynamic
from simulator.units import Seconds


class Batcher:
    """The queue before one device: when a batch goes, and how many samples it has.

    Parameters
    ----------
    rules : Dynamic
        Delay and preferred sizes.
    most : int
        Samples of a batch at most.
    """

    def __init__(self, rules: Dynamic, most: int) -> None:
        self.delay, self.most = rules.delay, most
        self.sizes = sorted({*rules.preferred, most})
        self._queue: deque[tuple[Seconds, int]] = deque()
        self._samples = 0

    def join(self, samples: int, now: Seconds) -> None:
        """A request comes into the queue."""
        self._queue.append((now, samples))
        self._samples += samples

    def held_until(self, now: Seconds) -> Seconds:
        """Until when the queue is kept for a larger batch; `now` where it is not."""
        if not self._queue or self._samples >= self.sizes[0]:
            return now
        return max(now, self._queue[0][0] + self.delay)

    def take(self) -> int:
        """Let a batch go: how many samples it may have."""
        place = bisect_right(self.sizes, self._samples)
        size = self.sizes[place - 1] if place else self.most
        left = size
        while self._queue and self._queue[0][1] <= left:
            taken = self._queue.popleft()[1]
            left -= taken
            self._samples -= taken
        return size
