"""``plan size``: the least of a resource that is enough: for a job's speed, a service's limits."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from simulator.cli.options import Named, examples, format_option, seed_option
from simulator.cli.output import Exit, emit
from simulator.cli.progress import progress_line
from simulator.cli.subjects import as_typed, subject_arguments
from simulator.errors import InputError, PlanError, Problem, UnitError

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.reading.service.scenario import ServiceReader
    from simulator.schema.scenario import Scenario
    from simulator.studies.levers.lever import Settings
    from simulator.studies.size import Sized
    from simulator.studies.subject import Subject

MACHINES = "machines"
RESOURCES = ("storage", "network", "cpu", "ram", MACHINES)
"""Of jobs as `studies.levers.catalogue.Resource` has them, whose module takes long to import; machines
are those of a service."""
_COUNT: Final = re.compile(r"\d+(?:\.\.\d+(?: +(?:step|x) *\d+)?)?")
"""A number of machines or a range of them."""
_MOST: Final = 64
"""Numbers of machines that are sized at once; a range of more was hardly meant one by one."""


@click.command(
    epilog=examples(
        "plan size storage mine.toml --loss 5%",
        "plan size network mine.toml --machines '8..1024 x2'",
        "plan size machines chat.toml",
    )
)
@click.argument("resource", type=Named(RESOURCES))
@subject_arguments
@format_option
@click.option(
    "--loss",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="Share of the speed with plenty of it that may be lost.",
)
@click.option(
    "--machines",
    "counts",
    default="",
    metavar="LIST",
    help="Numbers of machines as in plan sweep, such as 1,8,64 or '8..1024 x2', which doubles; the "
    "scenario's own by default.",
)
@seed_option
def size(  # noqa: PLR0913 - one parameter an option
    *,
    resource: str,
    subject: Subject[Any, Any],
    form: str,
    loss: str,
    counts: str,
    seed: int,
) -> int:
    """Find the least storage, network, CPU or RAM that SCENARIO needs, or the fewest machines.

    Enough is what loses no more than --loss of the speed that the job has with plenty of the
    resource. All else stays as the scenario says; CPUs bring workers in proportion. Machines are
    those with which a service (mode = "serve") keeps its limits, at its rate and at higher ones.
    """
    if subject.noun == "service":
        return _of_service(subject.reader, resource, form, seed, as_typed(subject))
    if resource == MACHINES:
        msg = "machines are sized for services; for a job: plan sweep --over hardware.count=1..8"
        raise click.UsageError(msg)
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.report import size as report
    from simulator.report.format.table import Format, reported
    from simulator.studies.levers.catalogue import Resource
    from simulator.studies.size import offers, sized

    asked, share, numbers = Resource(resource), _share(loss), _counts(counts)
    reader = subject.reader
    with progress_line("sizing") as progress:
        rows = sized(
            lambda settings: reader.read(settings).scenario,
            asked,
            share,
            counts=numbers,
            seed=seed,
            progress=progress,
        )
    job, catalogue = reader.read({}).scenario, Catalogue.default(subject.profiles)
    found = report.Answer(
        name=job.name,
        asked=as_typed(subject),
        resource=asked,
        loss=share,
        rows=rows,
        offers=[
            offers(row, asked, job, catalogue, partial(_stores_it, reader, row, share, seed))
            for row in rows
        ],
        counted=bool(numbers),
        accelerated=job.cluster.trainers.gpus_per_host > 0,
        steps=job.job.dataset.samples * job.cluster.trainers.count / _global_batch(job),
    )
    emit(reported(report, found, Format(form)))
    return Exit.FINE


def _stores_it(reader: CandidateReader, row: Sized, loss: float, seed: int, store: str) -> bool:
    """Whether the job loses no more than it may with its data in this store, as large as they are.

    A volume that is only as large as the data, which is what its price is for, may be slower.
    """
    from simulator.predict import predict
    from simulator.studies.size import run_speed

    settings: Settings = {"hardware.storage": store, "hardware.count": row.machines}
    try:
        data = reader.read(settings).scenario.job.stored_total
        settings = {**settings, "hardware.storage_capacity": f"{math.ceil(data)} B"}
        prediction = predict(reader.read(settings).scenario, seed=seed, intervals=False)
    except PlanError:
        return False
    return run_speed(prediction) >= row.ample * (1.0 - loss)


def _global_batch(scenario: Scenario) -> float:
    """Samples of a step over all machines."""
    train = scenario.job.train
    return float(train.batch_size * train.accumulation * max(1, scenario.ranks))


def _of_service(reader: ServiceReader, resource: str, form: str, seed: int, typed: str) -> int:
    from simulator.cli.serving import sized_machines

    if resource != MACHINES:
        msg = f"a service is no job that reads data; plan size {MACHINES} says how many it needs"
        raise click.UsageError(msg)
    return sized_machines(reader, form, seed, typed)


def _share(text: str) -> float:
    from simulator.units import parse_share

    try:
        share = parse_share(text)
    except UnitError as error:
        raise InputError((Problem(origin=f"--loss {text}", message=str(error)),)) from None
    if not 0.0 < share < 1.0:
        message = "has to be above 0 and below 100%"
        raise InputError((Problem(origin=f"--loss {text}", message=message),))
    return share


def _counts(text: str) -> tuple[int, ...]:
    """Numbers of machines, each once; a range goes as one of ``plan sweep``: one by one, or so."""
    if not text.strip():
        return ()
    from simulator.reading.search.axes import axis_of

    origin, key = f"--machines {text}", "hardware.count"
    found = [_COUNT.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        message, hint = "is no list of whole numbers", "write it like 1,8,64 or '8..1024 x2'"
        raise InputError((Problem(origin=origin, message=message, hint=hint),))
    parts = [one[0] for one in found if one]
    axis = axis_of(key, parts, origin=origin, line=None, key="")
    if len(axis.values) > _MOST:
        message = f"means {len(axis.values):,} numbers of machines, each sized; at most {_MOST} are"
        hint = f"add how the range goes: '{text.strip()} x2' doubles"
        raise InputError((Problem(origin=origin, message=message, hint=hint),))
    return tuple(int(value) for (value,) in axis.values)
