"""Baseline of a study: the scenario as it stands, machines and stores on offer, fixed settings."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from simulator.errors import InputError, PlanError, UnknownName
from simulator.physics.footprint import Verdict, memory_fit
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.records import dataclass
from simulator.schema.cost import Purchase
from simulator.schema.goal import Plain
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode
from simulator.studies.levers import (
    COUNT,
    GLOBAL_BATCH,
    GPU_KEY,
    MACHINE,
    MEASURED_ON,
    PLACEMENT,
    PURCHASE,
    STORE,
    WORKERS,
    Settings,
)
from simulator.uncertainty.scenario import with_uncertainties
from simulator.units import Bytes, PerSecond, UsdPerSecond

MAX_STORE_RENT: Final = 0.05
"""Share of a machine's rent up to which a store's is left out of what a search compares: a guess,
about what a step is known to at best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine on offer, with the properties that limits refer to.

    `gpu` is the name of its accelerator without ``gpu/``, and `stack` the software to program it;
    both are empty without one. `threads` are its vCPUs, `sold` the known ways to buy it, `rent` is
    its first listed price. `capabilities` are what a job may require: the accelerator's software,
    and the number formats that it computes natively. `marked`: its CPU speed is known by a
    CoreMark.
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
        """True if any price of the machine is known."""
        return bool(self.sold)

    @property
    def drives(self) -> bool:
        """True if the machine has local drives."""
        return self.drive is not None

    @property
    def threads_per_gpu(self) -> float:
        """Number of vCPUs per accelerator; all vCPUs if there is none."""
        return self.threads / max(1, self.gpus)


def machine_of(host: Host) -> Machine:
    """Return the properties of a machine that limits refer to."""
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
    """Return whether local drives hold the data and are at least as fast as a volume.

    They cost no rent, so such a volume is not worth renting.
    """
    drive, many = machine.drive, max(1, machine.drive_count)
    if drive is None or store.scope is not Scope.VOLUME:
        return False
    room = drive.capacity is None or size <= many * drive.capacity
    return room and as_fast(drive, store, many)


def worth_renting(machine: Machine, stores: Sequence[Storage], size: Bytes) -> list[Storage]:
    """Return stores whose rent is small compared with the machine's, without slower ones.

    A search compares bills of machines, so expensive stores are excluded from it. If all rents are
    too high, the cheapest store is returned; if the prices are unknown, all stores are.
    """
    rents = {store.name: store.standing(size) for store in stores}
    known = [store for store in stores if rents[store.name] is not None]
    if machine.rent is None or not known:
        return list(stores)
    most = MAX_STORE_RENT * machine.rent
    known.sort(key=lambda store: rents[store.name] or 0.0)
    small = [store for store in known if (rents[store.name] or 0.0) <= most]
    if not small:
        return known[:1]
    return [one for i, one in enumerate(small) if not _is_beaten(one, small[:i], small[i + 1 :])]


def _is_beaten(store: Storage, before: Sequence[Storage], after: Sequence[Storage]) -> bool:
    """Return whether another store is at least as fast in all respects; ties go to the cheapest.

    A store whose rate depends on credits is fast only for a while, and beats no other.
    """
    before, after = (
        [other for other in side if not _is_burstable(other)] for side in (before, after)
    )
    return any(as_fast(other, store) for other in before) or any(
        as_fast(other, store) and not as_fast(store, other) for other in after
    )


def _is_burstable(store: Storage) -> bool:
    return store.burst_bandwidth is not None or store.burst_operations is not None


def as_fast(store: Storage, other: Storage, many: int = 1) -> bool:
    """Return whether `many` of a store are at least as fast as another one in all respects."""
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
    """Return the capabilities of the accelerator that a job may require.

    These are its software (cuda, rocm, ...) and all number formats that it computes natively, not
    at the rate of another format.
    """
    gpu = host.gpu
    if gpu is None:
        return frozenset()
    formats = {*gpu.peak, *gpu.achievable} - set(gpu.fallback)
    return frozenset({gpu.stack.value, *(one.value for one in formats)})


