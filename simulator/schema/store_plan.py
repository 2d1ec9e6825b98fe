"""What a scenario says of its store for the bill: where it is, how long it holds what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from simulator.schema.fields import Choice, CountField, Section, TimeField


class Location(StrEnum):
    """Where a store is, as its machines see it: bytes that leave its region are paid for."""

    SAME_REGION = "same-region"
    OTHER_REGION = "other-region"
    OTHER_CLOUD = "other-cloud"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlan(Section):
    """What is paid for the store that holds data and checkpoints."""

    location: Annotated[Location, Choice(Location)] | None = None
    """Where it is, as seen from the machines: in the same region, in another region of the cloud,
    or in another cloud; bytes that leave its region are paid for. By default in another cloud where
    its profile and that of the machines name different ones, else in the same region."""
    kept: TimeField | None = None
    """How long it holds data and checkpoints, such as 90 d; as long as the machines are billed by
    default, which is the least."""
    checkpoints: CountField = 2
    """How many checkpoints it holds at a time: the last one, and the one that is written."""


DURING_THE_RUN: Final = StorePlan()
"""What holds where a scenario says nothing: the store holds data during the run."""
