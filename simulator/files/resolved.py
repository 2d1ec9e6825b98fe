"""A scenario halfway: its sections checked one by one, its profiles looked up, not yet converted.

A part that has mistakes is None, so that the other parts can still be checked against each other
and every mistake is reported in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

from pydantic import ValidationError

from simulator.errors import InputError, PlanError, Problem, UnknownName
from simulator.files.calibration_section import CalibrationSection
from simulator.files.document import AnyModel, Document, examine
from simulator.files.group_sections import RemoteSection
from simulator.files.lines import KeyPath
from simulator.files.parallel_sections import ParallelismSection
from simulator.files.quantity import nearest_hint
from simulator.files.sections import (
    CostSection,
    DataSection,
    HardwareSection,
    InputSection,
    MemorySection,
    ModelSection,
    ScenarioFile,
    StepTimeTable,
    TrainSection,
)
from simulator.files.software_section import SoftwareSection
from simulator.scenario.hardware.gpu import EMULATED, Gpu
from simulator.scenario.hardware.host import Host
from simulator.scenario.hardware.storage import Storage
from simulator.scenario.workload.models import Model
from simulator.scenario.workload.train import Mode

Thing = TypeVar("Thing")


class Ask(Protocol):
    """Works out something of a draft, whichever it is, or knows it already."""

    def __call__(self, part: Callable[[Draft], Thing]) -> Thing:
        """What `part` makes of the draft; it depends on nothing else."""


class Profiles(Protocol):
    """What a draft asks of the catalogue of hardware profiles."""

    def host(self, name: str) -> Host:
        """The machine called `name`."""

    def storage(self, name: str) -> Storage:
        """The store called `name`."""

    def with_gpu(self, host: Host, name: str) -> Host:
        """The machine with accelerators called `name` in place of its own."""


class Library(Protocol):
    """What a draft asks of the model library."""

    def names(self) -> tuple[str, ...]:
        """All models it has."""

    def figures(self, name: str) -> tuple[str, ...]:
        """The figures of a model's shape that may be changed."""

    def load(self, name: str, **changes: float) -> Model:
        """The model called `name`, with some figures of its shape changed."""

    def build(self, document: Document) -> Model:
        """The model that a document's [model] section describes by its family and shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The sections of one document; keys in `broken` hold stand-ins and mean nothing.

    `host` is the machine as its profile says, `storage` the store named in the file, `cache` the
    drives named to stand in front of it, and `measured_on` the machine that CPU times were
    measured on. `helper` is the machine of the [remote] section and `helper_storage` its store.
    """

    document: Document
    broken: frozenset[KeyPath]
    hardware: HardwareSection
    data: DataSection
    train: TrainSection
    input: InputSection
    model: ModelSection | None
    software: SoftwareSection
    cost: CostSection
    memory: MemorySection
    calibration: CalibrationSection = field(default_factory=CalibrationSection)
    remote: RemoteSection | None = None
    parallelism: ParallelismSection | None = None
    host: Host | None = None
    storage: Storage | None = None
    cache: Storage | None = None
    helper: Host | None = None
    helper_storage: Storage | None = None
    measured_on: Host | None = None
    library_model: Model | None = None

    def is_sound(self, key: str) -> bool:
        """Whether ``section.key`` means what the file says."""
        section, _, name = key.partition(".")
        return (section,) not in self.broken and (section, name) not in self.broken

    @property
    def machine(self) -> Host:
        """The machine, once no problem was found.

        Raises
        ------
        TypeError
            If it is not known after all, which is a bug.
        """
        if self.host is None:
            msg = "a scenario without problems has a machine"
            raise TypeError(msg)
        return self.host

    @property
    def gpus(self) -> int:
        """Accelerators used on each machine; none where the machine is not known."""
        if self.host is None:
            return 0
        if self.hardware.emulated is not None:
            return self.hardware.emulated
        if self.hardware.gpus is not None:
            return self.hardware.gpus
        is_for_host = self.train.mode is Mode.PREPARE or self.learns_on_host
        return 0 if is_for_host else self.host.gpu_count

    @property
    def learns_on_host(self) -> bool:
        """Whether the model is one that learns on the processors."""
        return self.library_model is not None and self.library_model.cpu_seconds > 0.0

    @property
    def ranks(self) -> int:
        """Copies of the model that train together in one job, over all machines."""
        devices = max(1, self.gpus // self.train.copies) * self.hardware.count
        return max(1, devices // self._replica)

    @property
    def accumulation(self) -> int:
        """Batches of a rank in a step: as given, else as the global batch asks for."""
        train = self.train
        if train.accumulation is None and train.global_batch_size is not None:
            return max(1, train.global_batch_size // (train.batch_size * self.ranks))
        return train.accumulation or 1

    @property
    def ranks_per_host(self) -> int:
        """Replicas that train on one machine, of all its jobs; one where they are larger."""
        return max(self.train.copies, self.gpus // self._replica)

    @property
    def _replica(self) -> int:
        """Accelerators of one copy of the model."""
        given = self.parallelism
        return 1 if given is None else given.tensor * given.pipeline * given.context

    @property
    def gpu(self) -> Gpu | None:
        """The accelerator used, None where none is or the machine is not known."""
        if self.hardware.emulated is not None:
            return EMULATED
        return self.host.gpu if self.host is not None and self.gpus else None


_STAND_INS: Final[dict[str, dict[str, Any]]] = {
    "hardware": {"machine": "unknown"},
    "data": {"samples": 1, "bytes_per_sample": "1 B"},
    "train": {"batch_size": 1},
    "remote": {"machine": "unknown"},
}


LEFT_OUT: Final[dict[str, Any]] = {
    name: {} for name in ("input", "software", "cost", "memory", "calibration")
}
"""Sections that hold their defaults where a file leaves them out."""
SECTIONS: Final = (
    *("hardware", "data", "train", "input", "model", "software", "cost", "memory"),
    "remote",
    "parallelism",
    "calibration",
)
LOOKED_UP: Final = (
    *("host", "storage", "cache", "helper", "helper_storage", "measured_on"),
    "library_model",
)
"""What a draft has that its sections only name."""
LOCAL: Final = "local"
"""In place of a store's name: the machine's own drives."""


def read_sections(document: Document) -> tuple[Draft, tuple[Problem, ...]]:
    """Check every section of a scenario by itself.

    Returns
    -------
    Draft
        With all that is sound; keys with mistakes hold their default, or a stand-in.
    tuple of Problem
        All mistakes within sections.
    """
    whole = replace(document, data={**LEFT_OUT, **document.data})
    checked, problems = examine(ScenarioFile, whole)
    if checked is not None:
        return draft_of(document, {name: getattr(checked, name) for name in SECTIONS}), ()
    broken = set[KeyPath]()

    def section(model: type[AnyModel], name: str) -> AnyModel:
        return _section(model, document, name, broken)

    draft = Draft(
        document=document,
        hardware=section(HardwareSection, "hardware"),
        data=section(DataSection, "data"),
        train=section(TrainSection, "train"),
        input=section(InputSection, "input"),
        model=section(ModelSection, "model") if "model" in document.data else None,
        software=section(SoftwareSection, "software"),
        cost=section(CostSection, "cost"),
        memory=section(MemorySection, "memory"),
        calibration=section(CalibrationSection, "calibration"),
        remote=section(RemoteSection, "remote") if "remote" in document.data else None,
        parallelism=section(ParallelismSection, "parallelism")
        if "parallelism" in document.data
        else None,
        broken=frozenset(broken),
    )
    return _with_step_time(draft), problems


def draft_of(document: Document, sections: Mapping[str, Any]) -> Draft:
    """A draft of sections without mistakes: all of `SECTIONS`, None where the file has none."""
    return _with_step_time(Draft(document=document, broken=frozenset(), **sections))


def _with_step_time(draft: Draft) -> Draft:
    """The draft with its one step time in the list of step times."""
    model = draft.model
    if model is None or model.step_time is None or model.step_times:
        return draft
    batch = model.step_time_batch or draft.train.batch_size
    step = StepTimeTable.model_construct(batch_size=batch, time=model.step_time)
    return replace(draft, model=model.model_copy(update={"step_times": [step]}))


def _section(
    model: type[AnyModel], document: Document, name: str, broken: set[KeyPath]
) -> AnyModel:
    """The section without its mistakes, which are noted in `broken`."""
    data = document.data.get(name, {})
    stand_ins = _STAND_INS.get(name, {})
    if not isinstance(data, dict) or (stand_ins and name not in document.data):
        broken.add((name,))
        return model.model_validate(stand_ins)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        bad = {str(detail["loc"][0]) for detail in error.errors(include_url=False)}
    broken.update((name, key) for key in bad)
    kept = {key: value for key, value in data.items() if key not in bad}
    return model.model_validate({**stand_ins, **kept})


def look_up(
    draft: Draft, profiles: Profiles, library: Library
) -> tuple[Draft, tuple[Problem, ...]]:
    """Put in what names stand for: machine, store, the machine of the measurements, the model.

    Returns
    -------
    Draft
        `draft` with everything that was found.
    tuple of Problem
        One for every unknown name, and those of broken profiles.
    """
    found = find(draft, profiles, library)
    broken = draft.broken | found.broken
    return replace(draft, **found.things, broken=broken), found.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the names in a draft stand for, by field of `Draft`, and what they don't."""

    things: Mapping[str, Any]
    broken: frozenset[KeyPath]
    problems: tuple[Problem, ...]


def find(draft: Draft, profiles: Profiles, library: Library) -> Found:
    """What `look_up` puts into a draft."""
    document, problems = draft.document, list[Problem]()
    broken = set[KeyPath]()

    def found(load: Callable[[str], Thing], name: str | None, *path: str) -> Thing | None:
        thing, more = _look_up(load, name, document, path)
        problems.extend(more)
        if more:
            broken.add(path)
        return thing

    def named(key: str) -> str | None:
        section, _, name = key.partition(".")
        table = getattr(draft, section)
        return getattr(table, name) if table is not None and draft.is_sound(key) else None

    cache = None if named("hardware.cache") == LOCAL else named("hardware.cache")
    things: dict[str, Any] = {
        "host": found(profiles.host, named("hardware.machine"), "hardware", "machine"),
        "storage": found(profiles.storage, named("hardware.storage"), "hardware", "storage"),
        "cache": found(profiles.storage, cache, "hardware", "cache"),
        "helper": found(profiles.host, named("remote.machine"), "remote", "machine"),
        "helper_storage": found(profiles.storage, named("remote.storage"), "remote", "storage"),
        "measured_on": found(profiles.host, named("input.measured_on"), "input", "measured_on"),
    }
    things["host"] = _refitted(things["host"], named("hardware.gpu"), profiles, found)
    name = named("model.name")
    if name is not None and name not in library.names():
        path, hint = ("model", "name"), nearest_hint(name, library.names())
        problems.append(document.problem(path, "is no model of the library", hint=hint))
        broken.add(path)
    elif name is not None:
        changes, more = _changes(draft, name, library.figures(name))
        problems.extend(more)
        model = found(lambda known: library.load(known, **changes), name, "model", "name")
        things["library_model"] = model
    elif (family := named("model.family")) is not None:
        model = found(lambda _: library.build(document), family, "model", "family")
        things["library_model"] = model
    return Found(things=things, broken=frozenset(broken), problems=tuple(problems))


def _refitted(
    host: Host | None, gpu: str | None, profiles: Profiles, found: Callable[..., Host | None]
) -> Host | None:
    """The machine with the accelerators that the file puts in place of its own."""
    if host is None or not host.gpu_count:
        return host
    return found(lambda name: profiles.with_gpu(host, name), gpu, "hardware", "gpu") or host


def _changes(
    draft: Draft, name: str, figures: tuple[str, ...]
) -> tuple[dict[str, float], tuple[Problem, ...]]:
    """What the file changes in the shape of a library's model, and what it cannot."""
    fused = draft.software.fused_attention
    changes: dict[str, float] = {}
    if fused is not None and "fused_attention" in figures:
        changes["fused_attention"] = fused
    problems = []
    for key in ("sequence", "filled", "image") if draft.model is not None else ():
        value = getattr(draft.model, key)
        if value is not None and key in figures:
            changes[key] = value
        elif value is not None:
            message = f"is no figure of {name}"
            problems.append(draft.document.problem(("model", key), message, hint="leave it out"))
    return changes, tuple(problems)


def _look_up(
    load: Callable[[str], Thing], name: str | None, document: Document, path: KeyPath
) -> tuple[Thing | None, tuple[Problem, ...]]:
    if name is None:
        return None, ()
    try:
        return load(name), ()
    except InputError as error:
        return None, error.problems
    except UnknownName as error:
        message, _, hint = str(error).partition("; ")
        return None, (document.problem(path, message, hint=hint, show=False),)
    except PlanError as error:
        return None, (document.problem(path, str(error)),)
