"""``plan size``: the smallest amount of a resource that meets a job's speed or a service's SLO."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from simulator.cli.options import (
    Named,
    as_typed,
    examples,
    format_option,
    seed_option,
    subject_arguments,
)
from simulator.cli.output import answer, progress_line, study_ended
from simulator.errors import InputError, Problem, UnitError

if TYPE_CHECKING:
    from simulator.studies.subject import Subject

RESOURCES: Final = ("storage", "network", "cpu", "ram", "machines")
"""Resources for any kind of scenario; `Subject.resources` lists those of one scenario."""
_COUNT: Final = re.compile(r"\d+(?:\.\.\d+(?: +(?:step|x) *\d+)?)?")
"""Pattern of a number of machines, or a range."""
MAX_COUNTS: Final = 64
"""Largest number of cluster sizes: a longer range is likely a mistake."""


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
    help="Acceptable slowdown, compared with an unlimited amount of the resource.",
)
@click.option(
    "--machines",
    "counts",
    default="",
    metavar="LIST",
    help="Numbers of machines: 1,8,64 or '8..1024 x2' (doubling). Default: that of the scenario.",
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

    Enough means: a job is at most --loss slower than with an unlimited amount of the resource. All
    other keys stay as in the scenario; with more CPUs the number of workers grows in proportion.
    For services only (mode = "serve"), machines is the number of machines that meets the SLO, at
    the stated rate and at higher ones.
    """
    if resource not in subject.resources:
        msg = f"{resource} cannot be sized for {subject.plural}, only {_listed(subject.resources)}"
        raise click.UsageError(msg)
    from simulator.report.size import document
    from simulator.studies.subject import StudyOptions

    typed = as_typed(subject)
    options = StudyOptions(
        loss=_share(loss), counts=_counts(counts), seed=seed, typed=typed, progress=progress_line
    )
    study = subject.size(resource, options)
    answer(document(study.found, typed), form)
    return study_ended(study)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


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
    """Parse a list or range of numbers of machines, as in ``plan sweep``."""
    if not text.strip():
        return ()
    from simulator.reading.search.axes import axis_of

    origin, key = f"--machines {text}", "hardware.count"
    found = [_COUNT.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        message, hint = "is not a list of whole numbers", "write it like 1,8,64 or '8..1024 x2'"
        raise InputError((Problem(origin=origin, message=message, hint=hint),))
    parts = [one[0] for one in found if one]
    axis = axis_of(key, parts, origin=origin, line=None, key="")
    if len(axis.values) > MAX_COUNTS:
        message = (
            f"means {len(axis.values):,} numbers of machines, each sized; at most {MAX_COUNTS} are"
        )
        hint = f"add how the range goes: '{text.strip()} x2' doubles"
        raise InputError((Problem(origin=origin, message=message, hint=hint),))
    return tuple(int(value) for (value,) in axis.values)
