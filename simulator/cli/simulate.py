"""``plan simulate``: what a scenario's job takes, and what limits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.exits import Exit, ended
from simulator.cli.idle import with_idle_keys
from simulator.cli.measured import with_measured
from simulator.cli.next_actions import next_actions
from simulator.cli.observed import explained, observed_option
from simulator.cli.options import examples, file_option, format_option
from simulator.cli.output import check_writable, columns, emit, write_file
from simulator.cli.price_age import price_age_option, warn_of_old
from simulator.cli.progress import progress_line
from simulator.cli.scenarios import (
    calibration_option,
    candidate_reader,
    scenario_arguments,
    seed_option,
    service_reader,
)
from simulator.cli.serving import refuse, simulated
from simulator.report.text import WIDTH

if TYPE_CHECKING:
    from simulator.results.prediction import Prediction


@click.command(
    epilog=examples(
        "plan simulate mine.toml",
        "plan simulate mine.toml --set input.workers=8 --format markdown",
        "plan simulate mine.toml --trace steps.json",
    )
)
@scenario_arguments
@format_option
@calibration_option
@seed_option
@price_age_option
@file_option(
    "--trace", text="Write a timeline of the simulated steps for Perfetto or chrome://tracing."
)
@click.option(
    "--log",
    "every",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also print samples/s for every N simulated steps, as a training loop would.",
)
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Simulate at most N steps.")
@observed_option
@click.option(
    "--actions/--no-actions",
    "wanted",
    default=None,
    help="Whether to say what to do next: as usual in the short report only; in --json if asked.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Print everything: each resource, every item of memory, all figures with their sources.",
)
def simulate(  # noqa: PLR0913 - one parameter an option
    *,
    scenario: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    form: str,
    seed: int,
    price_age: str | None,
    trace: Path | None,
    every: int | None,
    steps: int | None,
    observed: str | None,
    full: bool,
    wanted: bool | None,
) -> int:
    """Simulate SCENARIO: a TOML file, the name of a shipped scenario, or - for standard input.

    Prints what limits the job, its speed, memory and cost, each with its 80% interval, what the
    answer depends on most, and up to three things to do next. Exit code 1: the job does not fit.
    """
    if wanted and form not in {"table", "json"}:
        msg = f"--actions and --format {form} exclude each other: actions are no metrics"
        raise click.UsageError(msg)
    if form != "table" and every is not None:
        msg = f"--log and --format {form} exclude each other: standard output is data alone"
        raise click.UsageError(msg)
    if trace is not None:
        check_writable(trace, "--trace")
    service = service_reader(scenario, overrides, profiles)
    if service is not None:
        beside = {"trace": trace, "log": every, "steps": steps, "observed": observed}
        refuse(**beside, calibration=calibration)
        return simulated(service, form, seed, full=full, price_age=price_age, actions=wanted)
    reader = candidate_reader(scenario, overrides, profiles, calibration)
    seen = None if observed is None else explained(reader, observed, seed)
    job = reader.read(seen.settings if seen else {}).scenario
    from simulator.predict import predict
    from simulator.results.price_age import listed_prices
    from simulator.studies.changes.ways_to_buy import with_ways

    with progress_line("simulating") as progress:
        prediction = predict(
            job, seed=seed, trace=trace is not None, progress=progress, max_steps=steps
        )
    prediction = with_measured(with_idle_keys(with_ways(prediction, reader), reader), profiles)
    if trace is not None:
        _write_timeline(prediction, trace)
    short = form == "table" and not full
    bugs: list[str] = []
    found = None
    if short if wanted is None else wanted:
        given = seen.settings if seen else {}
        found, bugs = next_actions(reader, prediction, profiles, given=given)
    from simulator.report.prediction.job import document
    from simulator.report.render import render

    answer = document(prediction, found, full=full, observed=seen, every=every)
    emit(render(answer, form, width=WIDTH if full else columns()))
    warn_of_old(listed_prices(job), price_age)
    return ended(Exit.FINE if prediction.fits else Exit.DOES_NOT_FIT, bugs)


def _write_timeline(prediction: Prediction, path: Path) -> None:
    from simulator.report.prediction.timeline import timeline_text

    write_file(path, timeline_text(prediction), "--trace")
