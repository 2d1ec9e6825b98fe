"""``plan explain``: why a number is what it is."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli import completion
from simulator.cli.options import examples, format_option
from simulator.cli.output import emit
from simulator.cli.scenarios import (
    calibration_option,
    read_scenario,
    scenario_arguments,
    seed_option,
    service_reader,
)
from simulator.cli.serving import explained, refuse


@click.command(
    epilog=examples(
        "plan explain mine.toml",
        "plan explain mine.toml cost.usd_to_train",
    )
)
@scenario_arguments
@click.argument("metric", required=False, shell_complete=completion.metrics)
@format_option
@calibration_option
@seed_option
def explain(  # noqa: PLR0913 - one parameter an option
    *,
    scenario: str,
    metric: str | None,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    form: str,
    seed: int,
) -> None:
    """Explain a figure of SCENARIO: what each stage asks for, by which equation, from which source.

    METRIC is a dotted path of the --json output (step_time_s.mean, cost.usd_to_train) or the
    start of one (cost); the step time by default.
    """
    from simulator.results.metrics import select

    if metric is not None:
        select(metric)
    service = service_reader(scenario, overrides, profiles)
    if service is not None:
        refuse(calibration=calibration, metric=metric)
        explained(service, form, seed)
        return
    job = read_scenario(scenario, overrides, profiles, calibration)
    from simulator.predict import predict
    from simulator.report.prediction.explain import document
    from simulator.report.render import render

    emit(render(document(predict(job, seed=seed), metric), form))
