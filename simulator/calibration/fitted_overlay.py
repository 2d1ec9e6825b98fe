"""The overlay of a calibration: what `plan calibrate` writes down of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.calibration.calibrate import Calibrated, Residual
from simulator.uncertainty.calibration import Fitted, Overlay
from simulator.uncertainty.provenance import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How far predictions are off: statistics of abs(predicted / measured - 1)."""

    mean: float
    median: float
    p90: float
    largest: float


def errors_of(residuals: Sequence[Residual], which: str) -> Errors | None:
    """Errors of predictions `which` (before, fitted or held_out); None if there are none."""
    ratios = [
        value / one.measured for one in residuals if (value := getattr(one, which)) is not None
    ]
    if not ratios:
        return None
    errors = np.abs(np.array(ratios) - 1.0)
    return Errors(
        mean=float(np.mean(errors)),
        median=float(np.median(errors)),
        p90=float(np.quantile(errors, 0.9)),
        largest=float(np.max(errors)),
    )


def overlay_of(calibrated: Calibrated, date: str) -> Overlay:
    """The fitted parameters with provenance; `date` is that of the fit, ISO."""
    return Overlay(
        parameters=tuple(
            Fitted(
                key=one.parameter.key,
                value=one.value,
                p10=one.p10,
                p90=one.p90,
                log_sd=one.log_sd,
                at_bound=one.at_bound,
            )
            for one in calibrated.estimates
            if one.identified
        ),
        covariance=_identified(calibrated),
        envelope=calibrated.samples.envelope,
        source=Source(reference=source_text(calibrated), date=date),
    )


def _identified(calibrated: Calibrated) -> tuple[tuple[float, ...], ...]:
    kept = [i for i, one in enumerate(calibrated.estimates) if one.identified]
    return tuple(tuple(calibrated.covariance[i][j] for j in kept) for i in kept)


def source_text(calibrated: Calibrated) -> str:
    """What the parameters were fitted to and how well, on one line."""
    samples = calibrated.samples
    rows, configurations = len(samples.rows), len(samples.distinct)
    text = f"fitted to {', '.join(samples.sets)}: {rows} rows of {configurations} configurations"
    if calibrated.all_rows:
        text += ", those held out for testing among them"
    fitted = errors_of(calibrated.residuals, "fitted")
    held = errors_of(calibrated.residuals, "held_out")
    if fitted is not None:
        text += f"; mean error {100.0 * fitted.mean:.1f}%"
    if held is not None:
        text += f", {100.0 * held.mean:.1f}% on configurations held out"
    return text
