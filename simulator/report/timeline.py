"""A simulated run as a Chrome trace, which Perfetto and ``chrome://tracing`` open.

Bars are complete events (``X``), utilizations counters (``C``), names of tracks metadata (``M``).
"""

from __future__ import annotations

import json
from typing import Any, Final

from simulator.results import Trace
from simulator.units import SECOND, parse
from simulator.version import __version__

TICK: Final = parse("1 us", SECOND)
"""The format's unit of time [s]."""
_PROCESS: Final = 1


def as_chrome_trace(trace: Trace, name: str) -> dict[str, Any]:
    """The trace as the object the format asks for.

    Parameters
    ----------
    trace : Trace
        What happened in the simulated steps.
    name : str
        Name of the scenario, shown as the process.
    """
    tracks = list(dict.fromkeys(part.track for part in trace.slices))
    thread = {track: number for number, track in enumerate(tracks, start=1)}
    events: list[dict[str, Any]] = [_name("process_name", 0, name)]
    for track, number in thread.items():
        events.append(_name("thread_name", number, track))
        events.append(_metadata("thread_sort_index", number, {"sort_index": number}))
    events += [
        {
            "ph": "X",
            "name": part.name,
            "cat": "step" if part.step is None else f"step {part.step}",
            "pid": _PROCESS,
            "tid": thread[part.track],
            "ts": part.start / TICK,
            "dur": part.length / TICK,
            "args": {} if part.step is None else {"step": part.step},
        }
        for part in trace.slices
    ]
    events += [
        {
            "ph": "C",
            "name": sample.unit,
            "pid": _PROCESS,
            "ts": sample.time / TICK,
            "args": {"busy": sample.value},
        }
        for sample in trace.samples
    ]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "scenario": name,
            "version": __version__,
            "start_s": trace.start,
            "end_s": trace.end,
        },
    }


def timeline_text(trace: Trace, name: str) -> str:
    """The trace as JSON text."""
    return json.dumps(as_chrome_trace(trace, name), ensure_ascii=False, allow_nan=False)


def _name(kind: str, thread: int, name: str) -> dict[str, Any]:
    return _metadata(kind, thread, {"name": name})


def _metadata(kind: str, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": thread, "args": args}
