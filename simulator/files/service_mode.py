"""Which files describe a service: those with a key ``mode`` of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulator.errors import InputError
from simulator.files.document import Document

MODE: Final = "mode"


def describes_service(chain: Sequence[Document]) -> bool:
    """Whether a document, or one that it extends, describes a service."""
    return any(MODE in document.data for document in chain)


def refuse_service(document: Document) -> None:
    """Refuse a document of a service where a job is asked for.

    Raises
    ------
    InputError
        If it has the key of a service.
    """
    if MODE in document.data:
        hint = "plan simulate, sweep, whatif, explain and recommend answer about services"
        message = "makes this file a service, which has no training job"
        raise InputError((document.problem((MODE,), message, hint=hint),))
