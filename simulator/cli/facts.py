"""``plan scenarios``, ``models``, ``metrics``, ``schema`` and ``doctor``: reference lists."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.options import (
    FORMATS,
    Named,
    complete_metrics,
    complete_models,
    complete_scenarios,
    examples,
    format_option,
    profiles_option,
)
from simulator.cli.output import Exit, answer, emit


@click.command(
    epilog=examples("plan scenarios", "plan scenarios llama"),
)
@click.argument(
    "name", required=False, default="", metavar="[NAME]", shell_complete=complete_scenarios
)
@format_option
def scenarios(*, name: str, form: str) -> None:
    """List the scenarios that come with plan, each with what it asks.

    With NAME only those whose names begin so or hold it, such as llama or imagenet.

    All verbs take their names; plan init --from copies one into a file for you to change.
    """
    from simulator.report.library import scenarios_document

    answer(scenarios_document(name), form)


@click.command()
@click.argument(
    "name", required=False, default="", metavar="[NAME]", shell_complete=complete_models
)
@format_option
def models(*, name: str, form: str) -> None:
    """List the models of the library with parameters, FLOPs and where they come from.

    With NAME, list only models whose name contains it, such as llama or 70b.
    """
    from simulator.report.library import models_document

    answer(models_document(name), form)


@click.command()
@click.argument(
    "name", required=False, default="", metavar="[NAME]", shell_complete=complete_metrics
)
@format_option
def metrics(*, name: str, form: str) -> None:
    """List every metric: dotted name, unit, which way is better, meaning.

    With NAME only those whose names begin so or hold it, such as cost or mfu.

    The names are those of --json, --where, [goal] and measured columns.
    """
    from simulator.report.library import metrics_document

    answer(metrics_document(name), form)


@click.command(epilog=examples("plan schema service --format table"))
@click.argument("what", type=Named(("job", "service")), default="job")
@click.option(
    "--format",
    "form",
    type=Named(FORMATS),
    default="json",
    show_default=True,
    help="The schema itself (json), or its keys.",
)
def schema(*, what: str, form: str) -> None:
    """Print the JSON Schema of scenario files: of jobs, or of services (mode = "serve").

    Editors that know JSON Schema (for TOML: Even Better TOML, Taplo) complete and check
    scenarios with it.
    """
    from simulator.reading.json_schema import scenario_schema, service_schema
    from simulator.report.library import keys_document, keys_markdown

    found = service_schema() if what == "service" else scenario_schema()
    if form == "markdown":
        emit(keys_markdown(found))
    else:
        answer(keys_document(found), form)


@click.command()
@format_option
@profiles_option
def doctor(*, form: str, profiles: tuple[Path, ...]) -> int:
    """Print versions, extras, cores, and where profiles are looked for.

    Exit code 1 says that a package that plan needs is missing. Put the output into a report of a
    problem.
    """
    from simulator.probe.machine import installation, look
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.report.installation import doctor as document

    found, machine = installation(), look()
    folders = Catalogue.default(profiles).directories
    answer(document(found, machine, folders), form)
    return Exit.DOES_NOT_FIT if found.missing else Exit.FINE
