"""A scenario halfway: its sections checked one by one, its profiles looked up, not yet converted.

A part that has mistakes is None, so that the other parts can still be checked against each other
and every mistake is reported in one go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Protocol, TypeVar

from simulator.errors import InputError, PlanError, Problem, UnknownName
from simulator.memo import Memo
from simulator.reading.document import Document, examine, kind_problem
from simulator.reading.lines import KeyPath
from simulator.reading.long_run.bill_sections import EnergySection, OwnedSection, StoreSection
from simulator.reading.long_run.sections import (
    CheckpointSection,
    FailuresSection,
    RunSection,
    SpotSection,
)
from simulator.reading.sections import (
    CalibrationSection,
    CostSection,
    DataSection,
    HardwareSection,
    InputSection,
    MemorySection,
    ModelSection,
    ParallelismSection,
    RemoteSection,
    ScenarioFile,
    SoftwareSection,
    StepTimeTable,
    TrainSection,
)
from simulator.reading.tables import AnyTable, FileTable, Reading
from simulator.schema.fields import nearest
from simulator.schema.hardware.gpu import EMULATED, Gpu
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.storage import Storage
from simulator.schema.workload.loader import CostBasis, LoaderKind
from simulator.schema.workload.models import Model
from simulator.schema.workload.train import Mode

Thing = TypeVar("Thing")

LIBRARY_CHANGES: Final = ("sequence", "filled", "scored_share", "image")
"""Keys of the model's section that change the shape of a model of the library."""


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

    The last fields are settled by several sections, see `settled`: what the job does (`mode`), the
    `loader` that makes its batches, what its times on a CPU mean (`basis`), the accelerators used
    on each machine (`gpus`, none where the machine is not known) and their kind (`gpu`), the jobs
    that share them (`copies`), the accelerators that hold one model (`replica`), the replicas that
    train together in one job over all machines (`ranks`) and on one machine in all its jobs
    (`ranks_per_host`, one where a replica is larger), and the batches of a rank in a step
    (`accumulation`).
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
    run: RunSection | None = None
    failures: FailuresSection | None = None
    checkpoint: CheckpointSection | None = None
    spot: SpotSection | None = None
    energy: EnergySection | None = None
    owned: OwnedSection | None = None
    store: StoreSection | None = None
    host: Host | None = None
    storage: Storage | None = None
    cache: Storage | None = None
    helper: Host | None = None
    helper_storage: Storage | None = None
    measured_on: Host | None = None
    library_model: Model | None = None
    mode: Mode = Mode.TRAIN
    loader: LoaderKind = LoaderKind.PYTORCH
    basis: CostBasis = CostBasis.VCPU
    gpus: int = 0
    gpu: Gpu | None = None
    copies: int = 1
    replica: int = 1
    ranks: int = 1
    ranks_per_host: int = 1
    accumulation: int = 1

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
    def learns_on_host(self) -> bool:
        """Whether the model is one that learns on the processors."""
        return self.library_model is not None and self.library_model.cpu_seconds > 0.0

    def only(self, names: Iterable[str]) -> Draft:
        """A draft with nothing but these fields; to read another one is an `AttributeError`.

        Its document answers about the sections among them alone.
        """
        fields = {name: getattr(self, name) for name in names}
        return draft_with(fields, self.document, self.broken)


def draft_with(
    fields: Mapping[str, Any], document: Document, broken: frozenset[KeyPath] = frozenset()
) -> Draft:
    """A draft with nothing but these fields; see `Draft.only`."""
    part = object.__new__(Draft)
    for name, value in fields.items():
        object.__setattr__(part, name, value)
    object.__setattr__(part, "broken", broken)
    object.__setattr__(part, "document", replace(document, within=frozenset(fields)))
    return part


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part(Generic[Thing]):
    """A pure function of a draft that says which fields of the draft it `reads`.

    Two drafts that agree in these fields have the same part, so that it need not be made again.
    The function gets a draft with nothing but these fields: it cannot read another one by mistake.
    """

    make: Callable[[Draft], Thing]
    reads: tuple[str, ...]

    def __call__(self, draft: Draft) -> Thing:
        """The part of this draft."""
        return self.make(draft.only(self.reads))


