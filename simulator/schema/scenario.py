"""A scenario: the machines, the jobs on them, and how the bill is counted."""

from __future__ import annotations

from dataclasses import dataclass

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
from simulator.schema.long_run import Interruptions
from simulator.schema.machines import Cluster, Group, Hardware
from simulator.schema.models import Model, StepTimes
from simulator.schema.provenance import Assumption
from simulator.schema.software import Software
from simulator.schema.training import ONE_DEVICE, Mode, Parallelism, Train
from simulator.schema.uncertainty import UncertaintyComponent
from simulator.units import Bytes, at_least, in_common


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan(Section):
    """How the bill is counted."""

    purchase: PurchaseField = Purchase.ON_DEMAND
    """How machine hours are bought."""
    region: TextField | None = None
    """Region whose price counts, where a profile has several; its first by default."""
    price: PriceOrZeroField | None = None
    """Price of one machine, such as $32.77/h; the profile's by default."""
    provisioning: TimeOrZeroField = 0.0
    """Billed time before the job starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Section):
    """Host RAM that the job itself does not use.

    What is left out has the default of `footprint`, which is listed as an assumption.
    """

    operating_system: ByteOrZeroField | None = None
    """RAM of the operating system."""
    application: ByteOrZeroField | None = None
    """RAM of each process that trains: interpreter, framework, libraries."""
    page_cache: ByteOrZeroField | None = None
    """RAM the page cache may use; what is left over by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training, inference or preparation job on the trainers (or any) group.

    `step_times` are the user's own measurements and win over the model's. `remote` workers make
    batches in addition to (or, with no local ones, instead of) the loader's own. `copies` equal
    jobs run side by side, each with an equal part of the machine's accelerators and all data.
    `parallelism` says how one model is split over several of them. `same_chip_reference` is a card
    with the accelerator's chip, on which the library has a measured step of the model.
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

    @property
    def stored_bytes(self) -> Bytes:
        """Bytes of one sample as it lies on the store while the job runs [B]."""
        beforehand = self.input.where is Preparation.BEFOREHAND
        return self.input.prepared_bytes_per_sample if beforehand else self.dataset.bytes_per_sample

    @property
    def stored_total(self) -> Bytes:
        """Bytes of all samples as they lie on the store while the job runs [B]."""
        return self.dataset.samples * self.stored_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything one prediction needs; `notes` are assumptions made while reading the file.

    `uncertainties` say how well the rates behind the figures are known; without any nothing is
    uncertain. `memory_log_sd` is the log deviation of the memory of an accelerator; 0: nothing is
    known of it. `at` names the group whose machines make batches in this view of the scenario; the
    trainers where it is empty. `interruptions` are what may happen to a long run; None: not asked
    for. `energy` says where the electricity comes from, `owned` what machines cost to own; None
    where the file does not. `store` says how the store is used outside the run. `assume_spread`: no
    spread of samples is stated, so one is assumed where equal samples mislead
    (`pipeline.loads`). `stated` is the table of a file that states figures of the machine, until
    the uncertainty of the scenario is known (`confidence.uncertainty.with_uncertainties`).
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
    interruptions: Interruptions | None = None
    energy: EnergyPlan | None = None
    owned: Ownership | None = None
    store: StorePlan = DURING_THE_RUN
    assume_spread: bool = False
    stated: Hardware | None = None

    @property
    def site(self) -> Group:
        """The group whose machines make batches in this view."""
        return next((g for g in self.cluster.groups if g.name == self.at), self.cluster.trainers)

    @property
    def producer_threads(self) -> float:
        """Threads that make one batch in this view."""
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
        """Accelerators of one job, over all machines; 1 a machine without any."""
        trainers = self.cluster.trainers
        return max(1, trainers.gpus_per_host // self.job.copies) * trainers.count

    @property
    def ranks_per_host(self) -> int:
        """Processes on one machine that batches are made for.

        One for each replica of the model there, which is one for each accelerator where the model
        is not spread; one on each machine of a replica that is larger than a machine; one a job on
        a machine without accelerators.
        """
        replicas = self.cluster.trainers.gpus_per_host // self.job.parallelism.devices
        ranks: int = at_least(self.job.copies, in_common(replicas))
        return ranks

    @property
    def ranks_served(self) -> int:
        """Processes of all machines that train, among which workers elsewhere are shared out."""
        return self.ranks_per_host * self.cluster.trainers.count

    @property
    def processes_per_host(self) -> int:
        """Processes that train on one machine: one a GPU, one a job on a machine without."""
        return max(self.job.copies, self.cluster.trainers.gpus_per_host)

    @property
    def ranks_per_job(self) -> int:
        """Data-parallel ranks of one job on one machine."""
        return self.ranks_per_host // self.job.copies

    @property
    def ranks(self) -> int:
        """Data-parallel ranks of one job: replicas of its model."""
        ranks: int = at_least(1, self.devices // self.job.parallelism.devices)
        return ranks
