"""Stores: disks, volumes, file systems and object stores, with their prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Final

from simulator.equations.cost import provisioned_price
from simulator.equations.storage import burst_rate
from simulator.records import dataclass
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
    CountFigure,
    Number,
    NumberFigure,
    OperationPriceFigure,
    Profile,
    RatedBytePriceFigure,
    RateFigure,
    RequestPriceFigure,
    StoragePriceFigure,
    TextField,
    TimeFigure,
)
from simulator.units import Bytes, BytesPerSecond, PerSecond, Seconds, UsdPerSecond

CreditsFigure = Annotated[float, Number(low=1.0, whole=True), SOURCED]


class Scope(StrEnum):
    """Kind of access to a store.

    ``local``: over PCIe; ``volume``: a provider's block volume over the machine's own storage
    network; ``network``: a file system over the network; ``object``: an object store, by requests
    over the network.
    """

    LOCAL = "local"
    VOLUME = "volume"
    NETWORK = "network"
    OBJECT = "object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier(Citation):
    """One tier of the price of bytes: the price up to a monthly amount."""

    value: BytePriceField
    """Price of the tier."""
    to: ByteField | None = None
    """Monthly amount up to which the price applies, counted from 0; unlimited by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """Charges for a store in addition to the rent of its contents; None: no source states it."""

    region: TextField
    """Region of these prices and of the rent."""
    by_capacity: bool = False
    """Whether rent is paid for the whole capacity, if known, instead of the stored bytes."""
    rent_to: ByteFigure | None = None
    """Size up to which the rent applies; above it a byte is cheaper."""
    reads: RequestPriceFigure | None = None
    """Price of a read request."""
    writes: RequestPriceFigure | None = None
    """Price of a write request."""
    operations: OperationPriceFigure | None = None
    """Price of provisioned operations per second."""
    free_operations: RateFigure | None = None
    """Operations per second that are included in the rent."""
    operations_to: RateFigure | None = None
    """Operations per second up to which their price applies; above it one is cheaper."""
    throughput: RatedBytePriceFigure | None = None
    """Price of provisioned throughput."""
    free_throughput: ByteRateFigure | None = None
    """Bytes per second that are included in the rent."""
    read_bytes: BytePriceFigure | None = None
    """Price of bytes that are read, of stores that meter their throughput."""
    written_bytes: BytePriceFigure | None = None
    """Price of bytes that are written."""
    other_region: BytePriceFigure | None = None
    """Price of bytes read from another region of the same cloud."""
    internet: tuple[Tier, ...] = ()
    """Price of bytes read from outside the cloud, by monthly amount."""
    unpriced: tuple[TextField, ...] = ()
    """Further charges at a price that no source states."""


