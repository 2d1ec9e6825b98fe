"""Machines together: groups of equal hosts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.schema.hardware.host import Host
from simulator.schema.hardware.storage import Storage
from simulator.units import UsdPerSecond


class Role(StrEnum):
    """Role of a group of machines in the job."""

    TRAIN = "train"
    PREPROCESS = "preprocess"
    SERVE = "serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`count` equal machines with one role, reading their samples from `storage`.

    `gpus_per_host` of each machine's accelerators are used; the whole machine is paid for, at
    `price` where that stands in for the catalogue's. `origin` is where the data lies before it is
    staged or preloaded. `cache` are drives in front of `storage` that keep what was read once.
    """

    name: str
    role: Role
    host: Host
    storage: Storage
    count: int = 1
    gpus_per_host: int = 0
    origin: Storage | None = None
    cache: Storage | None = None
    price: UsdPerSecond | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All groups of a scenario."""

    groups: tuple[Group, ...]

    @property
    def trainers(self) -> Group:
        """The group that trains (the first one, if no role says so)."""
        return next((g for g in self.groups if g.role is not Role.PREPROCESS), self.groups[0])

    @property
    def vcpus_per_gpu(self) -> float | None:
        """Hardware threads of all machines, helpers too, for each accelerator in use."""
        used = self.trainers.count * self.trainers.gpus_per_host
        threads = sum(group.count * group.host.cpu.threads for group in self.groups)
        return threads / used if used else None
