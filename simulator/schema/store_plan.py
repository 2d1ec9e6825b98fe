"""What a scenario says of its store for the bill: where it is, how long it holds what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from simulator.units import Seconds


class Location(StrEnum):
    """Where a store is, as its machines see it: bytes that leave its region are paid for."""

    SAME_REGION = "same-region"
    OTHER_REGION = "other-region"
    OTHER_CLOUD = "other-cloud"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlan:
    """How the store is used beside the run.

    `location` is where a file says that it is; None where nothing is said. `kept` is how long it
    holds what it holds, where that is longer than machines are paid for. `checkpoints` is how many
    are kept at a time.
    """

    location: Location | None = None
    kept: Seconds | None = None
    checkpoints: int = 2


DURING_THE_RUN: Final = StorePlan()
"""What holds where a scenario says nothing: the store holds data during the run."""
