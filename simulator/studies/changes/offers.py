"""What the catalogue has of a size: stores that deliver it, machines that have it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from simulator.errors import PlanError
from simulator.physics.footprint import host_ram
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.price import Purchase, price_of
from simulator.schema.hardware.storage import Scope
from simulator.schema.scenario import Scenario
from simulator.studies.changes.levers import Settings
from simulator.studies.changes.size import Resource, Sized, run_speed, sized
from simulator.studies.changes.whatif import Progress
from simulator.units import MONTH, Usd, UsdPerSecond

MOST: Final = 4
"""Offers that are named."""
TRIED: Final = 12
"""Offers that are looked at closer, the cheapest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A profile that is large enough; None where its price is unknown.

    `per_month` is what the job's data costs there for a month, `per_second` what a machine does.
    """

    name: str
    per_month: Usd | None = None
    per_second: UsdPerSecond | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAnswer:
    """The answer of `plan size` for a job: a row for each number of machines.

    `asked` is the scenario with its settings as they were typed; `offers` are what the catalogue
    has of each row's size, the cheapest first. `accelerated`: the machines compute on accelerators,
    which are counted; `steps` is what an epoch has on one machine; `counted`: numbers of machines
    were asked for.
    """

    name: str
    asked: str
    resource: Resource
    loss: float
    rows: Sequence[Sized]
    offers: Sequence[Sequence[Offer]]
    counted: bool = False
    accelerated: bool = True
    steps: float = math.inf


def size_answer(  # noqa: PLR0913 - what is asked
    reader: CandidateReader,
    resource: Resource,
    loss: float,
    *,
    counts: Sequence[int] = (),
    seed: int = 0,
    typed: str = "",
    progress: Progress | None = None,
) -> SizeAnswer:
    """Find the least of a resource that loses little speed, and offers that have it.

    Parameters
    ----------
    reader : CandidateReader
        Of the job.
    resource : Resource
        The resource to size.
    loss : float
        Share of the speed with plenty of it that may be lost.
    counts : sequence of int
        Numbers of machines; the scenario's own by default.
    seed : int
        Seed of all random draws.
    typed : str
        The scenario with its settings as the user typed them.
    progress : callable, optional
        Called with the finished share.
    """
    rows = sized(
        lambda settings: reader.read(settings).scenario,
        resource,
        loss,
        counts=counts,
        seed=seed,
        progress=progress,
    )
    scenario, catalogue = reader.read({}).scenario, Catalogue.default(reader.profiles)
    train, trainers = scenario.job.train, scenario.cluster.trainers
    batch = float(train.batch_size * train.accumulation * max(1, scenario.ranks))
    return SizeAnswer(
        name=scenario.name,
        asked=typed,
        resource=resource,
        loss=loss,
        rows=rows,
        offers=[
            offers(row, resource, scenario, catalogue, partial(_suits, reader, row, loss, seed))
            for row in rows
        ],
        counted=bool(counts),
        accelerated=trainers.gpus_per_host > 0,
        steps=scenario.job.dataset.samples * trainers.count / batch,
    )


def _suits(reader: CandidateReader, row: Sized, loss: float, seed: int, store: str) -> bool:
    """Return whether the job loses little speed with its data in a store as large as they are.

    A volume that is only as large as the data, which is what its price is for, may be slower.
    """
    settings: Settings = {"hardware.storage": store, "hardware.count": row.machines}
    try:
        data = reader.read(settings).scenario.job.stored_total
        settings = {**settings, "hardware.storage_capacity": f"{math.ceil(data)} B"}
        prediction = predict(reader.read(settings).scenario, seed=seed, intervals=False)
    except PlanError:
        return False
    return run_speed(prediction) >= row.ample * (1.0 - loss)


def offers(
    found: Sized,
    resource: Resource,
    scenario: Scenario,
    catalogue: Catalogue,
    suits: Callable[[str], bool] = lambda _: True,
) -> list[Offer]:
    """Profiles that are large enough, the cheapest first, those without a price last.

    Machines are those with as many of the same accelerator as the job uses, or with none where it
    uses none; stores those that its cloud reaches and that `suits` says are fast enough, since a
    store that has the rates may take too long to answer each read.
    """
    wanted = {size.knob.name: size.value or 0.0 for size in found.sizes}
    if resource is Resource.STORAGE:
        every = list(_stores(wanted, scenario, catalogue))
        every.sort(key=lambda one: (one.per_month is None, one.per_month or 0.0, one.name))
        every = list(islice((one for one in every[:TRIED] if suits(one.name)), MOST))
    else:
        every = list(_machines(wanted, scenario, catalogue))
        every.sort(key=lambda one: (one.per_second is None, one.per_second or 0.0, one.name))
    return every[:MOST]


def _stores(
    wanted: Mapping[str, float], scenario: Scenario, catalogue: Catalogue
) -> Iterator[Offer]:
    data, cloud = scenario.job.stored_total, scenario.cluster.trainers.host.cloud
    for name in catalogue.names("storage"):
        store = catalogue.storage(name)
        operations = store.read_operations
        enough = store.read_rate >= wanted.get("storage bandwidth", 0.0)
        if operations is not None:
            enough = enough and operations >= wanted.get("storage IOPS", 0.0)
        if enough and (not cloud or not store.clouds or cloud in store.clouds):
            rent = store.standing(data)
            yield Offer(name=name, per_month=None if rent is None else rent * MONTH)


def _machines(
    wanted: Mapping[str, float], scenario: Scenario, catalogue: Catalogue
) -> Iterator[Offer]:
    group = scenario.cluster.trainers
    used = None if group.gpus_per_host == 0 else group.host.gpu
    wanted_gpu = None if used is None else used.name
    least = {**_there(scenario), **wanted}
    for name in (*catalogue.names("instance"), *catalogue.names("node")):
        host = catalogue.host(name)
        own = None if host.gpu is None else host.gpu.name
        if own == wanted_gpu and host.gpu_count >= group.gpus_per_host and _has(host, least):
            price = price_of(host.prices, Purchase.ON_DEMAND)
            yield Offer(name=name, per_second=None if price is None else price.usual)


def _there(scenario: Scenario) -> dict[str, float]:
    """What the job's own machine has of all that is not sized, and the job makes use of.

    The RAM it needs, all its hardware threads, and its network where data or gradients pass it.
    """
    group = scenario.cluster.trainers
    found = {"vCPUs": float(group.host.cpu.threads), "RAM": float(host_ram(scenario).total)}
    passed = group.count > 1 or group.storage.scope is not Scope.LOCAL
    if passed and group.host.network is not None:
        found["network bandwidth"] = float(group.host.network.bandwidth)
    return found


def _has(host: Host, wanted: Mapping[str, float]) -> bool:
    network = 0.0 if host.network is None else host.network.bandwidth
    return (
        host.cpu.threads >= wanted.get("vCPUs+workers", wanted.get("vCPUs", 0.0))
        and host.ram >= wanted.get("RAM", 0.0)
        and network >= wanted.get("network bandwidth", 0.0)
    )
