"""Results of importers: profiles, sections and tables as text, and measured runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum

from simulator.errors import InputError
from simulator.reading.document import parse_document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.hardware.devices import to_link, to_storage
from simulator.reading.hardware.machine import to_host
from simulator.reading.hardware.profile_text import quote
from simulator.reading.measured.measurement_set import set_csv
from simulator.records import dataclass
from simulator.schema.provenance import Source


class Kind(StrEnum):
    """Kind of a fragment; for profiles, also their folder in the catalogue."""

    TABLE = "table"
    STORAGE = "storage"
    LINK = "link"
    NODE = "node"
    GPU = "gpu"
    SCENARIO = "scenario"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A hardware profile or sections of a scenario as TOML, or a table of runs as CSV.

    `summary` and `warnings` are lines of text: values read, and values left out or assumed.
    `lacking` is the reason if the input cannot be expressed; `text` is empty then.
    """

    kind: Kind
    text: str
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lacking: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run of a log: keys of a scenario, and measured metrics named as in ``--json``.

    `overrides` are ``section.key=value`` as for ``--set``; `measured` holds SI values.
    """

    id: str
    overrides: tuple[str, ...]
    measured: Mapping[str, float]
    source: Source
    labels: Mapping[str, str] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def measurement_set(  # noqa: PLR0913 - one parameter for each key of the set
    runs: Sequence[MeasuredRun],
    *,
    base: str,
    name: str,
    title: str,
    source: str,
    date: str,
    metrics: Iterable[str],
    mode: str = "train",
) -> tuple[str, str]:
    """Return a measurement set of runs, predicted from the scenario `base`: its TOML and CSV.

    The CSV has one row per run; duplicate names are numbered. Other parameters are keys of the set.
    """
    lines = [
        "schema = 1",
        *(['mode = "serve"'] if mode == "serve" else []),
        f"name = {quote(name)}",
        f"title = {quote(title)}",
        f"data = {quote(f'{name}.csv')}",
        f"base = {quote(base)}",
        f"source = {quote(source)}",
        f"date = {quote(date)}",
        f"metrics = [{', '.join(map(quote, metrics))}]",
        'split = "test"',
    ]
    used: Counter[str] = Counter()
    rows = []
    for run in runs:
        used[run.id] += 1
        rows.append(
            {
                "id": run.id if used[run.id] == 1 else f"{run.id}~{used[run.id]}",
                **run.labels,
                **dict(override.split("=", 1) for override in run.overrides),
                **{f"measured.{metric}": repr(value) for metric, value in run.measured.items()},
                "source": f"{run.source.reference}, {run.source.date}",
            }
        )
    return "\n".join(lines) + "\n", set_csv(rows)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format table rows as lines: the first column left-aligned, the others right-aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    return lines


def verify(fragment: Fragment, origin: str, catalogue: Catalogue) -> None:
    """Parse a hardware profile again with the checks of the catalogue.

    Parameters
    ----------
    fragment : Fragment
        The profile; of scenarios and tables only the TOML syntax is checked.
    origin : str
        Name of the imported file, for messages.
    catalogue : Catalogue
        Profiles that the parts of a machine refer to.

    Raises
    ------
    InputError
        For values that no profile may have, such as a rate above that of any device.
    """
    try:
        document = parse_document(fragment.text.encode(), origin)
        if fragment.kind is Kind.STORAGE:
            to_storage(origin, document, _as_stated)
        elif fragment.kind is Kind.LINK:
            to_link(origin, document, _as_stated)
        elif fragment.kind is Kind.NODE:
            to_host(origin, document, _as_stated, catalogue)
    except InputError as error:
        hint = "so says the evidence; is a unit wrong?"
        problems = [
            replace(problem, line=None, hint=problem.hint or hint) for problem in error.problems
        ]
        raise InputError(tuple(problems)) from None


def _as_stated(source: Source) -> Source:
    return source
