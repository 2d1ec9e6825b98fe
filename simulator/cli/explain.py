"""``plan explain``: why a number is what it is."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.output import emit
from simulator.cli.scenarios import read_scenario, scenario_arguments


@click.command()
@scenario_arguments
@click.argument("metric", required=False)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N")
def explain(
    *,
    scenario: str,
    metric: str | None,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    seed: int,
) -> None:
    """Explain a figure of SCENARIO: what each stage asks for, by which equation, from which source.

    METRIC is a dotted path of the --json output (step_time_s.mean, cost.usd_to_train) or the
    start of one (cost); the step time by default.
    """
    from simulator.metrics import select
    from simulator.predict import predict
    from simulator.report.explain import as_explanation

    if metric is not None:
        select(metric)
    prediction = predict(read_scenario(scenario, overrides, profiles), seed=seed)
    emit(as_explanation(prediction, metric))
