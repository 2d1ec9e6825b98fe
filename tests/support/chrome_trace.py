"""Reads a Chrome trace back from its text alone, as a viewer would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

SECOND = 1e6
"""The format's ticks in a second."""


@dataclass(frozen=True)
class Bar:
    """One complete event [s]."""

    name: str
    start: float
    end: float
    cat: str
    args: dict[str, Any]

    @property
    def length(self) -> float:
        """How long it lasts [s]."""
        return self.end - self.start


class ChromeTrace:
    """Threads and counters of a trace by process and name."""

    def __init__(self, text: str) -> None:
        tree = json.loads(text)
        self.events: list[dict[str, Any]] = tree["traceEvents"]
        self.about: dict[str, Any] = tree["otherData"]

    def _names(self, kind: str) -> dict[tuple[int, int], str]:
        found = [e for e in self.events if e["ph"] == "M" and e["name"] == kind]
        return {(e["pid"], e["tid"]): e["args"]["name"] for e in found}

    @cached_property
    def processes(self) -> dict[int, str]:
        """Names of the processes."""
        return {pid: name for (pid, _), name in self._names("process_name").items()}

    @cached_property
    def rows(self) -> dict[tuple[int, int], list[Bar]]:
        """The bars of each thread by process and thread number."""
        found: dict[tuple[int, int], list[Bar]] = {}
        for e in self.events:
            if e["ph"] == "X":
                start, end = e["ts"] / SECOND, (e["ts"] + e["dur"]) / SECOND
                bar = Bar(e["name"], start, end, e.get("cat", ""), e["args"])
                found.setdefault((e["pid"], e["tid"]), []).append(bar)
        return found

    @cached_property
    def bars(self) -> dict[tuple[str, str], list[Bar]]:
        """The bars by names of process and thread."""
        names = self._names("thread_name")
        found: dict[tuple[str, str], list[Bar]] = {}
        for key, bars in self.rows.items():
            found.setdefault((self.processes[key[0]], names[key]), []).extend(bars)
        return found

    @cached_property
    def counters(self) -> dict[str, list[tuple[float, float]]]:
        """Times and values of each counter by its process and name, as ``otherData`` lists them."""
        home = next(iter(self.processes.values()))
        found: dict[str, list[tuple[float, float]]] = {}
        for e in self.events:
            if e["ph"] == "C":
                process = self.processes[e["pid"]]
                machine = process.rsplit("machine ", 1)[-1] if process == home else process
                point = (e["ts"] / SECOND, e["args"]["utilization"])
                found.setdefault(f"{machine}: {e['name']}", []).append(point)
        return found

    @property
    def window(self) -> tuple[float, float, int]:
        """Start and end [s] of the steady window, and its steps."""
        window = self.about["steady_window"]
        return window["start_s"], window["end_s"], window["steps"]

    def busy(self, counter: str) -> float:
        """Mean of a counter over the steady window."""
        start, end, _ = self.window
        points = sorted(self.counters.get(counter, ()), key=lambda point: point[0])
        area = sum(
            value * max(0.0, min(until, end) - max(time, start))
            for (time, value), (until, _) in pairwise([*points, (end, 0.0)])
        )
        return area / (end - start)

    def utilization(self, resource: str) -> float:
        """Mean over the links, pools and devices of a resource, each as busy as its busier part."""
        things: dict[str, float] = {}
        for counter, its in self.about["counters"].items():
            if its == resource:
                thing = _thing(counter)
                things[thing] = max(things.get(thing, 0.0), self.busy(counter))
        return sum(things.values()) / len(things)

    def spent(self, process: str, thread: str) -> dict[str, float]:
        """What a thread spent on bars of each name in a mean steady step [s].

        Bars count where they end; a thousandth of a tick is lost by writing.
        """
        start, end, steps = self.window
        found: dict[str, float] = {}
        for bar in self.bars[process, thread]:
            if start + 1e-9 < bar.end <= end + 1e-9:
                found[bar.name] = found.get(bar.name, 0.0) + bar.length / steps
        return found


_PARTS = (
    " up",
    " down",
    "network in",
    "network out",
    "storage network operations",
    "storage network",
    "storage operations",
    "storage requests",
    "storage",
)


def _thing(counter: str) -> str:
    """The link or store a counter shows one direction or limit of."""
    return next((counter.removesuffix(p) for p in _PARTS if counter.endswith(p)), counter).rstrip()
