"""``plan report``: everything about a scenario as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.exits import Exit, ended
from simulator.cli.idle import with_idle_keys
from simulator.cli.in_full import evidence_option, near
from simulator.cli.next_actions import next_actions
from simulator.cli.options import examples, jobs_option
from simulator.cli.output import check_writable, complain, made, write_file
from simulator.cli.progress import progress_line
from simulator.cli.scenarios import (
    calibration_option,
    candidate_reader,
    scenario_arguments,
    seed_option,
    service_reader,
)
from simulator.cli.serving import refuse, reported_page


@click.command(
    epilog=examples(
        "plan report mine.toml -o report.html",
    )
)
@scenario_arguments
@click.option(
    "-o",
    "--output",
    "output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="Where the report goes.",
)
@evidence_option("the scenario")
@calibration_option
@seed_option
@jobs_option
def report(  # noqa: PLR0913 - one parameter an option
    *,
    scenario: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    output: Path,
    evidence: bool,
    seed: int,
    jobs: int | None,
) -> int:
    """Write a report of SCENARIO: one HTML file that opens anywhere and loads nothing.

    It holds the verdict, what to do next, the step, how busy each resource is, a timeline of some
    steps, memory, cost, the measured runs most like it with the errors there, and what the numbers
    rest on.
    Exit code 1 says that the job does not fit.
    """
    check_writable(output, "--output")
    service = service_reader(scenario, overrides, profiles)
    if service is not None:
        refuse(calibration=calibration)
        return reported_page(service, output, seed)
    reader = candidate_reader(scenario, overrides, profiles, calibration)
    job = reader.read({}).scenario
    from simulator.predict import predict
    from simulator.report.html.prediction import as_page
    from simulator.report.prediction.actions import action_texts
    from simulator.studies.changes.ways_to_buy import with_ways

    with progress_line("simulating") as progress:
        prediction = predict(job, seed=seed, trace=True, progress=progress)
    prediction = with_idle_keys(with_ways(prediction, reader), reader)
    found = near(job, jobs, profiles) if evidence else None
    helpful, bugs = next_actions(reader, prediction, profiles)
    page = as_page(prediction, found, action_texts(helpful, prediction), made(seed))
    write_file(output, page, "--output")
    complain(f"wrote {output}")
    return ended(Exit.FINE if prediction.fits else Exit.DOES_NOT_FIT, bugs)
