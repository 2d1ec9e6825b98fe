"""Links: PCIe, NVLink and its kin, networks, memory buses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import ByteRateField, Choice, CountField, TimeOrZeroField
from simulator.schema.figures import ByteRateFigure, Citation, Profile, TimeFigure
from simulator.units import BytesPerSecond


class LinkKind(StrEnum):
    """Kind of a link."""

    PCIE = "pcie"
    NVLINK = "nvlink"
    NETWORK = "network"
    SOCKET = "socket"


class Collective(StrEnum):
    """A collective, as nccl-tests names it."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    SEND = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """One protocol or algorithm of a collective."""

    latency: TimeOrZeroField
    """Time of an empty message; zero where only large ones were measured."""
    bandwidth: ByteRateField
    """Bus bandwidth of large messages, as in nccl-tests: comparable with a link's rate at any
    number of ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(Citation):
    """A collective measured at several message sizes: the best of its regimes at each size."""

    operation: Annotated[Collective, Choice(Collective)]
    """The collective."""
    ranks: CountField
    """Ranks it was measured over."""
    machines: CountField
    """Machines they were on."""
    regimes: tuple[Regime, ...]
    """Its regimes."""
    in_switch: bool = False
    """Whether switches add up, so that the bus bandwidth may be above the link's rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Profile):
    """A link in one direction."""

    kind: Annotated[LinkKind, Choice(LinkKind)]
    """What it joins."""
    peak: ByteRateFigure
    """Datasheet rate of one direction, after line encoding."""
    achievable: ByteRateFigure | None = None
    """Best rate measured."""
    pageable: ByteRateFigure | None = None
    """Rate of copies from ordinary (not page-locked) host memory."""
    latency: TimeFigure = 0.0
    """Time before the first byte."""
    duplex: bool = True
    """Whether both directions carry the rate at once."""
    collective: tuple[Curve, ...] = ()
    """Collectives measured over it, by message size."""

    @property
    def rate(self) -> BytesPerSecond:
        """The rate to plan with [B/s]: achievable where measured, else the peak."""
        return self.peak if self.achievable is None else self.achievable
