"""The ledger of a step: time of a rank by slot, a line for each slot that its device executes.

Lines of an entry add up to it, and `equations.step.step_time` of the entries is the step. A rank
records all its time, the running slot included, so that there is no remainder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from simulator.pipeline.program import CHECKPOINTING, USING
from simulator.pipeline.stages.base import Actor, Entry, Slot, StageDemands
from simulator.units import Seconds

DEVICE_STREAMS: Final = frozenset(
    {
        Actor.COPY_ENGINE,
        Actor.COMPUTE_STREAM,
        Actor.COMMUNICATION_STREAM,
        Actor.RESULT_ENGINE,
    }
)
"""Streams of a device; their slots are on its rank's timeline."""

DATA: Final = "data"
"""Line: data stall, at any slot of making a batch."""
OTHER_RANKS: Final = "other ranks"
"""Line: waiting for ranks that exchange gradients, or end an epoch, later."""

LINES: Final[Mapping[str, Entry]] = {
    DATA: Entry.DATA_STALL,
    **{slot.name: slot.entry for slot in USING if slot.stream in DEVICE_STREAMS},
    OTHER_RANKS: Entry.OTHER,
    **{slot.name: slot.entry for slot in CHECKPOINTING},
}
"""Lines of a ledger with their entries of the step."""

_NUMBERS: Final = {name: number for number, name in enumerate(LINES)}

DATA_LINE: Final = _NUMBERS[DATA]
OTHER_RANKS_LINE: Final = _NUMBERS[OTHER_RANKS]


def line_of(slot: Slot) -> int:
    """Return the number of the line of a slot."""
    return _NUMBERS[slot.name]


class Ledger:
    """Time of a rank so far by line [s]; `hidden` is exchange that its compute hid [s].

    Each record begins at the end of the last one, so all lines add up to the time passed. `line` is
    the running one.
    """

    __slots__ = ("hidden", "line", "spent", "until")

    def __init__(self) -> None:
        self.spent = [0.0] * len(LINES)
        self.hidden = 0.0
        self.until = 0.0
        self.line = DATA_LINE

    def add(self, line: int, seconds: Seconds, until: Seconds) -> None:
        """Record time on a line that ends at `until`."""
        self.spent[line] += seconds
        self.until = until

    def totals(self, now: Seconds) -> tuple[float, ...]:
        """Return all lines up to `now`, and last the hidden exchange."""
        spent = self.spent.copy()
        spent[self.line] += now - self.until
        return (*spent, self.hidden)


OWN_WORK: Final = (Entry.DATA_STALL, Entry.H2D, Entry.COMPUTE)
"""Entries without waiting for other ranks."""


def by_line(totals: Sequence[float]) -> dict[str, Seconds]:
    """Return a ledger's totals by line; hidden exchange is left out."""
    return dict(zip(LINES, totals, strict=False))


def entries(lines: Mapping[str, Seconds]) -> dict[str, Seconds]:
    """Return the sums of lines by entry [s]: the arguments of `equations.step.step_time`."""
    found = {str(entry): 0.0 for entry in Entry}
    for name, seconds in lines.items():
        found[LINES[name]] += seconds
    return found


def on_device(stages: Sequence[StageDemands]) -> tuple[StageDemands, ...]:
    """Return the stages that a rank's device executes, in order."""
    return tuple(stage for stage in stages if stage.slot.stream in DEVICE_STREAMS)
