"""Whether a store can be where a scenario says that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.errors import Problem
from simulator.files.resolved import Check, Draft, check_of
from simulator.scenario.hardware.storage import LimitedBy, Scope
from simulator.scenario.store_plan import Location

_NEAR: Final = {
    Scope.LOCAL: "the machine's own drives are",
    Scope.VOLUME: "a block volume is",
}
"""Stores that are where their machines are."""


def _placed(draft: Draft) -> Iterator[Problem]:
    """A volume or a machine's own drives that are said to be elsewhere."""
    given = draft.store
    if given is None or given.location in {None, Location.SAME_REGION}:
        return
    scope = Scope.LOCAL if draft.storage is None else draft.storage.scope
    if scope in _NEAR:
        message = f"is {given.location}, but {_NEAR[scope]} in the region of its machine"
        yield draft.document.problem(("store", "location"), message, hint="leave it out")


def _prefixes(draft: Draft) -> Iterator[Problem]:
    """Prefixes of a store whose limit of requests they don't raise."""
    store = draft.storage
    if draft.hardware.storage_prefixes == 1:
        return
    limited = None if store is None else store.limited_by
    if limited is not LimitedBy.PREFIX:
        held = "states none" if limited is None else f"is that of {_CALLED[limited]}"
        name = "the machine's own drives" if store is None else store.name
        message = f"raises no limit: the limit of requests of {name} {held}"
        path = ("hardware", "storage_prefixes")
        yield draft.document.problem(path, message, hint="leave it out")


_CALLED: Final = {LimitedBy.BUCKET: "a bucket", LimitedBy.ACCOUNT: "an account"}
STORE_CHECKS: Final[tuple[Check, ...]] = (
    check_of(_prefixes, "hardware.storage_prefixes hardware.storage", reads="hardware storage"),
    check_of(_placed, "store.location hardware.storage", reads="store storage"),
)
