"""The object that ``--json`` prints: every metric by its dotted path, nested, in SI units.

Keys may be added, never renamed without a new `SCHEMA`. Null: does not apply, or has no finite
value. ``utilization`` lists the resources the scenario has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from simulator.report.prediction.actions import action_objects
from simulator.results.metrics import JOB_METRICS, Value
from simulator.results.prediction import Prediction
from simulator.studies.actions import Action
from simulator.uncertainty.provenance import Assumption
from simulator.version import __version__

SCHEMA: Final = 1


def as_object(prediction: Prediction) -> dict[str, Any]:
    """The prediction as plain dictionaries, lists, strings and numbers."""
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "scenario": prediction.scenario.name,
        "seed": prediction.seed,
    }
    for metric in JOB_METRICS:
        _place(tree, metric.name.split("."), _plain(metric.get(prediction)))
    tree["utilization"] = {
        str(name): {"mean": _plain(u.mean), "sum": _plain(u.total), "units": u.units}
        for name, u in sorted(prediction.timing.usage.items())
    }
    tree["interval"] = {
        name: {key: _plain(value) for key, value in band.items()}
        for name, band in prediction.interval.items()
    }
    tree["assumptions"] = [assumption_object(assumption) for assumption in prediction.assumptions]
    tree["warnings"] = list(prediction.warnings)
    return tree


def as_json(
    prediction: Prediction,
    observed: Mapping[str, Any] | None = None,
    found: Sequence[Action] | None = None,
) -> str:
    """The prediction as JSON text, without NaN or Infinity.

    With what was `observed`, if anything, and with the actions that were `found`, if asked for.
    """
    tree = as_object(prediction)
    if observed is not None:
        tree["observed"] = dict(observed)
    if found is not None:
        tree["actions"] = action_objects(found)
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False)


def _place(tree: dict[str, Any], path: list[str], value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _plain(value: Value) -> object:
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, int):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def assumption_object(assumption: Assumption) -> dict[str, object]:
    """An assumption with its source as plain values."""
    source = assumption.source
    return {
        "what": assumption.what,
        "value": assumption.value,
        "source": source.reference,
        "date": source.date,
        "verified": source.verified,
    }
