"""Data of the timeline: some simulated steps as lanes of bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from simulator.records import dataclass
from simulator.report.html.charts import TONES, Tick
from simulator.report.prediction.timeline import WAITS
from simulator.results.prediction import PIPELINE, Slice, Trace
from simulator.units import SECOND, Seconds, show

FEWEST: Final = 6
MOST: Final = 40
"""Bounds of the number of steps to show."""
ALIKE: Final = 0.02
"""Tolerated relative difference of the mean of the shown steps from that of all."""
MOST_LANES: Final = 48
MOST_SLICES: Final = 4000
TICKS: Final = 8
VISIBLE: Final = 0.001
"""Share of the drawing's width that is about a pixel."""
AND_MORE: Final = ", and what follows at once"
DIGITS: Final = 3
UNASKED: Final = "waits to be asked"
"""Name of slices that are left out, as a gap in the lane shows the same."""
STREAMS: Final = ("compute", "communication", "copy", "copy back", "pin memory", "main thread")
_TONE: Final = {
    "read": 4,
    "decode": 1,
    "augment": 1,
    "collate": 3,
    "send": TONES["communication"],
    "receive": 6,
    "h2d": TONES["h2d"],
    "d2h": TONES["h2d"],
    "decode on device": 1,
    "fit": 0,
    "forward": 0,
    "backward": 8,
    "gradients of weights": 8,
    "shared device": 6,
    "optimizer": 6,
    "all-reduce": TONES["communication"],
    "exchange": TONES["communication"],
    "gather": TONES["communication"],
    "bubble": TONES["bubble"],
    "waits for data": TONES["data_stall"],
    "waits for copy": TONES["h2d"],
    "waits for all-reduce": TONES["communication"],
    "waits for exchange": TONES["communication"],
    "waits for gather": TONES["communication"],
}
_OTHER: Final = TONES["other"]

_SAID: Final = {"h2d": "copy to the device", "d2h": "copy back"}
"""Labels in the legend for abbreviated names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One bar of a lane, as fractions of the width of the drawing; `hint` is its tooltip.

    Bars that only wait (`waits`) are drawn faint.
    """

    start: float
    length: float
    tone: int
    hint: str
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The bars of one worker or stream."""

    name: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An entry of the legend: a colour and its label."""

    name: str
    tone: int
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Lanes over `length` seconds of the simulated run; `left_out` lanes are not shown."""

    length: Seconds
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    keys: tuple[Key, ...]
    title: str
    left_out: int


def timeline(trace: Trace, mean: Seconds, many: str = "steps") -> Timeline | None:
    """Return some simulated steps whose mean is close to that of the run; None without a trace.

    Parameters
    ----------
    trace : Trace
        Trace of the simulated epoch.
    mean : float
        Mean steady-state step [s].
    many : str
        Plural for steps of the job, such as ``batches``.
    """
    first, shown = _step_of_stages(trace) or _window(trace.step_times, mean)
    if not shown:
        return None
    starts = (trace.start, *trace.ends)
    start, end = starts[first], starts[first + shown]
    length = end - start
    within = [s for s in trace.slices if s.start < end and s.start + s.length > start]
    tracks = _chosen(within)
    found: dict[str, list[Slice]] = {track: [] for track in tracks}
    for part in within:
        if part.track in found and part.name != UNASKED:
            found[part.track].append(part)
    seen = {track: own for track, own in found.items() if _works(own, start, end)}
    each = MOST_SLICES // max(1, len(seen))
    drawn = {track: _drawn(own, start, length, each) for track, own in seen.items()}
    chosen = [part for own in seen.values() for part in own]
    names = {s.track: _lane_name(s) for s in within}
    return Timeline(
        length=length,
        lanes=tuple(Lane(name=names[track], pieces=pieces) for track, pieces in drawn.items()),
        ticks=tuple(
            Tick(at=i / TICKS, text=show(i / TICKS * length, SECOND, DIGITS))
            for i in range(TICKS + 1)
        ),
        keys=tuple(
            Key(
                name=_SAID.get(name, name),
                tone=_TONE.get(name, _OTHER),
                waits=name.startswith(WAITS),
            )
            for name in dict.fromkeys(part.name for part in chosen)
            if _is_seen([part for part in chosen if part.name == name], start, end)
        ),
        title=f"{_steps(first, shown, many)} of the simulated ones, "
        f"{show(length, SECOND, DIGITS)} in all",
        left_out=len(names) - len(seen),
    )


def _works(slices: Sequence[Slice], start: Seconds, end: Seconds) -> bool:
    """Return True if a lane has work, not only waits."""
    return any(not s.name.startswith(WAITS) for s in slices) and _is_seen(slices, start, end)


def _is_seen(slices: Sequence[Slice], start: Seconds, end: Seconds) -> bool:
    """Return True if a lane or colour would cover at least a pixel."""
    time = sum(min(end, s.start + s.length) - max(start, s.start) for s in slices)
    return time > VISIBLE * (end - start)


def _drawn(
    slices: Sequence[Slice], start: Seconds, length: Seconds, most: int
) -> tuple[Piece, ...]:
    """Return the bars of a lane; neighbours are joined if there are more than `most`."""
    pieces = [_piece(part, start, length) for part in sorted(slices, key=lambda s: s.start)]
    apart = VISIBLE
    while len(pieces) > most:
        pieces, apart = _joined(pieces, apart), 2.0 * apart
    return tuple(pieces)


def _joined(pieces: Sequence[Piece], apart: float) -> list[Piece]:
    """Join bars that are too short to distinguish to the bar before."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        end = piece.start + piece.length
        if before is None or end - before.start > apart:
            found.append(piece)
            continue
        longer = piece if piece.length > before.length else before
        hint = before.hint if before.hint.endswith(AND_MORE) else f"{before.hint}{AND_MORE}"
        found[-1] = replace(longer, start=before.start, length=end - before.start, hint=hint)
    return found


