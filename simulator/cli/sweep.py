"""``plan sweep``: many variants of a scenario, which are best, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simulator.cli.metrics import note_old_names
from simulator.cli.options import Named, evidence_option, examples, format_option, seed_option
from simulator.cli.output import Exit, check_writable, complain, emit, ended, made, write_file
from simulator.cli.searching import Means, run_search, search_options
from simulator.cli.serving import swept
from simulator.cli.subjects import InFull, as_typed, subject_arguments

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.report.html.page import Made
    from simulator.results.prediction import Prediction
    from simulator.schema.goal import Axes, Plain
    from simulator.studies.search.explore import Request
    from simulator.studies.search.findings import Findings
    from simulator.studies.subject import Subject
    from simulator.validation.local_coverage import Neighbourhood

Command = TypeVar("Command", bound=Callable[..., Any])

SAMPLINGS = ("grid", "latin-hypercube", "sobol")


def _axes_options(verb: Command) -> Command:
    """Add what says which candidates there are."""
    for add in (
        click.option(
            "--points",
            type=click.IntRange(min=1),
            metavar="N",
            help="Points to draw, where --sample draws them.",
        ),
        click.option(
            "--sample",
            type=Named(SAMPLINGS),
            help="Every combination (grid), or points drawn evenly among the axes.",
        ),
        click.option(
            "--where",
            metavar="CONDITION",
            help="Only candidates that meet this, such as \"cost.usd_to_train < '$500'\".",
        ),
        click.option(
            "--over",
            "over",
            multiple=True,
            metavar="KEY=VALUES",
            help="Vary a key: input.workers=1..16, hardware.machine=instance/aws/*; may be given "
            "again.",
        ),
    ):
        verb = add(verb)
    return verb


def _choice_options(verb: Command) -> Command:
    """Add what says which candidates are wanted."""
    for add in (
        click.option("--exhaustive", is_flag=True, help="Predict every candidate that can run."),
        click.option(
            "--margin",
            default="0%",
            show_default=True,
            metavar="SHARE",
            help="Also predict what is worse than the front by no more than this.",
        ),
        click.option(
            "--top",
            type=click.IntRange(min=1),
            metavar="K",
            help="Also print the K best by the first objective.",
        ),
        click.option(
            "--by",
            "by",
            multiple=True,
            metavar="METRIC",
            help="An objective of the Pareto front, or min:/max: and an expression; may be given "
            "again. By default total_time_s and cost.usd_to_train.",
        ),
    ):
        verb = add(verb)
    return verb


def _file_options(verb: Command) -> Command:
    """Add where results are written beside standard output."""
    for name, help_ in (
        ("html", "Write a report with drawings as one HTML file."),
        ("plot", "Draw it as .png, .svg or .pdf: a curve, a heat map or the Pareto front."),
        ("parquet", "Write all candidates as a Parquet file."),
        ("csv", "Write all candidates as CSV."),
    ):
        option = click.option(
            f"--{name}", name, type=click.Path(path_type=Path), metavar="FILE", help=help_
        )
        verb = option(verb)
    return verb


@click.command(
    epilog=examples(
        "plan sweep mine.toml --over input.workers=1..16 --plot workers.png",
        "plan sweep mine.toml --over 'hardware.machine=node/*' --where \"total_time_s < '3 h'\"",
        "plan sweep mine.toml --over train.batch_size=64,128,256 --html sweep.html",
        "plan sweep mine.toml --cluster tcp://scheduler:8786",
    )
)
@subject_arguments
@_axes_options
@_choice_options
@format_option
@_file_options
@evidence_option("the best, in --html")
@search_options
@seed_option
def sweep(  # noqa: PLR0913 - one parameter an option
    *,
    subject: Subject[Any, Any],
    over: tuple[str, ...],
    where: str | None,
    sample: str | None,
    points: int | None,
    by: tuple[str, ...],
    top: int | None,
    margin: str,
    exhaustive: bool,
    form: str,
    csv: Path | None,
    parquet: Path | None,
    plot: Path | None,
    html: Path | None,
    evidence: bool,
    store: Path | None,
    resume: bool,
    jobs: int | None,
    cluster: str | None,
    seed: int,
) -> int:
    """Predict variants of SCENARIO and print the Pareto front of time and cost.

    Varied are the keys of its [sweep] section and those of --over, which win. Candidates that
    cannot be among the best even in their best case are not simulated. Results are stored as they
    come: after Ctrl-C, or a crash, the same command goes on where it stopped. Exit code 1 says
    that no candidate can run.
    """
    if subject.noun == "service":
        return swept(subject.reader, over, form, seed)
    files = {"--csv": csv, "--parquet": parquet, "--plot": plot, "--html": html}
    _check(files)
    reader = subject.reader
    axes = _axes(reader, over, where=where, sample=sample, points=points, seed=seed)
    note_old_names(axes.where, *by)
    request = _request(reader, axes, by, top=top, margin=margin, exhaustive=exhaustive, seed=seed)
    means = Means(store=store, resume=resume, jobs=jobs, cluster=cluster)
    outcomes = run_search(request, means)
    from simulator.studies.search.findings import findings

    found = findings(outcomes, request.objectives, top=top, margin=request.margin)
    found = replace(found, prices=_prices(reader, found))
    name = str(reader.given("name") or Path(subject.name_or_path).stem)
    whole = InFull(seed=seed, jobs=jobs, profiles=subject.profiles, evidence=evidence)
    how = made(seed, as_typed(subject))
    _write(found, name, files, partial(whole.of, reader), how)
    from simulator.report.render import render
    from simulator.report.sweep import document

    emit(render(document(found, name), form))
    return _code(found)


def _prices(reader: CandidateReader, found: Findings) -> tuple[str, ...]:
    """Whose listed prices are in the bills that are printed, each once."""
    from simulator.report.sweep import MAX_FRONT
    from simulator.results.price_age import prices_of

    shown = [place.outcome for place in found.front[:MAX_FRONT]] + list(found.best)
    return prices_of(reader.read(outcome.candidate.settings).scenario for outcome in shown)


def _check(files: dict[str, Path | None]) -> None:
    """Refuse files that cannot be written, before a long search rather than after it."""
    taken: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        check_writable(path, option)
        other = taken.setdefault(path.resolve(), option)
        if other != option and not (path.exists() and not path.is_file()):
            msg = f"{other} and {option} would write the same file, {path}; name two"
            raise click.UsageError(msg)
    plot, parquet = files["--plot"], files["--parquet"]
    if plot is not None:
        from simulator.report.plot import check_format

        check_format(plot)
    if parquet is not None:
        from simulator.report.sweep import check_parquet

        check_parquet()


def _axes(  # noqa: PLR0913 - one parameter an option
    reader: CandidateReader,
    over: tuple[str, ...],
    *,
    where: str | None,
    sample: str | None,
    points: int | None,
    seed: int,
) -> Axes:
    """The axes of the file with those of the command line."""
    from simulator.reading.search.axes import parse_axis, with_axes
    from simulator.schema.goal import Sampling

    axes = with_axes(reader.axes, [parse_axis(text) for text in over])
    if not axes.axes:
        msg = "nothing to vary: give --over KEY=VALUES, or the scenario a [sweep] section"
        raise click.UsageError(msg)
    sampling = axes.sampling if sample is None else Sampling(sample)
    if sampling is Sampling.GRID and points is not None:
        msg = "--points draws points: add --sample latin-hypercube or --sample sobol"
        raise click.UsageError(msg)
    both = [condition for condition in (axes.where, where) if condition]
    return replace(
        axes,
        sampling=sampling,
        points=points or axes.points,
        where=f"({both[0]}) and ({both[1]})" if len(both) > 1 else "".join(both),
        seed=seed or axes.seed,
    )


def _request(  # noqa: PLR0913 - one parameter an option
    reader: CandidateReader,
    axes: Axes,
    by: tuple[str, ...],
    *,
    top: int | None,
    margin: str,
    exhaustive: bool,
    seed: int,
) -> Request:
    from simulator.studies.search.candidates import expand
    from simulator.studies.search.explore import TIME_AND_COST, Request
    from simulator.studies.search.scoring import objective_of, share_of

    return Request(
        reader=reader,
        candidates=expand(axes, reader),
        objectives=tuple(objective_of(text) for text in by) or TIME_AND_COST,
        top=top,
        margin=share_of(margin, "--margin"),
        exhaustive=exhaustive,
        where=axes.where,
        seed=seed,
    )


def _write(
    found: Findings,
    name: str,
    files: dict[str, Path | None],
    whole: Callable[[Mapping[str, Plain]], tuple[Prediction, Neighbourhood | None]],
    how: Made,
) -> None:
    csv, parquet, plot = files["--csv"], files["--parquet"], files["--plot"]
    html = files["--html"]
    if csv is not None:
        from simulator.report.sweep import csv_text

        write_file(csv, csv_text(found), "--csv")
    if parquet is not None:
        from simulator.report.sweep import parquet_bytes

        write_file(parquet, parquet_bytes(found), "--parquet")
    if plot is not None:
        from simulator.report.plot import as_bytes, sweep_figure

        write_file(plot, as_bytes(sweep_figure(found, name), plot), "--plot")
    if html is not None:
        from simulator.report.html.sweep import as_page

        best, close = None, None
        if found.front:
            best, close = whole(found.front[0].outcome.candidate.settings)
        write_file(html, as_page(found, name, best, close, how), "--html")


def _code(found: Findings) -> Exit:
    from simulator.studies.search.outcome import Status

    bugs = [outcome.reason for outcome in found.outcomes if outcome.status is Status.BUG]
    return ended(_of_answer(found), bugs)


def _of_answer(found: Findings) -> Exit:
    if found.front:
        return Exit.FINE
    from simulator.report.sweep import nothing_found
    from simulator.studies.search.outcome import Status

    complain(nothing_found(found))
    refused = all(outcome.status is Status.REFUSED for outcome in found.outcomes)
    unknown = found.counts[Status.PREDICTED] > 0
    return Exit.BAD_INPUT if refused or unknown else Exit.DOES_NOT_FIT
