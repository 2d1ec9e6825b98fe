"""The door from a scenario file to a `Scenario`: read, check, look up, convert."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

from simulator.confidence.provenance import Assumption
from simulator.errors import InputError, Problem
from simulator.files.assumed_spread import with_assumed_spread
from simulator.files.catalogue import Catalogue
from simulator.files.checks import find_problems
from simulator.files.convert_calibration import calibration_notes, calibration_of, with_factors
from simulator.files.convert_groups import cluster_of, group_notes, remote_of
from simulator.files.convert_hardware import group_of
from simulator.files.convert_input import (
    dataset_of,
    input_notes,
    loader_of,
    preprocessing_of,
)
from simulator.files.convert_parallelism import parallelism_of
from simulator.files.convert_software import software_of
from simulator.files.convert_training import (
    layout_notes,
    model_of,
    precision_notes,
    step_times_of,
    train_of,
    training_notes,
)
from simulator.files.document import Document
from simulator.files.merge_documents import STANDARD_INPUT, gather
from simulator.files.models import build_model, load_model, model_names, read_model
from simulator.files.resolved import Ask, Draft, look_up, read_sections
from simulator.files.sections import ScenarioFile
from simulator.files.sisters import sister_of
from simulator.files.uncertainty import with_doubts
from simulator.scenario.hardware.cluster import Cluster
from simulator.scenario.scenario import CostPlan, Job, Memory, Scenario
from simulator.scenario.workload.loader import Loader, Preprocessing
from simulator.scenario.workload.models import Model
from simulator.scenario.workload.software import Software
from simulator.scenario.workload.train import Mode


class ModelLibrary:
    """The shipped models."""

    def names(self) -> tuple[str, ...]:
        """All of them."""
        return model_names()

    def figures(self, name: str) -> tuple[str, ...]:
        """What the shape of one of them consists of."""
        return tuple(type(read_model(name).shape).model_fields)

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
    return with_doubts(with_assumed_spread(scenario, given=spread_given(draft)), draft)


def asking(draft: Draft) -> Ask:
    """Works parts out of this draft."""
    return lambda part: part(draft)


def spread_given(draft: Draft) -> bool:
    """Whether the file says how samples vary."""
    return draft.data.size_spread is not None or draft.input.cost_spread is not None


def default_name_of(name_or_path: str) -> str:
    """What a scenario is called that has no name of its own: its file's, without the ending."""
    return "scenario" if name_or_path == STANDARD_INPUT else Path(name_or_path).stem


def converted(ask: Ask, document: Document, default_name: str) -> Scenario:
    """The domain types of a draft, nothing assumed that needs the whole of it.

    Parameters
    ----------
    ask : callable
        Works parts out of the draft, which has no mistakes; or knows them from another one.
    document : Document
        Has the name and the title.
    default_name : str
        Where it has no name.
    """
    scenario = Scenario(
        name=_text(document, "name") or default_name,
        title=_text(document, "title"),
        cluster=ask(_cluster),
        jobs=(_job(ask),),
        cost=ask(_cost),
        calibration=ask(calibration_of),
        notes=ask(_notes),
    )
    return with_factors(scenario)


def _text(document: Document, key: str) -> str:
    return str(document.data.get(key, ""))


def _cluster(draft: Draft) -> Cluster:
    return cluster_of(draft, group_of(draft))


def _cost(draft: Draft) -> CostPlan:
    given = draft.cost
    return CostPlan(purchase=given.purchase, price=given.price, provisioning=given.provisioning)


def _notes(draft: Draft) -> tuple[Assumption, ...]:
    model = model_of(draft)
    return (
        *calibration_notes(draft, calibration_of(draft)),
        *precision_notes(draft),
        *training_notes(draft, model),
        *layout_notes(draft, model),
        *input_notes(draft, model),
        *group_notes(draft),
    )


def _job(ask: Ask) -> Job:
    return Job(
        mode=ask(_mode),
        dataset=ask(dataset_of),
        loader=ask(_loader),
        preprocessing=ask(_preprocessing),
        train=ask(train_of),
        software=ask(_software),
        model=ask(model_of),
        step_times=ask(step_times_of),
        memory=ask(_memory),
        remote=ask(remote_of),
        copies=ask(_copies),
        parallelism=ask(parallelism_of),
        sister=ask(sister_of),
    )


def _mode(draft: Draft) -> Mode:
    return draft.train.mode


def _copies(draft: Draft) -> int:
    return draft.train.copies


def _loader(draft: Draft) -> Loader:
    return loader_of(draft, model_of(draft))


def _preprocessing(draft: Draft) -> Preprocessing:
    return preprocessing_of(draft, model_of(draft))


def _software(draft: Draft) -> Software:
    return software_of(draft, model_of(draft))


def _memory(draft: Draft) -> Memory:
    given = draft.memory
    return Memory(
        operating_system=given.operating_system,
        application=given.application,
        page_cache=given.page_cache,
    )
