"""Sizing of jobs: the smallest amount of a resource that costs little throughput; offers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

from simulator.engine.closed_form import lower_bound
from simulator.errors import PlanError
from simulator.physics.footprint import HostRam, host_ram
from simulator.predict import predict, simulation_input
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.records import dataclass
from simulator.results.prediction import Prediction
from simulator.schema.cost import Purchase, price_of
from simulator.schema.goal import Plain
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope
from simulator.studies.levers import Settings
from simulator.studies.levers.catalogue import SIZE, Resource, knobs
from simulator.studies.levers.lever import Knob, Read
from simulator.studies.search.outcome import Progress, tracked
from simulator.units import MONTH, PerSecond, Usd, UsdPerSecond

AMPLE_FACTORS: Final = (64.0, 16.0, 4.0, 1.0)
"""Factors on the present amount that are more than enough; the next where it is faster."""
MIN_SPEEDUP: Final = 1.005
"""Ratio of two speeds from which on one is the higher one."""
MIN_SIZE_SHARE: Final = 1e-4
"""Down to this share of what there is is looked at."""
SIZE_TOLERANCE: Final = 1.02
"""Ratio of two sizes, of which one is enough and one is not, that is close enough."""
GUESS_FACTORS: Final = (1.02, 1.1, 1.3, 2.0)
"""Times the least that closed forms allow: the first that is enough leaves few sizes to try."""
GROWTH_FACTOR: Final = 1.1
"""Factor by which sizes that suffice one at a time grow until they suffice together."""
MAX_GROWTH_STEPS: Final = 40
ROUNDING: Final = 1e-6
"""Relative rounding error of closed forms."""


_ALTERNATIVES: Final = frozenset({Resource.CPU})
"""Resources of which only one amount is varied: the first one that the job has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Smallest sufficient amount of a resource; None if even the least amount tried suffices."""

    knob: Knob
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Smallest sufficient amounts of a resource for one number of machines.

    `ample` is the throughput of the run with more than enough of the resource, `speed` with the
    amounts found and `now` with those of the scenario [samples/s]. `settings` are the amounts as
    keys.
    """

    machines: int
    devices: int
    sizes: tuple[Size, ...]
    ample: PerSecond
    speed: PerSecond
    now: PerSecond
    settings: Settings

    @property
    def loss(self) -> float:
        """Share of the throughput that is lost with the amounts found."""
        return 1.0 - self.speed / self.ample


def sized(  # noqa: PLR0913 - what is asked
    read: Read,
    resource: Resource,
    loss: float,
    *,
    counts: Sequence[int] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Sized, ...]:
    """Find the smallest sufficient amount of a resource for each number of machines.

    Parameters
    ----------
    read : callable
        Returns the scenario with some keys set.
    resource : Resource
        Resource to size; all others are unchanged.
    loss : float
        Share of the throughput that may be lost, above 0.
    counts : sequence of int
        Numbers of machines; the scenario's own by default.
    seed : int
        Random seed of all simulations.
    progress : callable, optional
        Called with the finished share.

    Raises
    ------
    PlanError
        If the job uses none of the resource.
    """
    wanted: Sequence[Mapping[str, Plain]] = [{"hardware.count": n} for n in counts] or [{}]
    return tuple(
        _Search(read, settings, resource, loss, seed).found()
        for settings in tracked(wanted, progress)
    )


def run_speed(prediction: Prediction) -> PerSecond:
    """Return the samples per second over the whole run, with start-up and the cold first epoch.

    The mean step alone does not depend on a store that is read only once and then held in RAM.
    """
    timing = prediction.timing
    steps = prediction.total_steps * timing.step_time.mean
    return timing.throughput * steps / timing.total_time


