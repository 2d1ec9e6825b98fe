"""``plan whatif``: what more of each resource is worth, and what would move the limit."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from simulator.cli import completion
from simulator.cli.options import examples, file_option, format_option, seed_option
from simulator.cli.output import Exit, check_writable, emit, ended, write_file
from simulator.cli.progress import progress_line
from simulator.cli.serving import changed
from simulator.cli.subjects import subject_arguments

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.report.whatif.text import WhatIf
    from simulator.schema.scenario import Scenario
    from simulator.studies.search.outcome import BugLog
    from simulator.studies.subject import Subject
    from simulator.studies.whatif import Change, Generation

ALL: Final = "all"
DEFAULT: Final = "total_time_s"
"""The figure that changes are sorted by."""


@click.command(
    epilog=examples(
        "plan whatif mine.toml",
        "plan whatif mine.toml cost.usd_to_train --price 'vCPUs x2=$0.50/h' --gpus all",
    )
)
@subject_arguments
@click.argument("metric", required=False, default=DEFAULT, shell_complete=completion.metrics)
@format_option
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="CHANGE=PRICE",
    help="What a change adds to the rent of all machines, such as 'vCPUs x2=$0.50/h'.",
)
@click.option(
    "--gpus",
    "gpus",
    metavar="LIST",
    help="Also swap the accelerator: all, or names and patterns as plan hardware list has them.",
)
@click.option("--tornado", is_flag=True, help="Also show how far each uncertain rate moves METRIC.")
@file_option("--plot", text="Draw the tornado into a PNG, SVG or PDF file.")
@seed_option
def whatif(  # noqa: PLR0913 - one parameter an option
    *,
    subject: Subject[Any, Any],
    metric: str,
    form: str,
    prices: tuple[str, ...],
    gpus: str | None,
    tornado: bool,
    plot: Path | None,
    seed: int,
) -> int:
    """Say what a little more of each resource of SCENARIO is worth, and what would move its limit.

    Each change is a scenario of its own that is predicted like any other. Changes are sorted by
    their effect on METRIC, a dotted path of the --json output of plan simulate; the time of the
    whole run by default. Exit code 1 says that the job does not fit as it is.
    """
    if subject.noun == "service":
        usual = metric == DEFAULT
        return changed(subject.reader, "end_to_end_s.mean" if usual else metric, form, seed)
    from simulator.studies.search.outcome import BugLog
    from simulator.studies.whatif import check_number

    check_number(metric)
    if plot is not None:
        check_writable(plot, "--plot")
    reader = subject.reader
    met = BugLog()
    found = _studied(reader, metric, prices, seed=seed, gpus=_names(reader, gpus), met=met)
    if tornado or plot is not None:
        found = _with_tornado(found, reader, metric, seed)
    if plot is not None and found.tornado is not None:
        from simulator.report.plot import as_bytes, tornado_figure

        write_file(plot, as_bytes(tornado_figure(found.tornado), plot), "--plot")
    emit(_rendered(found, form))
    code = Exit.FINE if found.margins.base.fits else Exit.DOES_NOT_FIT
    return ended(code, met.reasons)


def _studied(  # noqa: PLR0913 - what is asked for, and of what
    reader: CandidateReader,
    metric: str,
    prices: Sequence[str],
    *,
    seed: int,
    gpus: Sequence[str] | None,
    met: BugLog,
) -> WhatIf:
    from simulator.report.labels import device_called
    from simulator.report.whatif.text import WhatIf
    from simulator.studies.levers.catalogue import knobs
    from simulator.studies.whatif import changes, flips, margins

    read = _reading(reader)
    scenario = read({})
    turned = knobs(scenario, device_called(scenario))
    wanted = changes(turned)
    priced = _prices(prices, wanted)
    with progress_line("trying changes") as progress:
        worth = margins(
            read, wanted, metric=metric, prices=priced, seed=seed, progress=progress, met=met
        )
    with progress_line("looking for other limits") as progress:
        moved = flips(read, turned, seed=seed, progress=progress, met=met)
    swapped = None if gpus is None else _swapped(reader, gpus, seed, met)
    limiting = tuple(knob for knob in turned if knob.limits)
    return WhatIf(margins=worth, flips=moved, turned=limiting, generations=swapped)


def _reading(reader: CandidateReader) -> Callable[..., Scenario]:
    return lambda settings: reader.read(settings).scenario


def _prices(texts: Sequence[str], wanted: Sequence[Change]) -> dict[str, float]:
    """What changes add to the rent, by name [$/s]."""
    from simulator.errors import UnitError
    from simulator.schema.fields import nearest_hint
    from simulator.units import USD_PER_SECOND, parse

    names = tuple(change.name for change in wanted)
    found = {}
    for text in texts:
        name, equals, price = (part.strip() for part in text.rpartition("="))
        if not equals:
            msg = f"--price {text}: has no price; write it as 'vCPUs x2=$0.50/h'"
            raise click.UsageError(msg)
        if name not in names:
            hint = nearest_hint(name, names) or f"there are {', '.join(names)}"
            msg = f"--price {text}: there is no change '{name}'; {hint}"
            raise click.UsageError(msg)
        try:
            found[name] = parse(price, USD_PER_SECOND)
        except UnitError as error:
            msg = f"--price {text}: '{price}' {error}"
            raise click.UsageError(msg) from error
    return found


def _names(reader: CandidateReader, wanted: str | None) -> tuple[str, ...] | None:
    """Accelerators by name or pattern, as the catalogue has them."""
    if wanted is None:
        return None
    known = reader.names("hardware.gpu")
    found: list[str] = []
    for part in (text.strip() for text in wanted.split(",")):
        pattern = "gpu/*" if part == ALL else part if part.startswith("gpu/") else f"gpu/{part}"
        matching = fnmatch.filter(known, pattern)
        if not matching:
            from simulator.schema.fields import nearest_hint

            msg = (
                f"--gpus {wanted}: there is no accelerator '{part}'; {nearest_hint(pattern, known)}"
            )
            raise click.UsageError(msg)
        found += matching
    return tuple(found)


def _swapped(
    reader: CandidateReader, gpus: Sequence[str], seed: int, met: BugLog
) -> tuple[Generation, ...]:
    from simulator.studies.whatif import generations

    with progress_line("swapping accelerators") as progress:
        return generations(_reading(reader), gpus, seed=seed, progress=progress, met=met)


def _with_tornado(found: WhatIf, reader: CandidateReader, metric: str, seed: int) -> WhatIf:
    from dataclasses import replace

    from simulator.studies.sensitivity import tornado

    scenario = reader.read({}).scenario
    with progress_line("varying rates") as progress:
        return replace(found, tornado=tornado(scenario, metric, seed=seed, progress=progress))


def _rendered(found: WhatIf, form: str) -> str:
    from simulator.report.format.table import Format, reported
    from simulator.report.whatif import text as report

    return reported(report, found, Format(form))
