"""A scenario before defaults are filled in: its sections, and the profiles that they name.

A value derived from a mistake is unknown: reading it raises a `BrokenKeyError`. The rest of the
file can still be checked, and every mistake is reported at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from itertools import chain
from typing import Any, Final, NoReturn, TypeAlias

from simulator.errors import InputError, PlanError, Problem, UnknownName
from simulator.memo import cached
from simulator.reading.document import Document, kind_problem, problems_of, schema_problem
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.lines import KeyPath
from simulator.reading.model_library import build_model, load_model, model_names, read_model
from simulator.reading.sections import (
    CalibrationSection,
    ModelSection,
    ScenarioFile,
    StepTimeTable,
)
from simulator.reading.tables import FileTable, Mistake, Reading, table_keys
from simulator.schema.accelerators import EMULATED, Gpu
from simulator.schema.cost import EnergyPlan, Ownership, Purchase, StorePlan
from simulator.schema.data_loading import Dataset, InputPipeline, LoaderKind, Remote
from simulator.schema.fields import nearest
from simulator.schema.long_run import (
    Checkpoints,
    FailuresSection,
    Interruptions,
    Outages,
    Terms,
)
from simulator.schema.machines import Hardware, Host
from simulator.schema.models import Model
from simulator.schema.scenario import CostPlan, Memory
from simulator.schema.software import Software
from simulator.schema.storage import Storage, StoreClient
from simulator.schema.training import Mode, Parallelism, Train

OF_A_SEARCH: Final = frozenset({"sweep", "goal"})
"""Sections that describe a search, not a job: `plan sweep` and `plan recommend` read them."""
SECTIONS: Final[Mapping[str, type[FileTable]]] = {
    name: key.table
    for name, key in table_keys(ScenarioFile).items()
    if key.table is not None and name not in OF_A_SEARCH
}
"""Tables that describe the sections of a job, by name."""
LIBRARY_CHANGES: Final = ("sequence", "filled", "scored_share", "image")
"""Keys of the model's section that change the shape of a model of the library."""
LOCAL: Final = "local"
"""Name that refers to the machine's own drives instead of a store."""
STEP_TIME: Final[KeyPath] = ("model", "step_time")


class BrokenKeyError(Exception):
    """Raised when a key with a mistake is read, as values derived from it are unknown."""


class PartialTable:
    """A table with mistakes: its valid keys can be read, all others raise `BrokenKeyError`.

    Parameters
    ----------
    table : type of a frozen dataclass
        Describes the table.
    values : mapping of str to object
        Values of the valid keys.
    broken : frozenset of str, optional
        Keys with mistakes; all keys by default.
    """

    def __init__(
        self, table: type[FileTable], values: Mapping[str, Any], broken: frozenset[str] | None
    ) -> None:
        self._table = table
        self._values = values
        self._broken = broken

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - values of any key
        """Return the value of a valid key."""
        if name in self._values:
            return self._values[name]
        key = table_keys(self._table).get(name)
        if self._broken is None or name in self._broken or (key is not None and key.required):
            raise BrokenKeyError(name)
        if key is not None:
            return key.default
        member = inspect.getattr_static(self._table, name)
        return member.__get__(self)


