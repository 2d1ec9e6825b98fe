"""From the checked profile of a store to its domain type, figure by figure with sources."""

from __future__ import annotations

import math
from itertools import pairwise

from simulator.errors import InputError
from simulator.reading.document import Document
from simulator.reading.hardware.accelerator import ROUNDING, Cite, amount, cited
from simulator.reading.hardware.sections import BandwidthBurst, OperationsBurst, StorageFile
from simulator.schema.hardware.storage import Burst, Charges, Storage, Tier
from simulator.uncertainty.provenance import Source


def to_storage(name: str, file: StorageFile, document: Document, cite: Cite) -> Storage:
    """A store from its checked profile; the measured read rate stands in for a missing one.

    Raises
    ------
    InputError
        If it has no read rate at all, is said to achieve more than its datasheet, or has tiers of
        prices out of order.
    """
    sources = cited(file, cite) | _charged(file, cite)
    for key in ("burst_operations", "burst_bandwidth"):
        table = getattr(file, key)
        found = {} if table is None else cited(table, cite)
        sources |= {f"{key}.{name}": source for name, source in found.items()}
    datasheet, measured = file.read_bandwidth, file.achievable_read_bandwidth
    rate = datasheet or measured
    if rate is None:
        hint = "or achievable_read_bandwidth"
        raise InputError((document.problem(("read_bandwidth",), "is missing", hint=hint),))
    if measured is not None and measured.value > ROUNDING * rate.value:
        path = ("achievable_read_bandwidth",)
        raise InputError((document.problem(path, "is above read_bandwidth"),))
    sources.setdefault("read_bandwidth", cite(rate))
    return Storage(
        name=name,
        scope=file.scope,
        read_bandwidth=rate.value,
        write_bandwidth=amount(file.write_bandwidth),
        achievable_read_bandwidth=amount(measured),
        read_operations=amount(file.read_operations),
        write_operations=amount(file.write_operations),
        operation_size=amount(file.operation_size),
        read_latency=amount(file.read_latency) or 0.0,
        write_latency=amount(file.write_latency) or 0.0,
        open_latency=amount(file.open_latency) or 0.0,
        request_rate=amount(file.request_rate),
        request_limit=amount(file.request_limit),
        write_request_limit=amount(file.write_request_limit),
        limited_by=file.limited_by,
        burst_operations=_burst(file.burst_operations),
        burst_bandwidth=_burst(file.burst_bandwidth),
        capacity=amount(file.capacity),
        price=amount(file.price),
        charges=_charges(file, document),
        clouds=tuple(file.clouds),
        note=file.note or "",
        sources=sources,
    )


def _burst(table: OperationsBurst | BandwidthBurst | None) -> Burst | None:
    """What the tables of rates that last for some time only say."""
    if table is None:
        return None
    return Burst(
        per=table.per.value,
        metered=table.metered,
        baseline=table.baseline.value,
        burst=amount(table.burst) or 0.0,
        credits=float(amount(table.credits) or 0.0),
        least_baseline=amount(table.least_baseline) or 0.0,
        least_burst=amount(table.least_burst) or 0.0,
        least_credits=float(amount(table.least_credits) or 0.0),
    )


def _charged(file: StorageFile, cite: Cite) -> dict[str, Source]:
    """Sources of the figures of the [charges] table by field name."""
    table = file.charges
    if table is None:
        return {}
    found = {f"charges.{key}": source for key, source in cited(table, cite).items()}
    tiers = enumerate(table.internet, start=1)
    return found | {f"charges.internet.{number}": cite(tier) for number, tier in tiers}


def _charges(file: StorageFile, document: Document) -> Charges | None:
    """What the [charges] table says."""
    table = file.charges
    if table is None:
        return None
    tiers = table.internet
    ends = [math.inf if tier.to is None else tier.to for tier in tiers]
    if any(after <= before for before, after in pairwise(ends)):
        path = ("charges", "internet")
        raise InputError((document.problem(path, "is not in the order of its amounts"),))
    return Charges(
        region=table.region,
        by_capacity=table.by_capacity,
        rent_to=amount(table.rent_to),
        reads=amount(table.reads),
        writes=amount(table.writes),
        operations=amount(table.operations),
        free_operations=amount(table.free_operations),
        operations_to=amount(table.operations_to),
        throughput=amount(table.throughput),
        free_throughput=amount(table.free_throughput),
        other_region=amount(table.other_region),
        internet=tuple(Tier(price=tier.value, to=tier.to) for tier in tiers),
        unpriced=tuple(table.unpriced),
    )
