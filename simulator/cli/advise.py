"""``plan advise``: recommended settings for one part of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from simulator.cli.main import LateGroup, Table
from simulator.cli.options import examples, format_option, job_arguments, next_actions, seed_option
from simulator.cli.output import Exit, answer, ended, progress_line

if TYPE_CHECKING:
    from simulator.studies.subject import JobSubject

PARTS: Final[Table] = {
    "input": ("simulator.cli.advise", "Workers and prefetch that keep the accelerators busy."),
}
"""Commands by part: (module with a click command of this name, one line of help)."""


@click.group(cls=LateGroup, table=PARTS, kind="part")
def advise() -> None:
    """Recommend settings: plan advise input SCENARIO."""


def _share(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Parse a share such as 1% or 0.01 (click callback)."""
    from simulator.errors import UnitError
    from simulator.units import parse_share

    try:
        return parse_share(value)
    except UnitError as error:
        msg = f"'{value}' {error}"
        raise click.BadParameter(msg, ctx=ctx, param=param) from error


@click.command(
    "input",
    epilog=examples(
        "plan advise input mine.toml --within 5%",
    ),
)
@job_arguments
@click.option(
    "--within",
    "within",
    callback=_share,
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="Share of a step that an accelerator may wait for data.",
)
@format_option
@seed_option
def input(  # noqa: A001 - the name of the command; one parameter an option
    *,
    subject: JobSubject,
    within: float,
    form: str,
    seed: int,
) -> int:
    """Find the fewest workers and the least prefetch that keep the accelerators of SCENARIO busy.

    Shows the settings around the answer with the RAM that each takes, and other changes that
    help. Exit code 1: no number of workers is enough; the report names the bottleneck.
    """
    from simulator.report.advise import document
    from simulator.report.prediction.actions import action_texts
    from simulator.studies.advise import advise_input
    from simulator.studies.levers.catalogue import ADVISE_INPUT
    from simulator.studies.search.outcome import BugLog

    met = BugLog()
    with progress_line("trying settings") as progress:
        found = advise_input(subject.read, within, seed=seed, progress=progress, met=met)
    base, steps = found.base.prediction, list[str]()
    if form == "table" and base is not None:
        more, bugs = next_actions(subject, base)
        met.reasons.extend(bugs)
        # The table already covers workers and prefetch.
        others = [one for one in more if one.change.kind not in ADVISE_INPUT]
        steps = action_texts(others, base) if others or found.chosen is None else []
    answer(document(found, steps), form)
    return ended(Exit.FINE if found.chosen is not None else Exit.DOES_NOT_FIT, met.reasons)
