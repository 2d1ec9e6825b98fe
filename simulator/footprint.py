"""What a scenario takes of host RAM and device memory, item by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from simulator.units import Bytes


class Verdict(StrEnum):
    """Whether something fits; ``uncertain`` within 5% of the capacity."""

    YES = "yes"
    NO = "no"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRam:
    """RAM needed on one machine, by item [B]; the page cache is what is left."""

    items: Mapping[str, Bytes]
    capacity: Bytes
    rule_of_thumb: Bytes
    verdict: Verdict

    @property
    def total(self) -> Bytes:
        """Sum of the items [B]."""
        return sum(self.items.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
    """Memory needed on one device, by item [B]."""

    items: Mapping[str, Bytes]
    capacity: Bytes
    verdict: Verdict

    @property
    def total(self) -> Bytes:
        """Sum of the items [B]."""
        return sum(self.items.values())
