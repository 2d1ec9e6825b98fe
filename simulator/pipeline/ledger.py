"""Where a rank's time goes in a step: a line for each slot that a device carries out or waits for.

Lines of an entry add up to it, and `equations.step.step_time` of the entries is the step. A rank
writes down all its time, what it is in the middle of when somebody looks included, so nothing is
left over.
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
"""Streams of a device: what they carry out in a step is on its rank's timeline."""

DATA: Final = "data"
"""Line: waiting for a batch, whichever slot of making it is late."""
OTHER_RANKS: Final = "other ranks"
"""Line: waiting for ranks that begin to exchange gradients, or end an epoch, later."""

LINES: Final[Mapping[str, Entry]] = {
    DATA: Entry.DATA_STALL,
    **{slot.name: slot.entry for slot in USING if slot.stream in DEVICE_STREAMS},
    OTHER_RANKS: Entry.OTHER,
    **{slot.name: slot.entry for slot in CHECKPOINTING},
}
"""Lines of a ledger, each with the entry of the step that it counts for."""

_NUMBERS: Final = {name: number for number, name in enumerate(LINES)}

DATA_LINE: Final = _NUMBERS[DATA]
OTHER_RANKS_LINE: Final = _NUMBERS[OTHER_RANKS]


def line_of(slot: Slot) -> int:
    """The number of a slot's line."""
    return _NUMBERS[slot.name]


class Ledger:
    """Time of a rank so far, line by line [s]; `hidden` is exchange that its compute hid [s].

    Whatever is written down begins where the last line ended, so all lines add up to the time
    passed. `line` is what goes on since then.
    """

    __slots__ = ("hidden", "line", "spent", "until")

    def __init__(self) -> None:
        self.spent = [0.0] * len(LINES)
        self.hidden = 0.0
        self.until = 0.0
        self.line = DATA_LINE

    def add(self, line: int, seconds: Seconds, until: Seconds) -> None:
        """Write down time that ends at `until`."""
        self.spent[line] += seconds
        self.until = until

    def totals(self, now: Seconds) -> tuple[float, ...]:
        """All lines up to `now`, and last what was hidden."""
        spent = self.spent.copy()
        spent[self.line] += now - self.until
        return (*spent, self.hidden)


OWN_WORK: Final = (Entry.DATA_STALL, Entry.H2D, Entry.COMPUTE)
"""Entries in which a rank does not wait for others."""


def by_line(totals: Sequence[float]) -> dict[str, Seconds]:
    """A ledger's totals under the names of their lines; what was hidden is left out."""
    return dict(zip(LINES, totals, strict=False))


def entries(lines: Mapping[str, Seconds]) -> dict[str, Seconds]:
    """What lines of a step add up to, entry by entry [s]: the arguments of `step_time`."""
    found = {str(entry): 0.0 for entry in Entry}
    for name, seconds in lines.items():
        found[LINES[name]] += seconds
    return found


def on_device(stages: Sequence[StageDemands]) -> tuple[StageDemands, ...]:
    """The slots that a rank's device carries out, in their order."""
    return tuple(stage for stage in stages if stage.slot.stream in DEVICE_STREAMS)
