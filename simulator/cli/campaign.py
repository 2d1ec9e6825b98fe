"""``plan campaign``: several jobs on one pool, who waits how long, and what all of it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.options import examples, format_option, profiles_option, seed_option
from simulator.cli.output import Exit, emit
from simulator.cli.progress import progress_line

if TYPE_CHECKING:
    from simulator.reading.long_run.campaign import Campaign
    from simulator.results.prediction import Prediction
    from simulator.schema.campaign import PooledJob


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
    from simulator.report.render import render

    asked = read_campaign(file)
    price = asked.pool.price
    jobs: list[PooledJob] = []
    with progress_line("predicting") as progress:
        for number in range(len(asked.jobs)):
            job, known = _job(asked, number, profiles, seed)
            jobs.append(job)
            price = known if price is None else price
            progress((number + 1) / len(asked.jobs))
    found = drawn(
        jobs,
        machines=asked.pool.machines,
        order=asked.pool.order,
        price=price,
        draws=draws,
        seed=seed,
    )
    emit(render(report.campaign_document(found), form))
    return Exit.FINE


def _job(
    asked: Campaign, number: int, profiles: tuple[Path, ...], seed: int
) -> tuple[PooledJob, float | None]:
    """A job with the times of its runs, and the price of one of its machines if it is known."""
    from simulator.schema.campaign import PooledJob

    told = asked.jobs[number]
    takes: tuple[float, ...] = (told.duration or 0.0,)
    machines, price = told.machines or 1, None
    if told.scenario is not None:
        prediction = _predicted(asked, told.scenario, tuple(told.settings), profiles, seed)
        own = sum(group.count for group in prediction.scenario.cluster.groups)
        machines = told.machines or own
        rent = prediction.cost.per_second
        price = None if rent is None else rent / own
        takes = _times(prediction, seed)
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


def _predicted(
    asked: Campaign, scenario: str, settings: tuple[str, ...], profiles: tuple[Path, ...], seed: int
) -> Prediction:
    from simulator.predict import predict
    from simulator.reading.scenario import load_scenario

    beside = asked.folder / scenario
    name = str(beside) if beside.is_file() else scenario
    return predict(load_scenario(name, overrides=settings, profiles=profiles), seed=seed)


def _times(prediction: Prediction, seed: int) -> tuple[float, ...]:
    """Return equally likely times of one run, with its failures or only its step's uncertainty."""
    from simulator.long_run.forecast import finishes

    return finishes(prediction, seed=seed)
