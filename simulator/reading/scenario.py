"""The door from a scenario file to a `Scenario`: read, check, look up, convert."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, TextIO, TypeAlias, TypeVar

from simulator.errors import InputError, Problem
from simulator.reading.checks.sections import find_problems
from simulator.reading.convert.calibration import calibration_notes, calibration_of, with_factors
from simulator.reading.convert.groups import cluster_of, group_notes, remote_of
from simulator.reading.convert.hardware import group_of
from simulator.reading.convert.input import (
    dataset_of,
    input_notes,
    loader_of,
    preprocessing_of,
)
from simulator.reading.convert.models import build_model, load_model, model_names, read_model
from simulator.reading.convert.parallelism import parallelism_of
from simulator.reading.convert.software import software_of
from simulator.reading.convert.training import (
    core_notes,
    layout_notes,
    model_of,
    precision_notes,
    step_times_of,
    train_of,
    training_notes,
)
from simulator.reading.document import Document
from simulator.reading.fitted.sisters import sister_of
from simulator.reading.fitted.uncertainty import with_uncertainties
from simulator.reading.hardware.burst_credits import with_mean_rates
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.long_run.bill_sections import StoreSection
from simulator.reading.long_run.electricity import ENERGY
from simulator.reading.long_run.interruptions import INTERRUPTIONS
from simulator.reading.long_run.ownership import OWNERSHIP
from simulator.reading.merge_documents import STANDARD_INPUT, gather
from simulator.reading.resolved import (
    SECTIONS,
    Ask,
    Draft,
    Part,
    look_up,
    part,
    read_sections,
)
from simulator.reading.sections import CostSection, MemorySection, ScenarioFile
from simulator.reading.service.mode import refuse_service
from simulator.reading.tables import table_keys
from simulator.schema.scenario import CostPlan, Job, Memory, Scenario
from simulator.schema.store_plan import DURING_THE_RUN, StorePlan
from simulator.schema.workload.models import Model
from simulator.uncertainty.calibration import Calibration
from simulator.uncertainty.provenance import Assumption

Thing = TypeVar("Thing")


class ModelLibrary:
    """The shipped models."""

    def names(self) -> tuple[str, ...]:
        """All of them."""
        return model_names()

    def figures(self, name: str) -> tuple[str, ...]:
        """What the shape of one of them consists of."""
        return tuple(table_keys(type(read_model(name).shape)))

    def load(self, name: str, **changes: float) -> Model:
        """One of them, with some figures of its shape changed."""
        return load_model(name, **changes)

    def build(self, document: Document) -> Model:
        """The model that the [model] section of `document` describes by family and shape."""
        return build_model(document, ("model",))


def load_scenario(  # noqa: PLR0913 - where each part may come from
    name_or_path: str,
    *,
    overrides: Sequence[str] = (),
    stdin: TextIO | BinaryIO | None = None,
    profiles: Sequence[Path] = (),
    calibration: Path | None = None,
    catalogue: Catalogue | None = None,
) -> Scenario:
    """Read a scenario with everything it builds on.

    Parameters
    ----------
    name_or_path : str
        A file, the name of a shipped scenario, or ``-`` for standard input.
    overrides : sequence of str
        ``section.key=value``, applied in this order.
    stdin : file object, optional
        Read in place of standard input.
    profiles : sequence of pathlib.Path
        Folders of hardware profiles that come before the usual ones.
    calibration : pathlib.Path, optional
        An overlay of fitted parameters, in place of the one the scenario names; `overrides` win
        over it.
    catalogue : Catalogue, optional
        Hardware profiles read before, for those who load many scenarios; in place of `profiles`.

    Returns
    -------
    Scenario
        Trusted from here on; its notes list the defaults that were used.

    Raises
    ------
    InputError
        With all mistakes at once.
    UnknownName
        If there is no such scenario.
    """
    document, gathering = gather(
        name_or_path, overrides=overrides, stdin=stdin, model=ScenarioFile, overlay=calibration
    )
    known = catalogue or Catalogue.default(profiles)
    draft = from_document(document, known, gathering)
    return to_scenario(draft, default_name_of(name_or_path))


def from_document(document: Document, catalogue: Catalogue, found: Sequence[Problem]) -> Draft:
    """The draft of a document, everything in it looked up and checked.

    Parameters
    ----------
    document : Document
        A scenario with all it builds on.
    catalogue : Catalogue
        Knows the hardware profiles.
    found : sequence of Problem
        What is wrong with the texts.

    Raises
    ------
    InputError
        With all mistakes at once.
    """
    refuse_service(document)
    draft, within = read_sections(document)
    return checked(draft, catalogue, (*found, *within))


def checked(draft: Draft, catalogue: Catalogue, found: Sequence[Problem]) -> Draft:
    """A draft with all it names looked up and checked; as in `from_document`."""
    draft, looking = look_up(draft, catalogue, ModelLibrary())
    refuse((*found, *looking, *find_problems(draft)), draft.document.origin)
    return draft


def refuse(problems: Sequence[Problem], origin: str) -> None:
    """Refuse mistakes if there are any: first those of the file `origin`, by their lines.

    Raises
    ------
    InputError
        With all of them, each once.
    """
    if problems:
        ordered = sorted(problems, key=lambda p: (p.origin != origin, p.line or 0))
        raise InputError(tuple(dict.fromkeys(ordered)))


def to_scenario(draft: Draft, default_name: str) -> Scenario:
    """The scenario of a draft without mistakes; `default_name` where it has no name."""
    scenario = converted(asking(draft), draft.document, default_name)
    return with_uncertainties(scenario, draft)


def asking(draft: Draft) -> Ask:
    """Makes the parts of this draft."""
    return lambda part: part(draft)


def default_name_of(name_or_path: str) -> str:
    """What a scenario is called that has no name of its own: its file's, without the ending."""
    return "scenario" if name_or_path == STANDARD_INPUT else Path(name_or_path).stem


