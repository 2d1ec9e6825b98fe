"""Results of importers: profiles and sections as TOML, and measured runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from simulator.errors import InputError
from simulator.reading.document import parse_document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.hardware.devices import to_link, to_storage
from simulator.reading.hardware.machine import to_host
from simulator.uncertainty.provenance import Source


class Kind(StrEnum):
    """Kind of a fragment; for profiles, their folder in the catalogue."""

    STORAGE = "storage"
    LINK = "link"
    NODE = "node"
    GPU = "gpu"
    SCENARIO = "scenario"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A hardware profile, or sections of a scenario, as TOML text that `plan` reads.

    `summary` is what was taken, in lines for people; `warnings` what was left out or is unsure.
    """

    kind: Kind
    text: str
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run as its log tells it: keys of a scenario, and what was seen, named as in ``--json``.

    `overrides` are ``section.key=value`` as for ``--set``; `measured` holds SI values.
    """

    id: str
    overrides: tuple[str, ...]
    measured: Mapping[str, float]
    source: Source
    labels: Mapping[str, str] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def set_rows(runs: Sequence[MeasuredRun]) -> list[dict[str, str]]:
    """Return rows of a measurement set, one a run; logs of many runs may bear the same name."""
    again: Counter[str] = Counter()
    return [
        {
            "id": _unique(run.id, again),
            **run.labels,
            **dict(override.split("=", 1) for override in run.overrides),
            **{f"measured.{metric}": repr(value) for metric, value in run.measured.items()},
            "source": f"{run.source.reference}, {run.source.date}",
        }
        for run in runs
    ]


def _unique(name: str, again: Counter[str]) -> str:
    again[name] += 1
    return name if again[name] == 1 else f"{name}~{again[name]}"


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
        problems = [
            replace(problem, line=None, hint=problem.hint or hint) for problem in error.problems
        ]
        raise InputError(tuple(problems)) from None


def _read_back(fragment: Fragment, origin: str, catalogue: Catalogue) -> None:
    document = parse_document(fragment.text.encode(), origin)
    if fragment.kind is Kind.STORAGE:
        to_storage(origin, document, _as_stated)
    elif fragment.kind is Kind.LINK:
        to_link(origin, document, _as_stated)
    elif fragment.kind is Kind.NODE:
        to_host(origin, document, _as_stated, catalogue)


def _as_stated(source: Source) -> Source:
    return source
