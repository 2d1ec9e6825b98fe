"""Which files describe a service: those with a key ``mode`` of their own.

A mode of training there (``train.mode``) is a slip, which the reader of jobs knows how to mend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulator.errors import InputError
from simulator.reading.document import Document
from simulator.schema.workload.train import Mode

MODE: Final = "mode"
_OF_JOBS: Final = tuple(Mode)


def describes_service(chain: Sequence[Document]) -> bool:
    """Whether a document, or one that it extends, describes a service."""
    return any(_is_service(document) for document in chain)


def _is_service(document: Document) -> bool:
    return document.data.get(MODE, _OF_JOBS[0]) not in _OF_JOBS


def refuse_service(document: Document) -> None:
    """Refuse a document of a service where a job is asked for.

    Raises
    ------
    InputError
        If it has the key of a service.
    """
    if _is_service(document):
        hint = (
            "plan simulate, sweep, whatif, explain, report, compare, recommend and size answer "
            "about them"
        )
        message = "makes this file a service, which has no training job"
        raise InputError((document.problem((MODE,), message, hint=hint),))