def machines_on_offer(catalogue: Catalogue, always: Iterable[str] = ()) -> tuple[Machine, ...]:
    """Return all machines with a price, and those named.

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
    """Return whether the name of an accelerator starts with the wanted name or matches it.

    Examples
    --------
    >>> is_called("x9-pcie-16gb", "x9"), is_called("x90", "x9"), is_called("x90", "x9*")
    (True, False, True)
    """
    pattern = wanted.removeprefix("gpu/")
    return name == pattern or name.startswith(f"{pattern}-") or fnmatch.fnmatch(name, pattern)


def is_sold_in(region: str, wanted: str) -> bool:
    """Return whether a price for `region` applies in the region `wanted`.

    A price may be for all regions, or for a group of them such as all that begin with ``us``.

    Examples
    --------
    >>> is_sold_in("north", "north-1"), is_sold_in("all", "north-1"), is_sold_in("south", "north")
    (True, True, False)
    """
    wide = region == "all" or wanted.startswith(f"{region}-")
    return bool(region) and (wide or fnmatch.fnmatch(region, wanted))


MEMORY_NEUTRAL = frozenset({MACHINE, STORE, PLACEMENT, PURCHASE, WORKERS, MEASURED_ON})
"""Settings that an accelerator's memory does not depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The scenario without changes, and machines and stores on offer; `own` is its machine."""

    reader: CandidateReader
    scenario: Scenario
    own: Machine
    machines: tuple[Machine, ...]
    stores: tuple[Storage, ...]
    fitted: dict[tuple[object, ...], bool] = field(default_factory=dict)

    @property
    def store(self) -> str:
        """Name of the store in the scenario; empty if data is on the machine's own drives."""
        name = str(self.reader.given(STORE) or "")
        return name if name.startswith("storage/") or not name else f"storage/{name}"

    def machine(self, name: str) -> Machine:
        """Return a machine on offer by its name."""
        return next(machine for machine in self.machines if machine.name == name)

    def nearby(self, machine: Machine) -> list[Storage]:
        """Return the stores of a machine's cloud with known prices, or all if none is known."""
        there = [
            store
            for store in self.stores
            if machine.cloud in store.clouds and store.scope is not Scope.LOCAL
        ]
        return [store for store in there if store.priced] or there

    @property
    def global_batch(self) -> int | None:
        """Samples of an optimizer step over all ranks, if they must not change; else None.

        They must not change if the scenario states them, or splits its model over accelerators.
        """
        job = self.scenario.job
        if self.reader.given(GLOBAL_BATCH) is None and not job.parallelism.splits_model:
            return None
        return round(job.train.batch_size) * job.train.accumulation * self.scenario.ranks

    def share(self, machine: Machine, settings: Settings) -> int:
        """Return the samples of one rank in an optimizer step; 0 if they cannot be divided evenly.

        They follow from the global batch if it must not change; else they equal those of the
        scenario.
        """
        whole, ranks = self.global_batch, self.ranks(machine, settings)
        if whole is not None:
            return 0 if whole % ranks else whole // ranks
        train = self.scenario.job.train
        return round(train.batch_size) * train.accumulation

    def gpus(self, machine: Machine) -> int:
        """Return the number of accelerators of a machine that the job uses."""
        given, job = self.reader.given("hardware.gpus"), self.scenario.job
        if isinstance(given, int):
            return given
        on_host = job.model is not None and job.model.cpu_seconds > 0.0
        return 0 if on_host or job.mode is Mode.PREPARE else machine.gpus

    def ranks(self, machine: Machine, settings: Settings) -> int:
        """Return the data-parallel ranks of a candidate."""
        count = int(settings.get(COUNT, 1))
        devices = max(1, self.gpus(machine) // self.scenario.job.copies) * count
        return max(1, devices // self.replica(settings))

    def replica(self, settings: Settings) -> int:
        """Return the number of accelerators that together hold one copy of the model."""
        own = self.scenario.job.parallelism
        degrees = {"tensor": own.tensor, "pipeline": own.pipeline, "context": own.context}
        product = 1
        for key, usual in degrees.items():
            product *= int(settings.get(f"parallelism.{key}", usual))
        return product

    def fits(self, machine: Machine, settings: Settings) -> bool:
        """Return whether a candidate surely fits into GPU memory; true if unknown."""
        rest = tuple(sorted((k, v) for k, v in settings.items() if k not in MEMORY_NEUTRAL))
        key = (machine.gpu, machine.gpus, rest)
        if key not in self.fitted:
            memory = memory_fit(with_uncertainties(self.reader.read(settings).scenario))
            self.fitted[key] = memory is None or memory.verdict is Verdict.YES
        return self.fitted[key]


def baseline_of(
    reader: CandidateReader, catalogue: Catalogue, named: tuple[str, ...] = ()
) -> Baseline:
    """Return the baseline of a study of one scenario.

    Parameters
    ----------
    reader : CandidateReader
        Reads the scenario and its candidates.
    catalogue : Catalogue
        Machines and stores on offer.
    named : tuple of str
        Machines to include although they have no price.
    """
    scenario = reader.read({}).scenario
    own = scenario.cluster.trainers.host.name
    return Baseline(
        reader=reader,
        scenario=scenario,
        own=machine_of(catalogue.host(own)),
        machines=machines_on_offer(catalogue, (own, *named)),
        stores=stores_on_offer(catalogue),
    )


def with_full_name(settings: Settings, catalogue: Catalogue) -> Settings:
    """Return settings with the full name of the machine's profile, such as ``node/dgx-h100``."""
    if MACHINE not in settings:
        return settings
    return {**settings, MACHINE: catalogue.host(str(settings[MACHINE])).name}


def stores_on_offer(catalogue: Catalogue) -> tuple[Storage, ...]:
    """Return the stores of clouds; profiles with mistakes are left out."""
    found = []
    for name in catalogue.names("storage"):
        try:
            store = catalogue.storage(name)
        except (InputError, UnknownName):
            continue
        if store.clouds:
            found.append(store)
    return tuple(found)


MACHINE_KEYS = frozenset({MACHINE, GPU_KEY})


def keeps_pin(
    baseline: Baseline, machine: Machine, settings: Settings, key: str, value: Plain
) -> bool:
    """Return whether a candidate has the pinned `value` of a key."""
    if key == MACHINE:
        return fnmatch.fnmatch(machine.name, str(value))
    if key == GPU_KEY:
        return is_called(machine.gpu, str(value))
    own = settings.get(key, baseline.reader.given(key))
    if key == STORE:
        return _store_name(own) == _store_name(value)
    return own == value or str(own) == str(value)


def _store_name(store: object) -> str:
    return str(store or "").removeprefix("storage/")


def keeps_pins(
    baseline: Baseline, machine: Machine, settings: Settings, pins: Mapping[str, Plain]
) -> bool:
    """Return whether a candidate has every pinned key at its value."""
    return all(keeps_pin(baseline, machine, settings, key, value) for key, value in pins.items())


def pinned_seeds(
    pins: Mapping[str, Plain], seeds: Iterable[Settings], base: Settings
) -> Iterator[Settings]:
    """Yield starting points of a search: all pins set, and each pin left free in turn.

    A pin is a key with a fixed value. Pins of the machine filter machines and are not set. Pins
    that the settings `base` already contain are skipped.
    """
    set_ones = {k: v for k, v in pins.items() if k not in MACHINE_KEYS and base.get(k) != v}
    for seed in seeds:
        yield {**seed, **set_ones}
        for free in set_ones:
            yield {**seed, **{k: v for k, v in set_ones.items() if k != free}}