def converted(ask: Ask, document: Document, default_name: str) -> Scenario:
    """The domain types of a draft, nothing assumed that needs the whole of it.

    Parameters
    ----------
    ask : callable
        Knows the parts of the draft, which has no mistakes, or makes them.
    document : Document
        Has the name and the title.
    default_name : str
        Where it has no name.
    """
    calibration = ask(CALIBRATION)
    scenario = Scenario(
        name=_text(document, "name") or default_name,
        title=_text(document, "title"),
        cluster=ask(_CLUSTER),
        jobs=(_job(ask),),
        cost=ask(_COST),
        calibration=calibration,
        interruptions=ask(INTERRUPTIONS),
        energy=ask(ENERGY),
        owned=ask(OWNERSHIP),
        store=ask(_STORE),
        assume_spread=not ask(_SPREAD_STATED),
        notes=tuple(chain(_calibrated(ask, calibration), *map(ask, _NOTES))),
    )
    return with_mean_rates(with_factors(scenario), document)


def _text(document: Document, key: str) -> str:
    return str(document.data.get(key, ""))


def _calibrated(ask: Ask, calibration: Calibration) -> tuple[Assumption, ...]:
    """What is calibrated; an overlay may have values for any section."""
    given = calibration.factors or calibration.overlay is not None
    return ask(_CALIBRATION_NOTES) if given else ()


def _job(ask: Ask) -> Job:
    return Job(
        mode=ask(_MODE),
        dataset=ask(_DATASET),
        loader=ask(_LOADER),
        preprocessing=ask(_PREPROCESSING),
        train=ask(_TRAIN),
        software=ask(_SOFTWARE),
        model=ask(_MODEL),
        step_times=ask(_STEP_TIMES),
        memory=ask(_MEMORY),
        remote=ask(_REMOTE),
        copies=ask(_COPIES),
        parallelism=ask(_PARALLELISM),
        sister=ask(_SISTER),
    )


def _memory(given: MemorySection) -> Memory:
    return Memory(
        operating_system=given.operating_system,
        application=given.application,
        page_cache=given.page_cache,
    )


def _store(given: StoreSection | None) -> StorePlan:
    if given is None:
        return DURING_THE_RUN
    return StorePlan(location=given.location, kept=given.kept, checkpoints=given.checkpoints)


def _cost(given: CostSection) -> CostPlan:
    return CostPlan(
        purchase=given.purchase,
        region=given.region,
        price=given.price,
        provisioning=given.provisioning,
    )


def _of_model(find: Callable[[Draft, Model | None], Thing], reads: str) -> Part[Thing]:
    """A part that takes the model as well."""
    return part(lambda draft: find(draft, model_of(draft)), f"{reads} {_MODEL_READS}")


def _notes(find: Callable[[Draft, Model | None], Iterable[Assumption]], reads: str) -> Notes:
    """Notes that take the model as well."""
    return _of_model(lambda draft, model: tuple(find(draft, model)), reads)


Notes: TypeAlias = Part[tuple[Assumption, ...]]
_MODEL_READS: Final = "model software library_model"
_CLUSTER: Final = part(
    lambda draft: cluster_of(draft, group_of(draft)),
    "hardware data remote host storage cache helper helper_storage mode gpus gpu",
)
_STORE: Final = part(lambda draft: _store(draft.store), "store")
_COST: Final = part(lambda draft: _cost(draft.cost), "cost")
CALIBRATION: Final = part(calibration_of, "calibration")
_MODE: Final = part(lambda draft: draft.mode, "mode")
_DATASET: Final = part(dataset_of, "data loader")
_LOADER: Final = _of_model(loader_of, "input data loader gpu")
_PREPROCESSING: Final = _of_model(preprocessing_of, "input data remote host helper measured_on")
_TRAIN: Final = part(train_of, "train gpu basis accumulation software parallelism")
_SOFTWARE: Final = _of_model(software_of, "train host gpu")
_MODEL: Final = part(model_of, _MODEL_READS)
_STEP_TIMES: Final = part(step_times_of, "model software")
_MEMORY: Final = part(lambda draft: _memory(draft.memory), "memory")
_REMOTE: Final = part(remote_of, "remote helper loader")
_COPIES: Final = part(lambda draft: draft.copies, "copies")
_PARALLELISM: Final = part(parallelism_of, "parallelism software")
_SISTER: Final = part(sister_of, f"train mode gpu {_MODEL_READS}")
_SPREAD_STATED: Final = part(
    lambda draft: draft.data.size_spread is not None or draft.input.cost_spread is not None,
    "data input",
)
"""Whether the file says how samples vary."""
_CALIBRATION_NOTES: Final = part(
    lambda draft: calibration_notes(draft, calibration_of(draft)), " ".join(SECTIONS)
)
_NOTES: Final[tuple[Notes, ...]] = (
    part(lambda draft: tuple(precision_notes(draft)), "train gpu"),
    _notes(core_notes, "host gpu model mode"),
    _notes(training_notes, "train mode gpu ranks software parallelism"),
    _notes(layout_notes, "train gpu"),
    _notes(input_notes, "input data loader"),
    part(
        lambda draft: tuple(group_notes(draft)),
        "data remote host storage helper measured_on loader",
    ),
)
"""In the order in which they are told."""
