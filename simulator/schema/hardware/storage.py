"""Stores: disks, volumes, file systems, object stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from simulator.equations.cost import provisioned_price
from simulator.equations.storage import burst_rate
from simulator.uncertainty.provenance import Source
from simulator.units import (
    Bytes,
    BytesPerSecond,
    PerSecond,
    Seconds,
    UsdPerByte,
    UsdPerByteSecond,
    UsdPerOperation,
    UsdPerRatedByte,
    UsdPerRequest,
    UsdPerSecond,
)


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
class Tier:
    """A price that holds up to an amount of a month (None: for all there is above)."""

    price: UsdPerByte
    to: Bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """What is charged for a store beside the rent of what lies there; None: nobody states it.

    All prices, the rent too, are those of `region`; the rent holds up to `rent_to`, and is paid for
    the whole capacity where `by_capacity`. `reads` and `writes` are by request. `operations` and
    `throughput` are for rates held ready above `free_operations` and `free_throughput`; the former
    holds up to `operations_to`. `other_region` and `internet` are for bytes that leave the region,
    `internet` by the amount of a month. `unpriced` names what is charged at prices not known.
    """

    region: str
    by_capacity: bool = False
    rent_to: Bytes | None = None
    reads: UsdPerRequest | None = None
    writes: UsdPerRequest | None = None
    operations: UsdPerOperation | None = None
    free_operations: PerSecond | None = None
    operations_to: PerSecond | None = None
    throughput: UsdPerRatedByte | None = None
    free_throughput: BytesPerSecond | None = None
    other_region: UsdPerByte | None = None
    internet: tuple[Tier, ...] = ()
    unpriced: tuple[str, ...] = ()


class LimitedBy(StrEnum):
    """What a limit of requests holds for: more prefixes raise one by prefix only."""

    PREFIX = "prefix"
    BUCKET = "bucket"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A rate above the baseline while credits last; all in proportion to the size, by `per` bytes.

    `baseline`, `burst` [/s] and `credits` [1], in operations or bytes, are those of a store of
    `per` bytes, and at least `least_baseline`, `least_burst` and `least_credits`. Where `metered`,
    the size is that of what lies there, else the capacity.
    """

    per: Bytes
    baseline: float
    burst: float = 0.0
    credits: float = 0.0
    least_baseline: float = 0.0
    least_burst: float = 0.0
    least_credits: float = 0.0
    metered: bool = False

    def mean_rate(self, size: Bytes, amount: float) -> float:
        """Mean rate of a store of so many bytes, of which `amount` is asked in all [/s]."""
        share = size / self.per
        baseline = max(self.least_baseline, self.baseline * share)
        burst = max(baseline, self.least_burst, self.burst * share)
        saved = max(self.least_credits, self.credits * share)
        return float(burst_rate(amount, baseline, burst, saved))

    def needed_for(self, rate: float) -> Bytes:
        """The size from which on the baseline alone is so high a rate [/s]."""
        return self.per * rate / self.baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A store as one host sees it.

    `read_bandwidth` and `write_bandwidth` are datasheet rates, `achievable_read_bandwidth` what
    was measured. `read_operations` caps small random reads (an operation carries at most
    `operation_size`), `read_latency` passes before the first byte of each of them,
    `open_latency` once per file. `request_rate` is the fastest one object request can go and
    `request_limit` how many requests a second the store answers, `write_request_limit` how many
    that write, both for each of what `limited_by` says. `burst_operations` and `burst_bandwidth`
    say where rates last for some time only. `price` is the rent of what lies
    there, `charges` what comes on top. `clouds` are those whose machines alone can reach it; any
    machine if none is named.
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
    write_request_limit: PerSecond | None = None
    limited_by: LimitedBy | None = None
    burst_operations: Burst | None = None
    burst_bandwidth: Burst | None = None
    capacity: Bytes | None = None
    price: UsdPerByteSecond | None = None
    charges: Charges | None = None
    clouds: tuple[str, ...] = ()
    note: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)

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
        """Whether its rent is known, and nothing is charged at a price that is not."""
        return self.price is not None and not (self.charges and self.charges.unpriced)

    def rented(self, size: Bytes) -> Bytes:
        """What rent is paid for where `size` lies there [B]: more where capacity is paid whole."""
        whole = self.charges is not None and self.charges.by_capacity
        return max(size, self.capacity) if whole and self.capacity is not None else size

    def standing(self, size: Bytes) -> UsdPerSecond | None:
        """What the store costs while `size` lies there, used or not [$/s]; None: not known."""
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
