"""A simulated run as a Chrome trace, for Perfetto and ``chrome://tracing``.

Every rank is a process with a thread for each lane: compute, communication, copies, pin-memory
thread, loader workers. Every other machine is a process, too, and so is the training machine, with
the steps, and the utilization of its units as counters. ``otherData`` holds the summary of the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from simulator.records import dataclass
from simulator.report.text import printable
from simulator.results.prediction import PIPELINE, Counter, Prediction, Sample, Slice, Trace
from simulator.units import SECOND, Seconds, parse
from simulator.version import __version__

TICK: Final = parse("1 us", SECOND)
"""The format's unit of time [s]."""
DIGITS: Final = 3
"""Decimals of a time: whole nanoseconds, as fine as Perfetto counts."""
SHARE_DIGITS: Final = 9
VALUE: Final = "utilization"
"""Name of a counter's value, from 0 (idle) to 1 (fully used)."""

_ORDER: Final = ("steps", "compute", "communication", "copy", "copy back", "pin memory", "main")
WAITS: Final = ("waits", "bubble")
"""Start of the names of bars that are waits."""
_WORDS: Final = {"cpu": "CPU", "pcie": "PCIe", "nvlink": "NVLink", "storage": "storage"}
_NUMBERED: Final = re.compile(r"^(gpu|switch)(\d+)$")

Event = dict[str, Any]


def as_chrome_trace(prediction: Prediction) -> dict[str, Any]:
    """Return the trace of a prediction as a Chrome Trace Event object.

    Parameters
    ----------
    prediction : Prediction
        The prediction; without a trace the object has a summary and no events.
    """
    trace = prediction.timing.trace or Trace()
    part = part_of(trace)
    home = prediction.scenario.cluster.trainers.name
    pids = {name: pid for pid, name in enumerate(_processes(part.trace, home), start=1)}
    return {
        "traceEvents": [
            *_process_names(pids, prediction),
            *_steps(part, pids[home]),
            *_bars(part.trace.slices, pids),
            *_counts(part.trace, pids),
        ],
        "displayTimeUnit": "ms",
        "otherData": _about(prediction, part),
    }


def timeline_text(prediction: Prediction) -> str:
    """Return the trace of a prediction as JSON text."""
    tree = as_chrome_trace(prediction)
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def counter_name(counter: Counter) -> str:
    """Return the name of a unit's counter in the file, without the name of its machine.

    Examples
    --------
    >>> counter_name(Counter(unit="pcie gpu3 up", machine="train", resource="pcie"))
    'PCIe GPU 3 up'
    """
    words = counter.unit.removeprefix(f"{counter.machine} ").split()
    return " ".join(_word(word) for word in words)


def _word(word: str) -> str:
    found = _NUMBERED.match(word)
    if found is None:
        return _WORDS.get(word, word)
    kind, number = found.groups()
    return f"{kind.upper() if kind == 'gpu' else kind} {number}"


def _processes(trace: Trace, home: str) -> list[str]:
    """Return the training machine, the ranks by number, and others in order of occurrence."""
    others = dict.fromkeys(part.process for part in trace.slices)
    others |= dict.fromkeys(counter.machine for counter in trace.counters)
    others.pop(home, None)
    return [home, *sorted(others, key=lambda name: (not name.startswith("rank "), _natural(name)))]


def _natural(text: str) -> list[tuple[str, int]]:
    """Return a sort key that puts worker 2 before worker 10."""
    return [
        (word, -1) if number == "" else ("", int(number))
        for word, number in re.findall(r"(\D+)|(\d+)", text)
    ]


def _process_names(pids: Mapping[str, int], prediction: Prediction) -> Iterator[Event]:
    scenario = printable(prediction.scenario.name)
    home = prediction.scenario.cluster.trainers.name
    for name, pid in pids.items():
        shown = f"{scenario}: machine {name}" if name == home else name
        yield _metadata("process_name", pid, 0, {"name": printable(shown)})
        yield _metadata("process_sort_index", pid, 0, {"sort_index": pid})


def _steps(part: Part, pid: int) -> Iterator[Event]:
    """Yield the steps as bars, and their ends as instant events."""
    trace, tid = part.trace, 0
    if not trace.ends:
        return
    yield _metadata("thread_name", pid, tid, {"name": "steps"})
    starts = (trace.start, *trace.ends)
    for number, (start, end) in enumerate(zip(starts, trace.ends, strict=False)):
        step = part.left_out + number
        steady = trace.first <= number < trace.last
        yield _bar(f"step {step}", pid, tid, start, end) | {"args": {"steady": steady}}
        instant = {"ph": "i", "s": "p", "name": "step ends", "pid": pid, "tid": tid}
        yield instant | {"ts": _ticks(end), "args": {"step": step}}