class LimitedBy(StrEnum):
    """Scope of a limit of requests: more prefixes raise only a limit per prefix."""

    PREFIX = "prefix"
    BUCKET = "bucket"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Operations above a baseline while credits last, in proportion to the size of the store."""

    per: ByteFigure
    """Size of the store for which the other figures are stated."""
    metered: bool = False
    """Whether its size is that of the stored data; otherwise its capacity, and if that is unknown,
    none of this applies."""
    baseline: RateFigure
    """Operations per second that are always available."""
    burst: RateFigure = 0.0
    """Operations per second while credits last."""
    credits: CreditsFigure = 0.0
    """Operations beyond the baseline that are available at first."""
    least_baseline: RateFigure = 0.0
    """Baseline of a small store."""
    least_burst: RateFigure = 0.0
    """Operations per second of a small store while credits last."""
    least_credits: CreditsFigure = 0.0
    """Credits of a small store."""

    def mean_rate(self, size: Bytes, amount: float) -> float:
        """Return the mean rate at which a store of `size` bytes serves `amount` requests [/s]."""
        share = size / self.per
        baseline = max(self.least_baseline, self.baseline * share)
        burst = max(baseline, self.least_burst, self.burst * share)
        saved = max(self.least_credits, self.credits * share)
        return float(burst_rate(amount, baseline, burst, saved))

    def lasts(self, size: Bytes) -> Seconds:
        """Return the time for which a store of `size` bytes bursts at its full rate [s]."""
        share = size / self.per
        baseline = max(self.least_baseline, self.baseline * share)
        beyond = max(self.least_burst, self.burst * share) - baseline
        saved = max(self.least_credits, self.credits * share)
        return saved / beyond if beyond > 0.0 else 0.0

    def needed_for(self, rate: float) -> Bytes:
        """Return the size of the store from which the baseline alone reaches `rate` [/s]."""
        return self.per * rate / self.baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthBurst(Burst):
    """Throughput above a baseline while credits last, in proportion to the size of the store."""

    baseline: ByteRateFigure
    """Bytes per second that are always available."""
    burst: ByteRateFigure = 0.0
    """Bytes per second while credits last."""
    credits: ByteFigure = 0.0
    """Bytes beyond the baseline that are available at first."""
    least_baseline: ByteRateFigure = 0.0
    """Baseline of a small store."""
    least_burst: ByteRateFigure = 0.0
    """Bytes per second of a small store while credits last."""
    least_credits: ByteFigure = 0.0
    """Credits of a small store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage(Profile):
    """A store as one host sees it."""

    scope: Annotated[Scope, Choice(Scope)]
    """Kind of access: inside the machine, over the network, or by object requests."""
    read_bandwidth: ByteRateFigure = field(default=0.0, metadata=DEPENDS)
    """Datasheet read rate; may be left out if a measured rate is given."""
    write_bandwidth: ByteRateFigure | None = None
    """Datasheet write rate."""
    achievable_read_bandwidth: ByteRateFigure | None = None
    """Measured read rate."""
    read_operations: RateFigure | None = None
    """Small random reads per second."""
    write_operations: RateFigure | None = None
    """Small random writes per second."""
    operation_size: ByteFigure | None = None
    """Largest size of one operation."""
    read_latency: TimeFigure = 0.0
    """Time before the first byte of a read."""
    write_latency: TimeFigure = 0.0
    """Time until a write is accepted."""
    open_latency: TimeFigure = 0.0
    """Time to open a file."""
    open_operations: NumberFigure = 0.0
    """Reads of metadata to open a file that was not open lately: its inode, extents and folder."""
    request_rate: ByteRateFigure | None = None
    """Highest rate of one request to an object store."""
    request_limit: RateFigure | None = None
    """Read requests per second that an object store serves."""
    write_request_limit: RateFigure | None = None
    """Write requests per second that an object store serves."""
    limited_by: Annotated[LimitedBy, Choice(LimitedBy)] | None = None
    """Scope of these limits: a prefix, a bucket or an account."""
    burst_operations: Burst | None = None
    """Operations in bursts, while credits last."""
    burst_bandwidth: BandwidthBurst | None = None
    """Throughput in bursts, while credits last."""
    capacity: ByteFigure | None = None
    """Capacity of the store."""
    price: StoragePriceFigure | None = None
    """Price of the stored bytes."""
    charges: Charges | None = None
    """Charges in addition to that price."""
    clouds: tuple[TextField, ...] = ()
    """Clouds whose machines can reach it; all machines if empty."""
    as_read: bool = False
    """Whether its rates are those of a program that reads it, the client of an object store
    included."""

    @property
    def read_rate(self) -> BytesPerSecond:
        """Read rate to plan with: achievable if measured, else the datasheet's [B/s]."""
        measured = self.achievable_read_bandwidth
        return self.read_bandwidth if measured is None else measured

    @property
    def full_rate_size(self) -> Bytes | None:
        """Capacity that sustains the full rates without credits [B]; None if none are needed."""
        bandwidth, operations = self.burst_bandwidth, self.burst_operations
        sizes = list[Bytes]()
        if bandwidth is not None and not bandwidth.metered:
            sizes.append(bandwidth.needed_for(self.read_rate))
        if operations is not None and not operations.metered and self.read_operations is not None:
            sizes.append(operations.needed_for(self.read_operations))
        return max(sizes, default=None)

    def size_for(self, bandwidth: BytesPerSecond, operations: PerSecond) -> Bytes:
        """Return the capacity whose baseline reaches these rates [B]; 0 if any size does."""
        asked = (self.burst_bandwidth, bandwidth), (self.burst_operations, operations)
        sizes = [
            burst.needed_for(rate)
            for burst, rate in asked
            if burst is not None and not burst.metered and rate > burst.least_baseline
        ]
        return max(sizes, default=0.0)

    @property
    def priced(self) -> bool:
        """True if its rent and the prices of all charges are known."""
        return self.price is not None and not (self.charges and self.charges.unpriced)

    def rented(self, size: Bytes) -> Bytes:
        """Return the bytes for which rent is paid with `size` bytes stored [B].

        The whole capacity if rent is by capacity.
        """
        whole = self.charges is not None and self.charges.by_capacity
        return max(size, self.capacity) if whole and self.capacity is not None else size

    def standing(self, size: Bytes) -> UsdPerSecond | None:
        """Return the cost of the store while it holds `size` bytes [$/s]; None if unknown."""
        if self.price is None:
            return None
        ready = (provisioned_price(*rate) for rate in self.provisioned.values())
        return self.price * self.rented(size) + float(sum(ready))

    @property
    def provisioned(self) -> Mapping[str, tuple[float, float, float]]:
        """Provisioned rates with their own price, by name: rate, free part [/s], price [$]."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreClient(Profile):
    """A library or a mount through which a program reads an object store."""

    request_time: TimeFigure = 0.0
    """Time of one small read in addition to the store's time to the first byte."""
    stream_rate: ByteRateFigure | None = None
    """Rate at which one reader reads a large object; that of the store if left out."""
    write_rate: ByteRateFigure | None = None
    """Rate at which one process writes a large object, such as its part of a checkpoint."""
    connections: CountFigure | None = None
    """Parts of a large object that it fetches at a time; one after another if left out."""
    request_cpu: TimeFigure = 0.0
    """CPU time of one request."""
    core_rate: ByteRateFigure | None = None
    """Bytes per second that one busy core receives: decryption, checksums, copies."""
    one_core: bool = False
    """Whether the readers of a process share one core, as with Python's interpreter lock."""
    stores: tuple[TextField, ...] = ()
    """Stores that it reads, such as s3; all object stores if empty."""
    mounts: tuple[TextField, ...] = ()
    """Names of its file system in the system's table of mounts, if it mounts a bucket."""

    @property
    def is_known(self) -> bool:
        """True unless the client is unknown."""
        return self.name != UNKNOWN_CLIENT


UNKNOWN_CLIENT: Final = "client/unknown"
"""Profile of the middle of the measured clients."""
NO_STORE: Final = Storage(name="no store", scope=Scope.LOCAL, read_bandwidth=1.0)
"""Placeholder where nothing is read: one byte per second, so that an unintended read is noticed."""
