"""The part of a trace that a file holds: all of it, or the last steady steps that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from simulator.results.prediction import Sample, Slice, Trace
from simulator.units import SECOND, Seconds, parse

MOST: Final = 120_000
"""Bars and changes of counters in a file: some 15 MB."""


FINEST: Final = parse("1 ns", SECOND)
"""Times closer than this are one instant in a file [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A trace of at most `most` events.

    `left_out` of its `simulated` steps come before those that it holds.
    """

    trace: Trace
    left_out: int
    simulated: int
    most: int


def part_of(trace: Trace, most: int = MOST) -> Part:
    """The whole trace, or the last whole steps of the steady window if it is too long.

    Parameters
    ----------
    trace : Trace
        Of an epoch.
    most : int
        Bars and changes of counters that may be kept; one step always is.
    """
    lean = replace(trace, samples=tuple(_changes(trace.samples)))
    steps = len(trace.ends)
    if len(lean.slices) + len(lean.samples) <= most or not steps:
        return Part(trace=lean, left_out=0, simulated=steps, most=most)
    first = _first_kept(lean, most)
    return Part(trace=_cut(lean, first), left_out=first, simulated=steps, most=most)


def _changes(samples: Iterable[Sample]) -> Iterator[Sample]:
    """The samples that say something: the last of an instant, and only if it is another value.

    Times are rounded to what a file tells apart.
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
    """Whether a unit's value is another one than said before; it is said now."""
    new = said.get(sample.unit) != sample.value
    said[sample.unit] = sample.value
    return new


def rounded(time: Seconds) -> Seconds:
    """A time in whole nanoseconds, as fine as Perfetto counts [s]."""
    return round(time / FINEST) * FINEST


def _first_kept(trace: Trace, most: int) -> int:
    """The first step of those that are kept."""
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
    """Samples of a span of time, led by what counters stood at when it began."""
    before: dict[str, Sample] = {}
    inside: list[Sample] = []
    for sample in samples:
        if sample.time <= start:
            before[sample.unit] = sample
        elif sample.time <= end:
            inside.append(sample)
    yield from (replace(sample, time=start) for sample in before.values())
    yield from inside