def _bars(slices: Sequence[Slice], pids: Mapping[str, int]) -> Iterator[Event]:
    """Yield every lane as a thread; overlapping bars go to additional threads of the same name."""
    lanes: dict[tuple[int, str], list[Slice]] = {}
    for part in slices:
        name = part.track.removeprefix(f"{part.process} ")
        lanes.setdefault((pids[part.process], name), []).append(part)
    tid = 0
    for pid, name in sorted(lanes, key=lambda lane: (lane[0], _place(lane[1]))):
        for row in _rows(lanes[pid, name]):
            tid += 1
            yield _metadata("thread_name", pid, tid, {"name": printable(name)})
            yield _metadata("thread_sort_index", pid, tid, {"sort_index": tid})
            yield from (_slice(part, pid, tid) for part in row)


def _place(lane: str) -> tuple[int, list[tuple[str, int]]]:
    named = [number for number, name in enumerate(_ORDER) if lane.startswith(name)]
    return max(named, default=len(_ORDER)), _natural(lane)


def _rows(slices: Sequence[Slice]) -> list[list[Slice]]:
    """Return the slices in rows without overlaps."""
    rows: list[list[Slice]] = []
    free: list[float] = []
    for part in sorted(slices, key=lambda part: part.start):
        start = _ticks(part.start)
        number = next((i for i, since in enumerate(free) if since <= start), len(rows))
        if number == len(rows):
            rows.append([])
            free.append(start)
        rows[number].append(part)
        free[number] = _ticks(part.start + part.length)
    return rows


def _slice(part: Slice, pid: int, tid: int) -> Event:
    bar = _bar(part.name, pid, tid, part.start, part.start + part.length)
    numbers = {"step": part.step, "batch": part.batch}
    args = {name: number for name, number in numbers.items() if number is not None}
    return bar | {"cat": "wait" if part.name.startswith(WAITS) else "work", "args": args}


def _bar(name: str, pid: int, tid: int, start: Seconds, end: Seconds) -> Event:
    begin = _ticks(start)
    length = round(_ticks(end) - begin, DIGITS)
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": begin, "dur": length}


def _counts(trace: Trace, pids: Mapping[str, int]) -> Iterator[Event]:
    known = {counter.unit: counter for counter in trace.counters}
    for sample in trace.samples:
        counter = known[sample.unit]
        yield {
            "ph": "C",
            "name": counter_name(counter),
            "pid": pids[counter.machine],
            "ts": _ticks(sample.time),
            "args": {VALUE: round(sample.value, SHARE_DIGITS)},
        }


def _about(prediction: Prediction, part: Part) -> dict[str, Any]:
    timing, trace = prediction.timing, part.trace
    start, end = trace.window
    steps = trace.last - trace.first
    return {
        "scenario": printable(prediction.scenario.name),
        "version": __version__,
        "seed": prediction.seed,
        "bottleneck": timing.bottleneck,
        "next_bottleneck": timing.next_bottleneck,
        "step_time_s": timing.step_time.mean,
        "utilization": {name: usage.mean for name, usage in timing.usage.items()},
        "steady_window": {"start_s": start, "end_s": end, "steps": steps},
        "steps": _which(part),
        "beside_the_steps": "checkpoints, evaluation and start-up are composed, not simulated: "
        "they have no lanes",
        "lanes": _stand_for(trace, prediction.scenario.ranks_per_host),
        "counters": {
            f"{counter.machine}: {counter_name(counter)}": counter.resource
            for counter in trace.counters
        },
    }


def _which(part: Part) -> str:
    """Describe which of the simulated steps the file contains."""
    shown = len(part.trace.ends)
    if shown == part.simulated:
        return f"all {shown} simulated steps of the last simulated epoch"
    return (
        f"{shown} of {part.simulated} simulated steps, from step {part.left_out} on: the last "
        f"whole steps of the steady window that fit into {part.most:,} events"
    )


def _stand_for(trace: Trace, ranks: float) -> dict[str, str]:
    """Describe the ranks that each drawn rank represents."""
    beside = f", on each of {trace.machines} identical machines" if trace.machines > 1 else ""
    found = {
        f"rank {rank}": f"{_stands_for(rank, trace, ranks)}{beside}" for rank in trace.shown_as
    }
    if any(part.process == PIPELINE for part in trace.slices):
        found[PIPELINE] = "stages of one step as its schedule places them; ranks show the slowest"
    return found