class _Search:
    """Search of the smallest sufficient amounts for one number of machines."""

    def __init__(
        self, read: Read, given: Settings, resource: Resource, loss: float, seed: int
    ) -> None:
        self._read: Read = lambda settings: read({**given, **settings})
        self._resource, self._seed = resource, seed
        self._scenario = self._read({})
        self._knobs = tuple(_of(resource, knobs(self._scenario)))
        if not self._knobs:
            msg = f"the job has no {resource} that could be larger or smaller"
            raise PlanError(msg)
        self._known: dict[tuple[tuple[str, float], ...], PerSecond] = {}
        self._samples = 0.0
        self._ample, self._best = self._plenty()
        self._enough = self._best * (1.0 - loss)

    def _plenty(self) -> tuple[Mapping[str, float], PerSecond]:
        """Return ample amounts, and the throughput with them.

        Thousands of workers take longer to start than they save, so several factors are tried.
        """
        found: list[tuple[Mapping[str, float], PerSecond]] = []
        for factor in AMPLE_FACTORS:
            values = {knob.name: knob.value * factor for knob in self._knobs}
            found.append((values, self._speed(values)))
            if len(found) > 1 and found[-1][1] <= MIN_SPEEDUP * found[-2][1]:
                return found[-2]
        return found[-1]

    def found(self) -> Sized:
        """Return the smallest amounts, found one by one and grown until they suffice together."""
        sizes = {knob.name: self._least(knob) for knob in self._knobs}
        values = {
            knob.name: sizes[knob.name] or knob.value * MIN_SIZE_SHARE for knob in self._knobs
        }
        for _ in range(MAX_GROWTH_STEPS):
            if self._speed(values) >= self._enough:
                break
            values = {name: value * GROWTH_FACTOR for name, value in values.items()}
        values = {knob.name: knob.available(values[knob.name]) for knob in self._knobs}
        scenario = self._scenario
        return Sized(
            machines=sum(group.count for group in scenario.cluster.groups),
            devices=scenario.devices,
            sizes=tuple(
                Size(knob=knob, value=None if sizes[knob.name] is None else values[knob.name])
                for knob in self._knobs
            ),
            ample=self._best,
            speed=self._speed(values),
            now=self._speed({}),
            settings=self._settings(values),
        )

    def _least(self, knob: Knob) -> float | None:
        """Return the smallest sufficient amount; None if even the least amount tried suffices."""
        low, high = max(knob.least, knob.value * MIN_SIZE_SHARE), self._ample[knob.name]
        if self._is_enough(knob, low):
            return None if low == knob.value * MIN_SIZE_SHARE else low
        enough = self._guessed(knob, low, high)
        return _bisected(low, high, lambda one: one >= enough or self._is_enough(knob, one))

    def _guessed(self, knob: Knob, low: float, high: float) -> float:
        least = _bisected(low, high, lambda one: self._may_be_enough(knob, one))
        sizes = (least * factor for factor in GUESS_FACTORS)
        return next((one for one in sizes if one < high and self._is_enough(knob, one)), high)

    def _is_enough(self, knob: Knob, value: float) -> bool:
        try:
            # Closed forms rule most of those out that are too small, without a simulation.
            return self._may_be_enough(knob, value) and (
                self._speed({**self._ample, knob.name: value}) >= self._enough
            )
        except PlanError:
            # So little that there is no such machine.
            return False

    def _may_be_enough(self, knob: Knob, value: float) -> bool:
        """Return whether the job fits and its lower bound loses no more than allowed."""
        settings = self._settings({**self._ample, knob.name: value})
        try:
            asked = simulation_input(self._read(settings))
        except PlanError:
            return False
        if not self._fits(host_ram(asked.scenario)):
            return False
        given = asked.scenario, asked.topology, asked.demands, asked.lengths, asked.extras
        least = float(lower_bound(*given)) * asked.lengths.total_steps
        return self._samples >= self._enough * least * (1.0 - ROUNDING)

    def _speed(self, values: Mapping[str, float]) -> PerSecond:
        """Return the samples per second of the run; 0 if the job does not fit into RAM."""
        key = tuple(sorted(values.items()))
        if key not in self._known:
            scenario = self._read(self._settings(values))
            prediction = predict(scenario, seed=self._seed, intervals=False)
            self._samples = run_speed(prediction) * prediction.timing.total_time
            self._known[key] = run_speed(prediction) if self._fits(prediction.host_ram) else 0.0
        return self._known[key]

    def _fits(self, ram: HostRam) -> bool:
        return ram.total <= ram.capacity if self._resource is Resource.RAM else True

    def _settings(self, values: Mapping[str, float]) -> Settings:
        found: dict[str, Plain] = {}
        for knob in self._knobs:
            if knob.name in values and knob.settings is not None:
                found |= knob.settings(values[knob.name])
        return found


def _bisected(low: float, high: float, enough: Callable[[float], bool]) -> float:
    """Return the smallest sufficient size between `low`, which is too small, and `high`."""
    while high / low > SIZE_TOLERANCE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _of(resource: Resource, known: Sequence[Knob]) -> Iterator[Knob]:
    names = [name for name in SIZE[resource] if any(k.name == name for k in known)]
    if resource in _ALTERNATIVES:
        names = names[:1]
    yield from (knob for name in names for knob in known if knob.name == name)


