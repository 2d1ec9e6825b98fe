"""The Chrome trace."""

from __future__ import annotations

import json
from itertools import accumulate, pairwise
from typing import Any

import pytest

from simulator.report.timeline import as_chrome_trace, timeline_text
from simulator.results import Prediction, Trace

Events = list[dict[str, Any]]


def busy(events: Events, unit: str, start: float, end: float) -> float:
    """Mean of a counter between two times [s], read from the file's events."""
    points = [(e["ts"] / 1e6, e["args"]["busy"]) for e in events if e["name"] == unit]
    area = 0.0
    for (time, value), (until, _) in pairwise([*points, (end, 0.0)]):
        area += value * max(0.0, min(until, end) - max(time, start))
    return area / (end - start)


def counters(text: str) -> Events:
    """Counter events of a trace."""
    return [e for e in json.loads(text)["traceEvents"] if e["ph"] == "C"]


def test_counters_read_back_as_utilization(prediction: Prediction, trace: Trace) -> None:
    """Integrating the file's counters gives the report's busy fraction."""
    events = counters(timeline_text(trace, "x"))
    expected = prediction.timing.accelerator_utilization
    assert busy(events, "gpu 0", trace.start, trace.end) == pytest.approx(expected)
    assert busy(events, "cpu", trace.start, trace.end) == pytest.approx(1.0)


def test_a_simulated_run_reads_back(simulated: Prediction) -> None:
    """Over whole rounds of workers, the file's counters give the reported utilization."""
    timing = simulated.timing
    assert timing.trace is not None
    events = counters(timeline_text(timing.trace, "x"))
    ends = list(accumulate(timing.step_times))
    workers = simulated.scenario.job.loader.workers
    whole = len(ends) // workers - 2
    start, end = ends[workers - 1], ends[whole * workers - 1]
    mean = sum(busy(events, f"gpu{i}", start, end) for i in range(4)) / 4.0
    assert mean == pytest.approx(timing.accelerator_utilization, rel=1e-6)


def test_bars_and_counters_agree(simulated: Prediction) -> None:
    """A device's bars last as long as its counter says it was busy."""
    trace = simulated.timing.trace
    assert trace is not None
    tree = as_chrome_trace(trace, "x")
    tracks = {
        e["tid"]: e["args"]["name"] for e in tree["traceEvents"] if e["name"] == "thread_name"
    }
    bars = [
        (e["ts"] / 1e6, (e["ts"] + e["dur"]) / 1e6)
        for e in tree["traceEvents"]
        if e["ph"] == "X" and tracks[e["tid"]] == "rank 0 compute"
    ]
    inside = sum(max(0.0, min(end, trace.end) - start) for start, end in bars)
    events = [e for e in tree["traceEvents"] if e["ph"] == "C"]
    share = busy(events, "gpu0", trace.start, trace.end)
    assert inside / (trace.end - trace.start) == pytest.approx(share)


def test_tracks_are_named(trace: Trace) -> None:
    """Every bar lies on a track that metadata gives a name, in a named process."""
    events = as_chrome_trace(trace, "my scenario")["traceEvents"]
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {named[e["tid"]] for e in events if e["ph"] == "X"} == {"rank 0 compute"}
    process = next(e for e in events if e["name"] == "process_name")
    assert process["args"]["name"] == "my scenario"


def test_times_are_microseconds(trace: Trace) -> None:
    """A bar of 24 ms lasts 24,000 of the format's ticks."""
    first = next(e for e in as_chrome_trace(trace, "x")["traceEvents"] if e["ph"] == "X")
    assert first["ts"] == pytest.approx(16000.0)
    assert first["dur"] == pytest.approx(24000.0)
    assert first["args"] == {"step": 0}


def test_an_empty_trace_is_a_trace() -> None:
    """Nothing simulated still makes a file that opens."""
    tree = json.loads(timeline_text(Trace(), "x"))
    assert [e["ph"] for e in tree["traceEvents"]] == ["M"]