class UnresolvedScenario:
    """The sections of a scenario, and objects that they name; defaults are not filled in.

    `host` is the machine of the profile, `storage` the store that the file names, `cache` the
    drives that it names as cache, `client` what reads object stores, and `measured_on` the machine
    on which CPU times were measured. `helper` is the machine of the ``[remote]`` section and
    `helper_storage` its store.

    Parameters
    ----------
    sections : mapping of str to table
        By name: all of `SECTIONS`, None for those that the file lacks.
    document : Document, or callable
        Contents of the files and options, or a function that returns them.
    name, title : str
        Name and title in the file; empty if it has none.
    step_batch : int, optional
        Batch size at which a step time in the files was measured; None if an option states the step
        time, whose batch size is that of the job.
    """

    hardware: Hardware
    data: Dataset
    train: Train
    input: InputPipeline
    model: ModelSection | None
    software: Software
    cost: CostPlan
    memory: Memory
    calibration: CalibrationSection
    remote: Remote | None
    parallelism: Parallelism
    run: Terms | None
    failures: FailuresSection | None
    checkpoint: Checkpoints | None
    spot: Outages | None
    energy: EnergyPlan | None
    owned: Ownership | None
    store: StorePlan
    host: Host
    storage: Storage | None
    cache: Storage | None
    client: StoreClient | None
    helper: Host | None
    helper_storage: Storage | None
    measured_on: Host | None
    library_model: Model | None
    gpu_is_known: bool = True
    """Whether another accelerator that the file puts into the machine was found."""

    def __init__(
        self,
        sections: Mapping[str, Any],
        document: Document | Callable[[], Document],
        *,
        name: str,
        title: str,
        step_batch: int | None,
    ) -> None:
        vars(self).update(sections)
        self.name = name
        self.title = title
        self._document = document
        self._step_batch = step_batch

    def __getattr__(self, name: str) -> NoReturn:
        """Raise a `BrokenKeyError` for a part that was looked up and not found."""
        raise BrokenKeyError(name)

    @cached_property
    def document(self) -> Document:
        """Contents of the files and options."""
        return self._document if isinstance(self._document, Document) else self._document()

    def problem(
        self, path: KeyPath, message: str, *, hint: str | None = None, show: bool = True
    ) -> Problem:
        """Return a problem of the file, as `Document.problem` does."""
        return self.document.problem(path, message, hint=hint, show=show)

    def problem_of(self, mistake: Mistake) -> Problem:
        """Return the problem of the file for a mistake that a check found."""
        return self.problem(mistake.path, mistake.message, hint=mistake.hint, show=mistake.show)

    @property
    def pipeline(self) -> InputPipeline:
        """The [input] section."""
        return self.input

    @property
    def mode(self) -> Mode:
        """Kind of the job."""
        return self.train.mode

    @property
    def loader(self) -> LoaderKind:
        """The loader whose rules the input pipeline follows."""
        return self.input.loader

    @cached_property
    def step_times(self) -> tuple[StepTimeTable, ...]:
        """Measured steps of the user, with `model.step_time` at its batch size."""
        model = self.model
        if model is None:
            return ()
        if model.step_time is None or model.step_times:
            return model.step_times
        batch = model.step_time_batch or self._step_batch or int(self.train.batch_size)
        return _one_step(model, batch)

    @cached_property
    def gpus(self) -> int:
        """Number of accelerators used on each machine."""
        hardware = self.hardware
        if hardware.emulated is not None:
            return hardware.emulated
        if hardware.gpus is not None:
            return hardware.gpus
        is_for_host = self.mode is Mode.PREPARE or self.learns_on_host
        return 0 if is_for_host else self.host.gpu_count

    @cached_property
    def gpu(self) -> Gpu | None:
        """The accelerator used; None without one."""
        if self.hardware.emulated is not None:
            return EMULATED
        if not self.gpu_is_known:
            raise BrokenKeyError(self.hardware.gpu)
        return self.host.gpu if self.gpus else None

    @property
    def copies(self) -> int:
        """Number of equal jobs that share the accelerators of a machine."""
        return self.train.copies

    @property
    def replica(self) -> int:
        """Number of accelerators of one replica of the model."""
        return self.parallelism.devices

    @cached_property
    def ranks(self) -> int:
        """Number of replicas of one job over all machines."""
        devices = max(1, self.gpus // self.copies) * self.hardware.count
        return max(1, devices // self.replica)

    @cached_property
    def ranks_per_host(self) -> int:
        """Number of replicas on one machine over all its jobs; 1 if a replica is larger."""
        return max(self.copies, self.gpus // self.replica)

    @cached_property
    def accumulation(self) -> int:
        """Forward and backward passes per step: as stated, else from the global batch size."""
        train = self.train
        if train.states("accumulation") or train.global_batch_size is None:
            return train.accumulation
        return max(1, int(train.global_batch_size // (train.batch_size * self.ranks)))

    @property
    def learns_on_host(self) -> bool:
        """True if the model is one that is trained on CPU cores."""
        return self.library_model is not None and self.library_model.cpu_seconds > 0.0

    def look_up(
        self, catalogue: Catalogue, known: dict[tuple[Any, ...], Any] | None = None
    ) -> tuple[Problem, ...]:
        """Look up the machines, stores and the model that the sections name.

        Parameters
        ----------
        catalogue : Catalogue
            The hardware profiles.
        known : dict, optional
            Cache of results for other scenarios with the same catalogue, which is extended.

        Returns
        -------
        tuple of Problem
            One for every unknown name, and those of invalid profiles.
        """
        search = _Search(self, {} if known is None else known)
        search.find("host", "hardware.machine", catalogue.host)
        search.find("storage", "hardware.storage", catalogue.storage)
        search.find("cache", "hardware.cache", catalogue.storage, none=LOCAL)
        search.find("client", "data.client", catalogue.client)
        host = vars(self).get("host")
        if host is not None and host.gpu_count:
            search.find("host", "hardware.gpu", lambda name: catalogue.with_gpu(host, name), host)
            if vars(self).get("host") is None:
                self.host, self.gpu_is_known = host, "host" in vars(self)
        search.find("helper", "remote.machine", catalogue.host)
        search.find("helper_storage", "remote.storage", catalogue.storage)
        search.find("measured_on", "input.measured_on", catalogue.host)
        self._find_model(search)
        return tuple(search.problems)

    def _find_model(self, search: _Search) -> None:
        """Look up the model by its name in the library, or build it by its family and shape."""
        path = ("model", "name")
        try:
            name = None if self.model is None else self.model.name
        except BrokenKeyError:
            return
        if name is not None and name not in model_names():
            message, hint = "unknown model", _other_models(name)
            search.problems.append(self.document.problem(path, message, hint=hint))
        elif name is not None:
            changes = self._changes(name, search.problems)
            search.find(
                "library_model",
                "model.name",
                lambda name: load_model(name, **changes),
                *changes.items(),
            )
        else:
            search.find(
                "library_model",
                "model.family",
                lambda _: build_model(self.document, ("model",)),
                self.model,
            )

    def _changes(self, name: str, problems: list[Problem]) -> dict[str, float]:
        """Return the changes of the file to the shape of a library model."""
        figures = _figures(name)
        changes: dict[str, float] = {}
        for key in ("fused_attention", *LIBRARY_CHANGES):
            section = self.software if key == "fused_attention" else self.model
            try:
                stated = section is not None and section.states(key)
                value = getattr(section, key) if stated else None
            except BrokenKeyError:
                continue
            if value is not None and key in figures:
                changes[key] = value
            elif value is not None and section is self.model:
                path, message = ("model", key), f"is not a figure of {name}"
                problems.append(self.document.problem(path, message, hint="leave it out"))
        return changes


@cache
def _figures(name: str) -> tuple[str, ...]:
    """Return the keys of the shape of a library model."""
    return tuple(table_keys(type(read_model(name).shape)))


@cached()
def _one_step(model: ModelSection, batch: int) -> tuple[StepTimeTable, ...]:
    return (StepTimeTable(batch_size=batch, time=model.step_time or 0.0),)


class _Search:
    """Looks up the names in keys of a scenario, and collects those not found."""

    def __init__(self, file: UnresolvedScenario, known: dict[tuple[Any, ...], Any]) -> None:
        self.file = file
        self.known = known
        self.problems: list[Problem] = []

    def value(self, key: str) -> str | None:
        """Return the value of a key."""
        section, _, name = key.partition(".")
        table = getattr(self.file, section)
        found: str | None = None if table is None else getattr(table, name)
        return found

    def find(
        self,
        attribute: str,
        key: str,
        load: Callable[[str], object],
        *others: object,
        none: str = "",
    ) -> None:
        """Set `attribute` to the object that a key names; None if it is left out, or is `none`.

        `others` are the arguments of `load` other than the name.
        """
        vars(self.file).pop(attribute, None)
        try:
            name = self.value(key)
        except BrokenKeyError:
            return
        if name is None or name == none:
            setattr(self.file, attribute, None)
            return
        named = (key, name, *[one if isinstance(one, tuple) else id(one) for one in others])
        if named in self.known:
            setattr(self.file, attribute, self.known[named][0])
            return
        path = tuple(key.split("."))
        try:
            thing = load(name)
            setattr(self.file, attribute, thing)
            # As long as they are kept, no other objects can have their identities.
            self.known[named] = thing, others
        except InputError as error:
            self.problems += error.problems
        except UnknownName as error:
            message, _, hint = str(error).partition("; ")
            self.problems.append(self.file.problem(path, message, hint=hint, show=False))
        except PlanError as error:
            self.problems.append(self.file.problem(path, str(error)))


def _other_models(name: str) -> str:
    """Return a hint for a model that the library does not have."""
    close = nearest(name, model_names())
    meant = f"did you mean '{close}'? " if close and _is_of_family(name, close) else ""
    return (
        f"{meant}plan models lists all; of any other language model give model.family and "
        "model.shape (plan import hf-config writes them), of any other model what a batch takes on "
        "your device, in model.step_time"
    )


def _is_of_family(name: str, known: str) -> bool:
    """Return whether two names of models begin with the same part: `bert_base`, bert-large."""
    first, other = (re.split(r"[-_. \d]", each.lower())[0] for each in (name, known))
    return nearest(first, (other,)) is not None and first[:1] == other[:1]


def batch_of_step(document: Document) -> int | None:
    """Return the batch size that belongs to a step time in a file; None if an option gives it."""
    _, line = document.where(STEP_TIME)
    return None if line is None else document.batch_size


def read_sections(document: Document) -> tuple[UnresolvedScenario, tuple[Problem, ...]]:
    """Read every section of a scenario separately.

    Returns
    -------
    UnresolvedScenario
        Its sections with mistakes are `PartialTable`s. Names are not looked up.
    tuple of Problem
        All mistakes within sections.

    Raises
    ------
    InputError
        If it is a file of another kind, or of another format.
    """
    problems = []
    problem = schema_problem(document)
    if problem is not None:
        if "schema" in document.data:
            raise InputError((problem,))
        problems.append(problem)
    other = kind_problem(ScenarioFile, document)
    if other is not None:
        raise InputError((*problems, other))
    reading = Reading(document.place)
    data = {key: value for key, value in document.data.items() if key != "schema"}
    values = reading.values(ScenarioFile, data, ())
    problems += problems_of(ScenarioFile, document, reading.mistakes)
    sections = {
        name: values[name] if name in values else _without(name, document) for name in SECTIONS
    }
    file = UnresolvedScenario(
        sections,
        document,
        name=str(document.data.get("name", "")),
        title=str(document.data.get("title", "")),
        step_batch=batch_of_step(document),
    )
    return file, tuple(dict.fromkeys(problems))


def _without(name: str, document: Document) -> object:
    """Return the default of a section that is left out, or the valid keys of one with mistakes."""
    key, table, data = table_keys(ScenarioFile)[name], SECTIONS[name], document.data.get(name)
    if name not in document.data and not key.required:
        return key.default
    if not isinstance(data, dict):
        return PartialTable(table, {}, None)
    reading = Reading(document.place)
    values = reading.values(table, data, (name,))
    broken = frozenset(str(mistake.path[1]) for mistake in reading.mistakes)
    return PartialTable(table, values, broken)


Check: TypeAlias = Callable[..., Iterable[Mistake]]
"""A function that finds mistakes involving several keys. Its parameters name the parts of an
`UnresolvedScenario` that it reads."""


def find_problems(file: UnresolvedScenario, checks: Iterable[Check]) -> tuple[Problem, ...]:
    """Return the mistakes that checks find.

    A check that reads a value derived from another mistake finds nothing more.
    """
    problems: list[Problem] = []
    for check in checks:
        try:
            problems.extend(map(file.problem_of, check(*parts_of(file, parts_read((check,))))))
        except BrokenKeyError:
            continue
    for derive in (stated_interruptions, energy_of):
        try:
            derive(file)
        except BrokenKeyError:
            continue
        except InputError as error:
            problems += error.problems
    return tuple(problems)


@cache
def parts_read(checks: tuple[Check, ...]) -> tuple[str, ...]:
    """Return the names of the parts of a scenario that checks read, in order of first use."""
    return tuple(dict.fromkeys(chain(*(inspect.signature(check).parameters for check in checks))))


def parts_of(file: UnresolvedScenario, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the parts of a scenario with these names.

    Raises
    ------
    BrokenKeyError
        If one of them is derived from a mistake.
    """
    return tuple([getattr(file, name) for name in names])


@cache
def reading_any(checks: tuple[Check, ...], names: tuple[str, ...]) -> tuple[Check, ...]:
    """Return the checks that read one of these parts of a scenario."""
    return tuple(check for check in checks if not set(names).isdisjoint(parts_read((check,))))


def stated_interruptions(file: UnresolvedScenario) -> Interruptions | None:
    """Return the interruptions that a scenario states; None without such sections.

    Raises
    ------
    InputError
        As `reading.long_run.interruptions.interruptions_of` does.
    """
    spot = file.spot is not None and file.cost.purchase is Purchase.SPOT
    if not spot and file.run is None and file.failures is None:
        return None
    from simulator.reading.long_run.interruptions import cards_of, of_sections

    devices, machines = max(1, file.gpus), file.hardware.count if file.gpus else 1
    sections = file.run, file.failures, file.spot
    return of_sections(file.document, devices, spot, machines, cards_of(file.host), *sections)


def ownership_of(cost: CostPlan, owned: Ownership | None) -> Ownership | None:
    """Return the costs of owned machines; None if neither stated nor needed."""
    if cost.purchase is not Purchase.OWNED and owned is None:
        return None
    from simulator.reading.long_run.bills import ownership

    return ownership(owned or Ownership())


def energy_of(file: UnresolvedScenario) -> EnergyPlan | None:
    """Return the electricity of the machines; None if it is not stated.

    Raises
    ------
    InputError
        As `reading.long_run.bills.energy_plan` does.
    """
    owned = file.cost.purchase is Purchase.OWNED or file.owned is not None
    if file.energy is None and not owned:
        return None
    from simulator.reading.long_run.bills import electricity

    return electricity(file.document, file.energy, owned=owned)
