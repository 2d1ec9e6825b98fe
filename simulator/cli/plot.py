"""``plan plot``: figures of one prediction."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.exits import Exit
from simulator.cli.options import examples, file_option
from simulator.cli.output import check_writable, complain, write_file
from simulator.cli.progress import progress_line
from simulator.cli.scenarios import (
    calibration_option,
    read_scenario,
    scenario_arguments,
    seed_option,
)


@click.command(
    epilog=examples(
        "plan plot mine.toml memory -o memory.svg",
    )
)
@scenario_arguments
@click.argument("what", required=False, default="step", metavar="[FIGURE]")
@file_option("-o", "--output", text="Where it goes, as .png, .svg or .pdf; FIGURE.png by default.")
@calibration_option
@seed_option
def plot(  # noqa: PLR0913 - one parameter an option
    *,
    scenario: str,
    what: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    output: Path | None,
    seed: int,
) -> int:
    """Draw a FIGURE of SCENARIO: step (the default), utilization or memory.

    plan sweep --plot draws scaling curves, heat maps and Pareto fronts, plan validate --html
    predicted against measured values.
    """
    target = output or Path(f"{what}.png")
    check_writable(target, "--output")
    job = read_scenario(scenario, overrides, profiles, calibration)
    from simulator.predict import predict
    from simulator.report.plot import as_bytes, check_figure, check_format, prediction_figure

    check_figure(what)
    check_format(target)
    with progress_line("simulating") as progress:
        prediction = predict(job, seed=seed, progress=progress)
    write_file(target, as_bytes(prediction_figure(prediction, what), target), "--output")
    complain(f"wrote {target}")
    return Exit.FINE
