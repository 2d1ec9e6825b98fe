"""The machines on offer: what limits ask about them, read from their profiles once."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.errors import InputError, PlanError
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.price import Purchase
from simulator.schema.hardware.storage import Scope, Storage
from simulator.units import Bytes, PerSecond, UsdPerSecond

SMALL_RENT: Final = 0.05
"""Share of a machine's rent up to which a store's is left out of what a search compares: a guess,
about what a step is known to at best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine on offer.

    `gpu` is the name of its accelerator without the kind before it, and `stack` the software that
    is programmed with; both are empty without one. `threads` are its vCPUs, `sold` are the ways in
    which its hours are bought, `rent` is its first listed price. `capabilities` are what a job may
    require: the accelerator's software, and the number formats it has a rate of its own for.
    `marked`: a CoreMark tells how fast its processors are beside others.
    """

    name: str
    cloud: str = ""
    region: str = ""
    family: str = ""
    gpu: str = ""
    stack: str = ""
    gpus: int = 0
    threads: float = 0.0
    sold: frozenset[Purchase] = frozenset()
    rent: UsdPerSecond | None = None
    drive: Storage | None = None
    drive_count: int = 0
    networked: bool = False
    marked: bool = False
    capabilities: frozenset[str] = frozenset()

    @property
    def priced(self) -> bool:
        """Whether any price of it is known."""
        return bool(self.sold)

    @property
    def drives(self) -> bool:
        """Whether it has drives inside."""
        return self.drive is not None

    @property
    def threads_per_gpu(self) -> float:
        """VCPUs for each accelerator; of all of it without any."""
        return self.threads / max(1, self.gpus)


def machine_of(host: Host) -> Machine:
    """What limits ask about a machine."""
    gpu = host.gpu
    return Machine(
        name=host.name,
        cloud=host.cloud,
        region=host.prices[0].region if host.prices else "",
        family=host.family,
        gpu="" if gpu is None else gpu.name.removeprefix("gpu/"),
        stack="" if gpu is None else gpu.stack.value,
        gpus=host.gpu_count,
        threads=host.cpu.threads,
        sold=frozenset(price.purchase for price in host.prices),
        rent=host.prices[0].usual if host.prices else None,
        drive=host.local_storage,
        drive_count=host.drive_count,
        networked=host.network is not None,
        marked=host.cpu.coremark is not None,
        capabilities=capabilities(host),
    )


def holds_better(machine: Machine, store: Storage, size: Bytes) -> bool:
    """Whether the machine's own drives hold the data and are better than a volume in everything.

    They cost no rent, so nobody would rent such a volume to read from.
    """
    drive, many = machine.drive, max(1, machine.drive_count)
    if drive is None or store.scope is not Scope.VOLUME:
        return False
    room = drive.capacity is None or size <= many * drive.capacity
    return room and as_fast(drive, store, many)


def worth_renting(machine: Machine, stores: Sequence[Storage], size: Bytes) -> list[Storage]:
    """Stores whose rent is small beside the machine's, and than which none of them is faster.

    A search compares bills of machines, so a store that costs much may not look free in it. Where
    the rent of all is more, or a price is not known, the cheapest one is left.
    """
    rents = {store.name: store.standing(size) for store in stores}
    known = [store for store in stores if rents[store.name] is not None]
    if machine.rent is None or not known:
        return list(stores)
    most = SMALL_RENT * machine.rent
    known.sort(key=lambda store: rents[store.name] or 0.0)
    small = [store for store in known if (rents[store.name] or 0.0) <= most]
    if not small:
        return known[:1]
    return [one for i, one in enumerate(small) if not _beaten(one, small[:i], small[i + 1 :])]


def _beaten(store: Storage, before: Sequence[Storage], after: Sequence[Storage]) -> bool:
    """Whether another store is at least as fast in everything; of equals the cheapest stays.

    One whose rate rests on credits is fast for a while only, and beats none.
    """
    before, after = ([other for other in side if not _bursts(other)] for side in (before, after))
    return any(as_fast(other, store) for other in before) or any(
        as_fast(other, store) and not as_fast(store, other) for other in after
    )


def _bursts(store: Storage) -> bool:
    return store.burst_bandwidth is not None or store.burst_operations is not None


def as_fast(store: Storage, other: Storage, many: int = 1) -> bool:
    """Whether `many` of a store are at least as fast as another one in everything."""
    pairs = (
        (many * store.read_rate, other.read_rate),
        (many * (store.write_bandwidth or 0.0), other.write_bandwidth or 0.0),
        (many * _operations(store), _operations(other)),
        (-store.read_latency, -other.read_latency),
        (-store.read_latency - store.open_latency, -other.read_latency - other.open_latency),
    )
    return all(own >= theirs for own, theirs in pairs)


def _operations(store: Storage) -> PerSecond:
    return math.inf if store.read_operations is None else store.read_operations


def capabilities(host: Host) -> frozenset[str]:
    """What a job may require of the accelerator.

    Its software (cuda, rocm, ...) and every number format with a rate of its own: a format that
    runs at the rate of another, or not at all, is none.
    """
    gpu = host.gpu
    if gpu is None:
        return frozenset()
    formats = {*gpu.peak, *gpu.achievable} - set(gpu.fallback)
    return frozenset({gpu.stack.value, *(one.value for one in formats)})


def machines_on_offer(catalogue: Catalogue, always: Iterable[str] = ()) -> tuple[Machine, ...]:
    """All machines with a price, whatever they are sold for, and those named.

    A profile with mistakes is left out unless it is named.

    Raises
    ------
    InputError
        If a named profile has mistakes.
    """
    named = tuple(always)
    found = []
    for name in (*catalogue.names("instance"), *catalogue.names("node")):
        try:
            machine = machine_of(catalogue.host(name))
        except (InputError, PlanError):
            if name in named:
                raise
            continue
        if machine.priced or name in named:
            found.append(machine)
    return tuple(found)


def is_called(name: str, wanted: str) -> bool:
    """Whether an accelerator's name is the wanted one, begins with it, or matches its wildcards.

    Examples
    --------
    >>> is_called("x9-pcie-16gb", "x9"), is_called("x90", "x9"), is_called("x90", "x9*")
    (True, False, True)
    """
    pattern = wanted.removeprefix("gpu/")
    return name == pattern or name.startswith(f"{pattern}-") or fnmatch.fnmatch(name, pattern)


def is_sold_in(region: str, wanted: str) -> bool:
    """Whether a price for `region` holds in the wanted one.

    A price may be for all regions, or for a group of them such as all that begin with ``us``.

    Examples
    --------
    >>> is_sold_in("north", "north-1"), is_sold_in("all", "north-1"), is_sold_in("south", "north")
    (True, True, False)
    """
    wide = region == "all" or wanted.startswith(f"{region}-")
    return bool(region) and (wide or fnmatch.fnmatch(region, wanted))
