"""The Chrome trace in Perfetto's own trace processor, where its binary is at hand."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.prediction.timeline import timeline_text
from simulator.results.prediction import Prediction

perfetto: Any = pytest.importorskip(
    "perfetto.trace_processor", reason="perfetto is not installed (pip install perfetto)"
)
NANOSECONDS = 1e9
BUSY = """
select sum(value * (min(until, {end}) - max(ts, {start}))) as area from (
  select c.ts, c.value, lead(c.ts, 1, {end}) over (order by c.ts) as until
  from counter c join process_counter_track t on c.track_id = t.id
  where t.name = '{name}'
) where until > {start} and ts < {end}
"""
COMPUTED = """
select sum(s.dur) as time from slice s
join thread_track t on s.track_id = t.id join thread using (utid) join process using (upid)
where process.name = 'rank 0' and thread.name = 'compute'
  and s.name in ('forward', 'backward', 'optimizer')
  and s.ts + s.dur > {start} and s.ts + s.dur <= {end}
"""


@pytest.fixture(scope="module")
def prediction() -> Prediction:
    """Eight accelerators in one machine."""
    return predict(load_scenario("resnet50-imagenet-p4d"), trace=True, intervals=False)


@pytest.fixture(scope="module")
def query(prediction: Prediction, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Asks the trace processor about the file; skips where its binary cannot be had."""
    path: Path = tmp_path_factory.mktemp("trace") / "trace.json"
    path.write_text(timeline_text(prediction), encoding="utf-8")
    try:
        processor = perfetto.TraceProcessor(trace=str(path))
    except (OSError, subprocess.CalledProcessError, perfetto.TraceProcessorException) as error:
        pytest.skip(f"Perfetto's trace processor cannot be had: {error}")
    yield processor.query
    processor.close()


def window(prediction: Prediction) -> dict[str, int]:
    """The steady window [ns]."""
    trace = prediction.timing.trace
    assert trace is not None
    start, end = (round(time * NANOSECONDS) for time in trace.window)
    return {"start": start, "end": end}


@pytest.mark.slow
@pytest.mark.parametrize(("counter", "resource"), [("CPU", "cpu"), ("GPU 3", "gpu")])
def test_counters_are_the_utilization_by_sql(
    query: Any,
    prediction: Prediction,
    counter: str,
    resource: str,
) -> None:
    """The area under a counter's track is what the report says."""
    span = window(prediction)
    sql = BUSY.format(name=f"{counter} utilization", **span)
    area = next(iter(query(sql))).area
    expected = prediction.timing.usage[resource].mean
    assert area / (span["end"] - span["start"]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_compute_is_the_split_by_sql(
    query: Any,
    prediction: Prediction,
) -> None:
    """Slices of the compute thread are the compute time of a step."""
    trace, span = prediction.timing.trace, window(prediction)
    assert trace is not None
    time = next(iter(query(COMPUTED.format(**span)))).time
    steps = trace.last - trace.first
    expected = prediction.timing.split.compute
    assert time / NANOSECONDS / steps == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_nothing_was_dropped(query: Any) -> None:
    """The importer of the trace processor took every event."""
    found = query("select name, value from stats where severity = 'error' and value > 0")
    assert [(row.name, row.value) for row in found] == []
