"""``plan calibrate``: fit parameters of jobs and services to measured runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.options import (
    complete_measurement_sets,
    complete_scenarios,
    examples,
    format_option,
    jobs_option,
    output_option,
    profiles_option,
    read_sets,
    refuse_given,
)
from simulator.cli.output import answer, complain, progress_line, today, write_file
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from simulator.calibration.calibrate import Tried
    from simulator.schema.measurement import MeasurementSet


@click.command(
    epilog=examples(
        "plan calibrate my-runs.csv --scenario my-job.toml -o fitted.toml",
        "plan calibrate measured.toml --fit input.decode -o fitted.toml",
        "plan calibrate benchmarks.csv --scenario my-service.toml -o my-service-fitted.toml",
    )
)
@click.argument(
    "sets",
    nargs=-1,
    required=True,
    metavar="SET...",
    shell_complete=complete_measurement_sets,
)
@click.option(
    "--scenario",
    "scenario",
    metavar="SCENARIO",
    shell_complete=complete_scenarios,
    help="What the rows of a plain table are runs of: a file or a shipped scenario.",
)
@click.option(
    "--fit",
    "names",
    multiple=True,
    metavar="NAME",
    help=(
        "Key to fit, such as input.decode, or a factor of [calibration]; repeatable. "
        "Without it the factor that explains the rows best is fitted."
    ),
)
@click.option(
    "--start",
    multiple=True,
    metavar="NAME=VALUE",
    help="Where a parameter starts; else where the set, the factor or the scenario says.",
)
@click.option(
    "--low",
    multiple=True,
    metavar="NAME=VALUE",
    help="Its lower bound; else that of the set or the factor, or a tenth of the start.",
)
@click.option(
    "--high",
    multiple=True,
    metavar="NAME=VALUE",
    help="Its upper bound; else that of the set or the factor, or ten times the start.",
)
@click.option("--all", "use_all", is_flag=True, help="Use rows held out for testing too.")
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    help="Parts of the configurations for cross-validation.",
)
@output_option(
    "-o", "--output", text="Write an overlay for --calibration; appears whole or not at all."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="Rows to list as farthest off.",
)
@format_option
@jobs_option
@profiles_option
def calibrate(  # noqa: PLR0913 - one parameter an option
    *,
    sets: tuple[str, ...],
    scenario: str | None,
    names: tuple[str, ...],
    start: tuple[str, ...],
    low: tuple[str, ...],
    high: tuple[str, ...],
    use_all: bool,
    folds: int,
    output: Path | None,
    force: bool,
    worst: int,
    jobs: int | None,
    profiles: tuple[Path, ...],
    form: str,
) -> None:
    """Fit parameters to measured runs: tables of your own, or measurement SETs.

    A table is a CSV file with a line for each run of --scenario: columns are keys (workers,
    batch_size) and what was seen (samples/s, step, utilization). A set is a TOML file that
    describes a table, or the name of a shipped one.

    Prints values with 80% intervals, what stands at a bound, what the rows cannot tell apart,
    and the error as fitted and on configurations held out. Rows held out for testing are not
    used. No profile is changed: what was fitted goes into an overlay.

    Runs of a service (columns such as concurrency, ttft, tpot) fit its four factors together; the
    output FILE is then a service that extends the original.
    """
    if output is not None and output.is_file() and not force:
        hint = "give --force to replace it"
        problem = Problem(origin="--output", message="exists", found=str(output), hint=hint)
        raise InputError((problem,))
    loaded = read_sets(sets, scenario)
    if any(one.serves for one in loaded):
        given = {"names": names, "start": start, "low": low, "high": high, "profiles": profiles}
        refuse_given(given, "services")
        calibrate_services(loaded, output, form, use_all=use_all)
        return
    from simulator.calibration.calibrate import calibrate as fitted
    from simulator.calibration.calibrate import likeliest, overlay_of
    from simulator.calibration.fitting import parameters_of
    from simulator.report.calibration import document
    from simulator.studies.search.workers import cores

    tried: Sequence[Tried] = ()
    processes = jobs or cores()
    if not names:
        if start or low or high:
            from simulator.schema.calibration import FACTORS

            factors = ", ".join(kind.name for kind in FACTORS)
            msg = f"say what to fit: --fit with a key of the scenario, or with a factor: {factors}"
            raise click.UsageError(msg)
        with progress_line("looking for what explains the runs") as progress:
            tried = likeliest(
                loaded, use_all=use_all, profiles=profiles, processes=processes, progress=progress
            )
        names = (tried[0].kind.name,)
    fit = parameters_of(names, loaded, {"start": start, "low": low, "high": high})
    with progress_line("fitting") as progress:
        found = fitted(
            loaded,
            fit,
            use_all=use_all,
            folds=folds,
            profiles=profiles,
            processes=processes,
            progress=progress,
        )
    if output is not None:
        from simulator.reading.fitted.overlay import overlay_text
        from simulator.version import __version__

        overlay = overlay_of(found, today().isoformat())
        write_file(output, overlay_text(overlay, __version__), "--output")
    answer(document(found, worst, tried, None if output is None else str(output)), form)


def calibrate_services(
    sets: Sequence[MeasurementSet], output: Path | None, form: str, *, use_all: bool
) -> None:
    """Fit the factors of a service to measured runs; print them and write a service file.

    Parameters
    ----------
    sets : sequence of MeasurementSet
        The measured runs, all of one service.
    output : pathlib.Path or None
        Service file to write, which extends the measured service with the fitted factors.
    form : str
        Output format.
    use_all : bool
        Use the rows held out for testing, too.

    Raises
    ------
    InputError
        If a set has runs of jobs, runs are of several services, or no row may be used for fitting.
    """
    from simulator.calibration.service_factors import calibrate_service, settings_of
    from simulator.reading.service.scenario import fitted_service
    from simulator.report.calibration import service_document
    from simulator.schema.measurement import Split

    wanted = (Split.FIT, Split.TEST) if use_all else (Split.FIT,)
    rows = [r for one in sets for r in one.rows if r.split in wanted and not r.excluded]
    base = _base(sets, rows)
    metrics = dict.fromkeys(name for one in sets for name in one.metrics)
    found = calibrate_service(rows, tuple(metrics))
    if output is not None:
        path = Path(base)
        near = os.path.relpath(path, output.resolve().parent) if path.is_file() else base
        write_file(output, fitted_service(near, settings_of(found.factors), len(rows)), "--output")
    answer(service_document(found), form)
    if output is not None:
        complain(f"wrote {output}; use it with: plan simulate {output}")


def _base(sets: Sequence[MeasurementSet], rows: Sequence[object]) -> str:
    """Return the service of all rows; raise an `InputError` if it is not the same for all."""
    jobs = [one.name for one in sets if not one.serves]
    bases = {row.base for one in sets for row in one.rows}
    if jobs:
        message, hint = f"{jobs[0]} has runs of jobs", "calibrate these by themselves"
    elif len(bases) > 1:
        message, hint = "rows are runs of several services", "give those of one"
    elif not rows:
        message = "hold no row that may be fitted to"
        hint = "rows of split fit are used; --all takes those held out for testing too"
    else:
        return bases.pop()
    raise InputError((Problem(origin="the sets", message=message, hint=hint),))
