"""A scenario: the machines, the jobs on them, and how the bill is counted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.calibration import IDENTITY, Calibration
from simulator.hardware.cluster import Cluster
from simulator.provenance import Assumption
from simulator.units import Seconds, UsdPerSecond
from simulator.workload.dataset import Dataset
from simulator.workload.loader import Loader, Preprocessing
from simulator.workload.models import Model, StepTimes
from simulator.workload.software import Software
from simulator.workload.train import Mode, Train


class Purchase(StrEnum):
    """How machine hours are bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """How the bill is counted.

    `price` stands in for the catalogue's price of one machine. `provisioning` is billed time
    before the job starts.
    """

    purchase: Purchase = Purchase.ON_DEMAND
    price: UsdPerSecond | None = None
    provisioning: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What host RAM holds beside the job itself, and what the page cache may use.

    None: the documented default of `footprint` applies and is listed as an assumption.
    """

    operating_system: float | None = None
    application: float | None = None
    page_cache: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training, inference or preparation job on the trainers (or any) group.

    `step_times` are the user's own measurements and win over the model's.
    """

    mode: Mode
    dataset: Dataset
    loader: Loader
    preprocessing: Preprocessing
    train: Train
    software: Software
    model: Model | None = None
    step_times: StepTimes | None = None
    memory: Memory = Memory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything one prediction needs; `notes` are assumptions made while reading the file."""

    name: str
    cluster: Cluster
    jobs: tuple[Job, ...]
    title: str = ""
    cost: CostPlan = CostPlan()
    calibration: Calibration = IDENTITY
    notes: tuple[Assumption, ...] = ()

    @property
    def job(self) -> Job:
        """The one job (or the first of several equal ones)."""
        return self.jobs[0]

    @property
    def ranks_per_host(self) -> int:
        """Processes that train on one machine: one a GPU, one on a machine without."""
        return max(1, self.cluster.trainers.gpus_per_host)

    @property
    def ranks(self) -> int:
        """Data-parallel ranks of the whole job."""
        return self.ranks_per_host * self.cluster.trainers.count
