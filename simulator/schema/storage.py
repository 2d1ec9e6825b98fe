"""Stores: disks, volumes, file systems, object stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from simulator.equations.cost import provisioned_price
from simulator.equations.storage import burst_rate
from simulator.schema.fields import (
    DEPENDS,
    SOURCED,
    ByteField,
    ByteFigure,
    BytePriceField,
    BytePriceFigure,
    ByteRateFigure,
    Choice,
    Citation,
    Number,
    OperationPriceFigure,
    Profile,
    RatedBytePriceFigure,
    RateFigure,
    RequestPriceFigure,
    StoragePriceFigure,
    TextField,
    TimeFigure,
)
from simulator.units import Bytes, BytesPerSecond, UsdPerSecond

CreditsFigure = Annotated[float, Number(low=1.0, whole=True), SOURCED]


class Scope(StrEnum):
    """Kind of access to a store.

    ``local``: over PCIe; ``volume``: a provider's block volume over the machine's own storage
    network; ``network``: a file system over the network; ``object``: by requests over it.
    """

    LOCAL = "local"
    VOLUME = "volume"
    NETWORK = "network"
    OBJECT = "object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier(Citation):
    """A price of bytes, up to an amount of a month."""

    value: BytePriceField
    """The price."""
    to: ByteField | None = None
    """Up to which amount of a month, counted from nothing; all above where it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """Charges for a store in addition to the rent of what it holds; None: no source states it."""

    region: TextField
    """Where these prices, and the rent, hold."""
    by_capacity: bool = False
    """Whether rent is paid for the whole capacity, where one is known, not for what is stored."""
    rent_to: ByteFigure | None = None
    """Size up to which the rent holds; above it a byte is cheaper."""
    reads: RequestPriceFigure | None = None
    """Price of a request that reads."""
    writes: RequestPriceFigure | None = None
    """Price of a request that writes."""
    operations: OperationPriceFigure | None = None
    """Price of operations a second that are held ready."""
    free_operations: RateFigure | None = None
    """Operations a second that are included in the rent."""
    operations_to: RateFigure | None = None
    """Operations a second up to which their price holds; above it one is cheaper."""
    throughput: RatedBytePriceFigure | None = None
    """Price of bytes a second that are held ready."""
    free_throughput: ByteRateFigure | None = None
    """Bytes a second that are included in the rent."""
    other_region: BytePriceFigure | None = None
    """Price of bytes that are read from another region of the same cloud."""
    internet: tuple[Tier, ...] = ()
    """Price of bytes that are read from elsewhere, by the amount of a month."""
    unpriced: tuple[TextField, ...] = ()
    """What is charged as well, at a price that no source states."""


