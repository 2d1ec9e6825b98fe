"""The object that ``plan validate --json`` prints; keys may be added, never renamed."""

from __future__ import annotations

import json
from typing import Any, Final

from simulator.uncertainty.measurement import MeasurementSet
from simulator.validation.scores import Bands
from simulator.validation.validate import Family, Judged, Left, Validated
from simulator.version import __version__

SCHEMA: Final = 1


def as_object(found: Validated) -> dict[str, Any]:
    """The validation as plain dictionaries, lists, strings and numbers.

    Errors are fractions; null: not known. A family stands there once for each split and metric.
    """
    return {
        "schema": SCHEMA,
        "version": __version__,
        "sets": [_set(one) for one in found.sets],
        "families": [_family(family) for family in found.families],
        "regimes": [_family(family) for family in found.regimes],
        "totals": [_family(family) for family in found.totals],
        "rows": [_row(one) for one in found.judged],
        "excluded": [_left(one) for one in found.left],
        "calibrated": [
            {"set": name, "group": list(group), "constants": list(constants)}
            for (name, group), constants in found.constants.items()
        ],
        "uncalibrated": [
            {"set": name, "group": list(group), "reason": reason}
            for (name, group), reason in found.unfitted.items()
        ],
        "intervals": None if found.bands is None else _bands(found.bands),
        "warnings": list(found.warnings),
        "over_tolerance": bool(found.over),
    }


def as_json(found: Validated) -> str:
    """The validation as JSON text, without NaN or Infinity."""
    return json.dumps(as_object(found), indent=2, ensure_ascii=False, allow_nan=False)


def _set(one: MeasurementSet) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "rows": len(one.rows),
        "metrics": list(one.metrics),
        "split": str(one.split_rule),
        "baseline": str(one.baseline),
        "source": one.source.reference,
        "date": one.source.date,
        "verified": one.source.verified,
    }


def _family(family: Family) -> dict[str, Any]:
    score = family.score
    return {
        "name": family.name,
        "split": str(family.split),
        "set": family.set,
        "metric": family.metric,
        "absolute": family.absolute,
        "rows": 0 if score is None else score.rows,
        "excluded": family.excluded,
        "median_abs_error": None if score is None else score.median,
        "mean_abs_error": None if score is None else score.mean,
        "p90_abs_error": None if score is None else score.p90,
        "max_abs_error": None if score is None else score.largest,
        "bias": None if score is None else score.bias,
        "rank_correlation": None if score is None else score.rank_correlation,
        "interval_coverage": None if score is None else score.coverage,
        "interval_score": None if score is None else score.interval_score,
        "constant_width_score": family.constant_width_score,
        "baseline": str(family.baseline),
        "baseline_mean_abs_error": None if score is None else score.baseline_mean,
        "baseline_median_abs_error": None if score is None else score.baseline_median,
        "over": list(family.over),
        "tolerances": [
            {level: getattr(tolerance, level) for level in _TOLERANCE_KEYS}
            for tolerance in family.tolerances
        ],
    }


def _bands(found: Bands) -> dict[str, Any]:
    return {
        "figures": found.figures,
        "coverage": found.coverage,
        "interval_score": found.interval_score,
        "constant_width_score": found.constant_score,
        "families_off": [{"family": name, "coverage": share} for name, share in found.off],
        "holds": found.holds,
    }


_TOLERANCE_KEYS: Final = (
    *("median", "mean", "p90", "largest"),
    *("target_median", "target_mean", "target_p90", "target_largest"),
)


def _row(one: Judged) -> dict[str, Any]:
    return {
        "id": one.id,
        "set": one.set,
        "family": one.family,
        "split": str(one.split),
        "metric": one.metric,
        "predicted": one.point.predicted,
        "p10": one.point.p10,
        "p90": one.point.p90,
        "measured": one.point.measured,
        "spread": one.spread,
        "baseline": one.point.baseline,
        "anchor": one.anchor,
        "error": one.error,
    }


def _left(one: Left) -> dict[str, Any]:
    return {
        "id": one.id,
        "set": one.set,
        "family": one.family,
        "split": str(one.split),
        "reason": one.reason,
    }
