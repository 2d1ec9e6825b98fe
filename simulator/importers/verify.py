"""Whether a profile that was made reads back: what `plan` refuses is never written."""

from __future__ import annotations

from dataclasses import replace

from simulator.errors import InputError
from simulator.importers.result import Fragment, Kind
from simulator.reading.document import check, parse_document
from simulator.reading.hardware.accelerator import to_link
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.hardware.figures import Figure
from simulator.reading.hardware.host import to_host
from simulator.reading.hardware.sections import LinkFile, StorageFile
from simulator.reading.hardware.storage import to_storage
from simulator.uncertainty.provenance import Source


def verify(fragment: Fragment, origin: str, catalogue: Catalogue) -> None:
    """Read a profile back as the catalogue will.

    Parameters
    ----------
    fragment : Fragment
        What was made; sections of a scenario are held against TOML alone.
    origin : str
        What messages name: the evidence.
    catalogue : Catalogue
        Where the parts of a machine are looked up.

    Raises
    ------
    InputError
        For a figure that no profile may have, such as a rate beyond any device's.
    """
    try:
        _read_back(fragment, origin, catalogue)
    except InputError as error:
        hint = "so says the evidence; is a unit wrong?"
        told = [
            replace(problem, line=None, hint=problem.hint or hint) for problem in error.problems
        ]
        raise InputError(tuple(told)) from None


def _read_back(fragment: Fragment, origin: str, catalogue: Catalogue) -> None:
    document = parse_document(fragment.text.encode(), origin)
    if fragment.kind is Kind.STORAGE:
        to_storage(origin, check(StorageFile, document), document, _cite)
    elif fragment.kind is Kind.LINK:
        to_link(origin, check(LinkFile, document), document, _cite)
    elif fragment.kind is Kind.NODE:
        to_host(origin, document, _cite, catalogue)


def _cite(figure: Figure) -> Source:
    return Source(reference=figure.source, date=figure.date, verified=figure.verified)