class LimitedBy(StrEnum):
    """Scope of a limit of requests: more prefixes raise a limit by prefix only."""

    PREFIX = "prefix"
    BUCKET = "bucket"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Operations above a baseline while credits last, in proportion to the size of the store."""

    per: ByteFigure
    """Size of the store that the other figures are those of."""
    metered: bool = False
    """Whether its size is that of what is stored; its capacity otherwise, and where that is not
    known, nothing here holds."""
    baseline: RateFigure
    """Operations a second that are always available."""
    burst: RateFigure = 0.0
    """Operations a second while credits last."""
    credits: CreditsFigure = 0.0
    """Operations beyond the baseline that can be had at first."""
    least_baseline: RateFigure = 0.0
    """Baseline of a small store."""
    least_burst: RateFigure = 0.0
    """Operations a second of a small store while credits last."""
    least_credits: CreditsFigure = 0.0
    """Credits of a small store."""

    def mean_rate(self, size: Bytes, amount: float) -> float:
        """Return the mean rate of a store of `size` bytes for `amount` of requests [/s]."""
        share = size / self.per
        baseline = max(self.least_baseline, self.baseline * share)
        burst = max(baseline, self.least_burst, self.burst * share)
        saved = max(self.least_credits, self.credits * share)
        return float(burst_rate(amount, baseline, burst, saved))

    def needed_for(self, rate: float) -> Bytes:
        """Return the size from which on the baseline alone is so high a rate [/s]."""
        return self.per * rate / self.baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthBurst(Burst):
    """Throughput above a baseline while credits last, in proportion to the size of the store."""

    baseline: ByteRateFigure
    """Bytes a second that are always available."""
    burst: ByteRateFigure = 0.0
    """Bytes a second while credits last."""
    credits: ByteFigure = 0.0
    """Bytes beyond the baseline that can be had at first."""
    least_baseline: ByteRateFigure = 0.0
    """Baseline of a small store."""
    least_burst: ByteRateFigure = 0.0
    """Bytes a second of a small store while credits last."""
    least_credits: ByteFigure = 0.0
    """Credits of a small store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage(Profile):
    """A store as one host sees it."""

    scope: Annotated[Scope, Choice(Scope)]
    """Inside the machine, over the network, or by object requests."""
    read_bandwidth: ByteRateFigure = field(default=0.0, metadata=DEPENDS)
    """Datasheet read rate; may be left out where one was measured."""
    write_bandwidth: ByteRateFigure | None = None
    """Datasheet write rate."""
    achievable_read_bandwidth: ByteRateFigure | None = None
    """Read rate measured."""
    read_operations: RateFigure | None = None
    """Small random reads a second."""
    write_operations: RateFigure | None = None
    """Small random writes a second."""
    operation_size: ByteFigure | None = None
    """Most bytes of one operation."""
    read_latency: TimeFigure = 0.0
    """Time before the first byte of a read."""
    write_latency: TimeFigure = 0.0
    """Time before a write is taken."""
    open_latency: TimeFigure = 0.0
    """Time to open a file."""
    request_rate: ByteRateFigure | None = None
    """Fastest that one request of an object store goes."""
    request_limit: RateFigure | None = None
    """Requests a second that an object store answers."""
    write_request_limit: RateFigure | None = None
    """Requests a second that an object store takes to write."""
    limited_by: Annotated[LimitedBy, Choice(LimitedBy)] | None = None
    """What these limits hold for: a prefix, a bucket or an account."""
    burst_operations: Burst | None = None
    """Operations that last for some time only."""
    burst_bandwidth: BandwidthBurst | None = None
    """Throughput that lasts for some time only."""
    capacity: ByteFigure | None = None
    """Size."""
    price: StoragePriceFigure | None = None
    """Price for what it holds."""
    charges: Charges | None = None
    """What is charged in addition."""
    clouds: tuple[TextField, ...] = ()
    """Clouds whose machines alone can reach it; any machine if none is named."""

    @property
    def read_rate(self) -> BytesPerSecond:
        """The read rate to plan with [B/s]: achievable where measured, else the datasheet's."""
        measured = self.achievable_read_bandwidth
        return self.read_bandwidth if measured is None else measured

    @property
    def full_rate_size(self) -> Bytes | None:
        """The capacity that keeps its full rates up without credits [B]; None: none is needed."""
        bandwidth, operations = self.burst_bandwidth, self.burst_operations
        sizes = list[Bytes]()
        if bandwidth is not None and not bandwidth.metered:
            sizes.append(bandwidth.needed_for(self.read_rate))
        if operations is not None and not operations.metered and self.read_operations is not None:
            sizes.append(operations.needed_for(self.read_operations))
        return max(sizes, default=None)

    @property
    def priced(self) -> bool:
        """True if its rent is known, and nothing is charged at a price that is not."""
        return self.price is not None and not (self.charges and self.charges.unpriced)

    def rented(self, size: Bytes) -> Bytes:
        """Return the bytes that rent is paid for with `size` stored [B].

        All where capacity is paid.
        """
        whole = self.charges is not None and self.charges.by_capacity
        return max(size, self.capacity) if whole and self.capacity is not None else size

    def standing(self, size: Bytes) -> UsdPerSecond | None:
        """Return the cost of the store while it holds `size` [$/s]; None if unknown."""
        if self.price is None:
            return None
        ready = (provisioned_price(*rate) for rate in self.provisioned.values())
        return self.price * self.rented(size) + float(sum(ready))

    @property
    def provisioned(self) -> Mapping[str, tuple[float, float, float]]:
        """Rates held ready at a price of their own, by field: rate, free part [/s], price [$]."""
        charges, found = self.charges, {}
        if charges is None:
            return {}
        operations = max(self.read_operations or 0.0, self.write_operations or 0.0)
        if charges.operations is not None:
            found["operations"] = (operations, charges.free_operations or 0.0, charges.operations)
        if charges.throughput is not None:
            carried = max(self.read_bandwidth, self.read_rate, self.write_bandwidth or 0.0)
            found["throughput"] = (carried, charges.free_throughput or 0.0, charges.throughput)
        return found


NO_STORE: Final = Storage(name="no store", scope=Scope.LOCAL, read_bandwidth=1.0)
"""Where nothing is read: one byte a second, so that what reads from it all the same is seen."""
