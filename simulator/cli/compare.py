"""``plan compare``: differences between scenarios, and their effects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from simulator.cli.options import (
    examples,
    format_option,
    price_age_option,
    read_all,
    scenarios_arguments,
    seed_option,
    warn_of_old,
)
from simulator.cli.output import Exit, answer, progress_line

_OVERRIDE: Final = re.compile(r":(?=[A-Za-z_]\w*(?:\.[\w-]+)+=)")
"""Pattern of the start of an override of one scenario: ``a.toml:input.workers=8``."""
MIN_SCENARIOS: Final = 2


@click.command(
    epilog=examples(
        "plan compare mine.toml mine.toml:input.workers=16",
        "plan compare mine.toml other.toml --format csv",
        "plan compare llama3-8b-chat-h100 llama3-8b-chat-h100:serving.weights=fp8",
    )
)
@scenarios_arguments("Set a key of all scenarios; repeatable.")
@format_option
@seed_option
@price_age_option
def compare(  # noqa: PLR0913 - one parameter an option
    *,
    scenarios: tuple[str, ...],
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    form: str,
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
    refusal = 'cannot compare jobs with services (mode = "serve")'
    subjects = read_all(parts, overrides, profiles, calibration, refusal)
    from simulator.report.compare import document

    sides = []
    with progress_line("simulating") as progress:
        for number, (subject, (_, *settings)) in enumerate(zip(subjects, parts, strict=True), 1):
            sides.append(subject.side(", ".join(settings), seed=seed))
            progress(number / len(subjects))
    answer(document(sides), form)
    pairs = list(zip(subjects, sides, strict=True))
    warn_of_old([p for subject, side in pairs for p in subject.prices(side.prediction)], price_age)
    good = all(subject.succeeds(side.prediction) for subject, side in pairs)
    return Exit.FINE if good else Exit.DOES_NOT_FIT
