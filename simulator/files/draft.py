"""A scenario halfway: its sections checked one by one, its profiles looked up, not yet converted.

A part that has mistakes is None, so that the other parts can still be checked against each other
and every mistake is reported in one go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

from simulator.errors import InputError, PlanError, Problem, UnknownName
from simulator.files.document import AnyModel, Document, examine
from simulator.files.lines import KeyPath
from simulator.files.quantity import nearest_hint
from simulator.files.sections import (
    CostSection,
    DataSection,
    HardwareSection,
    InputSection,
    MemorySection,
    ModelSection,
    ScenarioFile,
    SoftwareSection,
    TrainSection,
)
from simulator.hardware.gpu import Gpu
from simulator.hardware.host import Host
from simulator.hardware.storage import Storage
from simulator.workload.models import Model
from simulator.workload.train import Mode

Thing = TypeVar("Thing")


class Profiles(Protocol):
    """What a draft asks of the catalogue of hardware profiles."""

    def host(self, name: str) -> Host:
        """The machine called `name`."""

    def storage(self, name: str) -> Storage:
        """The store called `name`."""


class Library(Protocol):
    """What a draft asks of the model library."""

    def load(self, name: str) -> Model:
        """The model called `name`."""

    def names(self) -> tuple[str, ...]:
        """All it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The sections of one document; `model` is also None where the file has none.

    `host` is the machine as its profile says, `storage` the store named in the file, and
    `measured_on` the machine that CPU times were measured on.
    """

    document: Document
    hardware: HardwareSection | None
    data: DataSection | None
    train: TrainSection | None
    input: InputSection | None
    model: ModelSection | None
    software: SoftwareSection | None
    cost: CostSection | None
    memory: MemorySection | None
    host: Host | None = None
    storage: Storage | None = None
    measured_on: Host | None = None
    library_model: Model | None = None

    @property
    def has_model(self) -> bool:
        """Whether the file has a [model] section, sound or not."""
        return "model" in self.document.data

    @property
    def gpus(self) -> int | None:
        """Accelerators used on each machine; None where that is not known."""
        if self.hardware is None or self.host is None or self.train is None:
            return None
        if self.hardware.gpus is not None:
            return self.hardware.gpus
        is_for_host = self.train.mode is Mode.PREPARE or self.learns_on_host
        return 0 if is_for_host else self.host.gpu_count

    @property
    def learns_on_host(self) -> bool:
        """Whether the model is one that learns on the processors."""
        return self.library_model is not None and self.library_model.cpu_seconds > 0.0

    @property
    def ranks(self) -> int | None:
        """Processes that train, over all machines."""
        if self.hardware is None or self.gpus is None:
            return None
        return max(1, self.gpus) * self.hardware.count

    @property
    def gpu(self) -> Gpu | None:
        """The accelerator used, None where none is or that is not known."""
        return self.host.gpu if self.host is not None and self.gpus else None


def read_sections(document: Document) -> tuple[Draft, tuple[Problem, ...]]:
    """Check every section of a scenario by itself.

    Returns
    -------
    Draft
        With the sections that are sound; those left out hold their defaults.
    tuple of Problem
        All mistakes within sections.
    """
    _, problems = examine(ScenarioFile, document)
    draft = Draft(
        document=document,
        hardware=_section(HardwareSection, document, "hardware"),
        data=_section(DataSection, document, "data"),
        train=_section(TrainSection, document, "train"),
        input=_optional(InputSection, document, "input"),
        model=_section(ModelSection, document, "model"),
        software=_optional(SoftwareSection, document, "software"),
        cost=_optional(CostSection, document, "cost"),
        memory=_optional(MemorySection, document, "memory"),
    )
    return draft, problems


def _section(model: type[AnyModel], document: Document, name: str) -> AnyModel | None:
    if name not in document.data:
        return None
    return examine(model, document, at=(name,))[0]


def _optional(model: type[AnyModel], document: Document, name: str) -> AnyModel | None:
    return _section(model, document, name) if name in document.data else model()


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
    document, problems = draft.document, list[Problem]()

    def found(load: Callable[[str], Thing], name: str | None, *path: str) -> Thing | None:
        thing, more = _look_up(load, name, document, path)
        problems.extend(more)
        return thing

    hardware, pipeline, model = draft.hardware, draft.input, draft.model
    machine = None if hardware is None else hardware.machine
    store = None if hardware is None else hardware.storage
    elsewhere = None if pipeline is None else pipeline.measured_on
    draft = replace(
        draft,
        host=found(profiles.host, machine, "hardware", "machine"),
        storage=found(profiles.storage, store, "hardware", "storage"),
        measured_on=found(profiles.host, elsewhere, "input", "measured_on"),
    )
    name = None if model is None else model.name
    if name is not None and name not in library.names():
        hint = nearest_hint(name, library.names())
        problems.append(
            document.problem(("model", "name"), "is no model of the library", hint=hint)
        )
        return draft, tuple(problems)
    return replace(draft, library_model=found(library.load, name, "model", "name")), tuple(problems)


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
        return None, (document.problem(path, message, hint=hint),)
    except PlanError as error:
        return None, (document.problem(path, str(error)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A draft without mistakes: what is still None was left out of the file."""

    document: Document
    hardware: HardwareSection
    data: DataSection
    train: TrainSection
    input: InputSection
    software: SoftwareSection
    cost: CostSection
    memory: MemorySection
    host: Host
    gpus: int
    model: ModelSection | None
    storage: Storage | None
    measured_on: Host | None
    library_model: Model | None

    @property
    def gpu(self) -> Gpu | None:
        """The accelerator used, None where none is."""
        return self.host.gpu if self.gpus else None

    @property
    def ranks(self) -> int:
        """Processes that train, over all machines."""
        return max(1, self.gpus) * self.hardware.count


def sound(draft: Draft) -> Sound:
    """The draft, once no problem was found.

    Raises
    ------
    TypeError
        If a part is missing after all, which is a bug.
    """
    parts: dict[str, Any] = {field.name: getattr(draft, field.name) for field in fields(Sound)}
    optional = {"model", "storage", "measured_on", "library_model"}
    missing = [name for name, part in parts.items() if part is None and name not in optional]
    if missing:
        msg = f"a scenario without problems lacks {missing}"
        raise TypeError(msg)
    return Sound(**parts)
