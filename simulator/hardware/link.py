"""Links: PCIe, NVLink and its kin, networks, memory buses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.provenance import Source
from simulator.units import BytesPerSecond, Seconds


class LinkKind(StrEnum):
    """What a link joins."""

    PCIE = "pcie"
    NVLINK = "nvlink"
    NETWORK = "network"
    SOCKET = "socket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link in one direction; a duplex link carries its rate both ways at once.

    `peak` is the datasheet rate of one direction after line encoding, `achievable` the best
    rate measured, `pageable` what a copy from ordinary (not page-locked) host memory reaches.
    """

    name: str
    kind: LinkKind
    peak: BytesPerSecond
    achievable: BytesPerSecond | None = None
    pageable: BytesPerSecond | None = None
    latency: Seconds = 0.0
    duplex: bool = True
    note: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def rate(self) -> BytesPerSecond:
        """The rate to plan with [B/s]: achievable where measured, else the peak."""
        return self.peak if self.achievable is None else self.achievable
