"""``plan simulate``, ``explain``, ``report`` and ``plot``: one prediction in four forms."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.options import (
    complete_metrics,
    count_option,
    evidence_option,
    examples,
    format_option,
    job_arguments,
    jobs_option,
    near,
    next_actions,
    output_option,
    price_age_option,
    seed_option,
    subject_arguments,
    warn_of_old,
)
from simulator.cli.output import (
    Exit,
    answer,
    check_writable,
    complain,
    ended,
    made,
    progress_line,
    write_file,
)
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from simulator.calibration.observed import Explained
    from simulator.schema.scenario import Scenario
    from simulator.studies.subject import JobSubject, Subject
    from simulator.validation.local_coverage import Here


@click.command(
    epilog=examples(
        "plan simulate mine.toml",
        "plan simulate mine.toml --set input.workers=8 --format markdown",
        "plan simulate mine.toml --trace steps.json",
    )
)
@subject_arguments
@format_option
@seed_option
@price_age_option
@output_option(
    "--trace", text="Write a timeline of the simulated steps for Perfetto or chrome://tracing."
)
@count_option(
    "--log", "every", text="Also print samples/s every N simulated steps, like a training log."
)
@count_option("--steps", text="Simulate at most N steps, and extrapolate the rest of the run.")
@click.option(
    "--observed",
    metavar="FIGURE=VALUE",
    help=(
        "A measurement of the real job: utilization=45% (of the GPUs), samples/s=3900 or "
        "step='120 ms'. Lists input values that would explain it and uses the most plausible ones."
    ),
)
@click.option(
    "--actions/--no-actions",
    default=None,
    help="Print the section 'Do next'. Default: only in the report without --full.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Print everything: each resource, every item of memory, all inputs with their sources.",
)
def simulate(  # noqa: PLR0913 - one parameter an option
    *,
    subject: Subject[Any, Any],
    form: str,
    seed: int,
    price_age: str | None,
    trace: Path | None,
    every: int | None,
    steps: int | None,
    observed: str | None,
    actions: bool | None,
    full: bool,
) -> int:
    """Simulate SCENARIO: a TOML file, the name of a shipped scenario, or - for standard input.

    Prints the bottleneck, speed, memory and cost, with 80% intervals where inputs are uncertain,
    the largest uncertainties, and up to three recommended changes. Exit code 1: the job does not
    fit, or the service misses its SLO.
    """
    if actions and form not in {"table", "json"}:
        msg = f"--actions and --format {form} exclude each other: actions are not metrics"
        raise click.UsageError(msg)
    if form != "table" and every is not None:
        msg = f"--log and --format {form} exclude each other: standard output is data alone"
        raise click.UsageError(msg)
    from simulator.report.prediction import document

    explanation = None if observed is None else _explained(subject, observed, seed)
    if explanation is not None:
        subject = subject.with_(explanation.settings)
    with progress_line("simulating") as progress:
        prediction = subject.predict(
            seed=seed, trace=trace is not None, progress=progress, max_steps=steps
        )
    prediction = with_measured(subject.job, subject.completed(prediction), subject.profiles)
    if trace is not None:
        from simulator.report.prediction.timeline import timeline_text

        write_file(trace, timeline_text(prediction), "--trace")
    wanted = (form == "table" and not full) if actions is None else actions
    found, bugs = next_actions(subject, prediction) if wanted else (None, [])
    report = document(prediction, found, full=full, observed=explanation, every=every)
    answer(report, form)
    warn_of_old(subject.prices(prediction), price_age)
    return ended(Exit.FINE if subject.succeeds(prediction) else Exit.DOES_NOT_FIT, bugs)


@click.command(
    epilog=examples(
        "plan explain mine.toml",
        "plan explain mine.toml cost.usd_to_train",
    )
)
@subject_arguments
@click.argument("metric", required=False, shell_complete=complete_metrics)
@format_option
@seed_option
def explain(*, subject: Subject[Any, Any], metric: str | None, form: str, seed: int) -> None:
    """Show how a metric of SCENARIO is computed: equations, input values and their sources.

    METRIC is a name from plan metrics, such as step_time_s.mean, or the start of one, such as cost.
    Default: step_time_s.mean.
    """
    from simulator.report.prediction import explanation
    from simulator.results.metrics import select

    if metric is not None:
        select(metric)
    prediction = subject.predict(seed=seed, intervals=subject.explains_intervals)
    answer(explanation(prediction, metric), form)


@click.command(
    epilog=examples(
        "plan report mine.toml -o report.html",
    )
)
@subject_arguments
@output_option("-o", "--output", text="Where the report goes.", default=Path("report.html"))
@evidence_option("Compare the scenario")
@seed_option
@jobs_option
def report(
    *,
    subject: Subject[Any, Any],
    output: Path,
    evidence: bool,
    seed: int,
    jobs: int | None,
) -> int:
    """Write a report of SCENARIO: one HTML file that opens anywhere and loads nothing.

    Contains the bottleneck, recommended changes, the step, the utilization of each resource, a
    timeline of some steps, memory, cost, the most similar measured runs with the errors there, and
    the sources of the inputs. Exit code 1: the job does not fit.
    """
    from simulator.report.html import as_page
    from simulator.report.prediction.actions import action_texts

    with progress_line("simulating") as progress:
        prediction = subject.predict(seed=seed, trace=True, progress=progress)
    prediction = subject.completed(prediction)
    found = near(subject.job, jobs, subject.profiles) if evidence else None
    actions, bugs = next_actions(subject, prediction)
    steps = action_texts(actions, prediction)
    write_file(output, as_page(prediction, steps, near=found, made=made(seed)), "--output")
    complain(f"wrote {output}")
    return ended(Exit.FINE if subject.succeeds(prediction) else Exit.DOES_NOT_FIT, bugs)


@click.command(
    epilog=examples(
        "plan plot mine.toml memory -o memory.svg",
    )
)
@job_arguments
@click.argument("what", required=False, default="step", metavar="[FIGURE]")
@output_option("-o", "--output", text="Output file, .png, .svg or .pdf; FIGURE.png by default.")
@seed_option
def plot(*, subject: JobSubject, what: str, output: Path | None, seed: int) -> int:
    """Draw a FIGURE of SCENARIO: step (the default), utilization or memory.

    plan sweep --plot draws scaling curves, heat maps and Pareto fronts, plan validate --html
    predicted against measured values.
    """
    target = output or Path(f"{what}.png")
    check_writable(target, "--output")
    from simulator.report.plot import as_bytes, check_figure, check_format, prediction_figure

    check_figure(what)
    check_format(target)
    with progress_line("simulating") as progress:
        prediction = subject.predict(seed=seed, progress=progress)
    write_file(target, as_bytes(prediction_figure(prediction, what), target), "--output")
    complain(f"wrote {target}")
    return Exit.FINE


def _explained(subject: Subject[Any, Any], text: str, seed: int) -> Explained:
    """Return the input values that would explain the measurement of ``--observed``."""
    from simulator.calibration.observed import explain_observation

    metric, value = observation_of(text)
    with progress_line("explaining") as progress:
        return explain_observation(subject.read, metric, value, seed=seed, progress=progress)


def observation_of(text: str) -> tuple[str, float]:
    """Parse the value of ``--observed`` to the name of the metric and its value in SI units.

    Raises
    ------
    InputError
        If the metric is unknown, or its value is invalid or not above zero.
    """
    from simulator.reading.table import NAMES, figure_value
    from simulator.report.labels import is_share
    from simulator.results.metrics import measurable
    from simulator.schema.fields import nearest_hint

    said, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise _refused(text, "has no value", "write it like utilization=45%")
    name = NAMES.get(said, said)
    metric = measurable(name)
    if metric is None:
        raise _refused(text, f"unknown figure '{said}'", nearest_hint(said, tuple(NAMES)))
    number = figure_value(value, metric.unit)
    if number is None or not 0.0 < number < math.inf:
        raise _refused(text, f"'{value}' is not a value of {said}", "write it like step='120 ms'")
    if number > 1.0 and is_share(name):
        raise _refused(text, f"'{value}' is above 100%", "write a share such as 45%")
    return name, number


def _refused(text: str, message: str, hint: str) -> InputError:
    return InputError((Problem(origin=f"--observed {text}", message=message, hint=hint),))


def with_measured(job: Scenario | None, prediction: Any, profiles: tuple[Path, ...]) -> Any:  # noqa: ANN401 - a prediction of its kind
    """Widen the intervals of a prediction to include measured runs of the same configuration.

    Adds a warning for each run outside. Few scenarios have such runs; the comparison is imported
    only for these. `job` is None for a service, which is returned unchanged.
    """
    if job is None or not prediction.interval:
        return prediction
    from simulator.reading.measured.measurement_set import rows_alike

    alike = rows_alike(job)
    if not alike:
        return prediction
    from simulator.validation.local_coverage import holding, runs_of

    wider, outside = holding(prediction, runs_of(job, alike, profiles))
    first = {(miss.set, miss.id): miss for miss in reversed(outside)}
    notes = tuple(_note(miss) for miss in first.values())
    return replace(wider, warnings=(*wider.warnings, *notes))


def _note(miss: Here) -> str:
    from simulator.report.numbers import figure
    from simulator.results.metrics import measurable

    metric = measurable(miss.metric)
    unit = None if metric is None else metric.unit
    measured, predicted = (
        figure(value, unit) for value in (miss.measured, miss.measured / miss.ratio)
    )
    name = miss.metric
    if unit is not None:
        name = name.removesuffix("_samples_per_s").split("_s")[0]
    return (
        f"a run of this configuration measured {measured} ({name.replace('_', ' ')}), predicted "
        f"{predicted} ({miss.set}: {miss.id}); the intervals are widened to include it"
    )
