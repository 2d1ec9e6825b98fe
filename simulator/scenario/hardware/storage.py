"""Stores: disks, volumes, file systems, object stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from simulator.confidence.provenance import Source
from simulator.units import Bytes, BytesPerSecond, PerSecond, Seconds, UsdPerByteSecond


class Scope(StrEnum):
    """How a store is reached.

    ``local``: over PCIe; ``volume``: a provider's block volume over the machine's own storage
    network; ``network``: a file system over the network; ``object``: by requests over it.
    """

    LOCAL = "local"
    VOLUME = "volume"
    NETWORK = "network"
    OBJECT = "object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A store as one host sees it.

    `read_bandwidth` and `write_bandwidth` are datasheet rates, `achievable_read_bandwidth` what
    was measured. `read_operations` caps small random reads (an operation carries at most
    `operation_size`), `read_latency` passes before the first byte of each of them,
    `open_latency` once per file. `request_rate` is the fastest one object request can go and
    `request_limit` how many requests a second the store answers. `clouds` are those whose machines
    alone can reach it; any machine if none is named.
    """

    name: str
    scope: Scope
    read_bandwidth: BytesPerSecond
    write_bandwidth: BytesPerSecond | None = None
    achievable_read_bandwidth: BytesPerSecond | None = None
    read_operations: PerSecond | None = None
    write_operations: PerSecond | None = None
    operation_size: Bytes | None = None
    read_latency: Seconds = 0.0
    write_latency: Seconds = 0.0
    open_latency: Seconds = 0.0
    request_rate: BytesPerSecond | None = None
    request_limit: PerSecond | None = None
    capacity: Bytes | None = None
    price: UsdPerByteSecond | None = None
    clouds: tuple[str, ...] = ()
    note: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def read_rate(self) -> BytesPerSecond:
        """The read rate to plan with [B/s]: achievable where measured, else the datasheet's."""
        measured = self.achievable_read_bandwidth
        return self.read_bandwidth if measured is None else measured


NO_STORE: Final = Storage(name="no store", scope=Scope.LOCAL, read_bandwidth=1.0)
"""Where nothing is read: one byte a second, so that what reads from it all the same is seen."""
