"""Data migration: copies of the data that a candidate needs, with their time and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from simulator.equations.cost import egress_cost, requests_cost
from simulator.equations.storage import operations_per_sample
from simulator.pipeline.stages.input import bytes_per_file, drives_of, write_operations
from simulator.records import dataclass
from simulator.results.cost import UNLIMITED, data_stores
from simulator.results.metrics import Value
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.studies.recommend.ranking import MONEY, TIME, number
from simulator.units import HOUR, MONTH, Bytes, Seconds, Usd, UsdPerSecond

_TO_TRAIN: Final = "cost.time_to_train_s"
_BOUGHT: Final = "cost.samples_per_usd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A copy of the data that must be made once before the run.

    `least` is its minimum time by the data-sheet rates of both stores and the network of one
    machine, as far as they are known [s]; None if none is. `written`: the write rate of the target
    is known. `requests` is the charge of both stores for reading and writing the data [$]; None if
    a store charges an unknown price. `per_month` is the rent of the copy [$/month]. `leaves`: the
    data leave their cloud, and `egress` is the charge for that [$]; None if unknown.
    """

    source: str
    target: str
    size: Bytes
    least: Seconds | None = None
    written: bool = True
    requests: Usd | None = 0.0
    per_month: Usd | None = None
    leaves: bool = False
    egress: Usd | None = None

    @property
    def charged(self) -> Usd:
        """Charges of the stores for requests and egress, independent of the duration [$]."""
        return (self.requests or 0.0) + (self.egress or 0.0)

    def bill(self, rent: UsdPerSecond) -> Usd:
        """Return the cost of the copy while machines with this rent wait for it [$]."""
        space = (self.per_month or 0.0) / MONTH
        return (rent + space) * (self.least or 0.0) + self.charged


def waited(copies: Sequence[Move]) -> Seconds:
    """Return the minimum time of copies made one after another [s]; an unknown time counts as 0."""
    return sum(one.least or 0.0 for one in copies)


def with_copies(figures: Mapping[str, Value], copies: Sequence[Move]) -> Mapping[str, Value]:
    """Return the metrics of a run including its initial copies; step times do not change."""
    total, money = number(figures, TIME), number(figures, MONEY)
    if not copies or total is None:
        return figures
    changed, longer = dict(figures), waited(copies)
    for name in (TIME, _TO_TRAIN):
        before = number(figures, name)
        if before is not None:
            changed[name] = before + longer
    rent, bought = number(figures, "cost.usd_per_h"), number(figures, _BOUGHT)
    if money is None or rent is None:
        return changed
    paid = sum(one.bill(rent / HOUR) for one in copies)
    changed[MONEY] = money + paid
    if bought is not None and money > 0.0:
        changed[_BOUGHT] = bought * money / (money + paid)
    return changed


def moves(now: Scenario, chosen: Scenario, *, elsewhere: bool) -> tuple[Move, ...]:
    """Return the copies of the data that a candidate needs in addition to the simulated run.

    Staging, or loading data into RAM, at the start of a run is part of its time; only the store
    that they read from must be filled by a copy.

    Parameters
    ----------
    now, chosen : Scenario
        Scenario without changes, and with the settings of the candidate.
    elsewhere : bool
        True if the candidate has another machine, whose own drives are initially empty.
    """
    found: list[Move] = []
    origin = _origin(now)
    for target in data_stores(chosen):
        empty = elsewhere and target.scope is Scope.LOCAL
        size = chosen.job.stored_total
        if size > 0.0 and (target.name != origin.name or empty):
            least = _least(size, now, chosen, origin, target)
            rent = target.standing(size)
            leaves = bool(origin.clouds) and _cloud(chosen) not in {"", *origin.clouds}
            found.append(
                Move(
                    source=origin.name,
                    target=target.name,
                    size=size,
                    least=least,
                    written=target.write_bandwidth is not None,
                    requests=_requests(chosen, chosen, origin, target),
                    per_month=None if rent is None else rent * MONTH,
                    leaves=leaves,
                    egress=_egress(size, origin) if leaves else None,
                )
            )
    return tuple(found)


def rewritten(now: Scenario, chosen: Scenario) -> tuple[Move, ...]:
    """Return the copy that converts files to shards on the same store; empty if none is needed."""
    origin, size = _origin(now), chosen.job.stored_total
    if now.job.dataset.layout is chosen.job.dataset.layout or size <= 0.0:
        return ()
    known = origin.write_bandwidth is not None
    return (
        Move(
            source=origin.name,
            target=origin.name,
            size=size,
            least=_least(size, now, chosen, origin, origin),
            written=known,
            requests=_requests(now, chosen, origin, origin),
        ),
    )


def _requests(read: Scenario, chosen: Scenario, origin: Storage, target: Storage) -> Usd | None:
    """Return the charge for reading all samples in one layout and writing them in another [$].

    None if a store charges an unknown price.
    """
    before, job = read.job, chosen.job
    size, file = before.stored_bytes, bytes_per_file(before.dataset, before.stored_bytes)
    part = origin.operation_size or UNLIMITED
    reads = float(operations_per_sample(size, file, part, sequential=True))
    writes = float(write_operations(job.dataset, job.stored_bytes, target))
    paid = 0.0
    for store, asked, written in ((origin, reads, 0.0), (target, 0.0, writes)):
        charges = store.charges
        if store.scope is not Scope.OBJECT:
            continue
        if charges is None or charges.reads is None or charges.writes is None:
            return None
        each = requests_cost(asked, charges.reads, written, charges.writes)
        paid += float(each) * job.dataset.samples
    return paid


def _cloud(scenario: Scenario) -> str:
    return scenario.cluster.trainers.host.cloud


def _egress(size: Bytes, origin: Storage) -> Usd | None:
    """Return the charge for bytes that leave the cloud of a store in one month [$], or None."""
    tiers = () if origin.charges is None else origin.charges.internet
    if not tiers:
        return None
    ends = tuple(tier.to for tier in tiers if tier.to is not None)
    return float(egress_cost(size, 1.0, ends, tuple(tier.value for tier in tiers)))


def _origin(scenario: Scenario) -> Storage:
    group = scenario.cluster.trainers
    return group.origin or group.storage


def _least(
    size: Bytes, now: Scenario, chosen: Scenario, origin: Storage, target: Storage
) -> Seconds | None:
    """Return the minimum time of a copy [s]; None if no rate is known."""
    reading = origin.read_rate * drives_of(now.cluster.trainers, origin)
    known = [reading, target.write_bandwidth]
    network = chosen.cluster.trainers.host.network
    if network is not None and Scope.LOCAL not in (origin.scope, target.scope):
        known.append(network.bandwidth)
    rates = [float(rate) for rate in known if rate]
    return size / min(rates) if rates else None