def _stands_for(rank: int, trace: Trace, ranks: float) -> str:
    count, simulated = trace.stands_for[rank], trace.shown_as[rank]
    if count == 1.0:
        return "itself"
    if simulated != rank:
        return f"itself, which does the same as rank {simulated}"
    shown = sum(other == simulated for other in trace.shown_as.values())
    return "itself" if shown > 1 else f"{count:g} of {ranks:g} ranks of its machine"


def _ticks(time: Seconds) -> float:
    return round(time / TICK, DIGITS)


def _metadata(kind: str, pid: int, tid: int, args: dict[str, Any]) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


MOST: Final = 120_000
"""Maximum number of bars and changes of counters in a file, about 15 MB."""


FINEST: Final = parse("1 ns", SECOND)
"""Time resolution of a file [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A trace of at most `most` events.

    The first `left_out` of its `simulated` steps are not included.
    """

    trace: Trace
    left_out: int
    simulated: int
    most: int


def part_of(trace: Trace, most: int = MOST) -> Part:
    """Return the whole trace, or the last complete steady-state steps if it is too long.

    Parameters
    ----------
    trace : Trace
        Trace of an epoch.
    most : int
        Maximum number of bars and changes of counters; one step is always included.
    """
    lean = replace(trace, samples=tuple(_changes(trace.samples)))
    steps = len(trace.ends)
    if len(lean.slices) + len(lean.samples) <= most or not steps:
        return Part(trace=lean, left_out=0, simulated=steps, most=most)
    first = _first_kept(lean, most)
    return Part(trace=_cut(lean, first), left_out=first, simulated=steps, most=most)


def _changes(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the last sample of each instant, if its value differs from the preceding one.

    Times are rounded to the resolution of the file.
    """
    last: dict[str, Sample] = {}
    said: dict[str, float] = {}
    for asked in samples:
        sample = replace(asked, time=rounded(asked.time))
        before = last.get(sample.unit)
        if before is not None and before.time < sample.time and _is_new(before, said):
            yield before
        last[sample.unit] = sample
    yield from (sample for sample in last.values() if _is_new(sample, said))


def _is_new(sample: Sample, said: dict[str, float]) -> bool:
    """Return True if the value of a unit differs from its last one, and record it in `said`."""
    new = said.get(sample.unit) != sample.value
    said[sample.unit] = sample.value
    return new


def rounded(time: Seconds) -> Seconds:
    """Round a time to whole nanoseconds, the resolution of Perfetto [s]."""
    return round(time / FINEST) * FINEST


def _first_kept(trace: Trace, most: int) -> int:
    """Return the first step to include so that at most `most` events remain."""
    starts = (trace.start, *trace.ends)
    events = [0] * (trace.last + 1)
    times = [part.start for part in trace.slices] + [sample.time for sample in trace.samples]
    step = 0
    for time in sorted(times):
        while step < trace.last and time >= starts[step + 1]:
            step += 1
        events[step] += time < starts[trace.last]
    from_the_end = list(accumulate(reversed(events[trace.first : trace.last])))
    fitting = sum(total <= most for total in from_the_end)
    return trace.last - max(1, fitting)


def _cut(trace: Trace, first: int) -> Trace:
    starts = (trace.start, *trace.ends)
    start, end = starts[first], starts[trace.last]
    return replace(
        trace,
        slices=tuple(_within(trace.slices, start, end)),
        samples=tuple(_from(trace.samples, start, end)),
        start=start,
        end=end,
        ends=trace.ends[first : trace.last],
        first=0,
        last=trace.last - first,
    )


def _within(slices: Iterable[Slice], start: Seconds, end: Seconds) -> Iterator[Slice]:
    return (part for part in slices if part.start < end and part.start + part.length > start)


def _from(samples: Iterable[Sample], start: Seconds, end: Seconds) -> Iterator[Sample]:
    """Yield the samples within a span of time, preceded by the counters' values at its start."""
    before: dict[str, Sample] = {}
    inside: list[Sample] = []
    for sample in samples:
        if sample.time <= start:
            before[sample.unit] = sample
        elif sample.time <= end:
            inside.append(sample)
    yield from (replace(sample, time=start) for sample in before.values())
    yield from inside
