"""Conversion of a scenario file to a `Scenario`: read, look up, check, fill in defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TextIO

from simulator.errors import InputError, Problem
from simulator.reading.calibration import calibration_notes, calibration_of, with_factors
from simulator.reading.checks import CHECKS, cache_drives
from simulator.reading.defaults import (
    dataset_of,
    input_notes,
    pipeline_of,
)
from simulator.reading.document import Document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.machines import (
    client_of,
    cluster_of,
    for_work,
    group_notes,
    group_of,
    reference_of,
    remote_of,
    with_mean_rates,
)
from simulator.reading.merge_documents import STANDARD_INPUT, gather, refuse_service
from simulator.reading.sections import ScenarioFile
from simulator.reading.training import (
    core_notes,
    fused_attention,
    host_threads_of,
    layout_notes,
    model_of,
    parallelism_of,
    peers_through_host,
    precision_notes,
    sister_of,
    software_of,
    step_times_of,
    train_of,
    training_notes,
    writer_note,
)
from simulator.reading.unresolved import (
    UnresolvedScenario,
    energy_of,
    find_problems,
    ownership_of,
    read_sections,
    stated_interruptions,
)
from simulator.schema.calibration import Calibration
from simulator.schema.long_run import Checkpoints
from simulator.schema.models import Model
from simulator.schema.provenance import Assumption
from simulator.schema.scenario import Job, Scenario


def load_scenario(  # noqa: PLR0913 - where each part may come from
    name_or_path: str,
    *,
    overrides: Sequence[str] = (),
    stdin: TextIO | BinaryIO | None = None,
    profiles: Sequence[Path] = (),
    calibration: Path | None = None,
    catalogue: Catalogue | None = None,
) -> Scenario:
    """Read a scenario with all files it extends.

    Parameters
    ----------
    name_or_path : str
        A file, the name of a shipped scenario, or ``-`` for standard input.
    overrides : sequence of str
        ``section.key=value``, applied in this order.
    stdin : file object, optional
        Read instead of standard input.
    profiles : sequence of pathlib.Path
        Directories of hardware profiles, searched before the default ones.
    calibration : pathlib.Path, optional
        An overlay of fitted parameters, instead of the one the scenario names; `overrides` take
        precedence over it.
    catalogue : Catalogue, optional
        A catalogue to share among many scenarios, instead of `profiles`.

    Returns
    -------
    Scenario
        The checked scenario; its notes list the defaults in use.

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
    file = from_document(document, known, gathering)
    return to_scenario(file, default_name_of(name_or_path))


def from_document(
    document: Document, catalogue: Catalogue, found: Sequence[Problem]
) -> UnresolvedScenario:
    """Read the sections of a document, look up the profiles and models they name, and check them.

    Parameters
    ----------
    document : Document
        A scenario merged with all files it extends.
    catalogue : Catalogue
        The hardware profiles.
    found : sequence of Problem
        Problems found while the files were read.

    Raises
    ------
    InputError
        With all mistakes at once.
    """
    refuse_service(document)
    file, within = read_sections(document)
    looking = file.look_up(catalogue)
    refuse((*found, *within, *looking, *find_problems(file, CHECKS)), document.origin)
    return file


def refuse(problems: Sequence[Problem], origin: str) -> None:
    """Raise an `InputError` if there are problems: first those of the file `origin`, by line.

    Raises
    ------
    InputError
        With all of them, each once.
    """
    if problems:
        ordered = sorted(problems, key=lambda p: (p.origin != origin, p.line or 0))
        raise InputError(tuple(dict.fromkeys(ordered)))


def to_scenario(file: UnresolvedScenario, default_name: str) -> Scenario:
    """Return the scenario of a file without mistakes; `default_name` if it has no name."""
    return replace(resolve(file, default_name), stated=file.hardware)


def default_name_of(name_or_path: str) -> str:
    """Return the name of a scenario without a name: its file's, without the extension."""
    return "scenario" if name_or_path == STANDARD_INPUT else Path(name_or_path).stem


def resolve(file: UnresolvedScenario, default_name: str) -> Scenario:
    """Fill in the defaults of a scenario without mistakes, without uncertainties.

    Parameters
    ----------
    file : UnresolvedScenario
        The scenario, with all names looked up and checked.
    default_name : str
        Name of the scenario if the file states none.
    """
    gpu, software = file.gpu, file.software
    model = model_of(file.model, software, file.library_model)
    calibration = calibration_of(file.calibration)
    trainers = group_of(file.hardware, file.host, file.storage, file.mode, file.gpus, gpu)
    job = _job(file, model)
    cluster = cluster_of(
        trainers,
        file.data.placement,
        cache_drives(file.hardware, file.host, file.cache),
        file.remote,
        file.helper,
        file.helper_storage,
    )
    scenario = Scenario(
        name=file.name or default_name,
        title=file.title,
        cluster=for_work(cluster, job.input.cpu_work),
        jobs=(job,),
        assume_spread=not (file.data.states("size_spread") or file.input.states("cost_spread")),
        cost=file.cost,
        calibration=calibration,
        checkpoints=file.checkpoint or Checkpoints(),
        interruptions=stated_interruptions(file),
        energy=energy_of(file),
        owned=ownership_of(file.cost, file.owned),
        store=file.store,
        notes=tuple(_notes(file, model, calibration)),
    )
    return with_mean_rates(with_factors(scenario), file.hardware)


def _job(file: UnresolvedScenario, model: Model | None) -> Job:
    gpu, software = file.gpu, file.software
    parallelism = parallelism_of(file.parallelism, software.framework)
    reference = reference_of(file.host, file.measured_on, file.remote, file.helper)
    fused = fused_attention(software, file.library_model, model)
    train = train_of(
        file.train,
        software,
        parallelism,
        host_threads_of(gpu, file.input.cost_basis),
        file.accumulation,
        peers_through_host(file.hardware, file.host, file.gpus),
        writer_note(file)[0],
    )
    return Job(
        mode=file.mode,
        dataset=dataset_of(file.data, file.loader),
        input=pipeline_of(file.input, file.data, gpu, model, reference),
        train=train,
        software=software_of(software, train, file.host, gpu, fused=fused),
        model=model,
        step_times=step_times_of(file.model, file.step_times, software),
        memory=file.memory,
        remote=remote_of(file.remote, file.helper, file.loader),
        copies=file.copies,
        parallelism=parallelism,
        same_chip_reference=sister_of(file.train, gpu, model, software.framework),
        client=client_of(file.client, file.data, file.hardware),
    )


def _notes(
    file: UnresolvedScenario, model: Model | None, calibration: Calibration
) -> Iterable[Assumption]:
    """Yield the assumptions made while reading, in the order in which reports list them."""
    if calibration.factors or calibration.overlay is not None:
        yield from calibration_notes(file, calibration)
    yield from precision_notes(file)
    yield from core_notes(file, model)
    yield from training_notes(file, model)
    yield from layout_notes(file, model)
    yield from input_notes(file.input, file.data, model)
    yield from group_notes(file)
