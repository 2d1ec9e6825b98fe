"""``plan compare``: several scenarios side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from simulator.cli import completion
from simulator.cli.exits import Exit
from simulator.cli.options import examples, format_option, profiles_option
from simulator.cli.output import emit
from simulator.cli.price_age import price_age_option, warn_of_old
from simulator.cli.progress import progress_line
from simulator.cli.scenarios import (
    calibration_option,
    candidate_reader,
    seed_option,
    service_reader,
    set_option,
)
from simulator.cli.serving import compared, refuse

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.reading.service.scenario import ServiceReader
    from simulator.studies.changes.compare import Side

_OVERRIDE: Final = re.compile(r":(?=[A-Za-z_]\w*(?:\.[\w-]+)+=)")
"""Where a setting of one scenario begins: ``a.toml:input.workers=8``."""
FEWEST: Final = 2


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
@set_option("Set a key of all scenarios; may be given again.")
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
    """Show SCENARIOs side by side: what tells them apart, and what that does.

    A key of one of them is set as in resnet50-imagenet-p4d:input.workers=8. Figures that somebody
    published for a shipped scenario stand beside ours. Services (mode = "serve") are held beside
    services. Exit code 1 says that one does not fit, or that a service misses its limits.
    """
    if len(scenarios) < FEWEST:
        msg = "name at least two scenarios, such as a.toml a.toml:input.workers=8"
        raise click.UsageError(msg)
    services = _services(scenarios, overrides, profiles)
    if services:
        refuse(calibration=calibration)
        return compared(services, form, seed, price_age)
    from simulator.results.price_age import listed_prices

    sides = []
    with progress_line("simulating") as progress:
        for number, text in enumerate(scenarios, start=1):
            name, *own = _OVERRIDE.split(text)
            reader = candidate_reader(name, (*overrides, *own), profiles, calibration)
            changed = bool(overrides or own or profiles) or calibration is not None
            sides.append(_side(reader, tuple(own), seed, published=not changed))
            if progress is not None:
                progress(number / len(scenarios))
    emit(_rendered(sides, form))
    priced = [one for side in sides for one in listed_prices(side.prediction.scenario)]
    warn_of_old(priced, price_age)
    return Exit.FINE if all(side.prediction.fits for side in sides) else Exit.DOES_NOT_FIT


def _services(
    scenarios: Sequence[str], overrides: tuple[str, ...], profiles: tuple[Path, ...]
) -> list[tuple[str, ServiceReader]]:
    """Readers of services with the settings that each has for itself; none where all are jobs.

    Raises
    ------
    click.UsageError
        If some are services and some are jobs.
    """
    found: list[tuple[str, ServiceReader]] = []
    for text in scenarios:
        name, *own = _OVERRIDE.split(text)
        reader = service_reader(name, (*overrides, *own), profiles)
        if reader is not None:
            found.append((", ".join(own), reader))
    if found and len(found) < len(scenarios):
        msg = 'some of these are services (mode = "serve") and some jobs; hold like beside like'
        raise click.UsageError(msg)
    return found


def _side(reader: CandidateReader, own: tuple[str, ...], seed: int, *, published: bool) -> Side:
    """A scenario with its prediction; what was published holds for the scenario as it ships."""
    from simulator.predict import predict
    from simulator.reading.effective_settings import inputs
    from simulator.reading.measured.measurement_set import published as rows
    from simulator.studies.changes.compare import Side
    from simulator.studies.changes.ways_to_buy import with_ways

    scenario = reader.read({}).scenario
    # A long run is drawn with the uncertainty of its step in any case.
    prediction = predict(scenario, seed=seed, intervals=scenario.interruptions is not None)
    return Side(
        label=f"{scenario.name} with {', '.join(own)}" if own else scenario.name,
        prediction=with_ways(prediction, reader),
        inputs=inputs(reader.document(), scenario),
        published=rows(reader.name_or_path) if published else (),
    )


def _rendered(sides: list[Side], form: str) -> str:
    from simulator.report.compare import document
    from simulator.report.render import render

    return render(document(sides), form)
