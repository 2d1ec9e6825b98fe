"""A campaign file: a pool of machines, and the jobs that share it."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated

from simulator.errors import InputError, PlanError
from simulator.reading.document import Document, check, read_document
from simulator.records import dataclass
from simulator.schema.fields import (
    Choice,
    CountField,
    CountOrZeroField,
    PriceOrZeroField,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.schema.long_run import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSection:
    """The machines that all jobs share."""

    machines: CountField
    """Number of machines."""
    price: PriceOrZeroField | None = None
    """Price of one machine, such as $98/h; by default of the first scenario's machines."""
    order: Annotated[Order, Choice(Order)] = Order.FIFO
    """Order of waiting jobs: first come, first served (fifo), or most urgent first (priority)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTable:
    """A job that arrives once or several times."""

    name: TextField
    """Name of the job."""
    scenario: TextField | None = None
    """A scenario, by file (relative to this one) or shipped name, whose failures are used too."""
    settings: list[TextField] = field(default_factory=list)
    """Settings that replace keys of the scenario, such as "hardware.count=4"."""
    duration: TimeField | None = None
    """Time of one run, instead of a scenario."""
    machines: CountField | None = None
    """Machines it takes; those of its scenario by default."""
    count: CountField = 1
    """Number of arrivals."""
    start: TimeOrZeroField = 0.0
    """Time of the first arrival."""
    every: TimeOrZeroField = 0.0
    """Time between arrivals; 0 by default."""
    random: bool = False
    """Whether arrivals are random, with a mean of `every`; regular by default."""
    priority: CountOrZeroField = 0
    """Priority if the pool's order is priority; 0 is the most urgent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignFile:
    """A campaign file."""

    pool: PoolSection
    """The machines."""
    job: list[JobTable]
    """The jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A campaign file and the `folder` to which paths of scenarios are relative."""

    name: str
    folder: Path
    document: Document
    pool: PoolSection
    jobs: tuple[JobTable, ...]

    def refuse(self, number: int, key: str, message: str, hint: str) -> InputError:
        """Return the error for a key of the job with index `number`, from 0."""
        problem = self.document.problem(("job", number, key), message, hint=hint)
        return InputError((problem,))

    def refuse_scenario(self, number: int, error: PlanError) -> InputError:
        """Return the error for a scenario of the job with index `number`, from 0, or its keys."""
        name = self.jobs[number].name
        causes = error.problems if isinstance(error, InputError) else (error,)
        problems = [
            self.document.problem(("job", number, "scenario"), f"job '{name}': {cause}", show=False)
            for cause in causes
        ]
        return InputError(tuple(problems))


def read_campaign(path: Path) -> Campaign:
    """Read a campaign.

    Raises
    ------
    InputError
        With all mistakes of the file.
    """
    document = read_document(path)
    file = check(CampaignFile, document)
    found = Campaign(
        name=path.stem,
        folder=path.parent,
        document=document,
        pool=file.pool,
        jobs=tuple(file.job),
    )
    if not found.jobs:
        problem = document.problem(
            ("job",), "has no job", hint="add [[job]] with name and duration"
        )
        raise InputError((problem,))
    for number, job in enumerate(found.jobs):
        if (job.scenario is None) == (job.duration is None):
            hint = "say how long one run takes, or which scenario it is"
            raise found.refuse(
                number, "duration", "needs exactly one of scenario and duration", hint
            )
        if job.duration is not None and job.machines is None:
            hint = "say how many machines one run takes"
            raise found.refuse(number, "machines", "is missing", hint)
        if (job.machines or 0) > found.pool.machines:
            hint = f"the pool has {found.pool.machines}"
            raise found.refuse(number, "machines", "is more than there are", hint)
    return found
