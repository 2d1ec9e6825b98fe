"""``plan explain``: why a number is what it is."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.output import emit
from simulator.cli.scenarios import (
    calibration_option,
    read_scenario,
    scenario_arguments,
    seed_option,
)


@click.command()
@scenario_arguments
@click.argument("metric", required=False)
@calibration_option
@seed_option
def explain(  # noqa: PLR0913 - one parameter an option
    *,
    scenario: str,
    metric: str | None,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    seed: int,
) -> None:
    """Explain a figure of SCENARIO: what each stage asks for, by which equation, from which source.

    METRIC is a dotted path of the --json output (step_time_s.mean, cost.usd_to_train) or the
    start of one (cost); the step time by default.
    """
    from simulator.metrics import select

    if metric is not None:
        select(metric)
    job = read_scenario(scenario, overrides, profiles, calibration)
    from simulator.predict import predict
    from simulator.report.explain import as_explanation

    prediction = predict(job, seed=seed)
    emit(as_explanation(prediction, metric))
