"""``plan goodput``: end, cost and use of time of a run with failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from simulator.cli.options import examples, format_option, quantity, seed_option
from simulator.cli.output import Exit, emit
from simulator.cli.progress import progress_line
from simulator.cli.subjects import job_arguments

if TYPE_CHECKING:
    from simulator.studies.subject import JobSubject


@click.command(
    epilog=examples(
        "plan goodput mine.toml --set failures.like=rsc-1",
        "plan goodput mine.toml --deadline '30 d' --budget '$200000'",
    )
)
@job_arguments
@format_option
@click.option(
    "--draws",
    type=click.IntRange(min=100, max=100_000),
    default=1000,
    show_default=True,
    metavar="N",
    help="Number of simulated runs.",
)
@click.option("--deadline", metavar="TIME", help="Also give the chance to end by then, as '30 d'.")
@click.option("--budget", metavar="MONEY", help="Also give the chance to stay below, as '$20000'.")
@seed_option
def goodput(  # noqa: PLR0913 - one parameter an option
    *,
    subject: JobSubject,
    form: str,
    draws: int,
    deadline: str | None,
    budget: str | None,
    seed: int,
) -> int:
    """Predict when the run of SCENARIO ends and what it costs, with failures.

    Its sections [failures], [checkpoint] and [spot] describe the failures; failures.like=rsc-1
    takes the rates of a published cluster. Many runs are simulated on top of the predicted step:
    attempts, lost work, restarts, waiting for machines. All ways to buy the machines are compared,
    each with its probability to be the cheapest.
    """
    from simulator.report import goodput as report
    from simulator.report.render import render
    from simulator.schema.long_run import Terms
    from simulator.studies.purchase import long_run
    from simulator.units import SECOND, USD

    latest, most = quantity(deadline, SECOND, "--deadline"), quantity(budget, USD, "--budget")
    terms = Terms(deadline=latest, budget=most, draws=draws)
    with progress_line("simulating runs") as progress:
        prediction, found = long_run(subject.reader, terms=terms, seed=seed, progress=progress)
    emit(render(report.document(found), form))
    return Exit.FINE if prediction.fits else Exit.DOES_NOT_FIT
