"""Where a job's data lie, and what the space costs by the time."""

from __future__ import annotations

from simulator.scenario.hardware.storage import Scope, Storage
from simulator.scenario.scenario import Scenario
from simulator.scenario.workload.dataset import CachePolicy, Placement
from simulator.units import UsdPerSecond


def data_stores(scenario: Scenario) -> tuple[Storage, ...]:
    """The stores that hold the data when a run begins: of trainers that read, or of helpers."""
    job, trainers = scenario.job, scenario.cluster.trainers
    staged = job.dataset.placement is Placement.STAGE
    preloaded = job.dataset.cache_policy is CachePolicy.PRELOADED
    if job.remote is None or staged or preloaded:
        return (trainers.origin or trainers.storage,)
    helpers = (g for g in scenario.cluster.groups if g.name == job.remote.group)
    return tuple(group.origin or group.storage for group in helpers)


def data_rent(scenario: Scenario) -> UsdPerSecond:
    """What stores that hold the data cost [$/s]; one whose price is not known counts nothing.

    Rates held ready are in it; drives of a machine are paid with the machine.
    """
    size = scenario.job.stored_total
    rented = (store for store in data_stores(scenario) if store.scope is not Scope.LOCAL)
    return sum((store.standing(size) or 0.0 for store in rented), 0.0)
