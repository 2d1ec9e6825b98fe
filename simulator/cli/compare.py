"""``plan compare``: several scenarios side by side."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from simulator.cli import completion
from simulator.cli.options import (
    calibration_option,
    examples,
    format_option,
    profiles_option,
    seed_option,
    set_option,
)
from simulator.cli.output import Exit, emit
from simulator.cli.progress import progress_line
from simulator.cli.subjects import price_age_option, read, warn_of_old

_OVERRIDE: Final = re.compile(r":(?=[A-Za-z_]\w*(?:\.[\w-]+)+=)")
"""Where a setting of one scenario begins: ``a.toml:input.workers=8``."""
MIN_SCENARIOS: Final = 2


@click.command(
    epilog=examples(
        "plan compare mine.toml mine.toml:input.workers=16",
        "plan compare mine.toml other.toml --format csv",
        "plan compare llama3-8b-chat-h100 llama3-8b-chat-h100:serving.weights=fp8",
    )
)
@click.argument(
    "scenarios",
    nargs=-1,
    required=True,
    metavar="SCENARIO...",
    shell_complete=completion.scenarios,
)
@format_option
@set_option("Set a key of all scenarios; repeatable.")
@profiles_option
@calibration_option
@seed_option
@price_age_option
def compare(  # noqa: PLR0913 - one parameter an option
    *,
    scenarios: tuple[str, ...],
    form: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    seed: int,
    price_age: str | None,
) -> int:
    """Show SCENARIOs side by side: the keys in which they differ, and the effect.

    Append :KEY=VALUE to set a key of one scenario: resnet50-imagenet-p4d:input.workers=8. Published
    values of a shipped scenario are printed next to the predicted ones. Services (mode = "serve")
    are compared with services only. Exit code 1: a job does not fit, or a service misses its SLO.
    """
    if len(scenarios) < MIN_SCENARIOS:
        msg = "name at least two scenarios, such as a.toml a.toml:input.workers=8"
        raise click.UsageError(msg)
    parts = [_OVERRIDE.split(text) for text in scenarios]
    subjects = [
        read(name, (*overrides, *settings), profiles, calibration) for name, *settings in parts
    ]
    first = subjects[0]
    if any(subject.noun != first.noun for subject in subjects):
        msg = 'cannot compare jobs with services (mode = "serve")'
        raise click.UsageError(msg)
    from simulator.report.kinds import report_of

    sides = []
    with progress_line("simulating") as progress:
        for number, (subject, (_, *settings)) in enumerate(zip(subjects, parts, strict=True), 1):
            sides.append(subject.side(", ".join(settings), seed=seed))
            if progress is not None:
                progress(number / len(subjects))
    emit(report_of(first).compared(sides, form))
    pairs = list(zip(subjects, sides, strict=True))
    warn_of_old([p for subject, side in pairs for p in subject.prices(side.prediction)], price_age)
    good = all(subject.succeeds(side.prediction) for subject, side in pairs)
    return Exit.FINE if good else Exit.DOES_NOT_FIT