MAX_OFFERS: Final = 4
"""Maximum number of offers that are listed."""
MAX_EXAMINED: Final = 12
"""Maximum number of offers that are simulated, the cheapest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A profile that is large enough, with its price; None if unknown.

    `per_month` is the monthly rent of the job's data in a store, `per_second` the price of a
    machine.
    """

    name: str
    per_month: Usd | None = None
    per_second: UsdPerSecond | None = None


def offers(
    found: Sized,
    resource: Resource,
    scenario: Scenario,
    catalogue: Catalogue,
    suits: Callable[[str], bool] = lambda _: True,
) -> list[Offer]:
    """Return profiles that are large enough, cheapest first, those without a price last.

    Machines have the same accelerator as the job, and at least as many. Stores must be reachable
    from the job's cloud, and `suits` must return true for their name: a store with sufficient rates
    may have too long a latency.
    """
    wanted = {size.knob.name: size.value or 0.0 for size in found.sizes}
    if resource is Resource.STORAGE:
        every = list(_stores(wanted, scenario, catalogue))
        every.sort(key=lambda one: (one.per_month is None, one.per_month or 0.0, one.name))
        every = list(islice((one for one in every[:MAX_EXAMINED] if suits(one.name)), MAX_OFFERS))
    else:
        every = list(_machines(wanted, scenario, catalogue))
        every.sort(key=lambda one: (one.per_second is None, one.per_second or 0.0, one.name))
    return every[:MAX_OFFERS]


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
            # Rent by capacity is for a volume that keeps up the rates without credits.
            rates = (wanted.get("storage bandwidth", 0.0), wanted.get("storage IOPS", 0.0))
            rent = store.standing(max(data, store.size_for(*rates)))
            yield Offer(name=name, per_month=None if rent is None else rent * MONTH)


def _machines(
    wanted: Mapping[str, float], scenario: Scenario, catalogue: Catalogue
) -> Iterator[Offer]:
    group = scenario.cluster.trainers
    used = None if group.gpus_per_host == 0 else group.host.gpu
    wanted_gpu = None if used is None else used.name
    least = {**_own_machine(scenario), **wanted}
    for name in (*catalogue.names("instance"), *catalogue.names("node")):
        host = catalogue.host(name)
        own = None if host.gpu is None else host.gpu.name
        if own == wanted_gpu and host.gpu_count >= group.gpus_per_host and _is_enough(host, least):
            price = price_of(host.prices, Purchase.ON_DEMAND)
            yield Offer(name=name, per_second=None if price is None else price.usual)


def _own_machine(scenario: Scenario) -> dict[str, float]:
    """Return the amounts of other resources that the job needs on a machine.

    These are its RAM, all hardware threads, and the network if data or gradients pass it.
    """
    group = scenario.cluster.trainers
    found = {"vCPUs": float(group.host.cpu.threads), "RAM": float(host_ram(scenario).total)}
    passed = group.count > 1 or group.storage.scope is not Scope.LOCAL
    if passed and group.host.network is not None:
        found["network bandwidth"] = float(group.host.network.bandwidth)
    return found


def _is_enough(host: Host, wanted: Mapping[str, float]) -> bool:
    network = 0.0 if host.network is None else host.network.bandwidth
    return (
        host.cpu.threads >= wanted.get("vCPUs+workers", wanted.get("vCPUs", 0.0))
        and host.ram >= wanted.get("RAM", 0.0)
        and network >= wanted.get("network bandwidth", 0.0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAnswer:
    """Answer of `plan size` for a job, with one row for each number of machines.

    `asked` is the scenario with its settings as typed; `offers` are profiles of sufficient size for
    each row, cheapest first. `accelerated`: devices are accelerators; `steps` is the number of
    steps of an epoch on one machine; `counted`: numbers of machines were requested.
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
    """Find the smallest amount of a resource that costs little throughput, and offers with it.

    Parameters
    ----------
    reader : CandidateReader
        Reads the job with some keys set.
    resource : Resource
        Resource to size.
    loss : float
        Share of the throughput with ample resources that may be lost.
    counts : sequence of int
        Numbers of machines; the scenario's own by default.
    seed : int
        Seed of all random draws.
    typed : str
        Scenario with its settings as the user typed them.
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
    """Return whether the job loses little throughput with its data in this store.

    The store is only as large as the data, which the price is for; such a volume may be slower.
    """
    settings: Settings = {"hardware.storage": store, "hardware.count": row.machines}
    try:
        data = reader.read(settings).scenario.job.stored_total
        settings = {**settings, "hardware.storage_capacity": f"{math.ceil(data)} B"}
        prediction = predict(reader.read(settings).scenario, seed=seed, intervals=False)
    except PlanError:
        return False
    return run_speed(prediction) >= row.ample * (1.0 - loss)
