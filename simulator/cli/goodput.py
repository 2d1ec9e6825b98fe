"""``plan goodput`` and ``plan campaign``: runs with failures, and several jobs on one pool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.options import (
    examples,
    format_option,
    job_arguments,
    profiles_option,
    quantity,
    seed_option,
)
from simulator.cli.output import Exit, answer, progress_line
from simulator.errors import PlanError

if TYPE_CHECKING:
    from simulator.reading.long_run.campaign import Campaign
    from simulator.schema.long_run import PooledJob
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
@click.option(
    "--deadline", metavar="TIME", help="Also print the probability of finishing within TIME: 30 d."
)
@click.option(
    "--budget", metavar="MONEY", help="Also print the probability of costing at most MONEY: $20k."
)
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
    """Predict the completion time and cost of SCENARIO with failures and spot interruptions.

    The sections [failures], [checkpoint] and [spot] of the scenario describe failure rates,
    checkpoints and the availability of spot machines; failures.like=rsc-1 takes the rates of a
    published cluster. Simulates many runs with the predicted step time: attempts, lost work,
    restarts, waiting for machines. Compares purchase options, each with its probability of being
    the cheapest.
    """
    from simulator.report import goodput as report
    from simulator.schema.long_run import Terms
    from simulator.studies.purchase import long_run
    from simulator.units import SECOND, USD

    latest, most = quantity(deadline, SECOND, "--deadline"), quantity(budget, USD, "--budget")
    terms = Terms(deadline=latest, budget=most, draws=draws)
    with progress_line("simulating runs") as progress:
        prediction, found = long_run(subject.reader, terms=terms, seed=seed, progress=progress)
    answer(report.document(found), form)
    return Exit.FINE if prediction.fits else Exit.DOES_NOT_FIT


@click.command(epilog=examples("plan campaign quarter.toml", "plan campaign quarter.toml --json"))
@click.argument("file", type=click.Path(path_type=Path))
@profiles_option
@format_option
@click.option(
    "--draws",
    type=click.IntRange(min=10, max=10_000),
    default=200,
    show_default=True,
    metavar="N",
    help="How many courses of the campaign are drawn.",
)
@seed_option
def campaign(*, file: Path, profiles: tuple[Path, ...], form: str, draws: int, seed: int) -> int:
    """Say how the jobs of FILE share a pool of machines: waits, ends and the bill.

    FILE has a [pool] with machines, price and order (fifo or priority), and a [[job]] for each:
    a scenario, or a duration and machines, how often it comes and how urgent it is.
    """
    from simulator.long_run.campaign import campaign as drawn
    from simulator.reading.long_run.campaign import read_campaign
    from simulator.report import goodput as report

    asked = read_campaign(file)
    price = asked.pool.price
    jobs: list[PooledJob] = []
    with progress_line("predicting") as progress:
        for number in range(len(asked.jobs)):
            job, known = _job(asked, number, profiles, seed)
            jobs.append(job)
            price = known if price is None else price
            progress((number + 1) / len(asked.jobs))
    pool = asked.pool
    found = drawn(
        jobs, machines=pool.machines, order=pool.order, price=price, draws=draws, seed=seed
    )
    answer(report.campaign_document(found), form)
    return Exit.FINE


def _job(
    asked: Campaign, number: int, profiles: tuple[Path, ...], seed: int
) -> tuple[PooledJob, float | None]:
    """Return job `number` of a campaign with its run times, and the price per machine [$/s].

    The price is None if it is unknown or the job has no scenario.
    """
    from simulator.schema.long_run import PooledJob

    told = asked.jobs[number]
    takes: tuple[float, ...] = (told.duration or 0.0,)
    machines, price = told.machines or 1, None
    if told.scenario is not None:
        from simulator.long_run.forecast import finishes
        from simulator.predict import predict
        from simulator.reading.scenario import load_scenario

        near = asked.folder / told.scenario
        name = str(near) if near.is_file() else told.scenario
        settings = tuple(told.settings)
        try:
            scenario = load_scenario(name, overrides=settings, profiles=profiles)
            prediction = predict(scenario, seed=seed)
        except PlanError as error:
            raise asked.refuse_scenario(number, error) from error
        own = sum(group.count for group in prediction.scenario.cluster.groups)
        machines = told.machines or own
        rent = prediction.cost.per_second
        price = None if rent is None else rent / own
        # equally likely run times, with failures or only with the uncertainty of the step
        takes = finishes(prediction, seed=seed)
        if machines > asked.pool.machines:
            hint = f"the pool has {asked.pool.machines}"
            raise asked.refuse(number, "scenario", f"takes {machines} machines", hint)
        if not all(time < float("inf") for time in takes):
            hint = "its failures come faster than it gets on"
            raise asked.refuse(number, "scenario", "may never end", hint)
    job = PooledJob(
        name=told.name,
        machines=machines,
        takes=takes,
        count=told.count,
        start=told.start,
        every=told.every,
        random=told.random,
        priority=told.priority,
    )
    return job, price
