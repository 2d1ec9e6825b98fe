"""Data that a choice wants elsewhere than the scenario has it, and the least time of the copy."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.storage_bill import egress_cost
from simulator.pipeline.stages.read import drives_of
from simulator.results.stores import data_stores
from simulator.scenario.hardware.storage import Scope, Storage
from simulator.scenario.scenario import Scenario
from simulator.units import MONTH, Bytes, Seconds, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A copy of the data that has to be made before the run, and that nothing counts.

    `least` is the time it takes at the datasheets' rates of both stores and of one machine's
    network [s]; None where no rate is known. `per_month` is what the space costs there [$].
    `leaves` says that the data leave their cloud, and `egress` what is charged for that [$]; None
    where no source states it.
    """

    source: str
    target: str
    size: Bytes
    least: Seconds | None = None
    per_month: Usd | None = None
    leaves: bool = False
    egress: Usd | None = None


def moves(now: Scenario, chosen: Scenario, *, elsewhere: bool) -> tuple[Move, ...]:
    """Copies that a choice needs beside what is simulated.

    What is staged or loaded into RAM at the start of a run is a part of its time; what then has
    to be copied is only what that is read from.

    Parameters
    ----------
    now, chosen : Scenario
        The scenario as it stands, and with a candidate's settings.
    elsewhere : bool
        Whether the candidate's machine is another one: its own drives begin empty.
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
                    per_month=None if rent is None else rent * MONTH,
                    leaves=leaves,
                    egress=_egress(size, origin) if leaves else None,
                )
            )
    return tuple(found)


def _cloud(scenario: Scenario) -> str:
    return scenario.cluster.trainers.host.cloud


def _egress(size: Bytes, origin: Storage) -> Usd | None:
    """What a store charges for bytes that leave its cloud within a month [$]."""
    tiers = () if origin.charges is None else origin.charges.internet
    if not tiers:
        return None
    ends = tuple(tier.to for tier in tiers if tier.to is not None)
    return float(egress_cost(size, 1.0, ends, tuple(tier.price for tier in tiers)))


def _origin(scenario: Scenario) -> Storage:
    group = scenario.cluster.trainers
    return group.origin or group.storage


def _least(
    size: Bytes, now: Scenario, chosen: Scenario, origin: Storage, target: Storage
) -> Seconds | None:
    """The least time of a copy; drives of a machine that is given up may be read no more."""
    reading = origin.read_rate * drives_of(now.cluster.trainers, origin)
    known = [reading, target.write_bandwidth]
    network = chosen.cluster.trainers.host.network
    if network is not None and Scope.LOCAL not in (origin.scope, target.scope):
        known.append(network.bandwidth)
    rates = [float(rate) for rate in known if rate]
    return size / min(rates) if target.write_bandwidth and rates else None