def _steps(first: int, shown: int, many: str) -> str:
    if shown > 1:
        return f"{many.capitalize()} {first + 1:,} to {first + shown:,}"
    return f"{'Step' if many == 'steps' else 'Batch'} {first + 1:,}"


def _lane_name(part: Slice) -> str:
    """Return the name of a track, with the name of its machine unless it trains."""
    away = part.process and not part.track.startswith(part.process)
    return f"{part.process}: {part.track.removeprefix('rank 0 ')}" if away else part.track


def _step_of_stages(trace: Trace) -> tuple[int, int] | None:
    """Return first step and number of steps with pipeline stages; None if there are none."""
    steps = (part.step for part in trace.slices if part.process == PIPELINE)
    step = next(steps, None)
    return None if step is None else (step, 1)


def _window(step_times: Sequence[Seconds], mean: Seconds) -> tuple[int, int]:
    """Return first step and number of steps of the shortest window with the mean step time.

    The window is in the second half of the run, after the start. If there is none, the steps in the
    middle are used.
    """
    middle = len(step_times) // 2
    for shown in range(min(FEWEST, max(1, len(step_times))), min(MOST, len(step_times)) + 1):
        for first in range(middle, len(step_times) - shown + 1):
            taken = sum(step_times[first : first + shown])
            if abs(taken / shown - mean) <= ALIKE * mean:
                return first, shown
    return min(middle, max(0, len(step_times) - FEWEST)), min(FEWEST, len(step_times))


def _chosen(slices: Sequence[Slice]) -> tuple[str, ...]:
    """Return the tracks to draw: all of rank 0, compute of other ranks, at most `MOST_LANES`."""
    places = {s.track: _place(s.track) for s in slices}
    wanted = [track for track, place in places.items() if place is not None]
    return tuple(sorted(wanted, key=lambda track: places[track] or ()))[:MOST_LANES]


def _place(track: str) -> tuple[int, int, int] | None:
    """Return the sort key of a track: streams of rank 0, compute of others, stages, workers.

    None: the track is not drawn.
    """
    words = track.split()
    numbers = [int(word) for word in words if word.isdigit()]
    lane = " ".join(word for word in words[2:] if not word.isdigit())
    first, number = (*numbers, 0)[0], (*numbers, 0, 0)[1]
    if words[0] == "pipeline":
        return (2, first, 0)
    if first > 0:
        return (1, first, 0) if lane == STREAMS[0] else None
    if lane in STREAMS:
        return (0, STREAMS.index(lane), 0)
    return (3 + lane.count("sender"), number, len(lane))


def _piece(part: Slice, start: Seconds, length: Seconds) -> Piece:
    begin = max(0.0, (part.start - start) / length)
    end = min(1.0, (part.start + part.length - start) / length)
    step = "" if part.step is None else f", step {part.step}"
    step += "" if part.batch is None else f", batch {part.batch}"
    return Piece(
        start=begin,
        length=max(0.0, end - begin),
        tone=_TONE.get(part.name, _OTHER),
        waits=part.name.startswith(WAITS),
        hint=f"{part.name}{step}: {show(part.length, SECOND)}",
    )