class Ask(Protocol):
    """Knows the parts of a draft, or makes them."""

    def __call__(self, part: Part[Thing]) -> Thing:
        """That part of the draft."""


def part(make: Callable[[Draft], Thing], reads: str) -> Part[Thing]:
    """The part that `make` makes of the fields named in `reads`, with spaces between them."""
    return Part(make=make, reads=tuple(reads.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of keys against each other; it is left out where a key it rests on has a mistake."""

    problems: Part[tuple[Problem, ...]]
    rests_on: tuple[str, ...]


def check_of(look: Callable[[Draft], Iterable[Problem]], rests_on: str, *, reads: str) -> Check:
    """The check that finds what `look` yields, from the fields named in `reads`."""
    found = part(lambda draft: tuple(look(draft)), reads)
    return Check(problems=found, rests_on=tuple(rests_on.split()))


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
    *("run", "failures", "checkpoint", "spot", "energy", "owned", "store"),
)
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

    Raises
    ------
    InputError
        If it is a file of another kind.
    """
    other = kind_problem(ScenarioFile, document)
    if other is not None:
        raise InputError((other,))
    whole = replace(document, data={**LEFT_OUT, **document.data})
    checked, problems = examine(ScenarioFile, whole)
    if checked is not None:
        return draft_of(document, {name: getattr(checked, name) for name in SECTIONS}), ()
    broken = set[KeyPath]()

    def section(model: type[AnyTable], name: str) -> AnyTable:
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
    if model is None:
        return draft
    batch = batch_of_step(draft.document) or draft.train.batch_size
    return replace(draft, model=with_step_times(model, batch))


STEP_TIME: Final[KeyPath] = ("model", "step_time")


def batch_of_step(document: Document) -> int | None:
    """The batch size of a step that files state; None where an option does: it is of the job's."""
    _, line = document.where(STEP_TIME)
    return None if line is None else document.batch_size


def with_step_times(model: ModelSection, batch_size: int) -> ModelSection:
    """The section with its one step time, if it has one, in the list of step times.

    It is of `batch_size` where nothing else says so.
    """
    if model.step_time is None or model.step_times:
        return model
    batch = model.step_time_batch or batch_size
    step = StepTimeTable(batch_size=batch, time=model.step_time)
    return _stepped.of((model,), lambda: replace(model, step_times=[step]), batch)


_stepped: Final[Memo[ModelSection]] = Memo(1000)


def _section(
    table: type[AnyTable], document: Document, name: str, broken: set[KeyPath]
) -> AnyTable:
    """Read a section without its mistakes, which are noted in `broken`."""
    data = document.data.get(name, {})
    stand_ins = _values(table, document, name, _STAND_INS.get(name, {}), set())
    if not isinstance(data, dict) or (stand_ins and name not in document.data):
        broken.add((name,))
        return table(**stand_ins)
    return table(**stand_ins | _values(table, document, name, data, broken))


def _values(
    table: type[FileTable],
    document: Document,
    name: str,
    data: Mapping[str, Any],
    broken: set[KeyPath],
) -> dict[str, Any]:
    """Read the keys of a section that are sound; the others are noted in `broken`."""
    reading = Reading(document.place)
    values = reading.values(table, data, (name,))
    broken.update((name, *mistake.path[1:2]) for mistake in reading.mistakes)
    return values


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
    whole = replace(draft, **found.things, broken=draft.broken | found.broken)
    return settled(whole), found.problems


def settled(draft: Draft) -> Draft:
    """The draft with what its sections settle together, everything in it looked up."""
    for name, part_of in SETTLED.items():
        draft = replace(draft, **{name: part_of(draft)})
    return draft


def _gpus(draft: Draft) -> int:
    """Accelerators used on each machine; none where the machine is not known."""
    if draft.host is None:
        return 0
    if draft.hardware.emulated is not None:
        return draft.hardware.emulated
    if draft.hardware.gpus is not None:
        return draft.hardware.gpus
    is_for_host = draft.mode is Mode.PREPARE or draft.learns_on_host
    return 0 if is_for_host else draft.host.gpu_count


def _gpu(draft: Draft) -> Gpu | None:
    """The accelerator used; None where none is or the machine is not known."""
    if draft.hardware.emulated is not None:
        return EMULATED
    return draft.host.gpu if draft.host is not None and draft.gpus else None


def _replica(draft: Draft) -> int:
    """Accelerators of one copy of the model."""
    given = draft.parallelism
    return 1 if given is None else given.tensor * given.pipeline * given.context


def _ranks(draft: Draft) -> int:
    devices = max(1, draft.gpus // draft.copies) * draft.hardware.count
    return max(1, devices // draft.replica)


def _accumulation(draft: Draft) -> int:
    """As given, else as the global batch asks for."""
    train = draft.train
    if train.accumulation is None and train.global_batch_size is not None:
        return max(1, train.global_batch_size // (train.batch_size * draft.ranks))
    return train.accumulation or 1


SETTLED: Final[Mapping[str, Part[Any]]] = {
    "mode": part(lambda draft: draft.train.mode, "train"),
    "loader": part(lambda draft: draft.input.loader, "input"),
    "basis": part(lambda draft: draft.input.cost_basis, "input"),
    "gpus": part(_gpus, "hardware host library_model mode"),
    "gpu": part(_gpu, "hardware host gpus"),
    "copies": part(lambda draft: draft.train.copies, "train"),
    "replica": part(_replica, "parallelism"),
    "ranks": part(_ranks, "hardware gpus copies replica"),
    "ranks_per_host": part(
        lambda draft: max(draft.copies, draft.gpus // draft.replica), "gpus copies replica"
    ),
    "accumulation": part(_accumulation, "train ranks"),
}
"""What several sections settle together, by field of `Draft`: each from what stands before it."""
COUNTS: Final = frozenset({"gpus", "copies", "replica", "ranks", "ranks_per_host", "accumulation"})
"""Those of them that are numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the names in a draft stand for, by field of `Draft`, and what they don't."""

    things: Mapping[str, Any]
    broken: frozenset[KeyPath]
    problems: tuple[Problem, ...]


def find(draft: Draft, profiles: Profiles, library: Library) -> Found:
    """What `look_up` puts into a draft."""
    found = [one.look(draft, profiles, library) for one in LOOK_UPS]
    return Found(
        things={name: thing for one in found for name, thing in one.things.items()},
        broken=frozenset[KeyPath]().union(*[one.broken for one in found]),
        problems=tuple(problem for one in found for problem in one.problems),
    )


class _Search:
    """Looks up what some keys of a draft name, and collects what is not found."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.problems: list[Problem] = []
        self.broken: set[KeyPath] = set()

    def name(self, key: str) -> str | None:
        """What stands at a key, if it is sound."""
        section, _, name = key.partition(".")
        table = getattr(self.draft, section)
        return getattr(table, name) if table is not None and self.draft.is_sound(key) else None

    def load(self, load: Callable[[str], Thing], key: str, *, but: str = "") -> Thing | None:
        """What a key names; None where it says nothing, or just `but`."""
        name, path = self.name(key), tuple(key.split("."))
        if name is None or name == but:
            return None
        thing, problems = _look_up(load, name, self.draft.document, path)
        self.refuse(path, problems)
        return thing

    def refuse(self, path: KeyPath, problems: Iterable[Problem]) -> None:
        """Note what is wrong with a name."""
        told = tuple(problems)
        self.problems += told
        if told:
            self.broken.add(path)

    def found(self, **things: object) -> Found:
        """What was found, by field of `Draft`."""
        return Found(things=things, broken=frozenset(self.broken), problems=tuple(self.problems))


def _machine(draft: Draft, profiles: Profiles, _library: Library) -> Found:
    """The machine with its store, its cache and the accelerators that the file puts in it."""
    search = _Search(draft)
    host = search.load(profiles.host, "hardware.machine")
    storage = search.load(profiles.storage, "hardware.storage")
    cache = search.load(profiles.storage, "hardware.cache", but=LOCAL)
    if host is not None and host.gpu_count:
        own = host
        host = search.load(lambda name: profiles.with_gpu(own, name), "hardware.gpu") or own
    return search.found(host=host, storage=storage, cache=cache)


def _helpers(draft: Draft, profiles: Profiles, _library: Library) -> Found:
    """The machine of the [remote] section and its store."""
    search = _Search(draft)
    return search.found(
        helper=search.load(profiles.host, "remote.machine"),
        helper_storage=search.load(profiles.storage, "remote.storage"),
    )


def _yardstick(draft: Draft, profiles: Profiles, _library: Library) -> Found:
    """The machine that CPU times were measured on."""
    search = _Search(draft)
    return search.found(measured_on=search.load(profiles.host, "input.measured_on"))


def _other_models(name: str, library: Library) -> str:
    """What to write in place of a model that the library does not have."""
    close = nearest(name, library.names())
    meant = f"did you mean '{close}'? " if close and _is_of_family(name, close) else ""
    return (
        f"{meant}plan models lists all; of any other language model give model.family and "
        "model.shape (plan import hf-config writes them), of any other model what a batch takes on "
        "your device, in model.step_time"
    )


def _is_of_family(name: str, known: str) -> bool:
    """Whether two names of models begin alike: `bert_base` and bert-large, not roberta-large."""
    first, other = (re.split(r"[-_. \d]", one.lower())[0] for one in (name, known))
    return nearest(first, (other,)) is not None and first[:1] == other[:1]


def _model(draft: Draft, _profiles: Profiles, library: Library) -> Found:
    """The model by its name in the library, or by its family and shape."""
    search, model = _Search(draft), None
    name, path = search.name("model.name"), ("model", "name")
    if name is not None and name not in library.names():
        hint = _other_models(name, library)
        unknown = draft.document.problem(path, "is no model of the library", hint=hint)
        search.refuse(path, (unknown,))
    elif name is not None:
        changes, problems = _changes(draft, name, library.figures(name))
        search.problems += problems
        model = search.load(lambda known: library.load(known, **changes), "model.name")
    else:
        model = search.load(lambda _: library.build(draft.document), "model.family")
    return search.found(library_model=model)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """What finds some fields of a draft (`names`) by what the sections it `reads` name."""

    look: Callable[[Draft, Profiles, Library], Found]
    names: tuple[str, ...]
    reads: str


LOOK_UPS: Final = (
    LookUp(look=_machine, names=("host", "storage", "cache"), reads="hardware"),
    LookUp(look=_helpers, names=("helper", "helper_storage"), reads="remote"),
    LookUp(look=_yardstick, names=("measured_on",), reads="input"),
    LookUp(look=_model, names=("library_model",), reads="model software"),
)
"""All that is looked up, in the order in which mistakes are told."""
LOOKED_UP: Final = tuple(name for one in LOOK_UPS for name in one.names)
"""What a draft has that its sections only name."""


def _changes(
    draft: Draft, name: str, figures: tuple[str, ...]
) -> tuple[dict[str, float], tuple[Problem, ...]]:
    """What the file changes in the shape of a library's model, and what it cannot."""
    fused = draft.software.fused_attention
    changes: dict[str, float] = {}
    if fused is not None and "fused_attention" in figures:
        changes["fused_attention"] = fused
    problems = []
    for key in LIBRARY_CHANGES if draft.model is not None else ():
        value = getattr(draft.model, key)
        if value is not None and key in figures:
            changes[key] = value
        elif value is not None:
            message = f"is no figure of {name}"
            problems.append(draft.document.problem(("model", key), message, hint="leave it out"))
    return changes, tuple(problems)


def _look_up(
    load: Callable[[str], Thing], name: str, document: Document, path: KeyPath
) -> tuple[Thing | None, tuple[Problem, ...]]:
    try:
        return load(name), ()
    except InputError as error:
        return None, error.problems
    except UnknownName as error:
        message, _, hint = str(error).partition("; ")
        return None, (document.problem(path, message, hint=hint, show=False),)
    except PlanError as error:
        return None, (document.problem(path, str(error)),)
