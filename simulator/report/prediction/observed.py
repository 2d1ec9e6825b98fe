"""What must be true for an observation, in a few lines."""

from __future__ import annotations

from typing import Any, Final

from simulator.calibration.observed import Explained, Explanation
from simulator.report.labels import is_share
from simulator.report.numbers import quantity
from simulator.report.text import columns, section, wrapped
from simulator.results.metrics import JOB_METRICS

WORDS: Final = {
    "compute": "arithmetic on the GPU",
    "device_memory": "memory traffic of the GPU",
    "cpu": "CPU work of a sample (decode, augment, collate)",
    "storage": "reads from the store",
    "network": "transfers over the network",
    "collective": "exchange between GPUs and machines",
    "straggling": "waiting for the slowest GPU",
}
"""What each factor of [calibration] changes the time of."""
LABELS: Final = {
    "accelerator_utilization": "GPU utilization",
    "throughput_samples_per_s": "the speed",
    "step_time_s.mean": "the step",
    "epoch_time_s": "an epoch",
    "tokens_per_s": "the speed",
    "mfu": "MFU",
    "hfu": "HFU",
}
"""What people call the figures that they observe."""
DIGITS: Final = 3
SURE: Final = 2.0
"""Standard deviations beyond which an explanation is called unlikely."""


def as_lines(found: Explained) -> list[str]:
    """The section of a report, with an empty line before it."""
    observed, predicted = (
        _shown(found, value) for value in (found.observation.value, found.predicted)
    )
    name = LABELS.get(found.observation.metric, found.observation.metric)
    if found.agrees:
        text = f"You see that {name} is {observed}; so it is predicted."
        return section("What you observed", wrapped(text))
    begin = f"You see that {name} is {observed}; predicted is {predicted}."
    if not found.explanations:
        text = (
            f"{begin} No rate alone explains that within what is possible: look at what the "
            "scenario says (workers, batch, samples, model), or at what else runs there."
        )
        return section("What you observed", wrapped(text))
    rows = [("this alone would explain it", "takes", "likely", "set")]
    rows += [_row(one) for one in found.explanations]
    best = found.explanations[0]
    lines = [
        *wrapped(f"{begin} One of these must be true, the likeliest first:"),
        *columns(rows, "<><<"),
        *wrapped(f"What follows is predicted with {best.setting}."),
    ]
    return section("What you observed", lines)


def as_text(found: Explained) -> str:
    """The section, with an empty line after it."""
    return "\n".join([*as_lines(found)[1:], "", ""])


def _row(one: Explanation) -> tuple[str, str, str, str]:
    likely = "yes" if one.surprise <= 1.0 else "perhaps" if one.surprise <= SURE else "hardly"
    times = f"x{1.0 / one.factor:.2f} the time"
    return WORDS[one.kind.name], times, likely, f"--set {one.setting}"


def _shown(found: Explained, value: float) -> str:
    metric = found.observation.metric
    if is_share(metric):
        return f"{100.0 * value:.{DIGITS}g}%"
    unit = next((m.unit for m in JOB_METRICS if m.name == metric), None)
    return quantity(value, unit, DIGITS)


def as_object(found: Explained) -> dict[str, Any]:
    """The same for programs."""
    return {
        "metric": found.observation.metric,
        "observed": found.observation.value,
        "predicted": found.predicted,
        "explanations": [
            {
                "factor": f"calibration.{one.kind.name}",
                "value": one.factor,
                "standard_deviations": one.surprise,
            }
            for one in found.explanations
        ],
    }
