"""The option ``--observed``: one figure of the real job, and what must then be true."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from simulator.cli.progress import progress_line
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from simulator.calibration.observed import Explained, Observation
    from simulator.reading.search.candidates import CandidateReader

observed_option = click.option(
    "--observed",
    "observed",
    metavar="FIGURE=VALUE",
    help=(
        "A figure of the real job: utilization=45%, samples/s=3900, step='120 ms'. Says what must "
        "be true for it, and predicts from there."
    ),
)


def explained(reader: CandidateReader, text: str, seed: int) -> Explained:
    """What would make the scenario show what ``--observed`` says."""
    from simulator.calibration.observed import explain_observation

    with progress_line("explaining") as progress:
        return explain_observation(
            lambda settings: reader.read(settings).scenario,
            observation_of(text),
            seed=seed,
            progress=progress,
        )


def observation_of(text: str) -> Observation:
    """What ``--observed`` says.

    Raises
    ------
    InputError
        If it names no figure that is a number above zero, or its value is none.
    """
    from simulator.calibration.observed import Observation
    from simulator.reading.figures import NAMES, figure_value
    from simulator.reading.quantity import nearest_hint
    from simulator.report.labels import is_share
    from simulator.results.metrics import measurable

    said, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise _refused(text, "has no value", "write it like utilization=45%")
    name = NAMES.get(said, said)
    metric = measurable(name)
    if metric is None:
        raise _refused(text, f"'{said}' is no figure", nearest_hint(said, tuple(NAMES)))
    number = figure_value(value, metric.unit)
    if number is None or not 0.0 < number < math.inf:
        raise _refused(text, f"'{value}' is no value of {said}", "write it like step='120 ms'")
    if number > 1.0 and is_share(name):
        raise _refused(text, f"'{value}' is above 100%", "write a share such as 45%")
    return Observation(metric=name, value=number)


def _refused(text: str, message: str, hint: str) -> InputError:
    return InputError((Problem(origin=f"--observed {text}", message=message, hint=hint),))
