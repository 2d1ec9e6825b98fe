"""Whether a store can be where a scenario says that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.errors import Problem
from simulator.files.resolved import Check, Draft, check_of
from simulator.scenario.hardware.storage import Scope
from simulator.scenario.store_plan import Location

_NEAR: Final = {
    Scope.LOCAL: "the machine's own drives are",
    Scope.VOLUME: "a block volume is",
}
"""Stores that are where their machines are."""


def _placed(draft: Draft) -> Iterator[Problem]:
    """A volume or a machine's own drives that are said to be elsewhere."""
    given = draft.store
    if given is None or given.location is Location.SAME_REGION:
        return
    scope = Scope.LOCAL if draft.storage is None else draft.storage.scope
    if scope in _NEAR:
        message = f"is {given.location}, but {_NEAR[scope]} in the region of its machine"
        yield draft.document.problem(("store", "location"), message, hint="leave it out")


STORE_CHECKS: Final[tuple[Check, ...]] = (
    check_of(_placed, "store.location hardware.storage", reads="store storage"),
)
