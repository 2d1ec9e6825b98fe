"""The table of slots: complete, in order, and what its entries add up to."""

from __future__ import annotations

import inspect

import pytest

from simulator.equations.step import step_time
from simulator.errors import StepProgramError
from simulator.pipeline.program import (
    DATA,
    FILLS_BUCKETS,
    LINES,
    OTHER_RANKS,
    STEP,
    Ledger,
    by_line,
    check_slots,
    entries,
)
from simulator.pipeline.stages.base import Actor, Entry, Per


def test_entries_are_the_parts_of_the_step() -> None:
    """A slot counts for an argument of the equation that adds a step up, and for no other."""
    assert {str(entry) for entry in Entry} == set(inspect.signature(step_time).parameters)


def test_a_stage_without_a_slot_is_an_error() -> None:
    """A stage that would never be executed is named."""
    left = tuple(slot for slot in STEP if slot.name not in {"slowest device", "decode"})
    with pytest.raises(StepProgramError, match="stage Decode, SlowDeviceWait has no slot"):
        check_slots(left)


def test_buckets_follow_what_fills_them() -> None:
    """A slot per bucket elsewhere would be carried out beside the wrong work."""
    moved = [slot for slot in STEP if slot.per is not Per.BUCKET]
    at = [slot.name for slot in moved].index("optimizer") + 1
    moved[at:at] = [slot for slot in STEP if slot.per is Per.BUCKET]
    with pytest.raises(StepProgramError, match="fills the buckets"):
        check_slots(tuple(moved))
    assert FILLS_BUCKETS.name == "backward"


def test_every_slot_of_a_device_has_a_line() -> None:
    """Whatever a device does or waits for stands in the ledger by its name, once."""
    producers = {Actor.WORKER, Actor.SENDER, Actor.PIN_MEMORY, Actor.MAIN_THREAD}
    own = {slot.name for slot in STEP if slot.stream not in producers}
    assert own | {DATA, OTHER_RANKS} == set(LINES)


def test_a_ledger_holds_all_time() -> None:
    """What goes on when somebody looks counts too, so nothing is lost between two lines."""
    ledger = Ledger()
    line = list(LINES).index("forward")
    assert by_line(ledger.totals(1.0))[DATA] == 1.0
    ledger.add(line, 2.0, until=2.0)
    ledger.line = line
    assert by_line(ledger.totals(5.0))["forward"] == 5.0
    ledger.add(line, 4.0, until=6.0)
    lines = by_line(ledger.totals(6.0))
    assert step_time(**entries(lines)) == lines["forward"] == 6.0
