"""Links: PCIe, NVLink and its kin, networks, memory buses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.uncertainty.provenance import Source
from simulator.units import BytesPerSecond, Seconds


class LinkKind(StrEnum):
    """What a link joins."""

    PCIE = "pcie"
    NVLINK = "nvlink"
    NETWORK = "network"
    SOCKET = "socket"


class Collective(StrEnum):
    """What ranks do together, as nccl-tests names it."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    SEND = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """One protocol or algorithm: what an empty message takes, and the bus bandwidth it nears.

    Bus bandwidth as in nccl-tests: comparable with a link's rate whatever the number of ranks.
    """

    latency: Seconds
    bandwidth: BytesPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A collective measured over `ranks` on `machines`: the best of its regimes at each size.

    `in_switch`: switches add up, so that the bus bandwidth may lie above the link's rate.
    """

    operation: Collective
    ranks: int
    machines: int
    regimes: tuple[Regime, ...]
    source: Source
    in_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link in one direction; a duplex link carries its rate both ways at once.

    `peak` is the datasheet rate of one direction after line encoding, `achievable` the best
    rate measured, `pageable` what a copy from ordinary (not page-locked) host memory reaches.
    `curves` are collectives measured over it, by message size.
    """

    name: str
    kind: LinkKind
    peak: BytesPerSecond
    achievable: BytesPerSecond | None = None
    pageable: BytesPerSecond | None = None
    latency: Seconds = 0.0
    duplex: bool = True
    curves: tuple[Curve, ...] = ()
    note: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def rate(self) -> BytesPerSecond:
        """The rate to plan with [B/s]: achievable where measured, else the peak."""
        return self.peak if self.achievable is None else self.achievable
