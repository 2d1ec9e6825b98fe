"""A scenario: the machines, the jobs on them, and the rules of the bill."""

from __future__ import annotations

from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.calibration import IDENTITY, Calibration
from simulator.schema.cost import (
    DURING_THE_RUN,
    EnergyPlan,
    Ownership,
    Purchase,
    PurchaseField,
    StorePlan,
)
from simulator.schema.data_loading import Dataset, InputPipeline, Preparation, Remote
from simulator.schema.fields import (
    ByteOrZeroField,
    PriceOrZeroField,
    Section,
    TextField,
    TimeOrZeroField,
)
from simulator.schema.long_run import Checkpoints, Interruptions
from simulator.schema.machines import Cluster, Group, Hardware
from simulator.schema.models import Model, StepTimes
from simulator.schema.provenance import Assumption
from simulator.schema.software import Software
from simulator.schema.storage import StoreClient
from simulator.schema.training import ONE_DEVICE, Mode, Parallelism, Train
from simulator.schema.uncertainty import UncertaintyComponent
from simulator.units import Bytes, at_least, in_common


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan(Section):
    """Rules of the bill."""

    purchase: PurchaseField = Purchase.ON_DEMAND
    """Way to buy machine hours."""
    region: TextField | None = None
    """Region of the price, if a profile has several; its first by default."""
    price: PriceOrZeroField | None = None
    """Price of one machine, such as $32.77/h; the profile's by default."""
    provisioning: TimeOrZeroField = 0.0
    """Billed time before the job starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Section):
    """Host RAM that the job itself does not use.

    Values that are left out have the default of `footprint`, which is listed as an assumption.
    """

    operating_system: ByteOrZeroField | None = None
    """RAM of the operating system."""
    application: ByteOrZeroField | None = None
    """RAM of each training process: interpreter, framework, libraries."""
    page_cache: ByteOrZeroField | None = None
    """RAM that the page cache may use; by default all that is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training, inference or preparation job on the trainers (or any) group.

    `step_times` are the user's own measurements and take precedence over the model's. `remote`
    workers make batches in addition to (or, without local workers, instead of) the loader's own.
    `copies` equal jobs run at the same time, each with an equal part of the machine's accelerators
    and all data. `parallelism` states how the model is split over accelerators.
    `client` is what it reads object stores through; None: without a cost of its own.
    `same_chip_reference` is a card with the accelerator's chip, for which the library has a
    measured step of the model.
    """

    mode: Mode
    dataset: Dataset
    input: InputPipeline
    train: Train
    software: Software
    model: Model | None = None
    step_times: StepTimes | None = None
    memory: Memory = Memory()
    remote: Remote | None = None
    copies: int = 1
    parallelism: Parallelism = ONE_DEVICE
    same_chip_reference: Gpu | None = None
    client: StoreClient | None = None

    @property
    def stored_bytes(self) -> Bytes:
        """Size of one sample on the store while the job runs [B]."""
        beforehand = self.input.where is Preparation.BEFOREHAND
        return self.input.prepared_bytes_per_sample if beforehand else self.dataset.bytes_per_sample

    @property
    def stored_total(self) -> Bytes:
        """Size of all samples on the store while the job runs [B]."""
        return self.dataset.samples * self.stored_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """All inputs of one prediction; `notes` are assumptions made while reading the file.

    `uncertainties` are those of the rates behind the figures; without any, all rates are certain.
    `memory_log_sd` is the log deviation of the memory of an accelerator; 0: unknown. `at` names the
    group whose machines make batches in this view of the scenario; empty: the trainers.
    `checkpoints` describes how they are written; `interruptions` are those of a long run, None if
    not requested. `energy` describes the electricity, `owned` the costs of owned machines; None if
    the file does not. `store` describes the use of the store outside the run. `assume_spread`: no
    variation of samples is stated, so one is assumed where equal samples mislead
    (`pipeline.loads`). `stated` is the table of a file that states figures of the machine, until
    the uncertainty of the scenario is known (`uncertainty.scenario.with_uncertainties`).
    """

    name: str
    cluster: Cluster
    jobs: tuple[Job, ...]
    title: str = ""
    cost: CostPlan = CostPlan()
    calibration: Calibration = IDENTITY
    notes: tuple[Assumption, ...] = ()
    uncertainties: tuple[UncertaintyComponent, ...] = ()
    memory_log_sd: float = 0.0
    at: str = ""
    checkpoints: Checkpoints = Checkpoints()
    interruptions: Interruptions | None = None
    energy: EnergyPlan | None = None
    owned: Ownership | None = None
    store: StorePlan = DURING_THE_RUN
    assume_spread: bool = False
    stated: Hardware | None = None

    @property
    def site(self) -> Group:
        """Group whose machines make batches in this view."""
        return next((g for g in self.cluster.groups if g.name == self.at), self.cluster.trainers)

    @property
    def producer_threads(self) -> float:
        """Number of threads that make one batch in this view."""
        remote = self.job.remote
        if self.at and remote is not None:
            return remote.threads(self.ranks_served)
        return self.job.input.policy.threads

    @property
    def job(self) -> Job:
        """The one job (or the first of several equal ones)."""
        return self.jobs[0]

    @property
    def devices(self) -> int:
        """Number of accelerators of one job over all machines; 1 per machine without any."""
        trainers = self.cluster.trainers
        return max(1, trainers.gpus_per_host // self.job.copies) * trainers.count

    @property
    def ranks_per_host(self) -> int:
        """Number of processes on one machine that receive batches.

        One for each replica of the model there, which is one per accelerator if the model is not
        split; one on each machine of a replica that is larger than a machine; one per job on a
        machine without accelerators.
        """
        replicas = self.cluster.trainers.gpus_per_host // self.job.parallelism.devices
        ranks: int = at_least(self.job.copies, in_common(replicas))
        return ranks

    @property
    def ranks_served(self) -> int:
        """Number of processes on all training machines, which share the remote workers."""
        return self.ranks_per_host * self.cluster.trainers.count

    @property
    def processes_per_host(self) -> int:
        """Number of training processes on one machine: one per GPU, or one per job without GPUs."""
        return max(self.job.copies, self.cluster.trainers.gpus_per_host)

    @property
    def ranks_per_job(self) -> int:
        """Number of data-parallel ranks of one job on one machine."""
        return self.ranks_per_host // self.job.copies

    @property
    def ranks(self) -> int:
        """Number of data-parallel ranks of one job, the replicas of its model."""
        ranks: int = at_least(1, self.devices // self.job.parallelism.devices)
        return ranks
