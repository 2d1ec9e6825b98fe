"""``plan goodput``: when a run that is interrupted ends, what it costs, where its time goes."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.exits import Exit
from simulator.cli.options import examples, format_option
from simulator.cli.output import emit
from simulator.cli.progress import progress_line
from simulator.cli.scenarios import (
    calibration_option,
    candidate_reader,
    scenario_arguments,
    seed_option,
)


@click.command(
    epilog=examples(
        "plan goodput mine.toml --set failures.like=rsc-1",
        "plan goodput mine.toml --deadline '30 d' --budget '$200000'",
    )
)
@scenario_arguments
@format_option
@click.option(
    "--draws",
    type=click.IntRange(min=100, max=100_000),
    default=1000,
    show_default=True,
    metavar="N",
    help="How many lives of the run are drawn.",
)
@click.option("--deadline", metavar="TIME", help="Also give the chance to end by then, as '30 d'.")
@click.option("--budget", metavar="MONEY", help="Also give the chance to stay below, as '$20000'.")
@calibration_option
@seed_option
def goodput(  # noqa: PLR0913 - one parameter an option
    *,
    scenario: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    form: str,
    draws: int,
    deadline: str | None,
    budget: str | None,
    seed: int,
) -> int:
    """Say when the run of SCENARIO ends and what it costs once failures are counted.

    Its sections [failures], [checkpoint] and [spot] say what may happen; failures.like=rsc-1 takes
    the rates of a published cluster. Lives of the run are drawn on top of the predicted step:
    attempts, lost work, restarts, waiting for machines. All ways to buy the machines stand side by
    side, with the chance of each to be the cheapest.
    """
    from simulator.cli.import_output import quantity
    from simulator.report import goodput as report
    from simulator.report.render import render
    from simulator.schema.long_run import Terms
    from simulator.studies.changes.ways_to_buy import long_run
    from simulator.units import SECOND, USD

    latest, most = quantity(deadline, SECOND, "--deadline"), quantity(budget, USD, "--budget")
    reader = candidate_reader(scenario, overrides, profiles, calibration)
    terms = Terms(deadline=latest, budget=most, draws=draws)
    with progress_line("drawing lives") as progress:
        prediction, found = long_run(reader, terms=terms, seed=seed, progress=progress)
    emit(render(report.document(found), form))
    return Exit.FINE if prediction.fits else Exit.DOES_NOT_FIT
