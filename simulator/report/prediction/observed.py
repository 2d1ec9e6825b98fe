"""The section on a measurement of the real job (``--observed``) and its possible causes."""

from __future__ import annotations

from typing import Any, Final

from simulator.calibration.observed import Explained, Explanation
from simulator.report.document import Section, grid, notes, section
from simulator.report.labels import is_share
from simulator.report.numbers import quantity
from simulator.results.metrics import JOB_METRICS

FACTORS: Final = {
    "compute": "GPU compute",
    "device_memory": "GPU memory traffic",
    "cpu": "CPU work per sample (decode, augment, collate)",
    "storage": "storage reads",
    "client": "reads through the client of the object store",
    "network": "network transfers",
    "collective": "communication between GPUs and machines",
    "straggling": "waiting for the slowest GPU",
    "checkpoint": "writing of checkpoints",
}
"""Labels of the factors of [calibration]: the work whose time they scale."""
FIGURES: Final = {
    "accelerator_utilization": "GPU utilization",
    "throughput_samples_per_s": "speed",
    "step_time_s.mean": "step",
    "epoch_time_s": "epoch",
    "checkpoint_s": "checkpoint",
    "tokens_per_s": "speed",
    "mfu": "MFU",
    "hfu": "HFU",
}
"""Labels of the metrics that can be observed."""
DIGITS: Final = 3
UNLIKELY: Final = 2.0
"""Standard deviations beyond which an explanation has a low plausibility."""


def sections(found: Explained) -> tuple[Section, ...]:
    """Return a section with the possible single causes of a measurement, most plausible first."""
    seen, expected = (_shown(found, value) for value in (found.observed, found.predicted))
    metric = FIGURES.get(found.metric, found.metric)
    title = "Observation"
    if found.agrees:
        return section(title, notes([f"Observed {metric} {seen} agrees with the prediction."]))
    begin = f"Observed {metric}: {seen}; predicted: {expected}."
    if not found.explanations and found.alternatives:
        return section(title, notes([begin, *_alternatives(found)]))
    if not found.explanations:
        advice = (
            f"{begin} No single cause is possible: check the scenario (workers, batch, samples, "
            "model) and other load on the machines."
        )
        return section(title, notes([advice]))
    best = found.explanations[0]
    plausible = any(one.surprise <= UNLIKELY for one in found.explanations)
    said = (
        "Possible single causes:"
        if plausible
        else "No single listed cause is plausible; candidates:"
    )
    rows = [_row(one) for one in found.explanations]
    factor = f"{1.0 / best.factor:.3g}x {FACTORS[best.kind.name]}"
    return section(
        title,
        notes([f"{begin} {said}"]),
        grid(("possible single cause", "change needed", "plausibility", "set"), rows, "<><<"),
        notes([f"The report below assumes {factor} ({best.setting})."]),
        notes(_alternatives(found)),
    )


def _alternatives(found: Explained) -> list[str]:
    """Describe the settings that explain the observation too."""
    return [
        f"It fits as well if {one.what}: {_shown(found, one.predicted)} with --set {one.setting}"
        for one in found.alternatives
    ]


def _row(one: Explanation) -> tuple[str, str, str, str]:
    level = "high" if one.surprise <= 1.0 else "medium" if one.surprise <= UNLIKELY else "low"
    return FACTORS[one.kind.name], f"{1.0 / one.factor:.2f}x time", level, f"--set {one.setting}"


def _shown(found: Explained, value: float) -> str:
    metric = found.metric
    if is_share(metric):
        return f"{100.0 * value:.{DIGITS}g}%"
    unit = next((m.unit for m in JOB_METRICS if m.name == metric), None)
    return quantity(value, unit, DIGITS)


def as_object(found: Explained) -> dict[str, Any]:
    """Return the measurement and its explanations as a JSON-serializable dict."""
    return {
        "metric": found.metric,
        "observed": found.observed,
        "predicted": found.predicted,
        "explanations": [
            {
                "factor": f"calibration.{one.kind.name}",
                "value": one.factor,
                "standard_deviations": one.surprise,
            }
            for one in found.explanations
        ],
        "settings": [
            {"key": one.key, "value": one.value, "predicted": one.predicted}
            for one in found.alternatives
        ],
    }
