"""A few simulated steps as lanes of bars: who did what when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from simulator.report.page.bars import TONES
from simulator.results import Slice, Trace
from simulator.units import SECOND, Seconds, show

FEWEST: Final = 6
MOST: Final = 40
"""Steps that are shown: as few as have the mean of all."""
ALIKE: Final = 0.02
"""How far the mean of the shown steps may be from that of all, as a share."""
MOST_LANES: Final = 48
MOST_SLICES: Final = 4000
TICKS: Final = 8
DIGITS: Final = 3
_TONE: Final = {
    "read": 4,
    "decode": 1,
    "augment": 1,
    "collate": 3,
    "h2d": TONES["h2d"],
    "forward": 0,
    "backward": 0,
    "optimizer": 6,
    "all-reduce": TONES["communication"],
}
_OTHER: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One bar of a lane, as shares of the drawing's width; `hint` is shown under the pointer."""

    start: float
    length: float
    tone: int
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What one worker or stream did."""

    name: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on the axis of time."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a colour means."""

    name: str
    tone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Lanes over a part of the simulated run; `left_out` of them are not shown."""

    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    keys: tuple[Key, ...]
    title: str
    left_out: int


def timeline(trace: Trace, step_times: Sequence[Seconds], mean: Seconds) -> Timeline | None:
    """A few simulated steps that take as long as the mean one; None where nothing was traced.

    Parameters
    ----------
    trace : Trace
        Of the simulated epoch.
    step_times : sequence of float
        Lengths of the simulated steps of that epoch, from its start [s].
    mean : float
        The mean steady step [s].
    """
    step_times = _traced(trace, step_times)
    first, shown = _window(step_times, mean)
    start, length = sum(step_times[:first]), sum(step_times[first : first + shown])
    if length <= 0.0:
        return None
    end = start + length
    within = [s for s in trace.slices if s.start < end and s.start + s.length > start]
    within = within[:MOST_SLICES]
    tracks = _chosen(within)
    drawn: dict[str, list[Piece]] = {track: [] for track in tracks}
    for part in within:
        if part.track in drawn:
            drawn[part.track].append(_piece(part, start, length))
    every = {s.track for s in within}
    return Timeline(
        lanes=tuple(Lane(name=track, pieces=tuple(pieces)) for track, pieces in drawn.items()),
        ticks=tuple(
            Tick(at=i / TICKS, text=show(i / TICKS * length, SECOND, DIGITS))
            for i in range(TICKS + 1)
        ),
        keys=tuple(
            Key(name=name, tone=_TONE.get(name, _OTHER))
            for name in dict.fromkeys(part.name for part in within)
        ),
        title=f"Steps {first + 1} to {first + shown} of the simulated ones, "
        f"{show(length, SECOND, DIGITS)} in all",
        left_out=len(every) - len(tracks),
    )


def _traced(trace: Trace, step_times: Sequence[Seconds]) -> Sequence[Seconds]:
    """The steps that end before the trace does: a trace holds the first events of a long run."""
    last = max((part.start + part.length for part in trace.slices), default=0.0)
    return [
        time for time, end in zip(step_times, accumulate(step_times), strict=True) if end <= last
    ]


def _window(step_times: Sequence[Seconds], mean: Seconds) -> tuple[int, int]:
    """First step and number of steps of the shortest window that is like all steps.

    From the middle of the run on, where the start is over; if none is like them, some steps there.
    """
    middle = len(step_times) // 2
    for shown in range(min(FEWEST, max(1, len(step_times))), min(MOST, len(step_times)) + 1):
        for first in range(middle, len(step_times) - shown + 1):
            taken = sum(step_times[first : first + shown])
            if abs(taken / shown - mean) <= ALIKE * mean:
                return first, shown
    return min(middle, max(0, len(step_times) - FEWEST)), min(FEWEST, len(step_times))


def _chosen(slices: Sequence[Slice]) -> tuple[str, ...]:
    """The first rank's lanes, then those of the others, compute first, as many as fit."""
    return tuple(dict.fromkeys(s.track for s in sorted(slices, key=_place)))[:MOST_LANES]


def _place(part: Slice) -> tuple[bool, bool, str, int, int]:
    """Streams of the first rank, its workers by number, then streams of the other ranks."""
    numbers = [int(word) for word in part.track.split() if word.isdigit()]
    kind = " ".join(word for word in part.track.split() if not word.isdigit())
    rank, worker = (*numbers, 0, 0)[:2]
    return (rank > 0, "worker" in kind, kind, rank, worker)


def _piece(part: Slice, start: Seconds, length: Seconds) -> Piece:
    begin = max(0.0, (part.start - start) / length)
    end = min(1.0, (part.start + part.length - start) / length)
    step = "" if part.step is None else f", batch {part.step}"
    return Piece(
        start=begin,
        length=max(0.0, end - begin),
        tone=_TONE.get(part.name, _OTHER),
        hint=f"{part.name}{step}: {show(part.length, SECOND)}",
    )
