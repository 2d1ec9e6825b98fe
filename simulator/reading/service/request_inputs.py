"""What requests hold, in a store: the job that reads it, on the machines of a service.

The same job writes their answers back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.errors import InputError, Problem
from simulator.memo import cached
from simulator.reading.document import Document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import from_document, to_scenario
from simulator.reading.service.sections import InputsSection, LoadSection, ServiceFile
from simulator.reading.service.traffic import TEXT
from simulator.schema.scenario import Scenario
from simulator.units import Bytes

_INPUTS: Final = ("load", "inputs")
_KEYS: Final = {
    "hardware.storage": "store",
    "data.bytes_per_sample": "bytes",
    "input.workers": "readers",
    "input.output_bytes_per_sample": "answers",
}
"""Keys of the job that have another name in the service."""


def reading_of(file: ServiceFile, document: Document, known: Catalogue) -> Scenario | None:
    """The job that reads the requests of a service; None where they are there already.

    Parameters
    ----------
    file : ServiceFile
        The service; requests are samples, each of a machine's readers is a worker, and answers
        are what it writes.
    document : Document
        What it says and where.
    known : Catalogue
        Machines and stores.

    Raises
    ------
    InputError
        If the store is none, or cannot be reached from the machines.
    """
    inputs = file.load.inputs
    if inputs is None:
        return None
    asked = _Asked(
        origin=document.origin,
        machine=file.hardware.machine,
        count=file.hardware.count,
        store=inputs.store,
        size=inputs.bytes,
        readers=inputs.readers,
        requests=file.load.requests or 1,
        answers=_written(file.load, inputs),
    )
    try:
        return _job(asked, known)
    except InputError as error:
        raise InputError(tuple(_own(one, document) for one in error.problems)) from None


def _written(load: LoadSection, inputs: InputsSection) -> Bytes:
    """What is written for a mean answer [B]."""
    if inputs.answers is not None:
        return inputs.answers
    return 0.0 if load.output is None else TEXT * load.output.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What decides how requests are read, and answers written: of many changes few touch it."""

    origin: str
    machine: str
    count: int
    store: str
    size: Bytes
    readers: int
    requests: int
    answers: Bytes


@cached(most=64, by_value=(_Asked,))
def _job(asked: _Asked, known: Catalogue) -> Scenario:
    hardware = {"machine": asked.machine, "count": asked.count, "storage": asked.store}
    data = {
        "schema": 1,
        "hardware": hardware,
        "data": {
            "samples": asked.requests,
            "bytes_per_sample": f"{asked.size} B",
            "cache": "none",
        },
        "input": {
            "workers": asked.readers,
            "output_bytes_per_sample": f"{asked.answers} B",
        },
        "train": {"mode": "prepare", "batch_size": 1},
    }
    document = Document(origin=asked.origin, data=data, lines={})
    return to_scenario(from_document(document, known, ()), "inputs")


def _own(problem: Problem, document: Document) -> Problem:
    """A mistake of the job as one of the service that it was made from."""
    key = _KEYS.get(problem.key or "")
    path = _INPUTS if key is None else (*_INPUTS, key)
    return document.problem(path, problem.message, hint=problem.hint, show=key is not None)
