"""What a search starts from: the scenario as it stands, and what is on offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from simulator.errors import InputError, UnknownName
from simulator.physics.footprint import Verdict, memory_fit
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.goal import Plain
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode
from simulator.studies.recommend.machines import Machine, machine_of, machines_on_offer
from simulator.studies.search.evaluate import Reader as Bare

Settings = Mapping[str, Plain]

MACHINE, COUNT, STORE = "hardware.machine", "hardware.count", "hardware.storage"
PLACEMENT, PURCHASE = "data.placement", "cost.purchase"
BATCH, ACCUMULATION, WORKERS = "train.batch_size", "train.accumulation", "input.workers"
GLOBAL_BATCH = "train.global_batch_size"
MEASURED_ON = "input.measured_on"
ELSEWHERE = frozenset({MACHINE, STORE, PLACEMENT, PURCHASE, WORKERS, MEASURED_ON})
"""Settings that an accelerator's memory does not depend on."""


class Reader(Bare, Protocol):
    """Reads candidates of one scenario file, and tells what the file itself says."""

    def given(self, key: str) -> object:
        """What the file says at a dotted key; None where it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The scenario as it stands, and what is on offer; `own` is the machine it names."""

    reader: Reader
    scenario: Scenario
    own: Machine
    machines: tuple[Machine, ...]
    stores: tuple[Storage, ...]
    fitted: dict[tuple[object, ...], bool] = field(default_factory=dict)

    @property
    def store(self) -> str:
        """The store that the file names; empty where data lies on the machine's own drives."""
        name = str(self.reader.given(STORE) or "")
        return name if name.startswith("storage/") or not name else f"storage/{name}"

    def machine(self, name: str) -> Machine:
        """A machine on offer by its name."""
        return next(machine for machine in self.machines if machine.name == name)

    def nearby(self, machine: Machine) -> list[Storage]:
        """Stores of a machine's cloud all of whose prices are known; all if they are of none."""
        there = [
            store
            for store in self.stores
            if machine.cloud in store.clouds and store.scope is not Scope.LOCAL
        ]
        return [store for store in there if store.priced] or there

    @property
    def global_batch(self) -> int | None:
        """Samples of an optimizer step over all ranks, where that is to stay as it is.

        It is where the file gives it, and where it spreads its model over accelerators.
        """
        job = self.scenario.job
        if self.reader.given(GLOBAL_BATCH) is None and not job.parallelism.splits_model:
            return None
        return round(job.train.batch_size) * job.train.accumulation * self.scenario.ranks

    def share(self, machine: Machine, settings: Settings) -> int:
        """Samples that one rank takes in an optimizer step; 0 where they don't come out even.

        Those of all ranks together stay as they are where they must; else those of one rank do.
        """
        whole, ranks = self.global_batch, self.ranks(machine, settings)
        if whole is not None:
            return 0 if whole % ranks else whole // ranks
        train = self.scenario.job.train
        return round(train.batch_size) * train.accumulation

    def gpus(self, machine: Machine) -> int:
        """Accelerators of a machine that the job uses."""
        given, job = self.reader.given("hardware.gpus"), self.scenario.job
        if isinstance(given, int):
            return given
        on_host = job.model is not None and job.model.cpu_seconds > 0.0
        return 0 if on_host or job.mode is Mode.PREPARE else machine.gpus

    def ranks(self, machine: Machine, settings: Settings) -> int:
        """Data-parallel ranks of a candidate."""
        count = int(settings.get(COUNT, 1))
        devices = max(1, self.gpus(machine) // self.scenario.job.copies) * count
        return max(1, devices // self.replica(settings))

    def replica(self, settings: Settings) -> int:
        """Accelerators that hold one copy of the model."""
        own = self.scenario.job.parallelism
        degrees = {"tensor": own.tensor, "pipeline": own.pipeline, "context": own.context}
        product = 1
        for key, usual in degrees.items():
            product *= int(settings.get(f"parallelism.{key}", usual))
        return product

    def fits(self, machine: Machine, settings: Settings) -> bool:
        """Whether a candidate surely fits into accelerators' memory; True where nobody knows."""
        rest = tuple(sorted((k, v) for k, v in settings.items() if k not in ELSEWHERE))
        key = (machine.gpu, machine.gpus, rest)
        if key not in self.fitted:
            memory = memory_fit(self.reader.read(settings).scenario)
            self.fitted[key] = memory is None or memory.verdict is Verdict.YES
        return self.fitted[key]


def ground_of(reader: Reader, catalogue: Catalogue, named: tuple[str, ...] = ()) -> Ground:
    """What a search of one scenario starts from.

    Parameters
    ----------
    reader : Reader
        Reads the scenario and its candidates.
    catalogue : Catalogue
        Machines and stores on offer.
    named : tuple of str
        Machines that are looked at although they have no price.
    """
    scenario = reader.read({}).scenario
    own = scenario.cluster.trainers.host.name
    return Ground(
        reader=reader,
        scenario=scenario,
        own=machine_of(catalogue.host(own)),
        machines=machines_on_offer(catalogue, (own, *named)),
        stores=tuple(_stores(catalogue)),
    )


def with_full_name(settings: Settings, catalogue: Catalogue) -> Settings:
    """Settings with the machine called as its profile is, such as ``node/dgx-h100``."""
    if MACHINE not in settings:
        return settings
    return {**settings, MACHINE: catalogue.host(str(settings[MACHINE])).name}


def _stores(catalogue: Catalogue) -> list[Storage]:
    """Stores that only some clouds reach; a profile with mistakes is left out."""
    found = []
    for name in catalogue.names("storage"):
        try:
            store = catalogue.storage(name)
        except (InputError, UnknownName):
            continue
        if store.clouds:
            found.append(store)
    return found
