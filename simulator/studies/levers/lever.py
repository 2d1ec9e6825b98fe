"""Types of levers: what can be changed, its values for a scenario, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeAlias, TypeVar

from simulator.errors import PlanError
from simulator.schema.goal import Goal, Plain
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.schema.serving import Service
from simulator.studies.baseline import Baseline, Machine
from simulator.units import Unit

Settings: TypeAlias = Mapping[str, Plain]
Read: TypeAlias = Callable[[Settings], Scenario]
"""Reads the scenario of a study with some keys set; raises what reading a scenario raises."""
SPEED: Final = Unit("x", "times as fast")
"""The unit of knobs without a figure of their own: 1 is as described."""


class Kind(StrEnum):
    """Levers of which one is enough: only the best of a kind is advised."""

    WORKERS = "workers"
    PREFETCH = "prefetch"
    LAYOUT = "access and shards"
    READERS = "readers"
    PLACEMENT = "where the data lies"
    DECODER = "decode library"
    BEFOREHAND = "preparing beforehand"
    HELPERS = "helpers"
    BATCH = "batch"
    PRECISION = "precision"
    SOFTWARE = "compile"
    MEMORY = "memory of the device"
    PARALLELISM = "parallelism"
    LEARNING = "trainable parameters"
    CHECKPOINTS = "checkpoints"
    STORAGE = "storage"
    MACHINE = "another machine"
    ACCELERATORS = "accelerators of the machine"
    MACHINES = "more machines"


class ServiceKind(StrEnum):
    """Levers of which one is enough: only the best of a kind is advised."""

    COUNT = "machines"
    REPLICAS = "replicas"
    TENSOR = "tensor degree"
    PRECISION = "number formats"
    ITERATION = "tokens and requests of an iteration"
    SPECULATION = "speculation"
    PREFILL = "prompts apart"
    SCALING = "autoscaling"
    BATCH = "batches"
    MACHINE = "another machine"
    READS = "reads at a time"
    PURCHASE = "purchase"


class Cost(StrEnum):
    """Costs of a change other than the time of the run."""

    RENT = "rent of machines or storage"
    COPY = "a copy of the data"
    WRITE = "data written once more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: its name, the `settings` that make it, and a note on what else it demands.

    `log_sd` is the uncertainty of the change itself, in addition to the rates of the job: the
    standard deviation of the logarithm of its effect on the part that it changes. `kind` is a
    `Kind` for jobs, a `ServiceKind` for services.
    """

    kind: StrEnum
    name: str
    settings: Settings
    note: str = ""
    log_sd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """The amount of a resource or setting: `value` now, in `unit` (None: a count).

    `settings` gives the keys for a value; None where no key sets it. `whole`: only whole numbers,
    from `least` on. `free`: a setting without a price. `steps` are the names and values that a
    what-if tries. `limits`: more or less of it can move the bottleneck of a job.
    """

    name: str
    value: float
    settings: Callable[[float], Settings] | None
    unit: Unit | None = None
    whole: bool = False
    least: float = 0.0
    free: bool = False
    limits: bool = True
    steps: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A job for which changes are proposed.

    `starved`: it waits for its data; `cramped`: it likely does not fit into memory, so that changes
    are proposed that only help together.
    """

    baseline: Baseline
    starved: bool
    cramped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSituation:
    """A service for which changes are proposed, with other machines, the first to try first."""

    service: Service
    hosts: tuple[Host, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPoint:
    """A point that a search extends: a machine, and the settings so far."""

    baseline: Baseline
    goal: Goal
    machine: Machine
    point: Settings

    def sets(self, beginning: str) -> bool:
        """Return whether a key with this beginning is set."""
        return any(key.startswith(beginning) for key in self.point)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A job that its processors slow down: machines within the limits, and possible helpers."""

    baseline: Baseline
    offered: tuple[Machine, ...]
    helpers: tuple[Machine, ...]


class UnfitError(PlanError):
    """A machine that the scenario cannot be moved to as it is."""


Given = TypeVar("Given")
"""`Situation` for levers of jobs, `ServiceSituation` for those of services."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever(Generic[Given]):
    """One thing that can be changed, as an entry of the list of levers.

    `keys` are the keys of a scenario that it sets, `costs` what a change may cost; none: free.
    `applies` says where its changes make sense. Its values for a scenario come from up to four
    functions; None where a lever has no such values:

    - `changes`: single changes to propose;
    - `knobs`: its amount now, with settings for any other amount;
    - `candidates`: settings that a search adds to a point;
    - `relief`: settings that a search tries where processors slow the job down;
    - `variants`: changed services by name, for a what-if.
    """

    name: str
    keys: tuple[str, ...] = ()
    costs: frozenset[Cost] = frozenset()
    applies: Callable[[Given], bool] | None = None
    changes: Callable[[Given], Iterator[Change]] | None = None
    knobs: Callable[[Scenario], Iterator[Knob]] | None = None
    candidates: Callable[[SearchPoint], Iterator[Settings]] | None = None
    relief: Callable[[Shortage], Iterator[Settings]] | None = None
    variants: Callable[[Service], Iterator[tuple[str, Service]]] | None = None


JobLever: TypeAlias = Lever[Situation]
ServiceLever: TypeAlias = Lever[ServiceSituation]
